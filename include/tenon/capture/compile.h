// `compile(fn)`: a callable that does what `fn` does, compiled.
//
//   auto f = compile([](Tensor a, Tensor b) { return (a.sin() + b).relu(); });
//   Tensor z = f(x, y);         // the first call captures and compiles, later ones run what was compiled
//
// Arguments may be tensors, optional tensors, vectors of tensors, and numbers (each value of which is compiled for itself). Results may be
// a tensor, a number, a vector, pair or tuple of these, or none.
#pragma once

#include <tenon/capture/compiled_function.h>
#include <tenon/dispatch/call.h>

#include <tuple>
#include <utility>

namespace tenon {
namespace capture {

using FlatTensors = SmallVector<Tensor, 8>;
using FlatConstants = SmallVector<dispatch::Value, 4>;

// How one type of argument is taken apart and put together.
template <typename T>
struct ArgumentTraits {
  static_assert(std::is_arithmetic_v<T>,
                "compile(): arguments must be tensors, optional tensors, vectors of tensors, or numbers");
  static void flatten(const T& value, FlatTensors&, FlatConstants& constants) {
    if constexpr (std::is_floating_point_v<T>)
      constants.push_back(dispatch::Value(static_cast<double>(value)));
    else
      constants.push_back(dispatch::Value(value));
  }
  static T rebuild(const T& value, std::span<const Tensor>&) { return value; }
};
template <>
struct ArgumentTraits<Tensor> {
  static void flatten(const Tensor& value, FlatTensors& tensors, FlatConstants&) { tensors.push_back(value); }
  static Tensor rebuild(const Tensor&, std::span<const Tensor>& tensors) {
    Tensor taken = tensors[0];
    tensors = tensors.subspan(1);
    return taken;
  }
};
template <>
struct ArgumentTraits<std::optional<Tensor>> {
  static void flatten(const std::optional<Tensor>& value, FlatTensors& tensors, FlatConstants& constants) {
    constants.push_back(dispatch::Value(value.has_value()));
    if (value) tensors.push_back(*value);
  }
  static std::optional<Tensor> rebuild(const std::optional<Tensor>& value, std::span<const Tensor>& tensors) {
    return value ? std::optional<Tensor>(ArgumentTraits<Tensor>::rebuild(*value, tensors)) : std::nullopt;
  }
};
template <>
struct ArgumentTraits<std::vector<Tensor>> {
  static void flatten(const std::vector<Tensor>& value, FlatTensors& tensors, FlatConstants& constants) {
    constants.push_back(dispatch::Value(value.size()));
    for (const Tensor& each : value) tensors.push_back(each);
  }
  static std::vector<Tensor> rebuild(const std::vector<Tensor>& value, std::span<const Tensor>& tensors) {
    std::vector<Tensor> rebuilt;
    for (const Tensor& each : value) rebuilt.push_back(ArgumentTraits<Tensor>::rebuild(each, tensors));
    return rebuilt;
  }
};
template <>
struct ArgumentTraits<SymInt> {
  static void flatten(const SymInt& value, FlatTensors&, FlatConstants& constants) { constants.push_back(dispatch::Value(int64_t(value))); }
  static SymInt rebuild(const SymInt& value, std::span<const Tensor>&) { return value; }
};

// Results, likewise. A vector carries its length as a number in front.
template <typename R>
void flatten_result(const R& result, std::vector<dispatch::Value>& flat) {
  if constexpr (requires { std::tuple_size<R>::value; }) {
    std::apply([&](const auto&... each) { (flatten_result(each, flat), ...); }, result);
  } else if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
    flat.push_back(dispatch::Value(result.size()));
    for (const Tensor& each : result) flat.push_back(dispatch::Value(Tensor(each)));
  } else if constexpr (std::is_same_v<R, std::optional<Tensor>>) {
    flat.push_back(result ? dispatch::Value(Tensor(*result)) : dispatch::Value());
  } else if constexpr (std::is_floating_point_v<R>) {
    flat.push_back(dispatch::Value(static_cast<double>(result)));
  } else {
    flat.push_back(dispatch::Value(result).own());
  }
}
template <typename R>
R rebuild_result(std::span<dispatch::Value>& flat) {
  auto take = [&]() -> dispatch::Value& {
    dispatch::Value& value = flat[0];
    flat = flat.subspan(1);
    return value;
  };
  if constexpr (requires { std::tuple_size<R>::value; }) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R{rebuild_result<std::tuple_element_t<I, R>>(flat)...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else if constexpr (std::is_same_v<R, Tensor>) {
    return take().take_tensor();
  } else if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
    auto count = static_cast<size_t>(take().integer());
    std::vector<Tensor> list;
    for (size_t at = 0; at < count; ++at) list.push_back(take().take_tensor());
    return list;
  } else if constexpr (std::is_floating_point_v<R>) {
    return static_cast<R>(take().real());
  } else if constexpr (std::is_integral_v<R> && !std::is_same_v<R, bool>) {
    return static_cast<R>(take().integer());
  } else {
    return dispatch::from_value<R>(take());
  }
}

}  // namespace capture

// A compiled callable. Copies share what was compiled.
//
//   auto function = [](Tensor a) { return a * 2; };
//   Compiled<decltype(function)> twice = compile(function);
//   twice(x);
//   int64_t compiles = twice.compile_count();   // 1
//   std::string why = twice.explain().str();
//   twice.reset();                              // the next call compiles again
template <typename F>
class Compiled {
 public:
  Compiled(F function, CompileOptions options)
      : function_(std::make_shared<F>(std::move(function))),
        state_(std::make_shared<capture::CompiledFunction>(std::move(options))) {}

  template <typename... Args>
    requires std::is_invocable_v<F&, const Args&...>
  auto operator()(const Args&... args) const {
    using R = std::invoke_result_t<F&, const Args&...>;
    capture::FlatTensors tensors;
    capture::FlatConstants constants;
    (capture::ArgumentTraits<Args>::flatten(args, tensors, constants), ...);
    auto body = [&]([[maybe_unused]] std::span<const Tensor> given) {
      std::vector<dispatch::Value> flat;
      // Braces: arguments are rebuilt from left to right.
      std::tuple<Args...> rebuilt{capture::ArgumentTraits<Args>::rebuild(args, given)...};
      if constexpr (std::is_void_v<R>)
        std::apply(*function_, rebuilt);
      else
        capture::flatten_result<std::remove_cvref_t<R>>(std::apply(*function_, rebuilt), flat);
      return flat;
    };
    std::vector<dispatch::Value> flat = state_->call(tensors.span(), constants.span(), body);
    if constexpr (!std::is_void_v<R>) {
      std::span<dispatch::Value> rest(flat);
      return capture::rebuild_result<std::remove_cvref_t<R>>(rest);
    }
  }

  // How many graphs were compiled since the start or the last `reset()`.
  int64_t compile_count() const { return state_->compile_count(); }
  // Forgets everything that was compiled.
  void reset() const { state_->reset(); }
  Explanation explain() const { return state_->explain(); }

 private:
  std::shared_ptr<F> function_;
  std::shared_ptr<capture::CompiledFunction> state_;
};

template <typename F>
Compiled<F> compile(F function, CompileOptions options = {}) {
  return Compiled<F>(std::move(function), std::move(options));
}

}  // namespace tenon
