// Derivatives of functions, as functions.
//
//   auto f = [](const Tensor& at) { return at * at * at; };
//   Tensor w = tensor({1.0, 2.0}, kFloat64), v = tensor({1.0, 0.0}, kFloat64);
//   Tensor slopes = autograd::jacobian(f, {w})[0][0];                         // [[3, 0], [0, 12]]
//   auto [value, along] = autograd::jvp(f, {w}, {v});                         // along[0]: {3, 0}
//   auto [same, back] = autograd::vjp(f, {w}, {v});                           // back[0]: {3, 0}
//   auto sum = [](const Tensor& at) { return (at * at * at).sum(); };
//   Tensor curvature = autograd::hessian(sum, {w})[0][0];                     // [[6, 0], [0, 12]]
//   Tensor product = autograd::hvp(sum, {w}, {v})[0];                         // {6, 0}
//
// A function takes and gives a tensor or several. What an output does not depend on has the derivative zero; with
// `strict` that is an Error. With `create_graph` the results can be differentiated again; inputs that require grad are
// then part of their history.
#pragma once

#include <tenon/autograd/gradcheck.h>

namespace tenon::autograd {

//   autograd::DerivativeOptions options{.create_graph = true, .strict = true};
struct DerivativeOptions {
  bool create_graph = false;
  bool strict = false;
};

// What the function gives, and the derivative that was asked for: one tensor per input (`vjp`) or output (`jvp`).
//
//   autograd::ValueAndDerivative both = autograd::vjp([](const Tensor& at) { return at.sum(); }, {ones({3})});
struct ValueAndDerivative {
  std::vector<Tensor> value, derivative;
};

namespace detail {
ValueAndDerivative vjp(const Checked& function, const Tensors& inputs, const Tensors& v,
                       const DerivativeOptions& options);
ValueAndDerivative jvp(const Checked& function, const Tensors& inputs, const Tensors& v,
                       const DerivativeOptions& options);
std::vector<Tensors> jacobian(const Checked& function, const Tensors& inputs, const DerivativeOptions& options);
std::vector<Tensors> hessian(const Checked& function, const Tensors& inputs, const DerivativeOptions& options);
Tensors hvp(const Checked& function, const Tensors& inputs, const Tensors& v, const DerivativeOptions& options);
}  // namespace detail

// The derivative times a direction of the outputs, from the left; none is needed for one output of one element.
template <typename F>
ValueAndDerivative vjp(F function, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {},
                       const DerivativeOptions& options = {}) {
  return detail::vjp(detail::checked(std::move(function)), inputs, v, options);
}
// Times a direction of the inputs, from the right. Computed by differentiating backward with respect to what it is
// given, so that every row with a gradient that has one itself has this, too.
template <typename F>
ValueAndDerivative jvp(F function, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
                       const DerivativeOptions& options = {}) {
  return detail::jvp(detail::checked(std::move(function)), inputs, v, options);
}
// By output, by input: a tensor of the output's sizes, then the input's.
template <typename F>
std::vector<std::vector<Tensor>> jacobian(F function, const std::vector<Tensor>& inputs,
                                          const DerivativeOptions& options = {}) {
  return detail::jacobian(detail::checked(std::move(function)), inputs, options);
}
// Of a function with one result of one element; by input, by input.
template <typename F>
std::vector<std::vector<Tensor>> hessian(F function, const std::vector<Tensor>& inputs,
                                         const DerivativeOptions& options = {}) {
  return detail::hessian(detail::checked(std::move(function)), inputs, options);
}
// The Hessian times a direction, without the matrix.
template <typename F>
std::vector<Tensor> hvp(F function, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
                        const DerivativeOptions& options = {}) {
  return detail::hvp(detail::checked(std::move(function)), inputs, v, options);
}

}  // namespace tenon::autograd
