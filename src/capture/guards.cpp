#include "guards.h"

namespace tenon::capture {
namespace {

bool same_constant(const dispatch::Value& a, const dispatch::Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() == dispatch::Value::Tag::Int) return a.integer() == b.integer();
  if (a.tag() == dispatch::Value::Tag::Bool) return a.boolean() == b.boolean();
  if (a.tag() == dispatch::Value::Tag::Real) return a.real() == b.real() || (a.real() != a.real() && b.real() != b.real());
  return a.str() == b.str();
}

bool same_content(const CellContent& a, const CellContent& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<Tensor>(&a)) return tensor->is(std::get<Tensor>(b));
  return std::visit(
      [&]<typename T>(const T& value) {
        if constexpr (std::is_same_v<T, Tensor>)
          return false;
        else
          return value == std::get<T>(b);
      },
      a);
}

std::string content_text(const CellContent& content) {
  if (const auto* tensor = std::get_if<Tensor>(&content)) return tensor->description();
  if (const auto* flag = std::get_if<bool>(&content)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&content)) return std::to_string(*number);
  return fmt::format("{}", std::get<double>(content));
}

std::vector<int32_t> identity(std::span<const Tensor> tensors) {
  std::vector<int32_t> first;
  for (size_t at = 0; at < tensors.size(); ++at) {
    size_t before = 0;
    while (!tensors[before].is(tensors[at])) ++before;
    first.push_back(static_cast<int32_t>(before));
  }
  return first;
}

}  // namespace

Guards::Guards(const Session& session, std::span<const Tensor> arguments, std::span<const dispatch::Value> constants, bool grad_enabled)
    : grad_enabled_(grad_enabled), argument_count_(arguments.size()), same_as_(identity(arguments)), sources_(session.sources),
      cells_(session.plain_cells), distinct_inputs_(session.writes) {
  for (const dispatch::Value& constant : constants) constants_.push_back(constant.own());
  const graph::Graph& graph = const_cast<Session&>(session).recorder().graph();
  for (size_t at = 0; at < session.reals.size(); ++at) {
    const Tensor& real = session.reals[at];
    tensors_.push_back({real.dtype(), real.device(), real.dim(), real.requires_grad(),
                        graph.values[static_cast<size_t>(graph.inputs[at])].name});
  }
}

std::optional<std::string> Guards::collect(std::span<const Tensor> arguments, SmallVector<Tensor, 8>& inputs) const {
  inputs.clear();
  for (size_t at = 0; at < sources_.size(); ++at) {
    if (const auto* position = std::get_if<int32_t>(&sources_[at])) {
      inputs.push_back(arguments[static_cast<size_t>(*position)]);
    } else if (const auto* cell = std::get_if<Ref<CellState>>(&sources_[at])) {
      inputs.push_back(std::get<Tensor>((*cell)->content));
    } else {
      Ref<TensorImpl> alive = std::get<ClosureTensor>(sources_[at]).tensor.lock();
      if (!alive) return fmt::format("the closure tensor '{}' is gone", tensors_[at].name);
      inputs.push_back(Tensor(std::move(alive)));
    }
    const TensorGuard& guard = tensors_[at];
    const Tensor& input = inputs.back();
    if (!input.defined()) return fmt::format("tensor '{}' is undefined", guard.name);
    const TensorImpl& impl = *input.impl();
    if (impl.dtype != guard.dtype)
      return fmt::format("tensor '{}' dtype mismatch. expected {}, actual {}", guard.name, name(guard.dtype), name(impl.dtype));
    if (impl.device != guard.device)
      return fmt::format("tensor '{}' device mismatch. expected {}, actual {}", guard.name, guard.device.str(), impl.device.str());
    if (static_cast<int64_t>(impl.sizes.size()) != guard.rank)
      return fmt::format("tensor '{}' rank mismatch. expected {}, actual {}", guard.name, guard.rank, impl.sizes.size());
    if (input.requires_grad() != guard.requires_grad)
      return fmt::format("tensor '{}' requires_grad mismatch. expected requires_grad={}", guard.name, guard.requires_grad ? 1 : 0);
  }
  return std::nullopt;
}

