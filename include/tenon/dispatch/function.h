// Ordinary functions as kernels, and typed calls, for every type that has a schema type.
#pragma once

#include <tenon/dispatch/call.h>
#include <tenon/dispatch/schema_of.h>

namespace tenon::dispatch {
namespace detail {

template <>
struct Reader<std::string> {
  static std::string read(const Value& v) { return std::string(v.string()); }
};
template <>
struct Reader<std::vector<int64_t>> {
  static std::vector<int64_t> read(const Value& v) {
    Ints list = v.ints();
    return {list.begin(), list.end()};
  }
};
template <>
struct Reader<std::vector<SymInt>> {
  static std::vector<SymInt> read(const Value& v) {
    SymInts list = v.sym_ints();
    return {list.begin(), list.end()};
  }
};

template <>
struct Reader<std::complex<double>> {
  static std::complex<double> read(const Value& v) { return v.complex(); }
};
template <>
struct Reader<std::vector<Scalar>> {
  static std::vector<Scalar> read(const Value& v) {
    std::vector<Scalar> list;
    if (v.tag() == Value::Tag::Reals)
      list.assign(v.reals().begin(), v.reals().end());
    else if (v.tag() == Value::Tag::Bools)
      for (bool flag : v.bools()) list.emplace_back(flag);
    else
      for (const SymInt& number : v.sym_ints()) list.emplace_back(number);
    return list;
  }
};

// Numbers as a list of the kind that holds them all: flags, integers or reals.
Value list_of_scalars(const std::vector<Scalar>& list);

}  // namespace detail

// A value that shows `argument`, which must outlive it.
template <typename T>
Value to_value(const T& argument) {
  if constexpr (std::is_same_v<T, std::string>)
    return Value(std::string_view(argument));
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return Value(std::span<const int64_t>(argument));
  else if constexpr (std::is_same_v<T, std::vector<SymInt>>)
    return Value(std::span<const SymInt>(argument));
  else if constexpr (std::is_same_v<T, float>)
    return Value(static_cast<double>(argument));
  else if constexpr (std::is_same_v<T, std::vector<Scalar>>)
    return detail::list_of_scalars(argument);
  else if constexpr (detail::is_optional<T>)
    return argument ? to_value(*argument) : Value();
  else
    return Value(argument);
}
template <size_t N>
Value to_value(const char (&text)[N]) {
  return Value(std::string_view(text));
}

namespace detail {

template <typename R>
void write_typed(Results& results, R&& result) {
  using Plain = std::remove_cvref_t<R>;
  if constexpr (std::is_same_v<Plain, Tensor>)
    results.emplace_back(Tensor(std::forward<R>(result)));
  else if constexpr (requires { std::tuple_size<Plain>::value; })
    std::apply([&](auto&&... each) { (write_typed(results, std::move(each)), ...); }, std::forward<R>(result));
  else
    results.push_back(to_value(result).own());
}

// An argument as the function takes it; a tensor without counting it.
template <typename T>
decltype(auto) read_argument(const Value& value) {
  if constexpr (std::is_same_v<T, Tensor>)
    return value.tensor();
  else
    return Reader<T>::read(value);
}

template <typename F, typename R, typename... A>
void invoke_typed(F& function, Call& call, std::type_identity<std::tuple<A...>>, std::type_identity<R>) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>)
      function(read_argument<A>(call.args[I])...);
    else
      write_typed(call.results, function(read_argument<A>(call.args[I])...));
  }(std::index_sequence_for<A...>());
}

}  // namespace detail

// The function as a kernel of an operator whose schema `check_signature` accepted.
template <typename F>
KernelFunction to_kernel(F function) {
  using Types = detail::FunctionTypesOf<F>;
  return [function = std::move(function)](Call& call) mutable {
    detail::invoke_typed(function, call, std::type_identity<typename Types::Arguments>(),
                         std::type_identity<typename Types::Result>());
  };
}

template <typename F>
constexpr bool is_boxed_kernel = std::is_invocable_v<F&, Call&>;

// The same, checked against the schema. A function that takes a `Call&` serves every schema.
template <typename F>
KernelFunction kernel_for(const schema::Schema& schema, F function, std::string_view what) {
  if constexpr (is_boxed_kernel<F>) {
    return KernelFunction(std::move(function));
  } else {
    detail::check_signature(schema, detail::FunctionTypesOf<F>::get(), what);
    return to_kernel(std::move(function));
  }
}

}  // namespace tenon::dispatch
