// libFuzzer: any bytes are refused with an Error, or are tensors that lie within them.
#include "unit/io/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  try {
    io::Bytes bytes = io::copy_bytes(std::as_bytes(std::span(data, size)), "fuzz");
    io::NamedTensors read;
    read = {{"array", io::read_npy(bytes)}};
    testing::touch(read);
  } catch (const Error&) {
  }
  return 0;
}
