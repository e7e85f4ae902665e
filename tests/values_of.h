// The elements of a tensor, for tests that look at them.
#pragma once

#include <tenon/tenon.h>

#include <vector>

namespace tenon::testing {

inline std::vector<double> values(const Tensor& tensor) {
  NoGrad off;
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  const double* data = plain.data<double>();
  return {data, data + plain.numel().plain()};
}

}  // namespace tenon::testing
