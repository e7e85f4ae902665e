// Guards in words: what they ask, and what of it a call does not fulfil.
#include "core/pointer_table.h"
#include "segment.h"
#include "session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::capture {
namespace {

std::string content_text(const CellContent& content) {
  if (const auto* tensor = std::get_if<Tensor>(&content)) return tensor->description();
  if (const auto* flag = std::get_if<bool>(&content)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&content)) return std::to_string(*number);
  return fmt::format("{}", std::get<double>(content));
}

std::string autocast_text(const std::optional<Dtype>& dtype) { return dtype ? std::string(name(*dtype)) : "none"; }

// What of a tensor is not as it was.
void add_mismatches(const TensorGuard& guard, const Tensor& input, std::vector<Reason>& found) {
  const TensorImpl& impl = *input.impl();
  if (impl.dtype != guard.dtype)
    found.push_back({fmt::format("tensor '{}' dtype mismatch. expected {}, actual {}", guard.name, name(guard.dtype),
                                 name(impl.dtype))});
  if (impl.device != guard.device)
    found.push_back({fmt::format("tensor '{}' device mismatch. expected {}, actual {}", guard.name, guard.device.str(),
                                 impl.device.str())});
  if (auto rank = static_cast<int64_t>(impl.sizes.size()); rank != guard.rank)
    found.push_back({fmt::format("tensor '{}' rank mismatch. expected {}, actual {}", guard.name, guard.rank, rank),
                     {},
                     1 + 2 * std::max(rank, guard.rank)});
  if (input.requires_grad() != guard.requires_grad)
    found.push_back({fmt::format("tensor '{}' requires_grad mismatch. expected requires_grad={}", guard.name,
                                 guard.requires_grad ? 1 : 0)});
}

}  // namespace

std::string Reason::str() const {
  std::string line = site.known() ? site.str() : "";
  return line.empty() ? text : fmt::format("{}, at {}", text, line);
}

std::vector<int32_t> first_of_each(std::span<const Tensor> tensors) {
  std::vector<int32_t> first;
  core::PointerTable table(tensors.size());
  for (size_t at = 0; at < tensors.size(); ++at)
    first.push_back(table.add(tensors[at].impl(), static_cast<int32_t>(at)));
  return first;
}

std::string Guards::input_name(const InputRef& ref) const {
  if (ref.is_register) return "a tensor computed before";
  return all_names_[static_cast<size_t>(ref.index)];
}

void Guards::add_call_mismatches(const Frame& frame, std::vector<Reason>& found) const {
  if (frame.grad_enabled != grad_enabled_)
    found.push_back({fmt::format("grad mode: expected {}", grad_enabled_ ? "on" : "off")});
  if (frame.autocast != autocast_)
    found.push_back(
        {fmt::format("autocast: expected {}, got {}", autocast_text(autocast_), autocast_text(frame.autocast))});
  for (size_t at = 0; at < std::min(frame.constants.size(), constants_.size()); ++at)
    if (!same_constant(frame.constants[at], constants_[at]))
      found.push_back(
          {fmt::format("number {}: expected {}, got {}", at, constants_[at].str(), frame.constants[at].str())});
  if (frame.constants.size() != constants_.size())
    found.push_back({fmt::format("expected {} numbers, got {}", constants_.size(), frame.constants.size())});
  std::vector<int32_t> now = first_of_each(frame.arguments);
  for (size_t at = 0; at < now.size(); ++at) {
    if (now[at] == same_as_[at]) continue;
    auto name = [&](int32_t position) { return argument_names_[static_cast<size_t>(position)]; };
    bool were_two = same_as_[at] == static_cast<int32_t>(at);
    found.push_back({were_two
                         ? fmt::format("expected {} is not {}, got one tensor", name(now[at]), argument_names_[at])
                         : fmt::format("expected {} is {}, got two tensors", name(same_as_[at]), argument_names_[at])});
  }
}

bool Guards::add_tensor_mismatches(Frame& frame, std::vector<Reason>& found) const {
  bool comparable = true;
  for (size_t at = 0; at < tensors_.size(); ++at) {
    const TensorGuard& guard = tensors_[at];
    if (!borrows_arguments_) frame.inputs.push_back(fetch(at, frame));
    const auto* cell = std::get_if<Ref<CellState>>(&sources_[at]);
    bool may_miss =
        cell ? !std::holds_alternative<Tensor>((*cell)->content) : std::holds_alternative<ClosureTensor>(sources_[at]);
    if (!borrows_arguments_ && may_miss && !frame.inputs.back().defined()) {
      found.push_back(
          {fmt::format("{} '{}' {}", cell ? "cell" : "the closure tensor", guard.name,
                       cell ? "holds no tensor" : "is gone, or a variable that held it holds another one")});
      return false;
    }
    const Tensor& input = borrows_arguments_ ? frame.arguments[at] : frame.inputs.back();
    if (!input.defined()) {
      found.push_back({fmt::format("tensor '{}' is undefined", guard.name)});
      return false;
    }
    add_mismatches(guard, input, found);
    comparable &= input.dim() == guard.rank;
  }
  if (borrows_arguments_) frame.inputs_are_arguments = true;
  return comparable;
}

