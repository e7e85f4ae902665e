#include <tenon/nn/module.h>

#include "support/origin.h"

#include <algorithm>

namespace tenon::nn {

ModuleScope::ModuleScope(const std::string& path) : before_(std::exchange(current_origin().module, &path)) {}
ModuleScope::~ModuleScope() { current_origin().module = before_; }

Module::Module() : state_(std::make_shared<State>()) { state_->training.state()->name = "training"; }

void Module::check_name(const std::string& name) const {
  TENON_CHECK(!name.empty() && name.find('.') == std::string::npos, "[Module] expected a name without dots, got '{}'",
              name);
  auto same = [&](const auto& entry) { return entry.first == name; };
  bool taken = std::any_of(state_->parameters.begin(), state_->parameters.end(), same) ||
               std::any_of(state_->buffers.begin(), state_->buffers.end(), same) ||
               std::any_of(state_->children.begin(), state_->children.end(), same);
  TENON_CHECK(!taken, "[Module] '{}' is registered already", name);
}

Cell<Tensor> Module::parameter(std::string name, const Tensor& initial) {
  check_name(name);
  if (initial.defined()) initial.set_requires_grad(true);
  Cell<Tensor> cell(initial);
  cell.state()->name = name;
  state_->parameters.emplace_back(std::move(name), cell);
  return cell;
}

Cell<Tensor> Module::buffer(std::string name, const Tensor& initial) {
  check_name(name);
  Cell<Tensor> cell(initial);
  cell.state()->name = name;
  state_->buffers.emplace_back(std::move(name), cell);
  return cell;
}

void Module::add_child(std::string name, const Module& module) {
  check_name(name);
  // Cells are named by their whole path, so that guards and errors say which one they mean.
  module.move_below(name);
  state_->children.emplace_back(std::move(name), Module(module.state_));
}

template <typename Visit>
void Module::each_module(const std::string& prefix, Visit&& visit) const {
  visit(prefix, *state_);
  for (const auto& [name, child] : state_->children) child.each_module(prefix + name + ".", visit);
}

void Module::move_below(const std::string& name) const {
  each_module("", [&](const std::string&, State& state) {
    state.path = state.path == "self" ? name : name + "." + state.path;
    auto rename = [&](const Ref<CellState>& cell) { cell->name = name + "." + cell->name; };
    rename(state.training.state());
    for (const auto& [own, cell] : state.parameters) rename(cell.state());
    for (const auto& [own, cell] : state.buffers) rename(cell.state());
  });
}

namespace {

void add_once(NamedTensors& list, std::string name, const Tensor& tensor) {
  if (!tensor.defined()) return;
  auto same = [&](const auto& entry) { return entry.second.is(tensor); };
  if (std::none_of(list.begin(), list.end(), same)) list.emplace_back(std::move(name), tensor);
}

}  // namespace

NamedTensors Module::named_parameters() const {
  NamedTensors list;
  each_module("", [&](const std::string& prefix, const State& state) {
    for (const auto& [name, cell] : state.parameters) add_once(list, prefix + name, cell.get());
  });
  return list;
}

NamedTensors Module::named_buffers() const {
  NamedTensors list;
  each_module("", [&](const std::string& prefix, const State& state) {
    for (const auto& [name, cell] : state.buffers) add_once(list, prefix + name, cell.get());
  });
  return list;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> list;
  for (auto& [name, tensor] : named_parameters()) list.push_back(tensor);
  return list;
}

std::vector<std::pair<std::string, Module>> Module::children() const { return state_->children; }

const Module& Module::train(bool on) const {
  each_module("", [&](const std::string&, const State& state) { state.training.set(on); });
  return *this;
}

void Module::zero_grad() const {
  for (const Tensor& tensor : parameters()) tensor.set_grad(Tensor());
}

}  // namespace tenon::nn
