// `custom_op`: an operator from one function.
//
//   auto shift = library::custom_op("examples::shift", [](const Tensor& a, double by) { return a + by; },
//                                   {.names = "a, by"});
//   shift.register_fake([](const Tensor& a, double) { return empty_like(a); });
//   shift.register_autograd([](library::AutogradContext&, const Tensor& grad) { return grad; });
//   Tensor z = shift(x, 3.14);
//
// The function is opaque: nothing looks into it, it may not return what aliases its arguments, and it may write only to
// the arguments that `mutates` names. Defining an operator of the same name again replaces it.
#pragma once

#include <tenon/autograd/function.h>
#include <tenon/dispatch/library.h>
#include <tenon/dispatch/packet.h>
#include <tenon/fake/dynamic_size.h>

#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <tuple>
#include <vector>

namespace tenon::library {

using autograd::AutogradContext;
using dispatch::KernelFunction;
using dispatch::Operator;

//   library::CustomOpOptions options{.mutates = {"a"}, .device_types = {"cpu"}, .names = "a"};
//   auto zero = library::custom_op("examples::zero", [](const Tensor& a) { a.zero_(); }, options);
//   zero(x);
struct CustomOpOptions {
  std::vector<std::string> mutates = {};
  std::vector<std::string> device_types = {};  // "cpu", "cuda"; empty: every device
  std::string schema = {};                     // "(Tensor x, float y) -> Tensor", in place of what the types say
  std::string names = {};                      // see schema_of.h
};

// Arguments of a call by position and by name.
class Inputs {
 public:
  Inputs(std::vector<std::string_view> names, std::vector<dispatch::Value> values)
      : names_(std::move(names)), values_(std::move(values)) {}
  size_t size() const { return values_.size(); }
  const dispatch::Value& operator[](size_t at) const { return values_.at(at); }
  const dispatch::Value& operator[](std::string_view name) const;
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::vector<std::string_view> names_;
  std::vector<dispatch::Value> values_;
};
using Outputs = std::span<const dispatch::Value>;

// A gradient formula. `backward` gets one entry per result (a list for a list of tensors) and gives one per positional
// argument: a tensor, nothing, or a list of these, in a vector or a tuple; those of trailing arguments that are no
// tensors may be left out.
struct Formula {
  std::function<std::vector<AnyValue>(AutogradContext&, const std::vector<AnyValue>&)> backward;
  std::function<void(AutogradContext&, const Inputs&, const Inputs& keyword_only, Outputs)> setup_context;
};

namespace detail {

inline std::vector<AnyValue> to_gradients(Tensor gradient) { return {AnyValue(std::move(gradient))}; }
inline std::vector<AnyValue> to_gradients(const std::vector<Tensor>& gradients) {
  return {gradients.begin(), gradients.end()};
}
inline std::vector<AnyValue> to_gradients(std::vector<AnyValue> gradients) { return gradients; }
template <typename... Gradients>
std::vector<AnyValue> to_gradients(std::tuple<Gradients...> gradients) {
  return std::apply([](auto&... each) { return std::vector<AnyValue>{AnyValue(std::move(each))...}; }, gradients);
}
Tensor only_gradient(const std::vector<AnyValue>& gradients);
std::vector<Tensor> flat_gradients(const std::vector<AnyValue>& gradients);

template <typename F>
auto to_backward(F backward) {
  return [backward = std::move(backward)](AutogradContext& context,
                                          const std::vector<AnyValue>& gradients) mutable -> std::vector<AnyValue> {
    if constexpr (std::is_invocable_v<F&, AutogradContext&, const Tensor&>)
      return to_gradients(backward(context, only_gradient(gradients)));
    else if constexpr (std::is_invocable_v<F&, AutogradContext&, const std::vector<Tensor>&>)
      return to_gradients(backward(context, flat_gradients(gradients)));
    else
      return to_gradients(backward(context, gradients));
  };
}

template <typename F>
auto to_setup(F setup) {
  return [setup = std::move(setup)](AutogradContext& context, const Inputs& inputs, const Inputs& keyword_only,
                                    Outputs outputs) mutable {
    if constexpr (std::is_invocable_v<F&, AutogradContext&, const Inputs&, const Inputs&, Outputs>)
      setup(context, inputs, keyword_only, outputs);
    else
      setup(context, inputs, outputs);
  };
}

// One custom operator; shared by its handles and kernels.
struct CustomOpState;
std::shared_ptr<CustomOpState> define_custom_op(schema::Schema schema, const std::string& place);
// The operators that one library made. They are its code, and go with it: it is destroyed when the library is unloaded.
// (A program is not; its operators stay.)
class OwnedOps {
 public:
  constexpr OwnedOps() = default;
  ~OwnedOps();
  OwnedOps(const OwnedOps&) = delete;
  OwnedOps& operator=(const OwnedOps&) = delete;
  void add(const std::shared_ptr<CustomOpState>& state);

