// `Function<T>`: an operation with a backward of its own.
//
//   using autograd::AutogradContext;
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(AutogradContext* ctx, const Tensor& base) {
//       ctx->save_for_backward({base});
//       ctx->saved_data["factor"] = 3.0;
//       return base * base * base;
//     }
//     static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
//       if (!ctx->needs_input_grad(0)) return {Tensor()};
//       Tensor base = ctx->saved_tensor(0);
//       return {grads[0] * base * base * ctx->saved_data["factor"].real()};
//     }
//   };
//   Tensor cube = Cube::apply(x.set_requires_grad());
//   cube.sum().backward();
//
// `forward` runs without recording. `backward` gives one gradient per argument of `forward`, an undefined tensor for
// those without one; each tensor of a vector argument counts as an argument.
//
// What forward computes and what it leaves for backward may stand apart: then `forward` has no context, and
// `setup_context` gets what forward returned, and the arguments. A result may be anything: of a `std::tuple` those that
// are tensors have gradients.
//
//   struct Power : autograd::Function<Power> {
//     static std::tuple<Tensor, int> forward(const Tensor& base, int exponent = 3) {
//       return {base.pow(exponent), exponent};
//     }
//     static void setup_context(AutogradContext* ctx, const std::tuple<Tensor, int>&, const Tensor& base,
//                               int exponent = 3) {
//       ctx->save_for_backward({base});
//       ctx->saved_data["exponent"] = exponent;
//     }
//     static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {  // grads[1] is undefined
//       double exponent = static_cast<double>(ctx->saved_data["exponent"].integer());
//       return {grads[0] * exponent * ctx->saved_tensors()[0].pow(exponent - 1)};
//     }
//   };
//   auto [power, exponent] = Power::apply(x);
//
// A function that says `static constexpr bool is_traceable = true;` promises that its backward does nothing but
// compute, from what it saved and the gradients; compiled autograd then makes it part of its graph. Others are called
// as they are. One that says `static constexpr bool once_differentiable = true;` has a backward that autograd cannot
// look into: it runs without recording, and what it gives cannot be differentiated again.
//
// For forward mode (`forward_ad`) a function has a `jvp`, which gets one tangent per argument and gives one per result,
// undefined where there is none. It reads what was left by `save_for_forward`. `vjp` is another name of `backward`.
//
//   struct Twice : autograd::Function<Twice> {
//     static Tensor forward(AutogradContext* ctx, const Tensor& at) {
//       ctx->save_for_forward({at});
//       return at * 2;
//     }
//     static std::vector<Tensor> vjp(AutogradContext*, std::vector<Tensor> grads) { return {grads[0] * 2}; }
//     static std::vector<Tensor> jvp(AutogradContext*, std::vector<Tensor> tangents) { return {tangents[0] * 2}; }
//   };
//   forward_ad::DualLevel level;
//   Tensor slope = forward_ad::unpack_dual(Twice::apply(forward_ad::make_dual(x, ones_like(x)))).tangent;
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/visit.h>
#include <tenon/dispatch/any_value.h>
#include <tenon/dispatch/operator.h>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <typeinfo>
#include <vector>

namespace tenon::autograd {

class FunctionNode;

// What forward leaves for backward.
//
//   using autograd::AutogradContext;
//   struct Double : autograd::Function<Double> {
//     static std::vector<Tensor> forward(AutogradContext* ctx, Tensor changed, std::vector<Tensor> others) {
//       changed.mul_(2);
//       ctx->mark_dirty({changed});
//       Tensor signs = changed.sign();
//       ctx->mark_non_differentiable({signs});
//       ctx->set_materialize_grads(false);
//       ctx->set_materialize_non_diff_grads(false);
//       std::vector<bool> wanted = ctx->needs_input_grads(1);  // of `others`, one each
//       return {changed, signs};
//     }
//     static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
//       bool none = !ctx->materialize_grads() && ctx->get_saved_variables().empty();
//       return {grads[0] * 2, Tensor(), Tensor()};
//     }
//   };
//   Tensor w = ones({2, 3}).set_requires_grad();
//   Double::apply(w * 1, std::vector<Tensor>{x, y})[0].sum().backward();
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  // Arguments and results of forward; changing one in place before backward reads it is an Error.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  // The same for `jvp`.
  void save_for_forward(std::vector<Tensor> tensors) { for_forward_ = std::move(tensors); }
  // What was saved for the one that asks.
  std::vector<Tensor> saved_tensors() const;
  // One of them; the others may have been changed in place.
  Tensor saved_tensor(size_t at) const;
  std::vector<Tensor> get_saved_variables() const { return saved_tensors(); }  // libtorch's name
  // Anything else. Tensors in here are kept as they are, unchecked.
  std::map<std::string, AnyValue> saved_data;

  // Arguments that forward changed in place; it must return them.
  void mark_dirty(std::vector<Tensor> tensors) { dirty_ = std::move(tensors); }
  void mark_non_differentiable(std::vector<Tensor> tensors) { non_differentiable_ = std::move(tensors); }
  // Whether backward gets zeros where no gradient came (the default), or an undefined tensor.
  void set_materialize_grads(bool materialize) { materialize_ = materialize; }
  bool materialize_grads() const { return materialize_; }
  // The same for results that are marked non-differentiable, alone.
  void set_materialize_non_diff_grads(bool materialize) { materialize_non_diff_ = materialize; }
  // Whether the gradient of argument `at` is wanted: in forward, whether it requires grad.
  bool needs_input_grad(size_t at) const;
  // The same for argument `argument` as the caller wrote it: one answer per tensor of a list.
  std::vector<bool> needs_input_grads(size_t argument) const;

 private:
  friend class FunctionNode;
  FunctionNode* node_ = nullptr;  // whose context this is
  std::vector<Tensor> to_save_, for_forward_, dirty_, non_differentiable_;
  bool in_jvp_ = false;
  struct Saved {
    SavedTensor tensor;
    uint32_t output = 0;  // of a saved result
  };
  std::vector<Saved> saved_;
  std::vector<bool> needs_;       // during forward
  std::vector<uint32_t> counts_;  // tensors of each argument
  bool materialize_ = true, materialize_non_diff_ = true;
  bool released_ = false;
  std::vector<bool> non_diff_results_;
};

// The step of the backward graph that runs the user's backward.
class FunctionNode final : public Node {
 public:
  // Gets one gradient per result, gives one per argument.
  using Backward = std::function<std::vector<Tensor>(AutogradContext&, std::vector<Tensor>)>;
  // `kind`: not 0 if backward can be repeated on other tensors; nodes of one kind do the same with what they saved.
  FunctionNode(std::string_view name, Backward backward, uint64_t kind = 0)
      : Node(name), backward_(std::move(backward)), kind_(kind) {
    context_.node_ = this;
  }

  AutogradContext& context() { return context_; }
  const AutogradContext& context() const { return context_; }

  // Before forward: the arguments, undefined where one is no tensor; `counts` says how many each argument of the
  // caller's gave.
  void connect(std::span<const Tensor> arguments, std::vector<uint32_t> counts);
  // After forward: gives the results their history, and saves. Results that are arguments are replaced by aliases of
  // them.
  void finish(std::span<const Tensor> arguments, std::vector<Tensor>& results);

  // In forward mode, after forward and before `finish`: the tangents of the results. `given`: by argument, undefined
  // where there is none. A result that is an argument, and is to have a tangent of its own, is replaced by an alias.
  using Jvp = std::function<std::vector<Tensor>(AutogradContext&, std::vector<Tensor>)>;
  std::vector<Tensor> tangents(std::span<const Tensor> arguments, std::vector<Tensor> given,
                               std::vector<Tensor>& results, const Jvp& jvp);

  // What forward left in the context, and a context that goes on from there.
  AnyValue leave(std::span<const Tensor> results) const;
  void resume(const AnyValue& left, std::span<const Tensor> arguments, std::span<const Tensor> results);

  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override;
  bool visit(NodeVisitor& visitor) override;
  // What forward saved alone; false if it was dropped.
  bool visit_saved(NodeVisitor& visitor);
  Ref<Node> copy() const override;

 protected:
  void drop_references() override;

 private:
  Backward backward_;
  uint64_t kind_;
  AutogradContext context_;
};

namespace detail {

// Whether a call with these tensors is to be recorded.
bool records(std::span<const Tensor> arguments);
// What forward gives that looks into a tensor of the caller's cannot be changed in place while recording.
void mark_views(std::span<const Tensor> arguments, std::span<const Tensor> results);
// Whether the user's calls are being captured into a graph; then a recorded function ends with a call of an operator of
// its own, in place of `FunctionNode::finish`.
bool is_captured();
dispatch::OperatorRef make_function_operator(const std::string& name, FunctionNode::Backward backward,
                                             uint64_t kind = 0);
void finish_in_graph(const dispatch::Operator& op, const FunctionNode& node, std::span<const Tensor> arguments,
                     std::vector<Tensor>& results);
std::string type_name(const std::type_info& type);
// The name of its nodes: "my::Cube" gives "CubeBackward".
std::string node_name_of(const std::string& type);

template <typename T>
concept TraceableFunction = requires { requires bool(T::is_traceable); };

template <typename T>
concept OnceDifferentiable = requires { requires bool(T::once_differentiable); };
// Runs a backward without recording. What it gives leads to an Error, if gradients were to be differentiated.
std::vector<Tensor> backward_once(const std::string& name, std::vector<Tensor> gradients,
                                  const std::function<std::vector<Tensor>(std::vector<Tensor>)>& backward);

// In forward mode: tangents by argument, none at all if no argument has one; and of results.
std::vector<Tensor> tangents_of(std::span<const Tensor> arguments);
void give_tangents(std::span<const Tensor> results, std::span<const Tensor> tangents);
// While it lives, what is computed has no tangents.
class NoTangents {
 public:
  NoTangents();
  ~NoTangents();
  NoTangents(const NoTangents&) = delete;

 private:
  const void* level_;
};

template <typename T>
concept HasBackward = requires(AutogradContext* ctx, std::vector<Tensor> list) { T::backward(ctx, std::move(list)); };
template <typename T>
concept HasVjp = requires(AutogradContext* ctx, std::vector<Tensor> list) { T::vjp(ctx, std::move(list)); };
template <typename T>
concept HasJvp = requires(AutogradContext* ctx, std::vector<Tensor> list) { T::jvp(ctx, std::move(list)); };
template <typename T>
std::vector<Tensor> run_backward(AutogradContext* context, std::vector<Tensor> gradients) {
  if constexpr (HasVjp<T>)
    return T::vjp(context, std::move(gradients));
  else
    return T::backward(context, std::move(gradients));
}

inline void flatten(std::vector<Tensor>& flat, const Tensor& tensor) { flat.push_back(tensor); }
inline void flatten(std::vector<Tensor>& flat, const std::optional<Tensor>& tensor) {
  flat.push_back(tensor.value_or(Tensor()));
}
inline void flatten(std::vector<Tensor>& flat, const std::vector<Tensor>& list) {
  flat.insert(flat.end(), list.begin(), list.end());
}
template <typename T>
void flatten(std::vector<Tensor>& flat, const T&) {
  flat.emplace_back();
}

template <typename T>
struct is_tuple : std::false_type {};
template <typename... Parts>
struct is_tuple<std::tuple<Parts...>> : std::true_type {};

// The tensors of what forward returned, undefined where something else stands; and back again.
inline std::vector<Tensor> tensors_of(const Tensor& result) { return {result}; }
inline std::vector<Tensor> tensors_of(const std::vector<Tensor>& results) { return results; }
template <typename... Parts>
std::vector<Tensor> tensors_of(const std::tuple<Parts...>& results) {
  std::vector<Tensor> tensors;
  auto add = [&](const auto& part) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(part)>, Tensor>)
      tensors.push_back(part);
    else
      tensors.emplace_back();
  };
  std::apply([&](const auto&... parts) { (add(parts), ...); }, results);
  return tensors;
}
inline void put_back(Tensor& result, std::vector<Tensor>& tensors) { result = std::move(tensors[0]); }
inline void put_back(std::vector<Tensor>& results, std::vector<Tensor>& tensors) { results = std::move(tensors); }
template <typename... Parts>
void put_back(std::tuple<Parts...>& results, std::vector<Tensor>& tensors) {
  size_t at = 0;
  auto put = [&](auto& part) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(part)>, Tensor>) part = std::move(tensors[at]);
    ++at;
  };
  std::apply([&](auto&... parts) { (put(parts), ...); }, results);
}

