// libtorch's header of this name: the type in which sums of elements are kept.
#pragma once

#include <tenon/compat/types.h>

namespace at {

template <typename T, bool kGpu>
struct AccumulateType {
  using type =
      std::conditional_t<std::is_same_v<T, bool>, bool, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;
};
template <typename T, bool kGpu>
using acc_type = typename AccumulateType<T, kGpu>::type;
template <typename T>
using opmath_type = std::conditional_t<std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>, float, T>;

}  // namespace at
