// What the operator cases of seed 000 share: a function is run eagerly and compiled, with sizes fixed and dynamic,
// forward and backward, and everything that a caller can see is compared.
#pragma once

#include "../unit/capture/testing.h"

#include <tenon/dispatch/packet.h>
#include <tenon/support/counters.h>

#include <functional>

namespace tenon::operators {

using testing::error_of;
using testing::same_bits;

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

struct Check {
  double rtol = -1, atol = -1;  // below 0: PyTorch's for the dtype
  bool backward = true;         // also gradients, where a result has a history
  bool values = true;           // false: of memory that nobody wrote only the geometry is compared
  bool fullgraph = true;        // the function is one graph
  bool strides = true;          // those of dimensions with more than one element
  int64_t kernels = -1;         // at most so many launches a call
  Tensors then = {};            // inputs of other sizes, for which the dynamic function need not be compiled again
};

// Runs `function` on copies of the inputs; gives what the eager run gave. Inputs that the function writes to are
// compared after it. The case fails by gtest's means.
Tensors check_function(const Function& function, const Tensors& inputs, const Check& how);

// Equal dtype, sizes, strides, and values up to the tolerances; NaNs are equal to each other.
::testing::AssertionResult close(const Tensor& actual, const Tensor& expected, const Check& how);

// The kernels that the function becomes, as text.
std::string kernels_of(const Function& function, const Tensors& inputs, Dynamic dynamic);

// The same elements in memory of their own, with the same strides, also where elements share a place.
Tensor copy_with_strides(const Tensor& tensor);

// All results of an operator, by its name: of one that has no C++ function. Those that it does not give are left out.
inline Tensors by_name(const char* name, std::initializer_list<dispatch::Value> arguments,
                       std::initializer_list<dispatch::Keyword> keywords = {}) {
  Tensors results;
  for (const dispatch::Value& result : dispatch::call_by_name(name, arguments, keywords))
    if (!result.is_none() && result.tensor().defined()) results.push_back(result.tensor());
  return results;
}

inline void pack(Tensors& all, const Tensor& result) { all.push_back(result); }
template <typename T>
void pack(Tensors& all, const std::vector<T>& results) {
  for (const T& each : results) pack(all, each);
}
template <typename... T>
void pack(Tensors& all, const std::tuple<T...>& results) {
  std::apply([&](const auto&... each) { (pack(all, each), ...); }, results);
}
template <typename R>
Tensors packed(const R& results) {
  Tensors all;
  pack(all, results);
  return all;
}

// The function takes its tensors one by one, or all as a list; it gives a tensor, or tuples and lists of them.
//
//   check([](Tensor a, Tensor b) { return a + b; }, {randn({8}), randn({8})});
template <typename F>
Function of_list(F function) {
  using T = const Tensor&;
  if constexpr (std::is_invocable_v<F, const Tensors&>)
    return [function](const Tensors& x) { return packed(function(x)); };
  else if constexpr (std::is_invocable_v<F>)
    return [function](const Tensors&) { return packed(function()); };
  else if constexpr (std::is_invocable_v<F, T>)
    return [function](const Tensors& x) { return packed(function(x.at(0))); };
  else if constexpr (std::is_invocable_v<F, T, T>)
    return [function](const Tensors& x) { return packed(function(x.at(0), x.at(1))); };
  else if constexpr (std::is_invocable_v<F, T, T, T>)
    return [function](const Tensors& x) { return packed(function(x.at(0), x.at(1), x.at(2))); };
  else
    return [function](const Tensors& x) { return packed(function(x.at(0), x.at(1), x.at(2), x.at(3))); };
}
template <typename F>
Tensors check(F function, const Tensors& inputs, const Check& how = {}) {
  return check_function(of_list(function), inputs, how);
}

}  // namespace tenon::operators
