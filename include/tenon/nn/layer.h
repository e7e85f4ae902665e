// Layers that are functions of one tensor, the user's own among them.
#pragma once

#include <tenon/nn/module.h>

#include <concepts>

namespace tenon::nn {

template <typename M>
concept Layer = std::derived_from<M, Module> && requires(const M& module, const Tensor& input) {
  { module(input) } -> std::convertible_to<Tensor>;
};

// Without tensors of its own: a function and a name.
class FunctionLayer : public Module {
 public:
  Tensor operator()(const Tensor& input) const;

 protected:
  using Function = std::function<Tensor(const Tensor& input)>;
  FunctionLayer(std::string kind, std::string details, Function function);

 private:
  Function function_;
};

//   nn::Lambda twice([](const Tensor& input) { return input * 2; });
//   nn::Sequential model(nn::Linear(3, 4), nn::Lambda([](const Tensor& input) { return input.abs(); }));
//   Tensor result = model(twice(x));
class Lambda : public FunctionLayer {
 public:
  explicit Lambda(Function function, std::string name = "Lambda");
};

// Any layer; shares what it was made from.
//
//   std::vector<nn::AnyLayer> stages = {nn::Linear(3, 3), nn::Identity()};
//   Tensor result = stages[0](x);
class AnyLayer : public Module {
 public:
  template <Layer M>
    requires(!std::same_as<M, AnyLayer>)
  AnyLayer(M layer) : Module(layer), call_([layer](const Tensor& input) { return Tensor(layer(input)); }) {}
  Tensor operator()(const Tensor& input) const { return call_(input); }

 private:
  std::function<Tensor(const Tensor&)> call_;
};

//   Tensor same = nn::Identity()(x);
class Identity : public FunctionLayer {
 public:
  Identity();
};

}  // namespace tenon::nn
