// `Module`: named parameters, buffers and submodules behind a handle. Copying a module shares it.
//
//   struct Scale : nn::Module {
//     Cell<Tensor> factor = parameter("factor", ones({1}));
//     Cell<Tensor> calls = buffer("calls", zeros({1}));
//     nn::Linear inner = submodule("inner", nn::Linear(3, 3));
//     Tensor operator()(const Tensor& input) const { return inner(input) * factor.get(); }
//   };
//   Scale scale;
//   scale(x).sum().backward();
//   for (const auto& [name, parameter] : scale.named_parameters())
//     fmt::print("{}: {}\n", name, parameter.description());
//   size_t tensors = scale.parameters().size() + scale.named_buffers().size();  // 3 + 1
//   size_t modules = scale.children().size();                                   // 1
//   scale.zero_grad();
//   bool training = scale.eval().is_training();                                 // false
//   scale.train();
//   std::string where = scale.inner.path();                                     // "inner"
//   std::string tree = scale.str();
//
// A module that runs its operator() by `run` stands beside the operators that it calls, in graphs and profiles, and
// calls its hooks; `enter` does the first alone:
//
//   struct Shift : nn::Module {
//     Shift() { describe("Shift", "by=1"); }  // for the tree
//     Tensor operator()(const Tensor& input) const {
//       return run(input, [](const Tensor& each) { return each + 1; });
//     }
//   };
//   struct Add : nn::Module {
//     Tensor operator()(const Tensor& left, const Tensor& right) const {
//       nn::ModuleScope inside = enter();
//       return left + right;
//     }
//   };
//   Shift()(x);
//   Add()(x, y);
//
// The layers of modules.h do.
//
// Tensors and `training` live in cells, so that a compiled function follows when they are replaced.
#pragma once

#include <tenon/core/cell.h>
#include <tenon/io/tensors.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tenon::nn {

using NamedTensors = io::NamedTensors;

// While it lives, operators that the thread calls are the module's.
class ModuleScope {
 public:
  explicit ModuleScope(const std::string& path);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;

 private:
  const std::string* before_;
};

// Names that a state has and the module has not, and the reverse.
struct LoadResult {
  std::vector<std::string> missing, unexpected;
  std::string str() const;  // "missing: 0.bias; unexpected: none"
};
std::ostream& operator<<(std::ostream& out, const LoadResult& result);

struct BackwardHooks;  // src/nn/backward_hooks.h

