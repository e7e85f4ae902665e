#include "checks.h"
#include "copies.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include <cmath>

namespace tenon::opcheck {
namespace {

constexpr double kStep = 1e-6, kRelative = 1e-3, kAbsolute = 1e-5;

Values in_doubles(std::span<const Value> args) {
  autograd::NoGrad off;
  Values wide;
  for (const Value& value : args)
    wide.push_back(value.map_tensors([](const Tensor& tensor) {
      if (!tensor.defined() || !tensor.is_floating_point()) return tensor;
      Tensor made = tensor.detach().to(kFloat64).clone(MemoryFormat::Contiguous);
      if (tensor.requires_grad()) made.set_requires_grad();
      return made;
    }));
  return wide;
}

// The results that are differentiable, weighted and added up.
Tensor loss_of(std::span<const Value> results) {
  Tensor loss;
  double weight = 1;
  for (const Tensor& tensor : tensors_of(results)) {
    if (!tensor.is_floating_point()) continue;
    Tensor weights = (arange(tensor.numel(), TensorOptions(kFloat64)) * 0.37 + weight).reshape(tensor.sym_sizes());
    Tensor term = (tensor.to(kFloat64) * weights).sum();
    loss = loss.defined() ? loss + term : term;
    weight += 0.5;
  }
  return loss;
}

}  // namespace

void check_derivatives(const BoxedFunction& function, std::span<const Value> args) {
  Values wide = in_doubles(args);
  Tensor loss = loss_of(function(wide).span());
  if (!loss.defined() || !loss.requires_grad()) return;
  std::vector<Tensor> inputs;
  for (const Tensor& tensor : tensors_of(wide))
    if (tensor.is_floating_point() && tensor.requires_grad()) inputs.push_back(tensor);
  std::vector<Tensor> gradients = autograd::grad(std::vector<Tensor>{loss}, inputs, {}, false, false, true);
  autograd::NoGrad off;
  auto value = [&] { return loss_of(function(wide).span()).item<double>(); };
  for (size_t which = 0; which < inputs.size(); ++which) {
    Tensor gradient = gradients[which].defined() ? gradients[which].contiguous() : zeros_like(inputs[which]);
    double* elements = inputs[which].data<double>();
    for (int64_t at = 0; at < inputs[which].numel().plain(); ++at) {
      double kept = elements[at];
      elements[at] = kept + kStep;
      double above = value();
      elements[at] = kept - kStep;
      double below = value();
      elements[at] = kept;
      double numeric = (above - below) / (2 * kStep), analytic = gradient.data<double>()[at];
      if (std::fabs(numeric - analytic) <= kAbsolute + kRelative * std::fabs(numeric)) continue;
      throw AssertionError(fmt::format(
          "[gradcheck] the derivative with respect to element {} of the tensor argument {} that requires grad "
          "is {} by finite differences, {} by autograd",
          at, which, numeric, analytic));
    }
  }
}

void gradcheck(const Subject& op, std::span<const Value> args) {
  check_derivatives(on_clones(op.op()), dispatch::bind_arguments(op.op().schema(), args));
}

}  // namespace tenon::opcheck
