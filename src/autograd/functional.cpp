#include <tenon/autograd/functional.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::autograd::detail {
namespace {

// The inputs as tensors that gradients are asked of: leaves of their own, or (for a graph around) what they are.
Tensors prepared(const Tensors& inputs, bool create_graph, const char* what) {
  Tensors made;
  for (size_t at = 0; at < inputs.size(); ++at) {
    TENON_CHECK(inputs[at].defined() && inputs[at].is_floating_point(),
                "[{}] expected tensors of floating point numbers, got {} at position {}", what,
                inputs[at].defined() ? inputs[at].description() : "an undefined one", at);
    bool follows = create_graph && inputs[at].requires_grad();
    made.push_back(follows ? inputs[at].view_as(inputs[at]) : inputs[at].detach().set_requires_grad());
  }
  return made;
}

void check_directions(const Tensors& v, const Tensors& of, const char* what) {
  TENON_CHECK(v.size() == of.size(), "[{}] expected {} directions v, got {}", what, of.size(), v.size());
  for (size_t at = 0; at < v.size(); ++at)
    TENON_CHECK(v[at].defined() && std::ranges::equal(v[at].sizes(), of[at].sizes()),
                "[{}] v[{}] must have the sizes of {}, got {}", what, at, of[at].description(),
                v[at].defined() ? v[at].description() : "an undefined tensor");
}

// Gradients of those outputs that have a history; zeros where nothing comes.
Tensors gradients(const Tensors& outputs, const Tensors& inputs, const Tensors& v, bool create_graph, bool strict,
                  const char* what) {
  Tensors roots, with;
  for (size_t at = 0; at < outputs.size(); ++at) {
    if (outputs[at].is_floating_point() && outputs[at].requires_grad()) {
      roots.push_back(outputs[at]);
      if (!v.empty()) with.push_back(v[at]);
      continue;
    }
    TENON_CHECK(!strict, "[{}] output {} of the function does not depend on its inputs (strict)", what, at);
  }
  Tensors found(inputs.size());
  if (!roots.empty()) found = grad(roots, inputs, with, true, create_graph, true);
  for (size_t at = 0; at < found.size(); ++at) {
    TENON_CHECK(found[at].defined() || !strict, "[{}] no output depends on input {} (strict)", what, at);
    if (!found[at].defined()) found[at] = zeros_like(inputs[at].detach());
  }
  return found;
}

Tensors left(Tensors tensors, bool create_graph) {
  if (!create_graph)
    for (Tensor& each : tensors) each = each.detach();
  return tensors;
}

Tensor only(const Tensors& outputs, const char* what) {
  TENON_CHECK(outputs.size() == 1 && bool(outputs[0].numel() == 1),
              "[{}] expected a function with one result of one element, got {} results{}", what, outputs.size(),
              outputs.empty() ? "" : ", the first " + outputs[0].description());
  return outputs[0];
}

}  // namespace

ValueAndDerivative vjp(const Checked& function, const Tensors& inputs, const Tensors& v,
                       const DerivativeOptions& options) {
  EnableGrad on;
  Tensors at = prepared(inputs, options.create_graph, "vjp"), outputs = function(at);
  if (v.empty())
    (void)only(outputs, "vjp");
  else
    check_directions(v, outputs, "vjp");
  Tensors found = gradients(outputs, at, v, options.create_graph, options.strict, "vjp");
  return {left(std::move(outputs), options.create_graph), left(std::move(found), options.create_graph)};
}

ValueAndDerivative jvp(const Checked& function, const Tensors& inputs, const Tensors& v,
                       const DerivativeOptions& options) {
  EnableGrad on;
  check_directions(v, inputs, "jvp");
  Tensors at = prepared(inputs, options.create_graph, "jvp"), outputs = function(at), weights;
  // Backward is linear in what it is given: its derivative by that is the derivative of the function, turned around.
  for (const Tensor& output : outputs)
    weights.push_back(output.is_floating_point() ? zeros_like(output.detach()).set_requires_grad() : Tensor());
  Tensors back = gradients(outputs, at, weights, true, options.strict, "jvp"), asked;
  for (const Tensor& each : weights)
    if (each.defined()) asked.push_back(each);
  Tensors along = asked.empty() ? Tensors() : gradients(back, asked, v, options.create_graph, false, "jvp"), found;
  size_t next = 0;
  for (const Tensor& each : weights) found.push_back(each.defined() ? along[next++] : Tensor());
  for (Tensor& each : found)
    if (each.defined() && !options.create_graph) each = each.detach();
  return {left(std::move(outputs), options.create_graph), std::move(found)};
}

std::vector<Tensors> jacobian(const Checked& function, const Tensors& inputs, const DerivativeOptions& options) {
  EnableGrad on;
  Tensors at = prepared(inputs, options.create_graph, "jacobian"), outputs = function(at);
  std::vector<Tensors> result;
  for (const Tensor& output : outputs) {
    int64_t count = output.numel().plain();
    std::vector<Tensors> rows(inputs.size());
    for (int64_t element = 0; element < count; ++element) {
      Tensor unit = zeros({count}, TensorOptions(output.dtype(), output.device()));
      unit[element] = 1;
      Tensors row =
          gradients({output}, at, {unit.view(output.sym_sizes())}, options.create_graph, options.strict, "jacobian");
      for (size_t which = 0; which < inputs.size(); ++which) rows[which].push_back(std::move(row[which]));
    }
    Tensors of_output;
    for (size_t which = 0; which < inputs.size(); ++which) {
      SymInts sizes = output.sym_sizes();
      for (const SymInt& size : inputs[which].sym_sizes()) sizes.push_back(size);
      Tensor matrix = count > 0 ? stack(rows[which]).reshape(sizes)
                                : zeros(sizes, TensorOptions(inputs[which].dtype(), inputs[which].device()));
      of_output.push_back(options.create_graph ? matrix : matrix.detach());
    }
    result.push_back(std::move(of_output));
  }
  return result;
}

std::vector<Tensors> hessian(const Checked& function, const Tensors& inputs, const DerivativeOptions& options) {
  Checked slope = [&](const Tensors& at) {
    Tensor value = only(function(at), "hessian");
    return gradients({value}, at, {}, true, options.strict, "hessian");
  };
  return jacobian(slope, inputs, {.create_graph = options.create_graph, .strict = false});
}

Tensors hvp(const Checked& function, const Tensors& inputs, const Tensors& v, const DerivativeOptions& options) {
  EnableGrad on;
  check_directions(v, inputs, "hvp");
  Tensors at = prepared(inputs, options.create_graph, "hvp");
  Tensor value = only(function(at), "hvp");
  Tensors slope = gradients({value}, at, {}, true, options.strict, "hvp");
  // The Hessian is symmetric: backward through the slope is the product.
  return left(gradients(slope, at, v, options.create_graph, false, "hvp"), options.create_graph);
}

}  // namespace tenon::autograd::detail
