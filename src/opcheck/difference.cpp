#include "checks.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include <cmath>

namespace tenon::opcheck {
namespace {

// How far apart two computations of one value may be, by dtype: roundings of a few operators.
struct Tolerance {
  double relative, absolute;
};
Tolerance tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::Float16: return {1e-3, 1e-3};
    case Dtype::BFloat16: return {1.6e-2, 1e-2};
    case Dtype::Float32: return {1.3e-6 * 10, 1e-5};
    case Dtype::Float64: return {1e-7, 1e-7};
    case Dtype::Float8E4M3FN: return {0.125, 0x1p-9};
    case Dtype::Float8E5M2: return {0.25, 0x1p-16};
    default: return {0, 0};
  }
}

std::vector<double> numbers(const Tensor& tensor) {
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  const double* data = plain.data<double>();
  return {data, data + plain.numel().plain()};
}

}  // namespace

std::string difference(const Tensor& expected, const Tensor& given) {
  autograd::NoGrad off;
  if (expected.defined() != given.defined())
    return fmt::format("expected {}, got {}", expected.defined() ? expected.description() : "no tensor",
                       given.defined() ? given.description() : "no tensor");
  if (!expected.defined()) return {};
  if (expected.description() != given.description())
    return fmt::format("expected {}, got {}", expected.description(), given.description());
  Tolerance allowed = tolerance(expected.dtype());
  std::vector<double> a = numbers(expected), b = numbers(given);
  for (size_t at = 0; at < a.size(); ++at) {
    if (a[at] == b[at] || (std::isnan(a[at]) && std::isnan(b[at]))) continue;
    if (std::fabs(a[at] - b[at]) <= allowed.absolute + allowed.relative * std::fabs(a[at])) continue;
    return fmt::format("element {}: expected {}, got {}", at, a[at], b[at]);
  }
  return {};
}

std::string difference(const Value& expected, const Value& given) {
  std::vector<Tensor> a, b;
  expected.each_tensor([&](const Tensor& tensor) { a.push_back(tensor); });
  given.each_tensor([&](const Tensor& tensor) { b.push_back(tensor); });
  if (a.size() != b.size()) return fmt::format("expected {} tensors, got {}", a.size(), b.size());
  for (size_t at = 0; at < a.size(); ++at)
    if (std::string found = difference(a[at], b[at]); !found.empty()) return found;
  if (a.empty() && expected.str() != given.str())
    return fmt::format("expected {}, got {}", expected.str(), given.str());
  return {};
}

}  // namespace tenon::opcheck