std::vector<Reason> Guards::failures(Frame frame) const {
  std::vector<Reason> found;
  if (is_root_) {
    if (frame.arguments.size() != argument_count_)
      return {{fmt::format("expected {} tensors, got {}", argument_count_, frame.arguments.size())}};
    add_call_mismatches(frame, found);
  }
  for (const CellFact& fact : cells_)
    if (!holds(fact, frame))
      found.push_back({fact.cell->by_value
                           ? fmt::format("'{}' changed", fact.cell->name)
                           : fmt::format("cell '{}': expected {}, got {}", fact.name, content_text(fact.content),
                                         content_text(fact.cell->content))});
  // What comes next looks at tensors of the ranks that are expected.
  if (!add_tensor_mismatches(frame, found)) return found;
  for (const RegisterFact& fact : registers_)
    if (!holds(fact, frame))
      found.push_back({fact.same_as ? "a result of what ran at the break is another tensor"
                                    : "a result of what ran at the break is defined"});
  for (const SameTensor& fact : same_tensors_)
    if (!holds(fact, frame))
      found.push_back({fmt::format("{} is no longer a tensor that the function also reaches otherwise", fact.name)});
  for (size_t at = 0; at < aftermaths_.size(); ++at) {
    const Aftermath &expected = aftermaths_[at], &now = frame.aftermaths[first_aftermath_ + at];
    if (now.grad_enabled != expected.grad_enabled)
      found.push_back({fmt::format("what ran at the break left grad mode {}", now.grad_enabled ? "on" : "off")});
    if (now.changed != expected.changed)
      found.push_back({"what ran at the break made other tensors require grad, or cease to"});
  }
  if (auto difference = aliases_.difference(frame)) {
    std::string first = input_name(aliases_.input(difference->first));
    if (difference->first == difference->second)
      found.push_back(
          {fmt::format("elements of {} {} in memory", first, difference->overlap_now ? "overlap" : "do not overlap")});
    else
      found.push_back({fmt::format("{} and {} {} in memory", first, input_name(aliases_.input(difference->second)),
                                   difference->overlap_now ? "overlap" : "do not overlap")});
  }
  for (graph::SizeGuards::Failure& failure :
       sizes_.failures(frame.all_inputs(), frame.numbers.span(), {frame.symbols.begin(), frame.symbols.end()}))
    found.push_back({std::move(failure.text), failure.site});
  return found;
}

Reason Guards::explain(const Frame& frame) const {
  std::vector<Reason> found = failures(frame);
  return found.empty() ? Reason{} : std::move(found.front());
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> lines;
  if (is_root_) lines.push_back(fmt::format("grad mode is {}", grad_enabled_ ? "on" : "off"));
  if (autocast_) lines.push_back(fmt::format("autocast to {}", autocast_text(autocast_)));
  for (const dispatch::Value& constant : constants_) lines.push_back(fmt::format("a number is {}", constant.str()));
  for (const TensorGuard& guard : tensors_)
    lines.push_back(fmt::format("{}: {} on {}, {} dimensions, requires_grad={}", guard.name, name(guard.dtype),
                                guard.device.str(), guard.rank, guard.requires_grad ? 1 : 0));
  for (size_t at = 0; at < same_as_.size(); ++at)
    if (same_as_[at] != static_cast<int32_t>(at))
      lines.push_back(fmt::format("{} is {}", argument_names_[at], argument_names_[static_cast<size_t>(same_as_[at])]));
  for (const CellFact& fact : cells_)
    lines.push_back(fact.cell->by_value ? fmt::format("'{}' as at capture", fact.cell->name)
                    : fact.is_symbol    ? fmt::format("cell '{}' is a symbol", fact.name)
                                        : fmt::format("cell '{}' holds {}", fact.name, content_text(fact.content)));
  for (const SameTensor& fact : same_tensors_)
    lines.push_back(fmt::format("{} is a tensor that the function also reaches otherwise", fact.name));
  for (const std::vector<size_t>& members : aliases_.classes().classes()) {
    std::vector<std::string> names;
    for (size_t at : members) names.push_back(input_name(aliases_.input(at)));
    lines.push_back(fmt::format("{} overlap in memory", fmt::join(names, ", ")));
  }
  for (std::string& line : sizes_.describe()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tenon::capture