// Forward takes the context, or `setup_context` does after it.
template <typename T, typename... Args>
concept TakesContext =
    requires(Args&&... args) { T::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...); };
template <typename T, typename... Args>
concept HasForward = TakesContext<T, Args...> || requires(Args&&... args) { T::forward(std::as_const(args)...); };
template <typename T, typename... Args>
auto run_forward(AutogradContext* context, Args&&... args) {
  if constexpr (TakesContext<T, Args...>) {
    return T::forward(context, std::forward<Args>(args)...);
  } else {
    auto result = T::forward(std::as_const(args)...);
    T::setup_context(context, std::as_const(result), std::as_const(args)...);
    return result;
  }
}

}  // namespace detail

template <typename T>
class Function {
 public:
  template <typename... Args>
  static auto apply(Args&&... args) {
    static_assert(detail::HasForward<T, Args...>,
                  "an autograd::Function must implement the forward function, for these arguments");
    static_assert(detail::HasBackward<T> || detail::HasVjp<T>,
                  "an autograd::Function must implement either the backward or the vjp function");
    static_assert(!detail::HasBackward<T> || !detail::HasVjp<T>,
                  "Implementing both 'backward' and 'vjp' is not allowed: they are two names of one function");
    using R = std::remove_cvref_t<decltype(detail::run_forward<T>(static_cast<AutogradContext*>(nullptr),
                                                                  std::forward<Args>(args)...))>;
    static_assert(std::is_same_v<R, Tensor> || std::is_same_v<R, std::vector<Tensor>> || detail::is_tuple<R>::value,
                  "forward of an autograd::Function returns a Tensor, a std::vector<Tensor> or a std::tuple");
    std::vector<Tensor> arguments;
    std::vector<uint32_t> counts;
    auto add = [&](const auto& each) {
      size_t before = arguments.size();
      detail::flatten(arguments, each);
      counts.push_back(static_cast<uint32_t>(arguments.size() - before));
    };
    (add(args), ...);
    bool recorded = detail::records(arguments);
    static const std::string name = detail::type_name(typeid(T));
    auto backward = [](AutogradContext& context, std::vector<Tensor> gradients) {
      if constexpr (detail::OnceDifferentiable<T>)
        return detail::backward_once(name, std::move(gradients), [&](std::vector<Tensor> given) {
          return detail::run_backward<T>(&context, std::move(given));
        });
      else
        return detail::run_backward<T>(&context, std::move(gradients));
    };
    static const uint64_t kind = detail::TraceableFunction<T> ? new_kind() : 0;
    static const std::string node_name = detail::node_name_of(name);
    auto node = make_ref<FunctionNode>(node_name, backward, kind);
    node->connect(arguments, std::move(counts));
    std::vector<Tensor> tangents = detail::tangents_of(arguments);
    R returned = [&] {
      NoGrad off;
      detail::NoTangents plain;
      return detail::run_forward<T>(&node->context(), std::forward<Args>(args)...);
    }();
    std::vector<Tensor> results = detail::tensors_of(returned);
    if (!recorded) detail::mark_views(arguments, results);
    if (!recorded && tangents.empty()) return returned;
    if (!tangents.empty()) {
      FunctionNode::Jvp jvp;
      if constexpr (detail::HasJvp<T>)
        jvp = [](AutogradContext& context, std::vector<Tensor> given) { return T::jvp(&context, std::move(given)); };
      tangents = node->tangents(arguments, std::move(tangents), results, jvp);
    }
    if (!recorded) {
    } else if (detail::is_captured()) {
      static const dispatch::OperatorRef op = detail::make_function_operator(name, backward, kind);
      detail::finish_in_graph(*op, *node, arguments, results);
    } else {
      node->finish(arguments, results);
    }
    detail::give_tangents(results, tangents);
    detail::put_back(returned, results);
    return returned;
  }
};

}  // namespace tenon::autograd
