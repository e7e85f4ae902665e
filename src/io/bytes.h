// Bytes of a file, or of memory, that tensors may look into.
#pragma once

#include <tenon/core/tensor.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

namespace tenon::io {

struct Bytes {
  std::span<std::byte> span;
  std::shared_ptr<const void> owner;  // keeps them
  std::string name;                   // for messages

  size_t size() const { return span.size(); }
  Bytes part(size_t from, size_t count) const { return {span.subspan(from, count), owner, name}; }
};

// The file's pages, copied when they are written to, so that the file never changes.
Bytes map_file(const std::filesystem::path& path, std::string_view what);
// A copy of these bytes.
Bytes copy_bytes(std::span<const std::byte> bytes, std::string name);

// A tensor on those bytes, which must suffice; a copy if they do not lie where elements of that dtype may.
Tensor tensor_on(const Bytes& bytes, Dtype dtype, const Ints& sizes, const Ints& strides);

// The product of sizes that are all at least 0; nothing if it is beyond what a tensor can have.
std::optional<int64_t> element_count(std::span<const int64_t> sizes);

// A number in little-endian order at a position that the caller has checked.
template <typename T>
T little(std::span<const std::byte> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t byte = 0; byte < sizeof(T); ++byte) value |= uint64_t(bytes[at + byte]) << (8 * byte);
  return static_cast<T>(value);
}

}  // namespace tenon::io
