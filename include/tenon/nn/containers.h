// Modules that hold modules.
#pragma once

#include <tenon/nn/layer.h>

namespace tenon::nn {

// Each layer on the result of the one before.
//
//   nn::Sequential model(nn::Linear(3, 8), nn::ReLU());
//   model.push_back(nn::Linear(8, 2));
//   Tensor result = model(x);        // [2, 2]
//   size_t layers = model.size();    // 3
//   nn::AnyLayer first = model[0];
class Sequential : public Module {
 public:
  Sequential() { describe("Sequential"); }
  template <Layer First, Layer... Rest>
    requires(sizeof...(Rest) > 0 || !std::same_as<First, Sequential>)  // one Sequential alone is a copy
  explicit Sequential(First first, Rest... rest) : Sequential() {
    push_back(std::move(first));
    (push_back(std::move(rest)), ...);
  }

  template <Layer M>
  void push_back(M layer) {
    submodule(std::to_string(layers_.size()), layer);
    layers_.push_back(AnyLayer(std::move(layer)));
  }
  size_t size() const { return layers_.size(); }
  const AnyLayer& operator[](size_t at) const { return layers_.at(at); }
  Tensor operator()(const Tensor& input) const {
    return run(input, [&](const Tensor& x) {
      Tensor value = x;
      for (const AnyLayer& layer : layers_) value = layer(value);
      return value;
    });
  }

 private:
  std::vector<AnyLayer> layers_;
};

// Modules of one type, "0", "1", …
//
//   nn::ModuleList<nn::Linear> blocks;
//   for (int i = 0; i < 3; ++i) blocks.push_back(nn::Linear(3, 3));
//   Tensor value = x;
//   for (const nn::Linear& block : blocks) value = block(value);
//   size_t count = blocks.size();
//   Tensor weight = blocks[1].weight;
template <typename M = AnyLayer>
class ModuleList : public Module {
 public:
  ModuleList() { describe("ModuleList"); }
  void push_back(M module) { modules_.push_back(submodule(std::to_string(modules_.size()), std::move(module))); }
  size_t size() const { return modules_.size(); }
  const M& operator[](size_t at) const { return modules_.at(at); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<M> modules_;
};

// Modules of one type by name, in the order of insertion.
//
//   nn::ModuleDict<nn::Linear> heads;
//   heads.insert("mean", nn::Linear(3, 1));
//   Tensor result = heads.at("mean")(x);
//   bool known = heads.contains("variance") || heads.size() == 1;
template <typename M = AnyLayer>
class ModuleDict : public Module {
 public:
  ModuleDict() { describe("ModuleDict"); }
  void insert(const std::string& name, M module) { modules_.emplace_back(name, submodule(name, std::move(module))); }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const M& at(std::string_view name) const {
    const M* found = find(name);
    TENON_CHECK_INDEX(found, "[ModuleDict] there is no '{}'", name);
    return *found;
  }
  size_t size() const { return modules_.size(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  const M* find(std::string_view name) const {
    for (const auto& [each, module] : modules_)
      if (each == name) return &module;
    return nullptr;
  }
  std::vector<std::pair<std::string, M>> modules_;
};

//   nn::ParameterList list;
//   list.push_back(ones({3}));
//   Tensor first = list[0];
//   size_t count = list.size();
class ParameterList : public Module {
 public:
  ParameterList() { describe("ParameterList"); }
  void push_back(const Tensor& initial) { cells_.push_back(parameter(std::to_string(cells_.size()), initial)); }
  size_t size() const { return cells_.size(); }
  Tensor operator[](size_t at) const { return cells_.at(at).get(); }

 private:
  std::vector<Cell<Tensor>> cells_;
};

}  // namespace tenon::nn
