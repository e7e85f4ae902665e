#include "core/pointer_table.h"
#include "segment.h"
#include "session.h"

#include <bit>

namespace tenon::capture {

namespace {

// The zero's sign counts: it decides what a division gives.
bool same_real(double a, double b) {
  return std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b) || (a != a && b != b);
}

}  // namespace

bool same_constant(const dispatch::Value& a, const dispatch::Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() == dispatch::Value::Tag::Int) return a.integer() == b.integer();
  if (a.tag() == dispatch::Value::Tag::Bool) return a.boolean() == b.boolean();
  if (a.tag() == dispatch::Value::Tag::Real) return same_real(a.real(), b.real());
  return a.str() == b.str();
}

namespace {

bool same_content(const CellContent& a, const CellContent& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<Tensor>(&a)) return tensor->is(std::get<Tensor>(b));
  return std::visit(
      [&]<typename T>(const T& value) {
        if constexpr (std::is_same_v<T, Tensor>)
          return false;
        else if constexpr (std::is_same_v<T, double>)
          return same_real(value, std::get<T>(b));
        else
          return value == std::get<T>(b);
      },
      a);
}

bool has_identity(std::span<const Tensor> tensors, const std::vector<int32_t>& expected) {
  constexpr size_t kFew = 8;
  if (tensors.size() > kFew) {
    core::PointerTable table(tensors.size());
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
      cells_(session.cells.begin() + static_cast<ptrdiff_t>(from.cells), session.cells.end()),
      registers_(session.register_facts.begin() + static_cast<ptrdiff_t>(from.registers), session.register_facts.end()),
      same_tensors_(session.same_tensors.begin() + static_cast<ptrdiff_t>(from.same_tensors),
                    session.same_tensors.end()),
      first_aftermath_(from.aftermaths),
      aftermaths_(session.aftermaths.begin() + static_cast<ptrdiff_t>(from.aftermaths), session.aftermaths.end()) {
  if (root) {
    grad_enabled_ = root->grad_enabled;
    autocast_ = root->autocast;
    argument_count_ = root->arguments.size();
    same_as_ = first_of_each(root->arguments);
    for (size_t at = 0; at < argument_count_; ++at) argument_names_.push_back(session.argument_name(at));
    for (const dispatch::Value& constant : root->constants) constants_.push_back(constant.own());
  }
  for (size_t at = from.inputs; at < session.reals.size(); ++at) {
    const Tensor& real = session.reals[at];
    // What the function itself does to variables, while it is captured, is no news.
    if (auto* closure = std::get_if<ClosureTensor>(&sources_[at - from.inputs]))
      closure->rebinds = ClosureTensor::kNotWatched;
    tensors_.push_back({real.dtype(), real.device(), real.dim(), real.requires_grad(), session.names[at]});
  }
  for (SameTensor& fact : same_tensors_)
    if (auto* closure = std::get_if<ClosureTensor>(&fact.what)) closure->rebinds = ClosureTensor::kNotWatched;
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

bool fits(const TensorGuard& guard, const Tensor& input) {
  if (!input.defined()) return false;
  const TensorImpl& impl = *input.impl();
  return impl.dtype == guard.dtype && impl.device == guard.device &&
         static_cast<int64_t>(impl.sizes.size()) == guard.rank &&
         // Most tensors have no autograd slot at all.
         (impl.autograd && input.requires_grad()) == guard.requires_grad;
}

}  // namespace

// An input; undefined if it is missing.
Tensor Guards::fetch(size_t at, const Frame& frame) const {
  const InputSource& source = sources_[at];
  if (const auto* argument = std::get_if<Argument>(&source))
    return frame.arguments[static_cast<size_t>(argument->position)];
  if (const auto* cell = std::get_if<Ref<CellState>>(&source)) {
    const auto* content = std::get_if<Tensor>(&(*cell)->content);
    return content ? *content : Tensor();
  }
  if (const auto* computed = std::get_if<Register>(&source))
    return frame.registers[static_cast<size_t>(computed->index)];
  const auto& closure = std::get<ClosureTensor>(source);
  Ref<TensorImpl> alive = closure.tensor.lock();
  if (!alive || closure.rebound(*alive)) return Tensor();
  return Tensor(std::move(alive));
}

namespace {

// The tensor of a parameter, without holding it; null if there is none.
const TensorImpl* peek(const CellState& cell) {
  const auto* content = std::get_if<Tensor>(&cell.content);
  return content ? content->impl() : nullptr;
}
const TensorImpl* peek(const InputSource& source) {
  const auto* closure = std::get_if<ClosureTensor>(&source);
  if (!closure || closure->tensor.expired()) return nullptr;
  const TensorImpl* impl = closure->tensor.address();
  return closure->rebound(*impl) ? nullptr : impl;
}

}  // namespace

void Guards::let_stand(std::shared_ptr<freezing::Frozen> frozen, std::span<const InputRef> inputs) {
  if (!is_root_) return;
  std::vector<bool> apart(sources_.size());
  for (size_t at = 0; at < inputs.size(); ++at)
    if (!inputs[at].is_register && frozen->is_parameter(at)) {
      auto index = static_cast<size_t>(inputs[at].index);
      const auto* cell = std::get_if<Ref<CellState>>(&sources_[index]);
      parameters_.push_back({cell ? cell->get() : nullptr, inputs[at].index, static_cast<int32_t>(at)});
      apart[index] = frozen->may_stand(at);
    }
  // Who is compared with others must be there.
  for (const SameTensor& fact : same_tensors_)
    if (!fact.input.is_register) apart[static_cast<size_t>(fact.input.index)] = false;
  for (size_t at = 0; at < sources_.size(); ++at)
    if (!apart[at]) asked_for_.push_back(static_cast<int32_t>(at));
  sizes_.set_apart(apart);
  frozen_ = std::move(frozen);
}

bool Guards::all_stand(Frame& frame) const {
  frame.frozen = nullptr;
  if (!frozen_) return false;
  freezing::ConstantsRef constants = frozen_->current();
  if (!constants) return false;
  for (const Parameter& each : parameters_) {
    const TensorImpl* now = each.cell ? peek(*each.cell) : peek(sources_[static_cast<size_t>(each.input)]);
    if (!now || !constants->seen[static_cast<size_t>(each.frozen)].holds(*now)) return false;
  }
  frame.frozen = std::move(constants);
  return true;
}

bool Guards::collect(Frame& frame, bool stand) const {
  if (borrows_arguments_) {
    frame.inputs_are_arguments = true;
    for (size_t at = 0; at < tensors_.size(); ++at)
      if (!fits(tensors_[at], frame.arguments[at])) return false;
    return true;
  }
  frame.inputs.reserve(frame.inputs.size() + sources_.size());
  if (stand) {
    // These are the first inputs of the frame: they are the root's.
    frame.inputs.resize(sources_.size());
    for (int32_t each : asked_for_) {
      auto at = static_cast<size_t>(each);
      frame.inputs[at] = fetch(at, frame);
      if (!frame.inputs[at].defined() || !fits(tensors_[at], frame.inputs[at])) return false;
    }
    return true;
  }
  for (size_t at = 0; at < sources_.size(); ++at) {
    frame.inputs.push_back(fetch(at, frame));
    if (!frame.inputs.back().defined() || !fits(tensors_[at], frame.inputs.back())) return false;
  }
  return true;
}

bool Guards::holds(const RegisterFact& fact, const Frame& frame) const {
  const Tensor& held = frame.registers[static_cast<size_t>(fact.index)];
  if (!fact.same_as) return !held.defined();
  auto index = static_cast<size_t>(fact.same_as->index);
  return held.is(fact.same_as->is_register ? frame.registers[index] : frame.all_inputs()[index]);
}

// A number that is a symbol joins the frame's numbers.
bool Guards::holds(const CellFact& fact, Frame& frame) const {
  if (!fact.is_symbol) return same_content(fact.cell->content, fact.content);
  const CellContent& now = fact.cell->content;
  if (const auto* real = std::get_if<double>(&now))
    frame.numbers.push_back(std::bit_cast<int64_t>(*real));
  else
    frame.numbers.push_back(std::get<int64_t>(now));
  return true;
}

bool Guards::holds(const SameTensor& fact, const Frame& frame) const {
  const Tensor& input = frame.at(fact.input);
  if (const auto* cell = std::get_if<Ref<CellState>>(&fact.what)) {
    const auto* content = std::get_if<Tensor>(&(*cell)->content);
    return content && content->is(input);
  }
  const auto& closure = std::get<ClosureTensor>(fact.what);
  return !closure.tensor.expired() && closure.tensor.address() == input.impl() && !closure.rebound(*input.impl());
}

bool Guards::check(Frame& frame) const {
  if (is_root_) {
    if (frame.grad_enabled != grad_enabled_ || frame.autocast != autocast_ ||
        frame.arguments.size() != argument_count_ || frame.constants.size() != constants_.size())
      return false;
    for (size_t at = 0; at < constants_.size(); ++at)
      if (!same_constant(frame.constants[at], constants_[at])) return false;
    if (!has_identity(frame.arguments, same_as_)) return false;
  }
  for (const CellFact& fact : cells_)
    if (!holds(fact, frame)) return false;
  const bool stand = all_stand(frame);
  if (!collect(frame, stand)) return false;
  for (const RegisterFact& fact : registers_)
    if (!holds(fact, frame)) return false;
  for (const SameTensor& fact : same_tensors_)
    if (!holds(fact, frame)) return false;
  for (size_t at = 0; at < aftermaths_.size(); ++at)
    if (frame.aftermaths[first_aftermath_ + at] != aftermaths_[at]) return false;
  return aliases_.check(frame) && sizes_.check(frame.all_inputs(), frame.numbers.span(), frame.symbols, !stand);
}

void Guards::settle_closures(const Session& session, bool watch) {
  for (size_t at = 0; at < sources_.size(); ++at) {
    auto* closure = std::get_if<ClosureTensor>(&sources_[at]);
    const Tensor& real = session.reals[first_input_ + at];
    constexpr uint32_t kOurs = 2;  // the session's list, and the frame's
    if (closure && real.impl()->use_count() <= kOurs && session.is_only_read(first_input_ + at))
      closure->literal = real;
    if (closure) closure->rebinds = watch ? real.impl()->rebinds.load() : ClosureTensor::kNotWatched;
  }
  for (SameTensor& fact : same_tensors_)
    if (auto* closure = std::get_if<ClosureTensor>(&fact.what))
      if (Ref<TensorImpl> alive = closure->tensor.lock(); alive && watch) closure->rebinds = alive->rebinds.load();
}

template <typename Visit>
void Guards::each_closure(const Visit& visit) const {
  for (const InputSource& source : sources_)
    if (const auto* closure = std::get_if<ClosureTensor>(&source)) visit(*closure);
  for (const SameTensor& fact : same_tensors_)
    if (const auto* closure = std::get_if<ClosureTensor>(&fact.what)) visit(*closure);
}

std::optional<CallSite> Guards::rebound_closure() const {
  std::optional<CallSite> site;
  each_closure([&](const ClosureTensor& closure) {
    if (Ref<TensorImpl> alive = closure.tensor.lock(); !site && alive && closure.rebound(*alive)) site = closure.site;
  });
  return site;
}

bool Guards::lost_closure() const {
  bool lost = false;
  each_closure([&](const ClosureTensor& closure) {
    Ref<TensorImpl> alive = closure.tensor.lock();
    lost |= !alive || closure.rebound(*alive);
  });
  return lost;
}

}  // namespace tenon::capture
