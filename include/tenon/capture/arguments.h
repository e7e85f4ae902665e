// With which types a compiled function is called: where it takes a symbol, a plain number becomes one. (How arguments
// are taken apart: dispatch/structures.h.)
#pragma once

#include <tenon/dispatch/structures.h>

namespace tenon::capture {

using dispatch::FlatArguments;
using dispatch::flatten_argument;
using dispatch::flatten_result;
using dispatch::FlatTensors;
using dispatch::FlatValues;
using dispatch::rebuild_argument;
using dispatch::rebuild_result;
using dispatch::Supply;
using dispatch::without_tensors;

// What a plain number becomes where the function takes a symbol.
template <typename T>
using Symbolic = std::conditional_t<std::is_floating_point_v<T>, SymFloat,
                                    std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, SymInt, T>>;

// Whether the function's parameter is a plain integer: a symbol would convert to it, and pin. Of a generic or
// overloaded function nobody can tell.
template <typename F, size_t at, typename... P>
consteval bool is_plain_integer(std::type_identity<std::tuple<P...>>) {
  if constexpr (at < sizeof...(P))
    return std::is_integral_v<std::remove_cvref_t<std::tuple_element_t<at, std::tuple<P...>>>>;
  else
    return false;
}
template <typename R, typename... P>
std::type_identity<std::tuple<P...>> parameters(R (*)(P...));
template <typename F, typename R, typename... P>
std::type_identity<std::tuple<P...>> parameters(R (F::*)(P...));
template <typename F, typename R, typename... P>
std::type_identity<std::tuple<P...>> parameters(R (F::*)(P...) const);
template <typename F, size_t at>
consteval bool takes_plain_integer() {
  if constexpr (requires(F& function) { parameters(+function); })
    return is_plain_integer<F, at>(decltype(parameters(+std::declval<F&>())){});
  else if constexpr (requires { parameters(&F::operator()); })
    return is_plain_integer<F, at>(decltype(parameters(&F::operator())){});
  else
    return false;
}

// The types that the function is called with: from the left, each plain number becomes a symbol if the function can be
// called so.
template <typename F, typename Done, typename... Rest>
struct CallTypes;
template <typename F, typename... Done>
struct CallTypes<F, std::tuple<Done...>> {
  using type = std::tuple<Done...>;
};
template <typename F, typename... Done, typename First, typename... Rest>
struct CallTypes<F, std::tuple<Done...>, First, Rest...> {
  static constexpr bool kSymbolic =
      !takes_plain_integer<F, sizeof...(Done)>() && std::is_invocable_v<F&, Done..., Symbolic<First>, Rest...>;
  using Chosen = std::conditional_t<kSymbolic, Symbolic<First>, First>;
  using type = typename CallTypes<F, std::tuple<Done..., Chosen>, Rest...>::type;
};
template <typename F, typename... Args>
using call_types = typename CallTypes<F, std::tuple<>, Args...>::type;

}  // namespace tenon::capture
