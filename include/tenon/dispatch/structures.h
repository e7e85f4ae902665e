// How structures of tensors and numbers, the arguments and results of a compiled function, are taken apart and put
// together.
//
// A structure is flattened into three lists: tensors, which are captured; numbers, which are symbols; constants, each
// combination of which is compiled for itself. What the user's function sees is rebuilt from the tensors and numbers
// that the capture gives.
//
//   tensors      Tensor
//   numbers      SymInt, SymFloat, Scalar; an int or a double where the function takes one of these (or `auto`)
//   constants    other numbers, bool, enumerations, strings, dtypes, devices, functions
//   structures   std::optional, vector, array, pair, tuple, map of these; a user's own by TENON_DESCRIBE
//
//   struct Batch { Tensor images, labels; double weight; };
//   TENON_DESCRIBE(Batch, images, labels, weight)
#pragma once

#include <tenon/dispatch/call.h>

#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::dispatch {

using FlatTensors = SmallVector<Tensor, 8>;
using FlatValues = SmallVector<Value, 4>;

// A call taken apart.
struct FlatArguments {
  FlatTensors tensors;
  FlatValues numbers;  // plain Int or Real values
  FlatValues constants;
};

// What is left to rebuild arguments, or results, from.
struct Supply {
  std::span<const Tensor> tensors;
  std::span<const Value> numbers;
  Tensor tensor() {
    Tensor taken = tensors[0];
    tensors = tensors.subspan(1);
    return taken;
  }
  Value number() {
    Value taken = numbers[0];
    numbers = numbers.subspan(1);
    return taken;
  }
};

// The fields of a user's structure; specialised by TENON_DESCRIBE.
template <typename T>
struct Described : std::false_type {};

template <typename T>
struct is_vector : std::false_type {};
template <typename T, typename A>
struct is_vector<std::vector<T, A>> : std::true_type {};
template <typename T>
struct is_array : std::false_type {};
template <typename T, size_t N>
struct is_array<std::array<T, N>> : std::true_type {};
template <typename T>
struct is_optional : std::false_type {};
template <typename T>
struct is_optional<std::optional<T>> : std::true_type {};
template <typename T>
struct is_map : std::false_type {};
template <typename K, typename V, typename... Rest>
struct is_map<std::map<K, V, Rest...>> : std::true_type {};
template <typename K, typename V, typename... Rest>
struct is_map<std::unordered_map<K, V, Rest...>> : std::true_type {};
template <typename T>
concept TupleLike = requires { std::tuple_size<T>::value; } && !is_array<T>::value;
template <typename T>
concept FunctionPointer = std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>;
template <typename T>
concept Stateless = std::is_class_v<T> && std::is_empty_v<T> && std::is_copy_constructible_v<T>;

template <typename T>
inline constexpr bool is_number_argument =
    std::is_same_v<T, SymInt> || std::is_same_v<T, SymFloat> || std::is_same_v<T, Scalar>;

// A tensor, or another face of one (`at::Tensor`).
template <typename T>
concept TensorLike = std::derived_from<T, Tensor> && std::constructible_from<T, Tensor>;

// ---- Arguments ----------------------------------------------------------------------------------------------------

