#include "kernels/wide_lines.h"

#include <limits>

namespace tenon::kernels {
namespace {

// Towards zero, at the ends of `To` at most.
template <typename To>
To clamped(double value) {
  constexpr auto low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  if (std::isnan(value)) return 0;
  if (value >= static_cast<double>(high)) return high;
  if (value <= static_cast<double>(low)) return low;
  return static_cast<To>(value);
}

template <typename To, typename Wide>
To converted(Wide value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != 0;
  else if constexpr (std::is_same_v<To, int64_t> && !std::is_same_v<Wide, int64_t>)
    return clamped<int64_t>(value);
  else if constexpr (std::is_integral_v<To> && !std::is_same_v<Wide, int64_t>)
    return static_cast<To>(clamped<int32_t>(value));
  else if constexpr (!std::is_arithmetic_v<To> && std::is_same_v<Wide, int64_t>)
    return narrow<To>(static_cast<float>(value));
  else
    return narrow<To>(value);
}

}  // namespace

template <typename Wide>
void read_line(const Stretch& from, Wide* to, Dtype target) {
  with_element_type(from.tensor.dtype(), [&]<typename T>() {
    const T* element = from.tensor.data<T>() + from.offset;
    if constexpr (std::is_same_v<Wide, int64_t> && !std::is_integral_v<T>) {
      for (int64_t at = 0; at < from.count; ++at) {
        const double value = static_cast<double>(widen(element[at * from.step]));
        to[at] = target == Dtype::Int64 ? clamped<int64_t>(value) : clamped<int32_t>(value);
      }
    } else {
      auto each = [&](int64_t step) {
        for (int64_t at = 0; at < from.count; ++at) to[at] = static_cast<Wide>(widen(element[at * step]));
      };
      from.step == 1 ? each(1) : each(from.step);
    }
  });
}

template <typename Wide>
void write_line(const Wide* from, const Stretch& to) {
  with_element_type(to.tensor.dtype(), [&]<typename T>() {
    T* element = to.tensor.data<T>() + to.offset;
    auto each = [&](int64_t step) {
      for (int64_t at = 0; at < to.count; ++at) element[at * step] = converted<T>(from[at]);
    };
    to.step == 1 ? each(1) : each(to.step);
  });
}

template void read_line(const Stretch&, int64_t*, Dtype);
template void read_line(const Stretch&, float*, Dtype);
template void read_line(const Stretch&, double*, Dtype);
template void write_line(const int64_t*, const Stretch&);
template void write_line(const float*, const Stretch&);
template void write_line(const double*, const Stretch&);

void copy_elements(const TensorBase& from, const TensorBase& to) {
  const Strided source(from), target(to);
  if (from.dtype() == to.dtype()) {
    auto copy = [&]<typename T>(T) {
      copy_elements(static_cast<const T*>(from.raw_data()), source, static_cast<T*>(to.raw_data()), target);
    };
    switch (to.element_size()) {
      case 1: return copy(uint8_t{});
      case 2: return copy(uint16_t{});
      case 4: return copy(uint32_t{});
      default: return copy(uint64_t{});
    }
  }
  auto through = [&]<typename Wide>(Wide) {
    parallel_for(target.count, kGrain, [&](int64_t begin, int64_t end) {
      Wide room[kStretch];
      for_each_stretch(target.sizes, begin, end, [&](int64_t first, int64_t count) {
        read_line({from, offset_of(first, source.sizes, source.strides), source.strides.back(), count}, room);
        write_line(room, {to, offset_of(first, target.sizes, target.strides), target.strides.back(), count});
      });
    });
  };
  is_floating(from.dtype()) ? through(double{}) : through(int64_t{});
}

}  // namespace tenon::kernels
