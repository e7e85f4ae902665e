// Functions with a backward of their own, as libtorch's sources write them.
#pragma once

#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/compat/ivalue.h>

namespace torch::autograd {

using Variable = at::Tensor;
using variable_list = std::vector<Variable>;
using tensor_list = std::vector<at::Tensor>;

// What forward leaves for backward: a view of Tenon's context with libtorch's types.
class AutogradContext {
 public:
  explicit AutogradContext(tenon::autograd::AutogradContext& context)
      : saved_data(context.saved_data), context_(context) {}
  void save_for_backward(const variable_list& list) { context_.save_for_backward(at::compat::plain(list)); }
  variable_list get_saved_variables() const { return at::compat::wrap(context_.saved_tensors()); }
  void mark_dirty(const variable_list& list) { context_.mark_dirty(at::compat::plain(list)); }
  void mark_non_differentiable(const variable_list& list) { context_.mark_non_differentiable(at::compat::plain(list)); }
  void set_materialize_grads(bool wanted) { context_.set_materialize_grads(wanted); }
  bool needs_input_grad(size_t at) const { return context_.needs_input_grad(at); }

  c10::compat::SavedData saved_data;

 private:
  tenon::autograd::AutogradContext& context_;
};

namespace compat {
inline void flatten(std::vector<tenon::Tensor>& flat, const tenon::Tensor& tensor) { flat.push_back(tensor); }
inline void flatten(std::vector<tenon::Tensor>& flat, const std::optional<at::Tensor>& tensor) {
  flat.push_back(tensor ? at::compat::base(*tensor) : tenon::Tensor());
}
inline void flatten(std::vector<tenon::Tensor>& flat, at::TensorList list) {
  for (const at::Tensor& tensor : list) flat.push_back(at::compat::base(tensor));
}
inline void flatten(std::vector<tenon::Tensor>& flat, const variable_list& list) {
  flatten(flat, at::TensorList(list));
}
template <typename T>
  requires(!std::is_convertible_v<const T&, const tenon::Tensor&> && !std::is_convertible_v<const T&, at::TensorList>)
void flatten(std::vector<tenon::Tensor>& flat, const T&) {
  flat.emplace_back();
}
}  // namespace compat

template <typename T>
class Function {
 public:
  template <typename... Args>
  static auto apply(Args&&... args) {
    namespace inner = tenon::autograd;
    using R =
        std::remove_cvref_t<decltype(T::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...))>;
    static_assert(std::is_same_v<R, at::Tensor> || std::is_same_v<R, variable_list>,
                  "forward of a torch::autograd::Function returns a Tensor or a variable_list");
    std::vector<tenon::Tensor> arguments;
    std::vector<uint32_t> counts;
    auto add = [&](const auto& each) {
      size_t before = arguments.size();
      compat::flatten(arguments, each);
      counts.push_back(static_cast<uint32_t>(arguments.size() - before));
    };
    (add(args), ...);
    bool recorded = inner::detail::records(arguments);
    static const std::string name = inner::detail::type_name(typeid(T));
    auto backward = [](inner::AutogradContext& context, std::vector<tenon::Tensor> gradients) {
      AutogradContext seen(context);
      variable_list made = T::backward(&seen, at::compat::wrap(gradients));
      return at::compat::plain(made);
    };
    static const uint64_t kind = inner::detail::TraceableFunction<T> ? inner::new_kind() : 0;
    static const std::string node_name = inner::detail::node_name_of(name);
    auto node = tenon::make_ref<inner::FunctionNode>(node_name, backward, kind);
    node->connect(arguments, std::move(counts));
    std::vector<tenon::Tensor> results;
    {
      inner::NoGrad off;
      AutogradContext seen(node->context());
      if constexpr (std::is_same_v<R, at::Tensor>) {
        results.push_back(at::compat::base(T::forward(&seen, std::forward<Args>(args)...)));
      } else {
        results = at::compat::plain(T::forward(&seen, std::forward<Args>(args)...));
      }
    }
    if (recorded && inner::detail::is_captured()) {
      static const tenon::dispatch::OperatorRef op = inner::detail::make_function_operator(name, backward, kind);
      inner::detail::finish_in_graph(*op, *node, arguments, results);
    } else if (recorded) {
      node->finish(arguments, results);
    }
    if constexpr (std::is_same_v<R, at::Tensor>)
      return at::Tensor(std::move(results[0]));
    else
      return at::compat::wrap(results);
  }
};

inline variable_list grad(const variable_list& outputs, const variable_list& inputs,
                          const variable_list& grad_outputs = {}, std::optional<bool> retain_graph = std::nullopt,
                          bool create_graph = false, bool allow_unused = false) {
  return at::compat::wrap(tenon::autograd::grad(at::compat::plain(outputs), at::compat::plain(inputs),
                                                at::compat::plain(grad_outputs), retain_graph.value_or(create_graph),
                                                create_graph, allow_unused));
}
inline void backward(const variable_list& outputs, const variable_list& gradients = {},
                     std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                     const variable_list& inputs = {}) {
  tenon::autograd::backward(at::compat::plain(outputs), at::compat::plain(gradients),
                            retain_graph.value_or(create_graph), create_graph, at::compat::plain(inputs));
}

}  // namespace torch::autograd