template <typename T>
void flatten_argument(const T& value, FlatArguments& flat) {
  if constexpr (TensorLike<T>) {
    flat.tensors.push_back(value);
  } else if constexpr (std::is_same_v<T, SymInt>) {
    flat.numbers.push_back(Value(value).own());  // inside a capture it may be a symbol
  } else if constexpr (std::is_same_v<T, SymFloat>) {
    flat.numbers.push_back(Value(value).own());
  } else if constexpr (std::is_same_v<T, Scalar>) {
    if (value.kind() == Scalar::Kind::Bool)
      flat.constants.push_back(Value(value.to_bool()));
    else
      flat.numbers.push_back(Value(value).own());
    flat.constants.push_back(Value(static_cast<int64_t>(value.kind())));
  } else if constexpr (std::is_same_v<T, SymBool>) {
    flat.constants.push_back(Value(bool(value)));
  } else if constexpr (is_optional<T>::value) {
    flat.constants.push_back(Value(value.has_value()));
    if (value) flatten_argument(*value, flat);
  } else if constexpr (is_vector<T>::value) {
    flat.constants.push_back(Value(value.size()));
    for (const auto& each : value) flatten_argument<typename T::value_type>(each, flat);
  } else if constexpr (is_array<T>::value) {
    for (const auto& each : value) flatten_argument(each, flat);
  } else if constexpr (is_map<T>::value) {
    flat.constants.push_back(Value(value.size()));
    for (const auto& [key, each] : value) {
      flatten_argument(key, flat);
      flatten_argument(each, flat);
    }
  } else if constexpr (Described<T>::value) {
    Described<T>::fields(value, [&](const auto&... field) { (flatten_argument(field, flat), ...); });
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... each) { (flatten_argument(each, flat), ...); }, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    flat.constants.push_back(Value(static_cast<double>(value)));
  } else if constexpr (std::is_enum_v<T> && !std::is_same_v<T, Dtype>) {
    flat.constants.push_back(Value(static_cast<int64_t>(value)));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    flat.constants.push_back(Value(std::string_view(value)).own());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, Dtype> || std::is_same_v<T, Device>) {
    flat.constants.push_back(Value(value));
  } else if constexpr (FunctionPointer<T>) {
    flat.constants.push_back(Value(reinterpret_cast<int64_t>(value)));
  } else {
    static_assert(Stateless<T>,
                  "compile(): an argument must be a tensor, a number, a string, a dtype, a device, a function without "
                  "state, an optional, vector, "
                  "array, pair, tuple or map of these, or a structure described by TENON_DESCRIBE");
  }
}

template <typename T>
T rebuild_argument(const T& value, Supply& supply) {
  if constexpr (TensorLike<T>) {
    return T(supply.tensor());
  } else if constexpr (std::is_same_v<T, SymInt>) {
    return supply.number().sym_int();
  } else if constexpr (std::is_same_v<T, SymFloat>) {
    return supply.number().sym_float();
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return value.kind() == Scalar::Kind::Bool ? value : supply.number().scalar();
  } else if constexpr (is_optional<T>::value) {
    return value ? T(rebuild_argument(*value, supply)) : T();
  } else if constexpr (is_vector<T>::value) {
    T rebuilt;
    for (const auto& each : value) rebuilt.push_back(rebuild_argument<typename T::value_type>(each, supply));
    return rebuilt;
  } else if constexpr (is_array<T>::value) {
    T rebuilt = value;
    for (auto& each : rebuilt) each = rebuild_argument(each, supply);
    return rebuilt;
  } else if constexpr (is_map<T>::value) {
    T rebuilt = value;
    for (auto& [key, each] : rebuilt) {
      rebuild_argument(key, supply);
      each = rebuild_argument(each, supply);
    }
    return rebuilt;
  } else if constexpr (Described<T>::value) {
    T rebuilt = value;
    Described<T>::fields(rebuilt, [&](auto&... field) { ((field = rebuild_argument(field, supply)), ...); });
    return rebuilt;
  } else if constexpr (TupleLike<T>) {
    // Braces: elements are rebuilt from left to right.
    return std::apply([&](const auto&... each) { return T{rebuild_argument(each, supply)...}; }, value);
  } else {
    return value;
  }
}

// The same with undefined tensors: what is kept of a call must not keep its tensors.
template <typename T>
T without_tensors(const T& value) {
  FlatArguments flat;
  flatten_argument(value, flat);
  std::vector<Tensor> none(flat.tensors.size());
  Supply supply{none, flat.numbers.span()};
  return rebuild_argument(value, supply);
}

// ---- Results ------------------------------------------------------------------------------------------------------

// Results are one list; what belongs to the structure alone (how many, which keys) is part of it as constants.
template <typename R>
void flatten_result(const R& result, std::vector<Value>& flat) {
  if constexpr (is_optional<R>::value) {
    flat.push_back(Value(result.has_value()));
    if (result) flatten_result(*result, flat);
  } else if constexpr (is_vector<R>::value) {
    flat.push_back(Value(result.size()));
    for (const auto& each : result) flatten_result<typename R::value_type>(each, flat);
  } else if constexpr (is_array<R>::value) {
    for (const auto& each : result) flatten_result(each, flat);
  } else if constexpr (is_map<R>::value) {
    flat.push_back(Value(result.size()));
    for (const auto& [key, each] : result) {
      flatten_result(key, flat);
      flatten_result(each, flat);
    }
  } else if constexpr (Described<R>::value) {
    Described<R>::fields(result, [&](const auto&... field) { (flatten_result(field, flat), ...); });
  } else if constexpr (TupleLike<R>) {
    std::apply([&](const auto&... each) { (flatten_result(each, flat), ...); }, result);
  } else if constexpr (TensorLike<R>) {
    flat.push_back(Value(static_cast<const Tensor&>(result)).own());
  } else if constexpr (std::is_floating_point_v<R>) {
    flat.push_back(Value(static_cast<double>(result)));
  } else if constexpr (std::is_convertible_v<const R&, std::string_view>) {
    flat.push_back(Value(std::string_view(result)).own());
  } else {
    flat.push_back(Value(result).own());
  }
}

