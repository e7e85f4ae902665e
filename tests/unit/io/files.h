// Files of the io tests.
#pragma once

#include "io/readers.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

namespace tenon::testing {

// A path that no other test has; what is there goes with it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& extension) {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() / fmt::format("tenon_io_{}_{}{}", ::getpid(), count++, extension);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path data_file(const std::string& name) {
  return std::filesystem::path(TENON_SOURCE_DIR) / "tests/data/io" / name;
}

inline std::vector<std::byte> content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> letters((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(letters.size());
  std::memcpy(bytes.data(), letters.data(), letters.size());
  return bytes;
}

// Reads every byte that the tensors claim to have.
inline int64_t touch(const io::NamedTensors& tensors) {
  int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) {
    int64_t reach = core::reach(tensor.sizes(), tensor.strides()) * tensor.element_size();
    const auto* bytes = static_cast<const unsigned char*>(tensor.raw_data());
    for (int64_t at = 0; at < reach; ++at) sum += bytes[at];
  }
  return sum;
}

}  // namespace tenon::testing