 private:
  std::vector<std::weak_ptr<CustomOpState>> ops_;
};
// Hidden: each library has one of its own.
[[gnu::visibility("hidden")]] inline constinit OwnedOps owned_ops;
Operator& operator_of(const CustomOpState* state);  // an Error if there is none
void set_kernel(CustomOpState& state, const std::vector<std::string>& device_types, KernelFunction kernel,
                const std::string& place);
void set_fake(const std::shared_ptr<CustomOpState>& state, KernelFunction fake, const std::string& place);
void set_formula(CustomOpState& state, Formula formula);
schema::Schema custom_schema(std::string_view name, const dispatch::detail::FunctionTypes& types,
                             const CustomOpOptions& options);
std::vector<dispatch::Value> trailing_defaults(const Operator& op, size_t given);

}  // namespace detail

// An operator by handle or by qualified name.
class OperatorHandle {
 public:
  OperatorHandle(Operator& op) : op_(&op) {}
  OperatorHandle(const char* name) : OperatorHandle(std::string_view(name)) {}
  OperatorHandle(const std::string& name) : OperatorHandle(std::string_view(name)) {}
  OperatorHandle(std::string_view name);
  Operator& op() const { return *op_; }

 private:
  Ref<Operator> op_;
};

// For operators of `custom_op` these replace what was registered before. For others a second registration is an Error;
// it is undone with `lib`, or with the operator where there is none.
void register_kernel_function(OperatorHandle op, const std::vector<std::string>& device_types, KernelFunction kernel,
                              dispatch::Library* lib, const std::string& place);
void register_fake_function(OperatorHandle op, KernelFunction fake, dispatch::Library* lib, const std::string& place);
void register_formula(OperatorHandle op, Formula formula, dispatch::Library* lib, const std::string& place);

// `device_types`: "cpu", "cuda"; empty: every device.
//
//   library::custom_op("examples::thrice", [](Tensor a) { return a * 3; }, {.names = "a"});
//   library::OperatorHandle thrice("examples::thrice");
//   library::register_kernel(thrice, {"cpu"}, [](Tensor a) { return a + a + a; });
//   library::register_fake(thrice, [](Tensor a) { return empty_like(a); });
//   library::register_autograd(
//       thrice, [](library::AutogradContext&, const Tensor& grad) { return grad * 3; },
//       [](library::AutogradContext&, const library::Inputs& inputs, library::Outputs) {
//         TENON_CHECK(inputs.size() == 1 && inputs["a"].is_tensor(), "one tensor");
//       });
//   std::string where = library::fake_source(thrice);
template <typename F>
void register_kernel(OperatorHandle op, const std::vector<std::string>& device_types, F kernel,
                     dispatch::Library* lib = nullptr, std::source_location where = std::source_location::current()) {
  register_kernel_function(op, device_types, dispatch::kernel_for(op.op().schema(), std::move(kernel), "the kernel"),
                           lib, dispatch::place_of(where));
}
// What the operator gives for fake and meta tensors: tensors with the sizes, strides and dtypes of its results.
template <typename F>
void register_fake(OperatorHandle op, F fake, dispatch::Library* lib = nullptr,
                   std::source_location where = std::source_location::current()) {
  register_fake_function(op, dispatch::kernel_for(op.op().schema(), std::move(fake), "the fake implementation"), lib,
                         dispatch::place_of(where));
}
template <typename Backward>
void register_autograd(OperatorHandle op, Backward backward, dispatch::Library* lib = nullptr,
                       std::source_location where = std::source_location::current()) {
  register_formula(op, {detail::to_backward(std::move(backward)), nullptr}, lib, dispatch::place_of(where));
}
template <typename Backward, typename Setup>
  requires(!std::is_convertible_v<Setup, dispatch::Library*>)
void register_autograd(OperatorHandle op, Backward backward, Setup setup_context, dispatch::Library* lib = nullptr,
                       std::source_location where = std::source_location::current()) {
  register_formula(op, {detail::to_backward(std::move(backward)), detail::to_setup(std::move(setup_context))}, lib,
                   dispatch::place_of(where));
}
// Where the operator's fake implementation was registered, "file.cpp:12"; empty if it has none.
std::string fake_source(OperatorHandle op);

// The handle of a custom operator; copies share it.
//
//   library::CustomOp<Tensor, Tensor> twice =
//       library::custom_op("examples::twice", [](Tensor a) { return a * 2; },
//                          {.device_types = {"cuda"}, .names = "a"});
//   twice.register_kernel("cpu", [](Tensor a) { return a + a; });
//   std::string schema = twice.op().schema().str();
//   twice(x);
//   auto reshaped = library::custom_op("examples::reshaped", [](Tensor a, std::vector<int64_t> sizes) {
//     return a.reshape(SymInts(std::span<const int64_t>(sizes))).clone();
//   });
//   reshaped(x, {3, 2});
//   library::destroy_custom_op("examples::twice");
template <typename R, typename... A>
class CustomOp {
 public:
  // Trailing arguments that have defaults may be left out. A list may be any range: a span, an array, a list in braces
  // (where no argument is left out).
  R operator()(const A&... given) const {
    return call(std::tuple<const A&...>(given...), std::index_sequence_for<A...>());
  }
  template <typename... Given>
    requires(sizeof...(Given) <= sizeof...(A))
  R operator()(const Given&... given) const {
    return call(std::tuple<const Given&...>(given...), std::index_sequence_for<Given...>());
  }

