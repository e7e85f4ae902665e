// Operators from libtorch's sources: TORCH_LIBRARY blocks, kernels with libtorch's types, and the dispatcher.
#pragma once

#include <tenon/compat/autograd.h>
#include <tenon/dispatch/library.h>
#include <tenon/dispatch/packet.h>

#include <map>
#include <string>

namespace c10 {

using DispatchKey = tenon::dispatch::KernelKey;

}  // namespace c10

// The schema types of libtorch's.
#define TENON_COMPAT_SCHEMA_TYPE_(type, like) \
  template <>                                 \
  struct tenon::dispatch::detail::TypeText<type> : tenon::dispatch::detail::TypeText<like> {};
TENON_COMPAT_SCHEMA_TYPE_(at::Tensor, tenon::Tensor)
TENON_COMPAT_SCHEMA_TYPE_(c10::Scalar, tenon::Scalar)
TENON_COMPAT_SCHEMA_TYPE_(c10::ScalarType, tenon::Dtype)
TENON_COMPAT_SCHEMA_TYPE_(c10::Device, tenon::Device)
TENON_COMPAT_SCHEMA_TYPE_(c10::IntArrayRef, std::vector<int64_t>)
TENON_COMPAT_SCHEMA_TYPE_(c10::SymIntArrayRef, std::vector<tenon::SymInt>)
TENON_COMPAT_SCHEMA_TYPE_(c10::OptionalIntArrayRef, tenon::OptionalInts)
TENON_COMPAT_SCHEMA_TYPE_(c10::ArrayRef<double>, std::vector<double>)
TENON_COMPAT_SCHEMA_TYPE_(at::TensorList, std::vector<tenon::Tensor>)
TENON_COMPAT_SCHEMA_TYPE_(std::vector<at::Tensor>, std::vector<tenon::Tensor>)
TENON_COMPAT_SCHEMA_TYPE_(std::vector<std::optional<at::Tensor>>, std::vector<std::optional<tenon::Tensor>>)
TENON_COMPAT_SCHEMA_TYPE_(c10::List<std::optional<at::Tensor>>, std::vector<std::optional<tenon::Tensor>>)
#undef TENON_COMPAT_SCHEMA_TYPE_

