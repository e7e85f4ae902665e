#include "pointer_table.h"
#include "segment.h"
#include "session.h"

namespace tenon::capture {
namespace {

bool same_constant(const dispatch::Value& a, const dispatch::Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() == dispatch::Value::Tag::Int) return a.integer() == b.integer();
  if (a.tag() == dispatch::Value::Tag::Bool) return a.boolean() == b.boolean();
  if (a.tag() == dispatch::Value::Tag::Real)
    return a.real() == b.real() || (a.real() != a.real() && b.real() != b.real());
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

// False; and why, if somebody reads it.
template <typename... Args>
bool refuse(std::string* reason, fmt::format_string<Args...> text, Args&&... args) {
  if (reason) *reason = fmt::format(text, std::forward<Args>(args)...);
  return false;
}

// By tensor: the first that is the same.
std::vector<int32_t> identity(std::span<const Tensor> tensors) {
  std::vector<int32_t> first;
  PointerTable table(tensors.size());
  for (size_t at = 0; at < tensors.size(); ++at)
    first.push_back(table.add(tensors[at].impl(), static_cast<int32_t>(at)));
  return first;
}

bool has_identity(std::span<const Tensor> tensors, const std::vector<int32_t>& expected) {
  constexpr size_t kFew = 8;
  if (tensors.size() > kFew) {
    PointerTable table(tensors.size());
    for (size_t at = 0; at < tensors.size(); ++at)
      if (table.add(tensors[at].impl(), static_cast<int32_t>(at)) != expected[at]) return false;
    return true;
  }
  for (size_t at = 0; at < tensors.size(); ++at) {
    size_t first = 0;
    while (!tensors[first].is(tensors[at])) ++first;
    if (expected[at] != static_cast<int32_t>(first)) return false;
  }
  return true;
}

}  // namespace

Guards::Guards(Session& session, const Progress& from, const Frame* root)
    : is_root_(root != nullptr),
      first_input_(from.inputs),
      sources_(session.sources.begin() + static_cast<ptrdiff_t>(from.inputs), session.sources.end()),
      cells_(session.plain_cells.begin() + static_cast<ptrdiff_t>(from.cells), session.plain_cells.end()),
      registers_(session.register_facts.begin() + static_cast<ptrdiff_t>(from.registers), session.register_facts.end()),
      same_tensors_(session.same_tensors.begin() + static_cast<ptrdiff_t>(from.same_tensors),
                    session.same_tensors.end()) {
  if (root) {
    grad_enabled_ = root->grad_enabled;
    argument_count_ = root->arguments.size();
    same_as_ = identity(root->arguments);
    for (size_t at = 0; at < argument_count_; ++at) argument_names_.push_back(session.argument_name(at));
    for (const dispatch::Value& constant : root->constants) constants_.push_back(constant.own());
  }
  for (size_t at = from.inputs; at < session.reals.size(); ++at) {
    const Tensor& real = session.reals[at];
    tensors_.push_back({real.dtype(), real.device(), real.dim(), real.requires_grad(), session.names[at]});
  }
  all_names_ = session.names;
  set_sizes(session, from);
}

void Guards::set_sizes(Session& session, const Progress& from) { sizes_ = session.inputs().finish(from.sizes); }

void Guards::end_here() {
  borrows_arguments_ = is_root_ && sources_.size() == argument_count_;
  for (size_t at = 0; borrows_arguments_ && at < sources_.size(); ++at) {
    const auto* argument = std::get_if<Argument>(&sources_[at]);
    borrows_arguments_ = argument && argument->position == static_cast<int32_t>(at);
  }
}

namespace {

bool fits(const TensorGuard& guard, const Tensor& input, std::string* reason) {
  if (!input.defined()) return refuse(reason, "tensor '{}' is undefined", guard.name);
  const TensorImpl& impl = *input.impl();
  if (impl.dtype != guard.dtype)
    return refuse(reason, "tensor '{}' dtype mismatch. expected {}, actual {}", guard.name, name(guard.dtype),
                  name(impl.dtype));
  if (impl.device != guard.device)
    return refuse(reason, "tensor '{}' device mismatch. expected {}, actual {}", guard.name, guard.device.str(),
                  impl.device.str());
  if (static_cast<int64_t>(impl.sizes.size()) != guard.rank)
    return refuse(reason, "tensor '{}' rank mismatch. expected {}, actual {}", guard.name, guard.rank,
                  impl.sizes.size());
  // Most tensors have no autograd slot at all.
  if ((impl.autograd && input.requires_grad()) != guard.requires_grad)
    return refuse(reason, "tensor '{}' requires_grad mismatch. expected requires_grad={}", guard.name,
                  guard.requires_grad ? 1 : 0);
  return true;
}

}  // namespace

bool Guards::collect(Frame& frame, std::string* reason) const {
  if (borrows_arguments_) {
    frame.inputs_are_arguments = true;
    for (size_t at = 0; at < tensors_.size(); ++at)
      if (!fits(tensors_[at], frame.arguments[at], reason)) return false;
    return true;
  }
  frame.inputs.reserve(frame.inputs.size() + sources_.size());
  for (size_t at = 0; at < sources_.size(); ++at) {
    const InputSource& source = sources_[at];
    if (const auto* argument = std::get_if<Argument>(&source)) {
      frame.inputs.push_back(frame.arguments[static_cast<size_t>(argument->position)]);
    } else if (const auto* cell = std::get_if<Ref<CellState>>(&source)) {
      const auto* content = std::get_if<Tensor>(&(*cell)->content);
      if (!content) return refuse(reason, "cell '{}' holds no tensor", tensors_[at].name);
      frame.inputs.push_back(*content);
    } else if (const auto* computed = std::get_if<Register>(&source)) {
      frame.inputs.push_back(frame.registers[static_cast<size_t>(computed->index)]);
    } else {
      Ref<TensorImpl> alive = std::get<ClosureTensor>(source).tensor.lock();
      if (!alive) return refuse(reason, "the closure tensor '{}' is gone", tensors_[at].name);
      frame.inputs.push_back(Tensor(std::move(alive)));
    }
    if (!fits(tensors_[at], frame.inputs.back(), reason)) return false;
  }
  return true;
}

bool Guards::holds(const RegisterFact& fact, const Frame& frame) const {
  const Tensor& held = frame.registers[static_cast<size_t>(fact.index)];
  if (!fact.same_as) return !held.defined();
  auto index = static_cast<size_t>(fact.same_as->index);
  return held.is(fact.same_as->is_register ? frame.registers[index] : frame.all_inputs()[index]);
}

bool Guards::holds(const SameTensor& fact, const Frame& frame) const {
  const Tensor& input = frame.at(fact.input);
  if (const auto* cell = std::get_if<Ref<CellState>>(&fact.what)) {
    const auto* content = std::get_if<Tensor>(&(*cell)->content);
    return content && content->is(input);
  }
  const auto& closure = std::get<WeakRef<TensorImpl>>(fact.what);
  return !closure.expired() && closure.address() == input.impl();
}

std::string Guards::input_name(const InputRef& ref) const {
  if (ref.is_register) return "a tensor computed before";
  return all_names_[static_cast<size_t>(ref.index)];
}

bool Guards::check(Frame& frame) const {
  if (is_root_) {
    if (frame.grad_enabled != grad_enabled_ || frame.arguments.size() != argument_count_ ||
        frame.constants.size() != constants_.size())
      return false;
    for (size_t at = 0; at < constants_.size(); ++at)
      if (!same_constant(frame.constants[at], constants_[at])) return false;
    if (!has_identity(frame.arguments, same_as_)) return false;
  }
  for (const auto& [cell, content] : cells_)
    if (!same_content(cell->content, content)) return false;
  if (!collect(frame, nullptr)) return false;
  for (const RegisterFact& fact : registers_)
    if (!holds(fact, frame)) return false;
  for (const SameTensor& fact : same_tensors_)
    if (!holds(fact, frame)) return false;
  return aliases_.check(frame) && sizes_.check(frame.all_inputs(), frame.numbers.span(), frame.symbols);
}

std::optional<std::string> Guards::same_call(const Frame& frame) const {
  if (frame.grad_enabled != grad_enabled_) return fmt::format("grad mode: expected {}", grad_enabled_ ? "on" : "off");
  if (frame.arguments.size() != argument_count_)
    return fmt::format("expected {} tensors, got {}", argument_count_, frame.arguments.size());
  for (size_t at = 0; at < std::min(frame.constants.size(), constants_.size()); ++at)
    if (!same_constant(frame.constants[at], constants_[at]))
      return fmt::format("number {}: expected {}, got {}", at, constants_[at].str(), frame.constants[at].str());
  std::vector<int32_t> now = identity(frame.arguments);
  for (size_t at = 0; at < now.size(); ++at)
    if (now[at] != same_as_[at])
      return same_as_[at] == static_cast<int32_t>(at)
                 ? fmt::format("expected {} is not {}, got one tensor", argument_names_[static_cast<size_t>(now[at])],
                               argument_names_[at])
                 : fmt::format("expected {} is {}, got two tensors",
                               argument_names_[static_cast<size_t>(same_as_[at])], argument_names_[at]);
  return std::nullopt;
}

std::string Reason::str() const {
  std::string line = site.known() ? site.str() : "";
  return line.empty() ? text : fmt::format("{}, at {}", text, line);
}

Reason Guards::explain(Frame frame) const {
  if (is_root_)
    if (std::optional<std::string> reason = same_call(frame)) return {*reason};
  for (const auto& [cell, content] : cells_)
    if (!same_content(cell->content, content))
      return {fmt::format("cell '{}': expected {}, got {}", cell->name, content_text(content),
                          content_text(cell->content))};
  if (std::string reason; !collect(frame, &reason)) return {reason};
  for (const RegisterFact& fact : registers_)
    if (!holds(fact, frame))
      return {fact.same_as ? "a result of what ran at the break is another tensor"
                           : "a result of what ran at the break is defined"};
  for (const SameTensor& fact : same_tensors_)
    if (!holds(fact, frame))
      return {fmt::format("{} is no longer a tensor that the function also reaches otherwise", fact.name)};
  if (auto difference = aliases_.difference(frame)) {
    auto name = [&](size_t position) { return input_name(aliases_.input(position)); };
    return {fmt::format("{} and {} {}", name(difference->first), name(difference->second),
                        difference->overlap_now ? "overlap in memory" : "do not overlap in memory")};
  }
  std::span<const Tensor> inputs = frame.all_inputs();
  Reason reason;
  reason.text =
      sizes_.explain(inputs, frame.numbers.span(), {frame.symbols.begin(), frame.symbols.end()}, &reason.site);
  return reason;
}

void Guards::keep_literals(const Session& session) {
  for (size_t at = 0; at < sources_.size(); ++at) {
    auto* closure = std::get_if<ClosureTensor>(&sources_[at]);
    const Tensor& real = session.reals[first_input_ + at];
    constexpr uint32_t kOurs = 2;  // the session's list, and the frame's
    if (closure && real.impl()->use_count() <= kOurs && session.is_only_read(first_input_ + at))
      closure->literal = real;
  }
}

bool Guards::lost_closure() const {
  for (const InputSource& source : sources_)
    if (const auto* closure = std::get_if<ClosureTensor>(&source); closure && closure->tensor.expired()) return true;
  return false;
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> lines;
  if (is_root_) lines.push_back(fmt::format("grad mode is {}", grad_enabled_ ? "on" : "off"));
  for (const dispatch::Value& constant : constants_) lines.push_back(fmt::format("a number is {}", constant.str()));
  for (const TensorGuard& guard : tensors_)
    lines.push_back(fmt::format("{}: {} on {}, {} dimensions, requires_grad={}", guard.name, name(guard.dtype),
                                guard.device.str(), guard.rank, guard.requires_grad ? 1 : 0));
  for (size_t at = 0; at < same_as_.size(); ++at)
    if (same_as_[at] != static_cast<int32_t>(at))
      lines.push_back(fmt::format("{} is {}", argument_names_[at], argument_names_[static_cast<size_t>(same_as_[at])]));
  for (const auto& [cell, content] : cells_)
    lines.push_back(fmt::format("cell '{}' holds {}", cell->name, content_text(content)));
  for (const SameTensor& fact : same_tensors_)
    lines.push_back(fmt::format("{} is a tensor that the function also reaches otherwise", fact.name));
  for (const std::vector<size_t>& members : aliases_.classes()) {
    std::vector<std::string> names;
    for (size_t at : members) names.push_back(input_name(aliases_.input(at)));
    lines.push_back(fmt::format("{} overlap in memory", fmt::join(names, ", ")));
  }
  for (std::string& line : sizes_.describe()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tenon::capture