template <typename R>
R rebuild_result(std::span<Value>& flat) {
  auto take = [&]() -> Value& {
    TENON_CHECK_VALUE(!flat.empty(), "the function has fewer results than were asked for");
    Value& value = flat[0];
    flat = flat.subspan(1);
    return value;
  };
  if constexpr (is_optional<R>::value) {
    return take().boolean() ? R(rebuild_result<typename R::value_type>(flat)) : R();
  } else if constexpr (is_vector<R>::value) {
    auto count = static_cast<size_t>(take().integer());
    R list;
    for (size_t at = 0; at < count; ++at) list.push_back(rebuild_result<typename R::value_type>(flat));
    return list;
  } else if constexpr (is_array<R>::value) {
    R list;
    for (auto& each : list) each = rebuild_result<typename R::value_type>(flat);
    return list;
  } else if constexpr (is_map<R>::value) {
    auto count = static_cast<size_t>(take().integer());
    R map;
    for (size_t at = 0; at < count; ++at) {
      auto key = rebuild_result<typename R::key_type>(flat);
      map.emplace(std::move(key), rebuild_result<typename R::mapped_type>(flat));
    }
    return map;
  } else if constexpr (Described<R>::value) {
    R result;
    Described<R>::fields(
        result, [&](auto&... field) { ((field = rebuild_result<std::remove_cvref_t<decltype(field)>>(flat)), ...); });
    return result;
  } else if constexpr (TupleLike<R>) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R{rebuild_result<std::tuple_element_t<I, R>>(flat)...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else if constexpr (TensorLike<R>) {
    return R(take().take_tensor());
  } else if constexpr (std::is_same_v<R, std::string>) {
    return std::string(take().string());
  } else if constexpr (std::is_floating_point_v<R>) {
    return static_cast<R>(take().real());
  } else if constexpr (std::is_integral_v<R> && !std::is_same_v<R, bool>) {
    return static_cast<R>(take().integer());
  } else {
    return from_value<R>(take());
  }
}

}  // namespace tenon::dispatch

// Lets a structure be an argument or a result of a compiled function: names its fields. At namespace scope.
#define TENON_DESCRIBE(Type, ...)                                                                \
  template <>                                                                                    \
  struct tenon::dispatch::Described<Type> : std::true_type {                                     \
    template <typename Value, typename Visit>                                                    \
    static void fields(Value& value, Visit&& visit) {                                            \
      [&]<typename Self>(Self& self) { TENON_DESCRIBE_VISIT(visit, self, __VA_ARGS__); }(value); \
    }                                                                                            \
  };
// Up to eight fields, each as `self.field`.
#define TENON_DESCRIBE_VISIT(visit, self, ...)                                                                 \
  visit(TENON_DESCRIBE_PICK(__VA_ARGS__, TENON_F8, TENON_F7, TENON_F6, TENON_F5, TENON_F4, TENON_F3, TENON_F2, \
                            TENON_F1)(self, __VA_ARGS__))
#define TENON_DESCRIBE_PICK(a, b, c, d, e, f, g, h, name, ...) name
#define TENON_F1(s, a) s.a
#define TENON_F2(s, a, ...) s.a, TENON_F1(s, __VA_ARGS__)
#define TENON_F3(s, a, ...) s.a, TENON_F2(s, __VA_ARGS__)
#define TENON_F4(s, a, ...) s.a, TENON_F3(s, __VA_ARGS__)
#define TENON_F5(s, a, ...) s.a, TENON_F4(s, __VA_ARGS__)
#define TENON_F6(s, a, ...) s.a, TENON_F5(s, __VA_ARGS__)
#define TENON_F7(s, a, ...) s.a, TENON_F6(s, __VA_ARGS__)
#define TENON_F8(s, a, ...) s.a, TENON_F7(s, __VA_ARGS__)