namespace at::compat {

using tenon::dispatch::Value;

// What an argument is kept in while the function runs, made from the call's value.
template <typename T>
struct Held {
  using type = T;
  static T read(const Value& value) { return tenon::dispatch::detail::Reader<T>::read(value); }
};
template <>
struct Held<Tensor> {
  using type = Tensor;
  static Tensor read(const Value& value) { return value.is_none() ? Tensor() : Tensor(value.tensor()); }
};
template <>
struct Held<Scalar> {
  using type = Scalar;
  static Scalar read(const Value& value) { return value.scalar(); }
};
template <>
struct Held<ScalarType> {
  using type = ScalarType;
  static ScalarType read(const Value& value) { return value.dtype(); }
};
template <>
struct Held<Device> {
  using type = Device;
  static Device read(const Value& value) { return value.device(); }
};
template <>
struct Held<IntArrayRef> {
  using type = std::vector<int64_t>;
  static type read(const Value& value) { return Held<type>::read(value); }
};
template <>
struct Held<SymIntArrayRef> {
  using type = std::vector<SymInt>;
  static type read(const Value& value) { return Held<type>::read(value); }
};
template <>
struct Held<ArrayRef<double>> {
  using type = std::vector<double>;
  static type read(const Value& value) { return Held<type>::read(value); }
};
template <>
struct Held<std::vector<Tensor>> {
  using type = std::vector<Tensor>;
  static type read(const Value& value) {
    return wrap(std::vector<tenon::Tensor>(value.tensors().begin(), value.tensors().end()));
  }
};
template <>
struct Held<TensorList> : Held<std::vector<Tensor>> {};
template <>
struct Held<std::vector<std::optional<Tensor>>> {
  using type = std::vector<std::optional<Tensor>>;
  static type read(const Value& value) {
    type list;
    for (const auto& each : value.optional_tensors())
      list.push_back(each ? std::optional<Tensor>(*each) : std::nullopt);
    return list;
  }
};
template <>
struct Held<c10::List<std::optional<Tensor>>> {
  using type = c10::List<std::optional<Tensor>>;
  static type read(const Value& value) {
    type list;
    for (const auto& each : value.optional_tensors())
      list.push_back(each ? std::optional<Tensor>(*each) : std::nullopt);
    return list;
  }
};
template <typename T>
struct Held<std::optional<T>> {
  using type = std::optional<typename Held<T>::type>;
  static type read(const Value& value) {
    bool none = value.is_none() || (value.is_tensor() && !value.tensor().defined());
    return none ? std::nullopt : type(Held<T>::read(value));
  }
};

// A list that may be missing is kept beside the reference to it.
struct HeldOptionalInts {
  std::optional<std::vector<int64_t>> list;
  operator OptionalIntArrayRef() const { return list ? OptionalIntArrayRef(*list) : OptionalIntArrayRef(); }
};
template <>
struct Held<OptionalIntArrayRef> {
  using type = HeldOptionalInts;
  static type read(const Value& value) { return {Held<std::optional<std::vector<int64_t>>>::read(value)}; }
};
inline Value box(const Tensor& tensor) { return Value(tenon::Tensor(base(tensor))); }
inline Value box(TensorList list) { return Value(plain(list)).own(); }
inline Value box(const std::vector<Tensor>& list) { return box(TensorList(list)); }
inline Value box(const std::vector<std::optional<Tensor>>& list) { return Value(plain(list)).own(); }
inline Value box(const Scalar& number) { return Value(static_cast<const tenon::Scalar&>(number)).own(); }
inline Value box(ScalarType type) { return Value(tenon::Dtype(type)); }
inline Value box(const Device& device) { return Value(tenon::Device(device)); }
inline Value box(IntArrayRef list) { return Value(std::span<const int64_t>(list)).own(); }
inline Value box(SymIntArrayRef list) { return Value(std::span<const SymInt>(list)).own(); }
inline Value box(const OptionalIntArrayRef& list) { return list ? box(*list) : Value(); }
template <typename T>
Value box(const std::optional<T>& maybe) {
  return maybe ? box(*maybe) : Value();
}
template <typename T>
Value box(const T& value) {
  return tenon::dispatch::to_value(value).own();
}

template <typename R>
void write_result(tenon::dispatch::Results& results, R&& result) {
  if constexpr (requires { std::tuple_size<std::remove_cvref_t<R>>::value; })
    std::apply([&](const auto&... each) { (write_result(results, each), ...); }, result);
  else
    results.push_back(box(result));
}

// A function as a kernel. Arguments are kept as variables, so that parameters may be references.
template <typename R, typename... A, typename F>
tenon::dispatch::KernelFunction kernel_of(F function) {
  return [function = std::move(function)](tenon::dispatch::Call& call) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      std::tuple<typename Held<std::remove_cvref_t<A>>::type...> held{
          Held<std::remove_cvref_t<A>>::read(call.args[I])...};
      // A parameter of another type than what is kept (a reference to a list) is made from it.
      auto run = [&]() -> R { return function(static_cast<A>(std::get<I>(held))...); };
      if constexpr (std::is_void_v<R>)
        run();
      else
        write_result(call.results, run());
    }(std::index_sequence_for<A...>());
  };
}

template <typename F>
struct Typed : Typed<decltype(&F::operator())> {};
template <typename R, typename... A>
struct Typed<R(A...)> {
  static tenon::dispatch::detail::FunctionTypes types() {
    return tenon::dispatch::detail::FunctionTypesOf<std::remove_cvref_t<R>(std::remove_cvref_t<A>...)>::get();
  }
  template <typename F>
  static tenon::dispatch::KernelFunction kernel(F function) {
    return kernel_of<R, A...>(std::move(function));
  }
};
template <typename R, typename... A>
struct Typed<R (*)(A...)> : Typed<R(A...)> {};
template <typename C, typename R, typename... A>
struct Typed<R (C::*)(A...) const> : Typed<R(A...)> {};
template <typename C, typename R, typename... A>
struct Typed<R (C::*)(A...)> : Typed<R(A...)> {};

}  // namespace at::compat

