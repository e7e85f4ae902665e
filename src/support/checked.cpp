#include "support/checked.h"

#include <tenon/support/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::checked {

void does_not_fit(int64_t a, const char* sign, int64_t b) {
  throw OverflowError(fmt::format("[size] expected a number that fits 64 bits, got {} {} {}", a, sign, b));
}

int64_t element_count(std::span<const int64_t> sizes) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t count = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(count, size, &count)) [[unlikely]]
      throw OverflowError(fmt::format("[size] expected a number of elements that fits 64 bits, got sizes [{}]",
                                      fmt::join(sizes, ", ")));
  return count;
}

}  // namespace tenon::checked
