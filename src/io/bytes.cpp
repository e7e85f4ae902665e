#include "io/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace tenon::io {

Bytes map_file(const std::filesystem::path& path, std::string_view what) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  TENON_CHECK_VALUE(file >= 0, "[{}] cannot open {}: {}", what, path.string(), std::strerror(errno));
  struct stat status{};
  bool known = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  auto size = known ? static_cast<size_t>(status.st_size) : 0;
  void* pages = size > 0 ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : nullptr;
  int problem = errno;
  ::close(file);
  TENON_CHECK_VALUE(known, "[{}] expected a file, got {}", what, path.string());
  TENON_CHECK_VALUE(pages != MAP_FAILED, "[{}] cannot map {}: {}", what, path.string(), std::strerror(problem));
  std::shared_ptr<const void> owner(pages, [size](void* start) {
    if (start) ::munmap(start, size);
  });
  return {{static_cast<std::byte*>(pages), size}, std::move(owner), path.string()};
}

Bytes copy_bytes(std::span<const std::byte> bytes, std::string name) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  std::span<std::byte> span(*copy);
  return {span, std::move(copy), std::move(name)};
}

Tensor tensor_on(const Bytes& bytes, Dtype dtype, const Ints& sizes, const Ints& strides) {
  auto count = static_cast<size_t>(core::reach(sizes.span(), strides.span()));
  size_t size = count * static_cast<size_t>(size_of(dtype));
  TENON_ASSERT(size <= bytes.size(), "{} bytes for {}", bytes.size(), size);
  if (count == 0) return core::allocate(sizes.span(), strides.span(), dtype, kCPU);
  if (reinterpret_cast<uintptr_t>(bytes.span.data()) % static_cast<uintptr_t>(size_of(dtype)) != 0) {
    Tensor copy = core::allocate(sizes.span(), strides.span(), dtype, kCPU);
    std::memcpy(copy.raw_data(), bytes.span.data(), size);
    return copy;
  }
  return from_blob(
      static_cast<void*>(bytes.span.data()), sizes, strides, [owner = bytes.owner](void*) {}, TensorOptions(dtype));
}

std::optional<int64_t> element_count(std::span<const int64_t> sizes) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty |= size == 0;
    // Of the sizes that are not 0, too: strides are products of them.
    if (size > 0 && __builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  if (count > (int64_t{1} << 58)) return std::nullopt;
  return empty ? 0 : count;
}

}  // namespace tenon::io