bool Guards::check(std::span<const Tensor> arguments, std::span<const dispatch::Value> constants, bool grad_enabled,
                   SmallVector<Tensor, 8>& inputs, SmallVector<int64_t, 16>& symbols) const {
  if (grad_enabled != grad_enabled_ || arguments.size() != argument_count_ || constants.size() != constants_.size()) return false;
  for (size_t at = 0; at < constants.size(); ++at)
    if (!same_constant(constants[at], constants_[at])) return false;
  for (size_t at = 0; at < arguments.size(); ++at)
    for (size_t before = 0; before <= at; ++before)
      if (arguments[before].is(arguments[at])) {
        if (same_as_[at] != static_cast<int32_t>(before)) return false;
        break;
      }
  for (const auto& [cell, content] : cells_)
    if (!same_content(cell->content, content)) return false;
  if (collect(arguments, inputs)) return false;
  if (distinct_inputs_)
    for (size_t at = 0; at < inputs.size(); ++at)
      for (size_t before = 0; before < at; ++before)
        if (inputs[at].is(inputs[before])) return false;
  return sizes_.check(inputs.span(), {}, symbols);
}

std::string Guards::explain(std::span<const Tensor> arguments, std::span<const dispatch::Value> constants, bool grad_enabled) const {
  if (grad_enabled != grad_enabled_) return fmt::format("grad mode: expected {}", grad_enabled_ ? "on" : "off");
  if (arguments.size() != argument_count_) return fmt::format("expected {} tensors, got {}", argument_count_, arguments.size());
  for (size_t at = 0; at < std::min(constants.size(), constants_.size()); ++at)
    if (!same_constant(constants[at], constants_[at]))
      return fmt::format("number {}: expected {}, got {}", at, constants_[at].str(), constants[at].str());
  std::vector<int32_t> now = identity(arguments);
  for (size_t at = 0; at < now.size(); ++at)
    if (now[at] != same_as_[at])
      return same_as_[at] == static_cast<int32_t>(at) ? fmt::format("arg{} is arg{}", now[at], at)
                                                      : fmt::format("arg{} is not arg{}", same_as_[at], at);
  for (const auto& [cell, content] : cells_)
    if (!same_content(cell->content, content))
      return fmt::format("cell '{}': expected {}, got {}", cell->name, content_text(content), content_text(cell->content));
  SmallVector<Tensor, 8> inputs;
  if (std::optional<std::string> reason = collect(arguments, inputs)) return *reason;
  for (size_t at = 0; distinct_inputs_ && at < inputs.size(); ++at)
    for (size_t before = 0; before < at; ++before)
      if (inputs[at].is(inputs[before])) return fmt::format("{} is {}", tensors_[before].name, tensors_[at].name);
  return sizes_.explain(inputs.span(), {});
}

bool Guards::lost_closure() const {
  for (const InputSource& source : sources_)
    if (const auto* closure = std::get_if<ClosureTensor>(&source); closure && closure->tensor.expired()) return true;
  return false;
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("grad mode is {}", grad_enabled_ ? "on" : "off"));
  for (const dispatch::Value& constant : constants_) lines.push_back(fmt::format("a number is {}", constant.str()));
  for (const TensorGuard& guard : tensors_)
    lines.push_back(fmt::format("{}: {} on {}, {} dimensions, requires_grad={}", guard.name, name(guard.dtype), guard.device.str(),
                                guard.rank, guard.requires_grad ? 1 : 0));
  for (size_t at = 0; at < same_as_.size(); ++at)
    if (same_as_[at] != static_cast<int32_t>(at)) lines.push_back(fmt::format("arg{} is arg{}", at, same_as_[at]));
  for (const auto& [cell, content] : cells_) lines.push_back(fmt::format("cell '{}' holds {}", cell->name, content_text(content)));
  for (std::string& line : sizes_.describe()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tenon::capture
