#include "frozen.h"

#include "core/erased.h"
#include "support/undivided.h"

#include <tenon/support/counters.h>
#include <tenon/support/hash.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::freezing {

using dispatch::Value;

namespace {

// By result: several may be views of one value, which is no result itself.
std::vector<bool> find_slices(const Graph& graph) {
  std::vector<bool> slices;
  for (const graph::Argument& output : graph.outputs) {
    const auto* id = std::get_if<ValueId>(&output);
    ValueId base = id && *id != graph::kNoValue ? viewed_by(graph, *id) : graph::kNoValue;
    bool is_inputs = std::find(graph.inputs.begin(), graph.inputs.end(), base) != graph.inputs.end();
    slices.push_back(base != graph::kNoValue && base != *id && !is_inputs);
  }
  return slices;
}

thread_local const ConstantsRef* constants_to_use = nullptr;

}  // namespace

UseConstants::UseConstants(const ConstantsRef& constants)
    : before_(std::exchange(constants_to_use, constants ? &constants : nullptr)) {}
UseConstants::~UseConstants() { constants_to_use = before_; }

Seen::Seen(const Tensor& now)
    : tensor(now.ref()),
      writes(now.impl()->version),
      count(writes ? writes->count.load(std::memory_order_relaxed) : 0) {}

Frozen::Frozen(Split split, const Parameters& parameters, std::vector<bool> may_hold, Notes notes,
               const GraphCompiler& compiler)
    : split_(std::move(split)),
      notes_(std::move(notes)),
      may_hold_(std::move(may_hold)),
      is_slice_(find_slices(split_.frozen)) {
  may_hold_.resize(split_.reads.size());
  is_parameter_.resize(split_.reads.size());
  for (size_t at = 0; at < is_parameter_.size() && at < parameters.size(); ++at) {
    is_parameter_[at] = static_cast<bool>(parameters[at]);
    if (is_parameter_[at]) parameters_.push_back(static_cast<int32_t>(at));
  }
  run_frozen_ = compiler(split_.frozen);
  for (const FoldUnit& unit : split_.units) run_units_.push_back(compiler(unit.graph));
}

ConstantsRef Frozen::current() const {
  std::lock_guard lock(mutex_);
  return constants_;
}

bool Frozen::fits(const Constants& constants, std::span<const Tensor> inputs) const {
  for (int32_t each : parameters_) {
    auto at = static_cast<size_t>(each);
    if (!constants.seen[at].holds(*inputs[at].impl())) return false;
  }
  return true;
}

ConstantsRef Frozen::fold(std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
  for (int32_t each : parameters_)
    TENON_ASSERT(inputs[static_cast<size_t>(each)].defined(), "%{} is left out, and something has changed",
                 split_.names[static_cast<size_t>(each)]);
  support::Undivided changed_whole;
  std::lock_guard one_at_a_time(folding_);
  ConstantsRef before = current();
  if (before && fits(*before, inputs)) return before;
  auto now = std::make_shared<Constants>();
  if (before) *now = *before;
  now->owner = this;
  now->tensors.resize(split_.constants);
  now->seen.resize(inputs.size());
  now->kept.resize(inputs.size());
  auto changed = [&](int32_t each) {
    auto at = static_cast<size_t>(each);
    return !before || !before->seen[at].holds(*inputs[at].impl());
  };
  static Counter& folds = counter("folds");
  for (size_t at = 0; at < split_.units.size(); ++at) {
    const FoldUnit& unit = split_.units[at];
    // What is computed from numbers alone is computed once.
    if (before && std::none_of(unit.parameters.begin(), unit.parameters.end(), changed)) continue;
    std::vector<Tensor> given;
    for (int32_t each : unit.parameters) {
      given.push_back(inputs[static_cast<size_t>(each)]);
      TENON_CHECK(!core::is_erased(given.back()),
                  "[freeze] a parameter was changed, and what is computed from it needs '{}' too, which was given up "
                  "when the function was frozen (discard_parameters): give new tensors for both",
                  split_.names[static_cast<size_t>(each)]);
    }
    std::vector<Value> results = run_units_[at](given, symbols);
    for (size_t result = 0; result < results.size(); ++result)
      now->tensors[unit.outputs[result]] = results[result].take_tensor();
    folds.add();
  }
  for (int32_t each : parameters_) {
    auto at = static_cast<size_t>(each);
    if (!changed(each)) continue;
    now->seen[at] = Seen(inputs[at]);
    now->kept[at] = split_.reads[at] && may_hold_[at] ? inputs[at] : Tensor();
  }
  std::lock_guard lock(mutex_);
  constants_ = now;
  return now;
}