  template <typename F>
  const CustomOp& register_kernel(const std::vector<std::string>& device_types, F kernel,
                                  std::source_location where = std::source_location::current()) const {
    library::register_kernel(*op_, device_types, std::move(kernel), nullptr, where);
    return *this;
  }
  template <typename F>
  const CustomOp& register_kernel(const char* device_type, F kernel,
                                  std::source_location where = std::source_location::current()) const {
    return register_kernel(std::vector<std::string>{device_type}, std::move(kernel), where);
  }
  template <typename F>
  const CustomOp& register_fake(F fake, std::source_location where = std::source_location::current()) const {
    library::register_fake(*op_, std::move(fake), nullptr, where);
    return *this;
  }
  template <typename... F>
  const CustomOp& register_autograd(F... functions) const {
    library::register_autograd(*op_, std::move(functions)...);
    return *this;
  }

  Operator& op() const { return *op_; }
  operator OperatorHandle() const { return *op_; }

 private:
  template <typename Given, size_t... I>
  R call(const Given& given, std::index_sequence<I...>) const {
    // Converted to the parameters' types first, so that 3 is a float where one is expected; what needs no conversion is
    // borrowed.
    std::tuple<Passed<I, std::tuple_element_t<I, Given>>...> typed(
        convert<Passed<I, std::tuple_element_t<I, Given>>>(std::get<I>(given))...);
    std::array<dispatch::Value, sizeof...(A)> values{dispatch::to_value(std::get<I>(typed))...};
    if constexpr (sizeof...(I) < sizeof...(A)) {
      std::vector<dispatch::Value> rest = detail::trailing_defaults(*op_, sizeof...(I));
      for (size_t at = 0; at < rest.size(); ++at) values[sizeof...(I) + at] = std::move(rest[at]);
    }
    dispatch::Results results = dispatch::call_boxed(*op_, values);
    return dispatch::detail::read_results<R>(results);
  }
  template <typename P, typename G>
  static decltype(auto) convert(const G& given) {
    if constexpr (std::is_same_v<std::remove_cvref_t<P>, G>) {
      return (given);
    } else if constexpr (std::is_convertible_v<const G&, P>) {
      return P(given);
    } else {
      static_assert(std::ranges::input_range<const G&>,
                    "an argument of this type does not become a parameter of the operator");
      P list;
      for (const auto& each : given) list.push_back(each);
      return list;
    }
  }
  // A symbol stays one where the function itself takes a plain number: its fake may take the symbol.
  template <typename G, typename P>
  static constexpr bool passes_as_is =
      std::is_same_v<G, P> || (std::is_same_v<G, SymInt> && std::is_integral_v<P> && !std::is_same_v<P, bool>) ||
      (std::is_same_v<G, SymFloat> && std::is_floating_point_v<P>) ||
      (std::is_same_v<G, SymBool> && std::is_same_v<P, bool>) ||
      (std::is_same_v<G, SymInts> && (std::is_same_v<P, Ints> || std::is_same_v<P, std::vector<int64_t>>));
  template <size_t I, typename G>
  using Passed = std::conditional_t<passes_as_is<std::remove_cvref_t<G>, std::tuple_element_t<I, std::tuple<A...>>>, G,
                                    std::tuple_element_t<I, std::tuple<A...>>>;