namespace c10 {

// Calls of operators by name.
template <typename F>
class TypedOperatorHandle;
template <typename R, typename... A>
class TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(const tenon::dispatch::Operator& op) : op_(&op) {}
  R call(A... args) const {
    const tenon::dispatch::Value values[] = {at::compat::box(args)..., tenon::dispatch::Value()};
    tenon::dispatch::Results results = tenon::dispatch::call_boxed(*op_, {values, sizeof...(A)});
    if constexpr (std::is_void_v<R>) {
      return;
    } else if constexpr (std::is_lvalue_reference_v<R>) {
      // What was written comes back: the first argument that is such a reference.
      return std::get<0>(std::tuple<A...>(args...));
    } else if constexpr (requires { std::tuple_size<R>::value; }) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return R{at::compat::Held<std::tuple_element_t<I, R>>::read(results[I])...};
      }(std::make_index_sequence<std::tuple_size_v<R>>());
    } else {
      return at::compat::Held<R>::read(results[0]);
    }
  }
  R operator()(A... args) const { return call(args...); }

 private:
  tenon::dispatch::OperatorRef op_;
};

class OperatorHandle {
 public:
  explicit OperatorHandle(const tenon::dispatch::Operator& op) : op_(&op) {}
  template <typename F>
  TypedOperatorHandle<F> typed() const {
    return TypedOperatorHandle<F>(*op_);
  }
  const tenon::schema::Schema& schema() const { return op_->schema(); }

 private:
  tenon::dispatch::OperatorRef op_;
};

struct OperatorName {
  std::string name, overload_name;
};

class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher instance;
    return instance;
  }
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const {
    return OperatorHandle(
        tenon::dispatch::find_operator(*overload ? std::string(name) + "." + overload : std::string(name)));
  }
  std::optional<OperatorHandle> findSchema(const OperatorName& name) const {
    try {
      return findSchemaOrThrow(name.name.c_str(), name.overload_name.c_str());
    } catch (const tenon::Error&) {
      return std::nullopt;
    }
  }
};

// While one lives, calls on this thread begin below autograd.
struct AutoDispatchBelowAutograd {
  tenon::dispatch::ExcludeKeys below{tenon::KeySet{tenon::DispatchKey::Autograd}};
};
struct AutoDispatchBelowADInplaceOrView {
  tenon::dispatch::ExcludeKeys below{tenon::KeySet{tenon::DispatchKey::Autograd, tenon::DispatchKey::ADInplaceOrView}};
};
using AutoNonVariableTypeMode = AutoDispatchBelowAutograd;
// Functionalization is Tenon's own affair.
struct AutoDispatchSkipFunctionalize {
  AutoDispatchSkipFunctionalize() {}
};

}  // namespace c10

namespace at {
using AutoDispatchBelowAutograd = c10::AutoDispatchBelowAutograd;
using AutoDispatchBelowADInplaceOrView = c10::AutoDispatchBelowADInplaceOrView;
using AutoNonVariableTypeMode = c10::AutoDispatchBelowAutograd;
using AutoDispatchSkipFunctionalize = c10::AutoDispatchSkipFunctionalize;
using Tag = tenon::dispatch::Tag;
}  // namespace at

namespace torch {

// A kernel for a key: m.impl("f", dispatch(c10::DispatchKey::CPU, f)).
template <typename F>
struct CppFunction {
  F function;
  std::optional<c10::DispatchKey> key;
};
template <typename F>
CppFunction<F> dispatch(c10::DispatchKey key, F function) {
  return {std::move(function), key};
}
inline c10::DispatchKey key_of(c10::DeviceType type) {
  return type == c10::kCUDA   ? c10::DispatchKey::CUDA
         : type == c10::kMeta ? c10::DispatchKey::Meta
                              : c10::DispatchKey::CPU;
}
template <typename F>
CppFunction<F> dispatch(c10::DeviceType type, F function) {
  return {std::move(function), key_of(type)};
}

class Library {
 public:
  explicit Library(tenon::dispatch::Library& library, std::optional<c10::DispatchKey> key = std::nullopt)
      : library_(library), key_(key) {}

