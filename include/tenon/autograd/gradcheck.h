// Whether backward computes the derivative of a function: compared with finite differences.
//
//   Tensor w = randn({3}, kFloat64).set_requires_grad();
//   bool right = autograd::gradcheck([](const Tensor& at) { return at.sin() * at; }, {w});
//   bool twice = autograd::gradgradcheck([](const Tensor& at) { return at.sin() * at; }, {w}, {.fast_mode = true});
//
// The function takes and gives a tensor or several. What differs is a `GradcheckError` that shows both matrices; with
// `raise_exception = false` the answer is no. Errors of the function itself come through.
#pragma once

#include <tenon/autograd/engine.h>

#include <functional>
#include <optional>

namespace tenon::autograd {

//   try {
//     autograd::gradcheck([](const Tensor& at) { return at.detach(); }, {ones({1}, kFloat64).set_requires_grad()});
//   } catch (const autograd::GradcheckError& error) {
//     std::string text = error.what();  // "[gradcheck] Numerical gradient for function expected to be zero …"
//   }
class GradcheckError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

//   autograd::GradcheckOptions options{.eps = 1e-6, .atol = 1e-5, .rtol = 1e-3, .nondet_tol = 0,
//                                      .raise_exception = false, .check_undefined_grad = false, .fast_mode = true};
struct GradcheckOptions {
  double eps = 1e-6;                // how far an element is moved, to both sides
  double atol = 1e-5, rtol = 1e-3;  // how far the two may be apart: atol + rtol * |numerical|
  double nondet_tol = 0;            // how far two runs of one backward may be apart
  bool raise_exception = true;
  bool check_undefined_grad = true;  // backward must also take outputs whose gradient is undefined, which means zero
  bool fast_mode = false;            // one random direction instead of whole matrices
  bool check_backward_ad = true;     // gradients
  bool check_forward_ad = false;     // tangents, as `forward_ad` computes them
  bool check_batched_forward_grad = false;  // tangents for several directions at once, as `vmap` computes them
};

namespace detail {

using Tensors = std::vector<Tensor>;
using Checked = std::function<Tensors(const Tensors&)>;
bool gradcheck(const Checked& function, const Tensors& inputs, const GradcheckOptions& options);
bool gradgradcheck(const Checked& function, const Tensors& inputs, const Tensors& grad_outputs,
                   const GradcheckOptions& options);

inline Tensors as_list(Tensor result) { return {std::move(result)}; }
inline Tensors as_list(Tensors results) { return results; }

template <typename F>
Checked checked(F function) {
  return [function = std::move(function)](const Tensors& in) mutable -> Tensors {
    if constexpr (std::is_invocable_v<F&, const Tensors&>)
      return as_list(function(in));
    else if constexpr (std::is_invocable_v<F&, const Tensor&>)
      return as_list(function(in.at(0)));
    else if constexpr (std::is_invocable_v<F&, const Tensor&, const Tensor&>)
      return as_list(function(in.at(0), in.at(1)));
    else
      return as_list(function(in.at(0), in.at(1), in.at(2)));
  };
}

}  // namespace detail

template <typename F>
bool gradcheck(F function, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::checked(std::move(function)), inputs, options);
}
// The derivative of the derivative. The gradients of the outputs are drawn, unless they are given.
template <typename F>
bool gradgradcheck(F function, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {},
                   const std::vector<Tensor>& grad_outputs = {}) {
  return detail::gradgradcheck(detail::checked(std::move(function)), inputs, grad_outputs, options);
}

}  // namespace tenon::autograd
