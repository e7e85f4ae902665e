#include "support/out_of_memory.h"
#include "uniform.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/linear.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::nn {

Tensor uniform(const SymInts& sizes, double bound, Dtype dtype) {
  NoGrad off;
  return rand(sizes, TensorOptions(dtype)) * (2 * bound) - bound;
}

std::optional<Tensor> given(const Cell<Tensor>& cell) {
  Tensor tensor = cell.get();
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

std::string_view yes_or_no(bool flag) { return flag ? "True" : "False"; }

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options) try {
  TENON_CHECK_VALUE(in_features > 0 && out_features > 0,
                    "[Linear] expected at least one feature in and out, got {} and {}", in_features, out_features);
  TENON_CHECK(is_floating(options.dtype), "[Linear] expected a floating point dtype, got {}", name(options.dtype));
  double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight = parameter("weight", uniform({out_features, in_features}, bound, options.dtype));
  bias = parameter("bias", options.bias ? uniform({out_features}, bound, options.dtype) : Tensor());
  describe("Linear",
           fmt::format("in_features={}, out_features={}, bias={}", in_features, out_features, yes_or_no(options.bias)));
} catch (...) {
  support::rethrow_named("Linear");
}

Tensor Linear::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) { return linear(x, weight.get(), given(bias)); });
}

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const LinearOptions& options) {
  TENON_CHECK_VALUE(in1_features > 0 && in2_features > 0 && out_features > 0,
                    "[Bilinear] expected at least one feature everywhere, got {}, {} and {}", in1_features,
                    in2_features, out_features);
  double bound = 1 / std::sqrt(static_cast<double>(in1_features));
  weight = parameter("weight", uniform({out_features, in1_features, in2_features}, bound, options.dtype));
  bias = parameter("bias", options.bias ? uniform({out_features}, bound, options.dtype) : Tensor());
  describe("Bilinear", fmt::format("in1_features={}, in2_features={}, out_features={}, bias={}", in1_features,
                                   in2_features, out_features, yes_or_no(options.bias)));
}

Tensor Bilinear::operator()(const Tensor& left, const Tensor& right) const {
  return run(left, right, [this](const Tensor& one, const Tensor& other) {
    // [..., 1, in1] · [out, in1, in2] is [..., out, 1, in2].
    Tensor half = squeeze(matmul(unsqueeze(unsqueeze(one, -2), -2), weight.get()), -2);
    Tensor result = sum(half * unsqueeze(other, -2), -1);
    std::optional<Tensor> offset = given(bias);
    return offset ? result + *offset : result;
  });
}

}  // namespace tenon::nn