  Library& def(const char* schema, const std::vector<at::Tag>& tags = {}) {
    library_.def(schema, tags);
    return *this;
  }
  // A schema, or a name: then the schema is that of the function. The function is a composite of other operators.
  template <typename F>
    requires(!std::is_convertible_v<F, std::vector<at::Tag>>)
  Library& def(const char* name_or_schema, F function) {
    if constexpr (requires { function.key; }) {
      return define(name_or_schema, function.function, function.key);
    } else {
      return define(name_or_schema, function, c10::DispatchKey::CompositeImplicitAutograd);
    }
  }
  template <typename F>
  Library& impl(const char* name, F function) {
    if constexpr (requires { function.key; })
      return add(*library_.find(name), function.function, function.key);
    else
      return add(*library_.find(name), function, key_);
  }
  template <typename F>
  Library& impl(const char* name, c10::DispatchKey key, F function) {
    return add(*library_.find(name), function, key);
  }
  // For Python.
  Library& set_python_module(const char*, const char* = "") { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") { return *this; }

 private:
  template <typename F>
  Library& define(std::string_view text, F function, std::optional<c10::DispatchKey> key) {
    using Types = at::compat::Typed<std::remove_cvref_t<F>>;
    tenon::dispatch::Operator& op =
        text.find('(') == std::string_view::npos
            ? library_.define(tenon::dispatch::detail::build_schema(library_.qualify(text), Types::types(), {}), {},
                              std::source_location::current())
            : library_.def(text);
    return add(op, std::move(function), key);
  }
  template <typename F>
  Library& add(tenon::dispatch::Operator& op, F function, std::optional<c10::DispatchKey> key) {
    using Types = at::compat::Typed<std::remove_cvref_t<F>>;
    TENON_CHECK(key, "[{}] a kernel needs a key: TORCH_LIBRARY_IMPL(ns, CPU, m), or m.impl(name, dispatch(key, f))",
                op.name());
    tenon::dispatch::detail::check_signature(op.schema(), Types::types(), "the kernel");
    library_.keep(tenon::dispatch::register_scoped(op, *key, Types::kernel(std::move(function))));
    return *this;
  }
  tenon::dispatch::Library& library_;
  std::optional<c10::DispatchKey> key_;
};

}  // namespace torch

#define TENON_COMPAT_LIBRARY_(macro, ns, key, m, id, ...) TENON_COMPAT_LIBRARY__(macro, ns, key, m, id, __VA_ARGS__)
#define TENON_COMPAT_LIBRARY__(macro, ns, key, m, id, ...) \
  static void torch_library_fill_##id(::torch::Library&);  \
  macro(__VA_ARGS__, tenon_library) {                      \
    ::torch::Library compat(tenon_library, key);           \
    torch_library_fill_##id(compat);                       \
  }                                                        \
  static void torch_library_fill_##id([[maybe_unused]] ::torch::Library& m)
#define TORCH_LIBRARY(ns, m) TENON_COMPAT_LIBRARY_(TENON_LIBRARY, ns, std::nullopt, m, __COUNTER__, ns)
#define TORCH_LIBRARY_FRAGMENT(ns, m) \
  TENON_COMPAT_LIBRARY_(TENON_LIBRARY_FRAGMENT, ns, std::nullopt, m, __COUNTER__, ns)
#define TORCH_LIBRARY_IMPL(ns, key, m) \
  TENON_COMPAT_LIBRARY_(TENON_LIBRARY_IMPL, ns, ::tenon::dispatch::parse_kernel_key(#key), m, __COUNTER__, ns, key)
#define TORCH_FN(function) (&function)
#define TORCH_BOX(function) function
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
