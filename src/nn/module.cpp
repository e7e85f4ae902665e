#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/module.h>
#include <tenon/support/hash.h>

#include "core/effects.h"
#include "nn/backward_hooks.h"
#include "support/origin.h"
#include "support/out_of_memory.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

namespace tenon::nn {

ModuleScope::ModuleScope(const std::string& path) : before_(std::exchange(current_origin().module, &path)) {}
ModuleScope::~ModuleScope() { current_origin().module = before_; }

Module::Module() try : state_(std::make_shared<State>()) { state_->training.state()->name = "training"; } catch (...) {
  support::rethrow_named("Module");
}

// Within `clone` the state is copied, once: its cells and children by their own copy constructors.
Module::Module(const Module& other) : state_(other.state_) {
  if (!core::CopyCells::active()) return;
  state_ = std::static_pointer_cast<State>(core::CopyCells::copy_once(
      other.state_.get(), [&]() -> std::shared_ptr<void> { return std::make_shared<State>(*other.state_); }));
}

void Module::check_name(const std::string& name) const {
  TENON_CHECK(!name.empty() && name.find('.') == std::string::npos, "[Module] expected a name without dots, got '{}'",
              name);
  auto same = [&](const auto& entry) { return entry.first == name; };
  bool taken = std::any_of(state_->parameters.begin(), state_->parameters.end(), same) ||
               std::any_of(state_->buffers.begin(), state_->buffers.end(), same) ||
               std::any_of(state_->children.begin(), state_->children.end(), same);
  TENON_CHECK(!taken, "[Module] '{}' is registered already", name);
}

Cell<Tensor> Module::parameter(std::string name, const Tensor& initial) try {
  check_name(name);
  if (initial.defined()) initial.set_requires_grad(true);
  Cell<Tensor> cell(initial);
  cell.state()->name = name;
  state_->parameters.emplace_back(std::move(name), cell);
  return cell;
} catch (...) {
  support::rethrow_named("parameter");
}

Cell<Tensor> Module::buffer(std::string name, const Tensor& initial) try {
  check_name(name);
  Cell<Tensor> cell(initial);
  cell.state()->name = name;
  state_->buffers.emplace_back(std::move(name), cell);
  return cell;
} catch (...) {
  support::rethrow_named("buffer");
}

namespace {

// "Block" of the mangled "app::Block".
std::string class_name(const char* mangled) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? text.get() : mangled;
  name.resize(std::min(name.size(), name.find('<')));
  size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

}  // namespace

void Module::add_child(std::string name, const Module& module, const char* type) try {
  check_name(name);
  if (module.state_->kind == "Module") module.state_->kind = class_name(type);
  // Cells are named by their whole path, so that guards and errors say which one they mean.
  module.move_below(name);
  state_->children.emplace_back(std::move(name), Module(module.state_));
} catch (...) {
  support::rethrow_named("submodule");
}

void Module::describe(std::string kind, std::string details) const {
  state_->kind = std::move(kind);
  state_->details = std::move(details);
}

// Who asks for no names needs no memory: destructors set modes.
template <typename Visit>
void Module::each_module(const std::string& prefix, Visit&& visit) const {
  if constexpr (std::is_invocable_v<Visit, State&>) {
    visit(*state_);
    for (const auto& [name, child] : state_->children) child.each_module(prefix, visit);
  } else {
    visit(prefix, *state_);
    for (const auto& [name, child] : state_->children) child.each_module(prefix + name + ".", visit);
  }
}

void Module::move_below(const std::string& name) const {
  each_module("", [&](State& state) {
    state.path = state.path == "self" ? name : name + "." + state.path;
    auto rename = [&](const Ref<CellState>& cell) { cell->name = name + "." + cell->name; };
    rename(state.training.state());
    rename(state.hook_set.state());
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

NamedTensors Module::named_parameters() const try {
  NamedTensors list;
  each_module("", [&](const std::string& prefix, const State& state) {
    for (const auto& [name, cell] : state.parameters) add_once(list, prefix + name, cell.get());
  });
  return list;
} catch (...) {
  support::rethrow_named("named_parameters");
}

NamedTensors Module::named_buffers() const try {
  NamedTensors list;
  each_module("", [&](const std::string& prefix, const State& state) {
    for (const auto& [name, cell] : state.buffers) add_once(list, prefix + name, cell.get());
  });
  return list;
} catch (...) {
  support::rethrow_named("named_buffers");
}

std::vector<Tensor> Module::parameters() const try {
  std::vector<Tensor> list;
  for (auto& [name, tensor] : named_parameters()) list.push_back(tensor);
  return list;
} catch (...) {
  support::rethrow_named("parameters");
}

std::vector<std::pair<std::string, Module>> Module::children() const { return state_->children; }

const Module& Module::train(bool on) const {
  each_module("", [&](const State& state) { state.training.set(on); });
  return *this;
}

std::vector<std::pair<std::string, Module>> Module::named_modules() const try {
  std::vector<std::pair<std::string, Module>> list = {{"", *this}};
  for (const auto& [name, child] : state_->children)
    for (auto& [inner, module] : child.named_modules())
      list.emplace_back(inner.empty() ? name : name + "." + inner, module);
  return list;
} catch (...) {
  support::rethrow_named("named_modules");
}

const Module& Module::apply(const std::function<void(const Module&)>& visit) const {
  for (const auto& [name, child] : state_->children) child.apply(visit);
  visit(*this);
  return *this;
}

void Module::print(std::string& text, size_t indent) const {
  text += state_->kind + "(" + state_->details;
  if (state_->children.empty()) {
    text += ")";
    return;
  }
  if (!state_->details.empty()) text += "\n" + std::string(indent, ' ');
  for (const auto& [name, child] : state_->children) {
    text += "\n" + std::string(indent + 2, ' ') + "(" + name + "): ";
    child.print(text, indent + 2);
  }
  text += "\n" + std::string(indent, ' ') + ")";
}

std::string Module::str() const try {
  std::string text;
  print(text, 0);
  return text;
} catch (...) {
  support::rethrow_named("str");
}

// Parameters and buffers are replaced by what `convert` gives for them, which is the same where nothing changes.
void Module::convert_all(const std::function<Tensor(const Tensor&)>& convert) const {
  NoGrad off;
  std::map<const TensorImpl*, Tensor> made;  // tensors that are shared stay so
  auto replace = [&](const Cell<Tensor>& cell) {
    Tensor tensor = cell.get();
    if (!tensor.defined() || !tensor.is_floating_point()) return;
    Tensor& converted = made[tensor.impl()];
    if (!converted.defined()) {
      converted = convert(tensor.detach());
      if (converted.is_same_storage(tensor)) return;
      converted.set_requires_grad(tensor.requires_grad());
    }
    if (!converted.is_same_storage(tensor)) cell.set(converted);
  };
  each_module("", [&](const State& state) {
    for (const auto& [name, cell] : state.parameters) replace(cell);
    for (const auto& [name, cell] : state.buffers) replace(cell);
  });
}

const Module& Module::to(Dtype dtype) const try {
  convert_all([&](const Tensor& tensor) { return tensor.to(dtype); });
  return *this;
} catch (...) {
  support::rethrow_named("to");
}

const Module& Module::to(MemoryFormat format) const try {
  const int64_t rank = format == MemoryFormat::ChannelsLast3d ? 5 : 4;
  convert_all([&](const Tensor& tensor) { return tensor.dim() == rank ? tensor.contiguous(format) : tensor; });
  return *this;
} catch (...) {
  support::rethrow_named("to");
}

const Module& Module::requires_grad(bool on) const {
  for (const Tensor& tensor : parameters()) tensor.set_requires_grad(on);
  return *this;
}

NamedTensors Module::state_dict() const try {
  NamedTensors list;
  each_module("", [&](const std::string& prefix, const State& state) {
    for (const auto* cells : {&state.parameters, &state.buffers})
      for (const auto& [name, cell] : *cells)
        if (Tensor tensor = cell.get(); tensor.defined()) list.emplace_back(prefix + name, tensor.detach());
  });
  return list;
} catch (...) {
  support::rethrow_named("state_dict");
}

std::string LoadResult::str() const {
  auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", "));
  };
  return fmt::format("missing: {}; unexpected: {}", list(missing), list(unexpected));
}

std::ostream& operator<<(std::ostream& out, const LoadResult& result) { return out << result.str(); }

LoadResult Module::load_state_dict(const NamedTensors& state, bool strict) const try {
  NoGrad off;
  std::map<std::string, Tensor> given(state.begin(), state.end());
  LoadResult result;
  std::vector<std::string> misfits;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, own] : state_dict()) {
    auto found = given.find(name);
    if (found == given.end()) {
      result.missing.push_back(name);
      continue;
    }
    Tensor value = found->second;
    given.erase(found);
    if (!value.defined() || value.dim() != own.dim() ||
        !std::equal(own.sizes().begin(), own.sizes().end(), value.sizes().begin()))
      misfits.push_back(fmt::format("{} is {} and got {}", name, own.description(),
                                    value.defined() ? value.description() : "nothing"));
    else
      copies.emplace_back(own, value);
  }
  for (const auto& [name, value] : given) result.unexpected.push_back(name);
  auto list = [](const char* what, const std::vector<std::string>& names) {
    return names.empty() ? std::string() : fmt::format("\n  {}: {}", what, fmt::join(names, ", "));
  };
  bool fits = misfits.empty() && (!strict || (result.missing.empty() && result.unexpected.empty()));
  TENON_CHECK_VALUE(fits, "[load_state_dict] the state does not fit the {}{}{}{}", kind(),
                    strict ? list("missing", result.missing) : "", strict ? list("unexpected", result.unexpected) : "",
                    list("of another size", misfits));
  for (auto& [own, value] : copies) own.copy_(value);
  return result;
} catch (...) {
  support::rethrow_named("load_state_dict");
}

