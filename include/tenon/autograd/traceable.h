// Hooks that may be captured into a graph.
//
// A hook is an ordinary function, and may do anything: count its calls, print, change a variable. So compiled autograd
// calls it at every walk, between two graphs. One that only computes is better off inside: a function, a lambda without
// captures, or one that is wrapped here is run once, on stand-ins, and what it computes becomes part of the graph.
#pragma once

#include <tenon/autograd/visit.h>

#include <type_traits>

namespace tenon::autograd {

template <typename F>
struct Traceable {
  F function;
  uint64_t serial;
  template <typename... Args>
  decltype(auto) operator()(Args&&... args) {
    return function(std::forward<Args>(args)...);
  }
};

// Says that a hook does nothing but compute, always the same.
//
//   Tensor w = ones({3}).set_requires_grad();
//   double factor = 0.5;
//   autograd::register_hook(w, autograd::traceable([factor](const Tensor& gradient) { return gradient * factor; }));
//   w.sum().backward();
template <typename F>
Traceable<F> traceable(F function) {
  return {std::move(function), new_kind()};
}

namespace detail {

uint64_t kind_of_function(void (*function)());

template <typename F>
struct is_traceable_wrapper : std::false_type {};
template <typename F>
struct is_traceable_wrapper<Traceable<F>> : std::true_type {};

// What a hook is known by if it may be captured; 0 if it may not.
template <typename F>
uint64_t hook_kind(const F& hook) {
  if constexpr (is_traceable_wrapper<F>::value) {
    return hook.serial;
  } else if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>) {
    return kind_of_function(reinterpret_cast<void (*)()>(hook));
  } else if constexpr (std::is_class_v<F> && std::is_empty_v<F>) {
    static const uint64_t kind = new_kind();
    return kind;
  } else {
    return 0;
  }
}

}  // namespace detail
}  // namespace tenon::autograd
