#include <tenon/kernels/bits.h>

#include <cstring>

#include "kernels/strided.h"

namespace tenon::kernels {

void copy_bits(const TensorBase& self, const TensorBase& out) {
  Strided source(self), target(out);
  if (source.count == 0) return;
  const auto* from = static_cast<const std::byte*>(self.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  const int64_t size = self.element_size();
  const bool same = size == out.element_size();
  parallel_for(source.count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t place = same ? offset_of(at, target.sizes, target.strides) : at;
      std::memcpy(to + place * size, from + offset_of(at, source.sizes, source.strides) * size,
                  static_cast<size_t>(size));
    }
  });
}

}  // namespace tenon::kernels
