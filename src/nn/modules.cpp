#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/modules.h>

#include <cmath>

namespace tenon::nn {
namespace {

Tensor uniform(const SymInts& sizes, double bound, Dtype dtype) {
  NoGrad off;
  return rand(sizes, TensorOptions(dtype)) * (2 * bound) - bound;
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options) {
  TENON_CHECK_VALUE(in_features > 0 && out_features > 0,
                    "[Linear] expected at least one feature in and out, got {} and {}", in_features, out_features);
  TENON_CHECK(is_floating(options.dtype), "[Linear] expected a floating point dtype, got {}", name(options.dtype));
  double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight = parameter("weight", uniform({out_features, in_features}, bound, options.dtype));
  bias = parameter("bias", options.bias ? uniform({out_features}, bound, options.dtype) : Tensor());
}

Tensor Linear::operator()(const Tensor& input) const {
  Tensor offset = bias.get();
  return linear(input, weight.get(), offset.defined() ? std::optional<Tensor>(offset) : std::nullopt);
}

Tensor ReLU::operator()(const Tensor& input) const { return relu(input); }

Tensor Sequential::operator()(const Tensor& input) const {
  Tensor value = input;
  for (const auto& layer : layers_) value = layer(value);
  return value;
}

}  // namespace tenon::nn