  // Made by custom_op alone.
  explicit CustomOp(std::shared_ptr<detail::CustomOpState> state)
      : state_(std::move(state)), op_(&detail::operator_of(state_.get())) {}
  template <typename F>
  friend auto custom_op(std::string_view name, F function, const CustomOpOptions& options, std::source_location where,
                        detail::OwnedOps& owner);

  std::shared_ptr<detail::CustomOpState> state_;
  Operator* op_;
};

namespace detail {
template <typename R, typename Arguments>
struct HandleOf;
template <typename R, typename... A>
struct HandleOf<R, std::tuple<A...>> {
  using type = CustomOp<R, A...>;
};
template <typename R>
struct Owned {
  using type = R;
};
template <>
struct Owned<std::string_view> {
  using type = std::string;
};
}  // namespace detail

// `owner` is left as it is: that of the library (or program) that calls this.
template <typename F>
auto custom_op(std::string_view name, F function, const CustomOpOptions& options = {},
               std::source_location where = std::source_location::current(),
               detail::OwnedOps& owner = detail::owned_ops) {
  using Types = dispatch::detail::FunctionTypesOf<F>;
  schema::Schema schema = detail::custom_schema(name, Types::get(), options);
  KernelFunction kernel = dispatch::kernel_for(schema, std::move(function), "the function");
  std::shared_ptr<detail::CustomOpState> state = detail::define_custom_op(std::move(schema), dispatch::place_of(where));
  owner.add(state);
  detail::set_kernel(*state, options.device_types, std::move(kernel), dispatch::place_of(where));
  using R = typename detail::Owned<std::remove_cvref_t<typename Types::Result>>::type;
  return typename detail::HandleOf<R, typename Types::Arguments>::type(std::move(state));
}

// Removes a custom operator; its handles raise when they are called.
void destroy_custom_op(std::string_view name);

}  // namespace tenon::library

namespace tenon {
using library::custom_op;
}
