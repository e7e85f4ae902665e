// libFuzzer: any bytes are refused with an Error, or are a tensor that lies within them.
#include "data/readers.h"
#include "unit/io/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  try {
    io::Bytes bytes = io::copy_bytes(std::as_bytes(std::span(data, size)), "fuzz");
    testing::touch({{"pictures", data::read_cifar10(bytes)}});
  } catch (const Error&) {
  }
  return 0;
}