class Module {
 public:
  Module();
  Module(const Module& other);
  Module(Module&&) noexcept = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) noexcept = default;
  ~Module() = default;

  // Where it stands in the module that it is a part of, "features.0"; of one that is no part: "self".
  const std::string& path() const { return state_->path; }
  [[nodiscard]] ModuleScope enter() const { return ModuleScope(state_->path); }

  // Of this module and its submodules, in order of registration, each tensor once: "0.weight", "0.bias", …
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<std::pair<std::string, Module>> children() const;
  // All modules below this one and itself, which has the name "".
  //
  //   nn::Sequential model(nn::Linear(3, 2), nn::ReLU());
  //   for (const auto& [name, module] : model.named_modules()) fmt::print("{}: {}\n", name, module.kind());
  //   model.apply([](const nn::Module& module) { module.train(); });
  std::vector<std::pair<std::string, Module>> named_modules() const;
  const Module& apply(const std::function<void(const Module&)>& visit) const;
  // "Linear"; the name of the class, where it is known.
  const std::string& kind() const { return state_->kind; }
  // The modules as a tree.
  std::string str() const;

  const Module& train(bool on = true) const;
  const Module& eval() const { return train(false); }
  bool is_training() const { return state_->training.get(); }

  // Floating point parameters and buffers in another dtype. The parameters are new tensors: make optimizers afterwards.
  //
  //   nn::Linear layer(3, 2);
  //   layer.to(kFloat64);
  const Module& to(Dtype dtype) const;
  // Those of four dimensions (five for ChannelsLast3d) in another order in memory.
  //
  //   nn::Conv2d layer(3, 8, 3);
  //   layer.to(MemoryFormat::ChannelsLast);
  const Module& to(MemoryFormat format) const;
  // Whether the parameters are trained.
  //
  //   nn::Linear layer(3, 2);
  //   layer.requires_grad(false);
  const Module& requires_grad(bool on) const;

  // Drops the gradients of all parameters.
  void zero_grad() const;

  // Parameters and buffers by name, with PyTorch's names. They are the module's own memory.
  //
  //   nn::Linear layer(3, 2), other(3, 2);
  //   nn::LoadResult result = other.load_state_dict(layer.state_dict());
  //   bool complete = result.missing.empty() && result.unexpected.empty();
  //   auto path = std::filesystem::temp_directory_path() / "tenon_example_module.safetensors";
  //   layer.save(path);
  //   other.load(path);
  //   std::filesystem::remove(path);
  NamedTensors state_dict() const;
  // Copies values into the module's tensors. Names that do not fit are an error, unless `strict` is off; sizes always.
  LoadResult load_state_dict(const NamedTensors& state, bool strict = true) const;
  // By io::save and io::load.
  void save(const std::filesystem::path& path) const;
  LoadResult load(const std::filesystem::path& path, bool strict = true) const;

  // The parameter `name` is computed at every read, from tensors that take its place: parameters (`trained`), then
  // buffers (`kept`), with names of their own. Undone, it is a parameter again, as it is then. (weight_norm.h has the
  // usual ones.)
  //
  //   nn::Linear layer(3, 2);
  //   Tensor root = layer.weight.get().abs().sqrt().detach();
  //   layer.reparametrize("weight", {{"weight_root", root}}, {}, [](const std::vector<Tensor>& of, bool /*training*/) {
  //     return of[0].square();
  //   });
  //   layer(x).sum().backward();
  //   layer.undo_reparametrization("weight");
  using Compute = std::function<Tensor(const std::vector<Tensor>& of, bool training)>;
  void reparametrize(const std::string& name, const NamedTensors& trained, const NamedTensors& kept,
                     Compute compute) const;
  void undo_reparametrization(const std::string& name) const;

  // Called before and after the module runs; what one returns, if it is defined, takes the place of the input or the
  // output (of the first, for modules of several: an LSTM's sequences). The function that is returned takes the hook
  // away again. A compiled function is captured anew for other hooks; those whose turn comes again find what was
  // compiled for them.
  //
  //   nn::Linear layer(3, 2);
  //   auto remove = layer.register_forward_hook([](const nn::Module&, const Tensor&, const Tensor& output) {
  //     return output * 2;
  //   });
  //   auto also = layer.register_forward_pre_hook([](const nn::Module&, const Tensor&) { return Tensor(); });
  //   Tensor doubled = layer(x);
  //   remove();
  using ForwardHook = std::function<Tensor(const Module& module, const Tensor& input, const Tensor& output)>;
  using ForwardPreHook = std::function<Tensor(const Module& module, const Tensor& input)>;
  std::function<void()> register_forward_hook(ForwardHook hook) const;
  std::function<void()> register_forward_pre_hook(ForwardPreHook hook) const;

  // Called in backward, once it is known what the gradients of the module's inputs are (undefined where one requires
  // none): with those and with the gradients of the outputs (undefined where nothing used one). What one returns, if it
  // is not empty, takes their place. A pre-hook is called before that, with the gradients of the outputs. Compiled
  // functions follow, as for forward hooks.
  //
  //   nn::Linear layer(3, 2);
  //   auto remove = layer.register_full_backward_hook([](const nn::Module&, const std::vector<Tensor>& grad_input,
  //                                                      const std::vector<Tensor>& grad_output) {
  //     return std::vector<Tensor>{grad_input[0] * grad_output[0].numel()};
  //   });
  //   auto also = layer.register_full_backward_pre_hook(
  //       [](const nn::Module&, const std::vector<Tensor>& grad_output) { return std::vector<Tensor>(); });
  //   layer(x.set_requires_grad()).sum().backward();
  //   remove();
  using BackwardHook = std::function<std::vector<Tensor>(const Module& module, const std::vector<Tensor>& grad_input,
                                                         const std::vector<Tensor>& grad_output)>;
  using BackwardPreHook =
      std::function<std::vector<Tensor>(const Module& module, const std::vector<Tensor>& grad_output)>;
  std::function<void()> register_full_backward_hook(BackwardHook hook) const;
  std::function<void()> register_full_backward_pre_hook(BackwardPreHook hook) const;

 protected:
  // Registers a tensor that is trained; it becomes a leaf that requires grad. An undefined one is kept as absent.
  Cell<Tensor> parameter(std::string name, const Tensor& initial);
  // Registers a tensor that is not.
  Cell<Tensor> buffer(std::string name, const Tensor& initial);
  template <typename M>
  M submodule(std::string name, M module) {
    add_child(std::move(name), module, typeid(M).name());
    return module;
  }
  // What `str` says of it: "Linear", "in_features=3, out_features=4".
  void describe(std::string kind, std::string details = "") const;
  // The input through `forward`, within the module's scope and with its hooks.
  template <typename F>
  Tensor run(const Tensor& input, F&& forward) const {
    ModuleScope inside = enter();
    if (!has_hooks()) [[likely]]
      return forward(input);
    std::vector<Tensor> given = before({input});
    return after(given, forward(given[0]));
  }
  // The same for a module of several inputs. Forward hooks see the first.
  template <typename F>
  Tensor run(const Tensor& first, const Tensor& second, F&& forward) const {
    ModuleScope inside = enter();
    if (!has_hooks()) [[likely]]
      return forward(first, second);
    std::vector<Tensor> given = before({first, second});
    return after(given, forward(given[0], given[1]));
  }
  template <typename F>
  Tensor run(const Tensor& first, const Tensor& second, const Tensor& third, F&& forward) const {
    ModuleScope inside = enter();
    if (!has_hooks()) [[likely]]
      return forward(first, second, third);
    std::vector<Tensor> given = before({first, second, third});
    return after(given, forward(given[0], given[1], given[2]));
  }
  // The same for several inputs and outputs, some of which may be undefined. Forward hooks see the first of each.
  template <typename F>
  std::vector<Tensor> run(std::vector<Tensor> inputs, F&& forward) const {
    ModuleScope inside = enter();
    if (!has_hooks()) [[likely]]
      return forward(inputs);
    std::vector<Tensor> given = before(std::move(inputs));
    return after(given, std::vector<Tensor>(forward(given)));
  }

 private:
  struct State {
    std::string path = "self", kind = "Module", details;
    Cell<bool> training{true};
    std::vector<std::pair<std::string, Cell<Tensor>>> parameters, buffers;
    std::vector<std::pair<std::string, Module>> children;
    struct Computed {
      std::string name;
      Cell<Tensor> cell;
      std::vector<std::string> of;
    };
    std::vector<Computed> computed;
    std::vector<std::pair<int, ForwardPreHook>> pre_hooks;
    std::vector<std::pair<int, ForwardHook>> hooks;
    std::vector<std::pair<int, BackwardPreHook>> backward_pre_hooks;
    std::vector<std::pair<int, BackwardHook>> backward_hooks;
    int next_hook = 0;
    // Which hooks there are, for compiled functions to watch; 0: none.
    Cell<int64_t> hook_set{0, "hooks"};
    State() { hook_set.state()->by_value = true; }
    void hooks_changed();
  };
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void add_child(std::string name, const Module& module, const char* type);
  void check_name(const std::string& name) const;
  void move_below(const std::string& prefix) const;
  bool has_hooks() const {
    (void)state_->hook_set.get();  // a capture takes note of it; what is there now is in the lists
    return !state_->hooks.empty() || !state_->pre_hooks.empty() || has_backward_hooks();
  }
  bool has_backward_hooks() const { return !state_->backward_hooks.empty() || !state_->backward_pre_hooks.empty(); }
  BackwardHooks backward_hooks() const;
  std::vector<Tensor> before(std::vector<Tensor> inputs) const;
  std::vector<Tensor> after(const std::vector<Tensor>& inputs, std::vector<Tensor> outputs) const;
  Tensor after(const std::vector<Tensor>& inputs, const Tensor& output) const {
    return after(inputs, std::vector<Tensor>{output})[0];
  }
  void print(std::string& text, size_t indent) const;
  template <typename Visit>
  void each_module(const std::string& prefix, Visit&& visit) const;
  void convert_all(const std::function<Tensor(const Tensor&)>& convert) const;

  std::shared_ptr<State> state_;
};

// A module with tensors of its own, of the same type and with the same values.
//
//   nn::Sequential model(nn::Linear(3, 2), nn::ReLU());
//   nn::Sequential copy = nn::clone(model);
template <typename M>
  requires std::derived_from<M, Module>
M clone(const M& module) {
  core::CopyCells scope;
  return M(module);
}

}  // namespace tenon::nn