void Module::save(const std::filesystem::path& path) const { io::save(path, state_dict()); }
LoadResult Module::load(const std::filesystem::path& path, bool strict) const {
  return load_state_dict(io::load(path), strict);
}

namespace {

// Adds a hook to one of the lists. What it returns takes it out again, if both are still there. Inside a capture both
// are effects of the compiled function, which happen at every call.
template <typename State, typename Hook>
std::function<void()> add(const std::shared_ptr<State>& state, std::vector<std::pair<int, Hook>> State::* list,
                          Hook hook) {
  auto added = std::make_shared<int>(-1);
  std::weak_ptr<State> weak(state);
  auto adding = [weak, list, hook = std::move(hook), added] {
    if (auto held = weak.lock()) {
      ((*held).*list).emplace_back(held->next_hook, hook);
      *added = held->next_hook++;
      held->hooks_changed();
    }
  };
  auto removing = [weak, list, added] {
    if (auto held = weak.lock()) {
      std::erase_if((*held).*list, [&](const auto& each) { return each.first == *added; });
      held->hooks_changed();
    }
  };
  const bool captured = core::is_taken_as_effect("a module is given a hook", weak, adding);
  if (!captured) adding();
  return [weak, removing, captured] {
    // (A capture that goes on where an earlier one ended has another `added` than the one that adds.)
    TENON_CHECK(
        !captured || !core::effect_interceptor(),
        "[compile] a compiled function removes a hook of a module that it has registered itself: do one of them "
        "outside of it");
    if (!core::is_taken_as_effect("a hook of a module is removed", weak, removing)) removing();
  };
}

}  // namespace