std::vector<Value> Frozen::run(std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
  bool is_ours = constants_to_use && (*constants_to_use)->owner == this;
  ConstantsRef constants = is_ours ? *constants_to_use : current();
  if (!is_ours && (!constants || !fits(*constants, inputs))) constants = fold(inputs, symbols);
  SmallVector<Tensor, 16> given;
  given.reserve(split_.inputs.size() + constants->tensors.size());
  for (int32_t each : split_.inputs) {
    auto at = static_cast<size_t>(each);
    given.push_back(constants->kept[at].defined() ? constants->kept[at] : inputs[at]);
  }
  for (const Tensor& constant : constants->tensors) given.push_back(constant);
  std::vector<Value> results = run_frozen_(given.span(), symbols);
  // Products that became one lie in one memory. As tensors of their own they count their writes themselves.
  for (size_t at = 0; at < is_slice_.size(); ++at)
    if (is_slice_[at]) results[at].tensor().impl()->version = make_ref<Version>();
  return results;
}

std::vector<Frozen::Taken> Frozen::takes(const Constants& constants) const {
  std::vector<Taken> taken;
  for (int32_t each : split_.inputs) {
    const Tensor& kept = constants.kept[static_cast<size_t>(each)];
    taken.push_back(kept.defined() ? Taken(kept) : Taken(each));
  }
  for (const Tensor& constant : constants.tensors) taken.emplace_back(constant);
  return taken;
}

void Frozen::refresh() {
  support::Undivided changed_whole;
  std::lock_guard one_at_a_time(folding_);
  std::lock_guard lock(mutex_);
  if (!constants_) return;
  auto stale = std::make_shared<Constants>(*constants_);
  // What was given up is no longer there to be computed from.
  for (Seen& seen : stale->seen)
    if (Ref<TensorImpl> alive = seen.tensor.lock(); !alive || !core::is_erased(TensorBase(alive))) seen = Seen();
  constants_ = std::move(stale);
}

void Frozen::give_up(std::span<const Tensor> inputs, std::span<const Tensor> erased) {
  support::Undivided changed_whole;
  std::lock_guard one_at_a_time(folding_);
  std::lock_guard lock(mutex_);
  if (!constants_) return;
  auto now = std::make_shared<Constants>(*constants_);
  for (size_t at = 0; at < erased.size(); ++at) {
    if (!erased[at].defined()) continue;
    now->seen[at] = Seen(erased[at]);
    // Without what the parameter's tensor carries besides its memory.
    if (split_.reads[at]) now->kept[at] = inputs[at].detach();
  }
  constants_ = std::move(now);
}

std::vector<std::string> Frozen::describe_constants() const {
  ConstantsRef constants = current();
  std::vector<std::string> lines(split_.constants);
  for (const FoldUnit& unit : split_.units) {
    std::vector<std::string> from;
    for (int32_t each : unit.parameters) from.push_back("%" + split_.names[static_cast<size_t>(each)]);
    for (size_t at : unit.outputs) {
      auto place = static_cast<size_t>(split_.frozen.inputs[split_.inputs.size() + at]);
      std::string hash = "not computed yet";
      if (constants && constants->tensors[at].defined()) {
        const Tensor& tensor = constants->tensors[at];
        auto bytes = static_cast<size_t>(core::reach(tensor.sizes(), tensor.strides()) * tensor.element_size());
        const char* data = bytes > 0 ? static_cast<const char*>(tensor.raw_data()) : "";
        hash = fmt::format("{:016x}", std::hash<std::string_view>()({data, bytes}));
      }
      lines[at] = fmt::format("%{}: {} {} from {}", split_.frozen.values[place].name,
                              split_.frozen.values[place].meta.description(), hash, fmt::join(from, ", "));
    }
  }
  return lines;
}

}  // namespace tenon::freezing
