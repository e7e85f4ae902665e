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
//
// A module that opens its scope in its operator() stands beside the operators that it calls, in graphs and profiles:
//
//   struct Shift : nn::Module {
//     Tensor operator()(const Tensor& input) const {
//       nn::ModuleScope inside = enter();
//       return input + 1;
//     }
//   };
//   Shift()(x);
//
// The layers of modules.h do.
//
// Tensors and `training` live in cells, so that a compiled function follows when they are replaced.
#pragma once

#include <tenon/core/cell.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// While it lives, operators that the thread calls are the module's.
class ModuleScope {
 public:
  explicit ModuleScope(const std::string& path);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;

 private:
  const std::string* before_;
};

class Module {
 public:
  Module();

  // Where it stands in the module that it is a part of, "features.0"; of one that is no part: "self".
  const std::string& path() const { return state_->path; }
  [[nodiscard]] ModuleScope enter() const { return ModuleScope(state_->path); }

  // Of this module and its submodules, in order of registration, each tensor once: "0.weight", "0.bias", …
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<std::pair<std::string, Module>> children() const;

  const Module& train(bool on = true) const;
  const Module& eval() const { return train(false); }
  bool is_training() const { return state_->training.get(); }

  // Drops the gradients of all parameters.
  void zero_grad() const;

 protected:
  // Registers a tensor that is trained; it becomes a leaf that requires grad. An undefined one is kept as absent.
  Cell<Tensor> parameter(std::string name, const Tensor& initial);
  // Registers a tensor that is not.
  Cell<Tensor> buffer(std::string name, const Tensor& initial);
  template <typename M>
  M submodule(std::string name, M module) {
    add_child(std::move(name), module);
    return module;
  }

 private:
  struct State {
    std::string path = "self";
    Cell<bool> training{true};
    std::vector<std::pair<std::string, Cell<Tensor>>> parameters, buffers;
    std::vector<std::pair<std::string, Module>> children;
  };
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void add_child(std::string name, const Module& module);
  void check_name(const std::string& name) const;
  void move_below(const std::string& prefix) const;
  template <typename Visit>
  void each_module(const std::string& prefix, Visit&& visit) const;

  std::shared_ptr<State> state_;
};

}  // namespace tenon::nn