// Numbers of hooks are never used again, so that two sets differ by them.
void Module::State::hooks_changed() {
  size_t set = 0, count = 0;
  auto mix = [&](const auto& list) {
    for (const auto& [number, hook] : list) set = hash_combine(set, static_cast<size_t>(number));
    count += list.size();
  };
  mix(pre_hooks), mix(hooks), mix(backward_pre_hooks), mix(backward_hooks);
  // Not through `write_cell`: a captured function may register hooks too.
  hook_set.state()->content = count == 0 ? int64_t{0} : static_cast<int64_t>(set | 1);
}

std::function<void()> Module::register_forward_hook(ForwardHook hook) const {
  return add(state_, &State::hooks, std::move(hook));
}

std::function<void()> Module::register_forward_pre_hook(ForwardPreHook hook) const {
  return add(state_, &State::pre_hooks, std::move(hook));
}

std::function<void()> Module::register_full_backward_hook(BackwardHook hook) const {
  return add(state_, &State::backward_hooks, std::move(hook));
}

std::function<void()> Module::register_full_backward_pre_hook(BackwardPreHook hook) const {
  return add(state_, &State::backward_pre_hooks, std::move(hook));
}

std::vector<Tensor> Module::before(std::vector<Tensor> inputs) const {
  auto hooks = state_->pre_hooks;  // one may take itself away
  for (const auto& [number, hook] : hooks)
    if (Tensor other = hook(*this, inputs[0]); other.defined()) inputs[0] = other;
  return has_backward_hooks() ? enter_module(backward_hooks(), inputs) : inputs;
}

