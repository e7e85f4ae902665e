// Typed calls of boxed operators, and ordinary functions as kernels.
//
//   Tensor y = call<Tensor>(find_operator("aten::sin"), args);
//   register_kernel(op, DispatchKey::CPU, boxed([](const Tensor& x, int64_t dim) { … }));
#pragma once

#include <tenon/dispatch/operator.h>

#include <tuple>
#include <type_traits>

namespace tenon::dispatch {
namespace detail {

template <typename T>
struct Reader;  // Value → T
template <>
struct Reader<Tensor> {
  static Tensor read(const Value& v) { return v.tensor(); }
};
template <>
struct Reader<int64_t> {
  static int64_t read(const Value& v) { return v.integer(); }
};
template <>
struct Reader<SymInt> {
  static SymInt read(const Value& v) { return v.sym_int(); }
};
template <>
struct Reader<SymFloat> {
  static SymFloat read(const Value& v) { return v.sym_float(); }
};
template <>
struct Reader<SymBool> {
  static SymBool read(const Value& v) { return v.sym_bool(); }
};
template <>
struct Reader<double> {
  static double read(const Value& v) { return v.real(); }
};
template <>
struct Reader<bool> {
  static bool read(const Value& v) { return v.boolean(); }
};
template <>
struct Reader<Scalar> {
  static Scalar read(const Value& v) { return v.scalar(); }
};
template <>
struct Reader<std::string_view> {
  static std::string_view read(const Value& v) { return v.string(); }
};
template <>
struct Reader<Dtype> {
  static Dtype read(const Value& v) { return v.dtype(); }
};
template <>
struct Reader<Device> {
  static Device read(const Value& v) { return v.device(); }
};
template <>
struct Reader<Layout> {
  static Layout read(const Value&) { return Layout::Strided; }
};
template <>
struct Reader<MemoryFormat> {
  static MemoryFormat read(const Value& v) { return v.memory_format(); }
};
template <>
struct Reader<Ints> {
  static Ints read(const Value& v) { return v.ints(); }
};
template <>
struct Reader<OptionalInts> {
  static OptionalInts read(const Value& v) { return v.is_none() ? OptionalInts() : OptionalInts(v.ints()); }
};
template <>
struct Reader<SymInts> {
  static SymInts read(const Value& v) { return v.sym_ints(); }
};
template <>
struct Reader<std::vector<Tensor>> {
  static std::vector<Tensor> read(const Value& v) { return {v.tensors().begin(), v.tensors().end()}; }
};
template <>
struct Reader<std::vector<std::optional<Tensor>>> {
  static std::vector<std::optional<Tensor>> read(const Value& v) {
    return {v.optional_tensors().begin(), v.optional_tensors().end()};
  }
};
template <>
struct Reader<std::vector<double>> {
  static std::vector<double> read(const Value& v) { return {v.reals().begin(), v.reals().end()}; }
};
template <>
struct Reader<std::vector<bool>> {
  static std::vector<bool> read(const Value& v) { return v.bools(); }
};
template <typename T>
struct Reader<std::optional<T>> {
  static std::optional<T> read(const Value& v) {
    return v.is_none() ? std::nullopt : std::optional<T>(Reader<T>::read(v));
  }
};

template <typename R>
void write_results(Results& results, R&& result) {
  using Plain = std::remove_cvref_t<R>;
  if constexpr (requires { std::tuple_size<Plain>::value; }) {
    std::apply([&](auto&&... each) { (results.push_back(Value(std::move(each)).own()), ...); },
               std::forward<R>(result));
  } else {
    results.push_back(Value(std::forward<R>(result)).own());
  }
}

template <typename R>
R read_results(Results& results) {
  if constexpr (std::is_void_v<R>) {
    return;
  } else if constexpr (std::is_same_v<R, Tensor>) {
    return results[0].take_tensor();
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R{Reader<std::tuple_element_t<I, R>>::read(results[I])...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    return Reader<R>::read(results[0]);
  }
}

template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  template <typename F>
  static void invoke(F& function, Call& call) {
    TENON_ASSERT(call.args.size() == sizeof...(A), "{} takes {} arguments, its kernel {}", call.op.name(),
                 call.args.size(), sizeof...(A));
    [&]<size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_void_v<R>) {
        function(Reader<std::remove_cvref_t<A>>::read(call.args[I])...);
      } else {
        write_results(call.results, function(Reader<std::remove_cvref_t<A>>::read(call.args[I])...));
      }
    }(std::index_sequence_for<A...>());
  }
};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

}  // namespace detail

template <typename T>
T from_value(const Value& value) {
  return detail::Reader<T>::read(value);
}

// An ordinary function as a kernel: its parameters are read from the call's values.
template <typename F>
KernelFunction boxed(F function) {
  return [function = std::move(function)](Call& call) mutable { detail::Signature<F>::invoke(function, call); };
}

template <typename R>
R call(const Operator& op, std::span<const Value> args) {
  Results results = call_boxed(op, args);
  return detail::read_results<R>(results);
}

}  // namespace tenon::dispatch
