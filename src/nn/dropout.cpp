#include <tenon/generated/ops.h>
#include <tenon/nn/dropout.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon {
namespace {

void check(const Tensor& input, double p, const char* name) {
  TENON_CHECK(input.defined() && input.is_floating_point(), "[{}] expected a floating point tensor, got {}", name,
              input.defined() ? input.description() : "an undefined one");
  TENON_CHECK_VALUE(p >= 0 && p <= 1, "[{}] expected a probability from 0 to 1, got {}", name, p);
}

}  // namespace

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  check(input, p, "feature_dropout");
  TENON_CHECK(input.dim() >= 2, "[feature_dropout] expected a tensor [N, C, …], got {}", input.description());
  if (!train || p == 0) return input;
  if (p == 1) return input * 0;
  SymInts sizes(static_cast<size_t>(input.dim()), SymInt(1));
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  Tensor kept = rand(sizes, TensorOptions(compute_dtype(input.dtype()), input.device())) >= p;
  return input * (kept.to(input.dtype()) / (1 - p));
}

Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  check(input, p, "alpha_dropout");
  if (!train || p == 0) return input;
  if (p == 1) return input * 0;
  constexpr double kAlpha = 1.7580993408473766;  // where SELU ends on the left
  double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Tensor kept = rand(input.sym_sizes(), TensorOptions(compute_dtype(input.dtype()), input.device())) >= p;
  Tensor mask = kept.to(input.dtype());
  return input * (mask * a) + ((mask - 1) * (kAlpha * a) + kAlpha * a * p);
}

}  // namespace tenon

namespace tenon::nn {

DropoutLayer::DropoutLayer(const char* kind, double p, Function function) : p_(p), function_(function) {
  TENON_CHECK_VALUE(p >= 0 && p <= 1, "[{}] expected a probability from 0 to 1, got {}", kind, p);
  describe(kind, fmt::format("p={}", p));
}
Tensor DropoutLayer::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) { return function_(x, p_, is_training()); });
}

Dropout::Dropout(double p)
    : DropoutLayer("Dropout", p, [](const Tensor& x, double rate, bool train) { return dropout(x, rate, train); }) {}
Dropout1d::Dropout1d(double p) : DropoutLayer("Dropout1d", p, feature_dropout) {}
Dropout2d::Dropout2d(double p) : DropoutLayer("Dropout2d", p, feature_dropout) {}
Dropout3d::Dropout3d(double p) : DropoutLayer("Dropout3d", p, feature_dropout) {}
AlphaDropout::AlphaDropout(double p) : DropoutLayer("AlphaDropout", p, alpha_dropout) {}

}  // namespace tenon::nn