std::vector<Tensor> Module::after(const std::vector<Tensor>& inputs, std::vector<Tensor> outputs) const {
  auto hooks = state_->hooks;
  for (const auto& [number, hook] : hooks)
    if (Tensor other = hook(*this, inputs[0], outputs[0]); other.defined()) outputs[0] = other;
  return has_backward_hooks() ? leave_module(backward_hooks(), inputs, outputs) : outputs;
}

BackwardHooks Module::backward_hooks() const {
  BackwardHooks now{*this, {}, {}};
  for (const auto& [number, hook] : state_->backward_pre_hooks) now.pre_hooks.push_back(hook);
  for (const auto& [number, hook] : state_->backward_hooks) now.hooks.push_back(hook);
  return now;
}

void Module::reparametrize(const std::string& name, const NamedTensors& trained, const NamedTensors& kept,
                           Compute compute) const try {
  auto is_it = [&](const auto& entry) { return entry.first == name; };
  auto found = std::find_if(state_->parameters.begin(), state_->parameters.end(), is_it);
  TENON_CHECK_VALUE(found != state_->parameters.end() && found->second.get().defined(),
                    "[reparametrize] the {} has no parameter '{}'", kind(), name);
  for (const auto* list : {&trained, &kept})
    for (const auto& [own, tensor] : *list) {
      check_name(own);
      TENON_CHECK_VALUE(tensor.defined(), "[reparametrize] '{}' is an undefined tensor", own);
    }
  State::Computed made{name, found->second, {}};
  std::vector<Cell<Tensor>> of;
  auto add = [&](const auto& list, auto& to, bool requires_grad) {
    for (const auto& [own, tensor] : list) {
      if (requires_grad) tensor.set_requires_grad();
      Cell<Tensor> cell(tensor, state_->path == "self" ? own : state_->path + "." + own);
      to.emplace_back(own, cell);
      of.push_back(std::move(cell));
      made.of.push_back(own);
    }
  };
  state_->parameters.erase(found);
  add(trained, state_->parameters, true);
  add(kept, state_->buffers, false);
  made.cell.state()->computed = [of = std::move(of), training = state_->training, compute = std::move(compute)] {
    std::vector<Tensor> now;
    for (const Cell<Tensor>& each : of) now.push_back(each.get());
    return compute(now, training.get());
  };
  state_->computed.push_back(std::move(made));
} catch (...) {
  support::rethrow_named("reparametrize");
}

void Module::undo_reparametrization(const std::string& name) const try {
  auto found = std::find_if(state_->computed.begin(), state_->computed.end(),
                            [&](const State::Computed& each) { return each.name == name; });
  TENON_CHECK_VALUE(found != state_->computed.end(), "[undo_reparametrization] '{}' of the {} is not computed", name,
                    kind());
  Tensor now = found->cell.get().detach().clone().set_requires_grad();
  auto is_part = [&](const auto& entry) {
    return std::find(found->of.begin(), found->of.end(), entry.first) != found->of.end();
  };
  std::erase_if(state_->parameters, is_part);
  std::erase_if(state_->buffers, is_part);
  found->cell.state()->computed = nullptr;
  found->cell.set(now);
  state_->parameters.emplace_back(name, found->cell);
  state_->computed.erase(found);
} catch (...) {
  support::rethrow_named("undo_reparametrization");
}

void Module::zero_grad() const try {
  auto forget = [](std::span<const Tensor> tensors) {
    for (const Tensor& tensor : tensors) tensor.set_grad(Tensor());
    return std::vector<Tensor>();
  };
  std::vector<Tensor> list = parameters();
  const core::EffectInterceptor* instead = core::effect_interceptor();
  if (instead && !list.empty())
    (*instead)({"a module forgets gradients", list, forget});
  else
    forget(list);
} catch (...) {
  support::rethrow_named("zero_grad");
}

}  // namespace tenon::nn
