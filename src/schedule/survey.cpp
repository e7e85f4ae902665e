#include "survey.h"

#include "work.h"

#include <tenon/support/counters.h>

#include <algorithm>

namespace tenon::schedule {
namespace {

constexpr int64_t kUnknownSize = 1024;  // of an extent that comes from data

bool is_ordered(loop::ReduceKind kind, Dtype dtype) {
  return is_floating(dtype) && (kind == loop::ReduceKind::Sum || kind == loop::ReduceKind::Product);
}

}  // namespace

Survey::Survey(const Schedule& schedule, Group group)
    : group_(std::move(group)), lowering_(schedule, group_, "survey") {
  lowering_.surveying = true;
  for (Expr size : group_.domain) lowering_.to_kernel(size);
  for (int stage = 0, last = lowering_.last_level(); stage <= last; ++stage) {
    if (stage > 0) end_stage();
    begin_stage();
    for (ValueId root : group_.roots) {
      if (!is_reused(root, stage)) continue;
      const int32_t begin = lowering_.builder().kernel().value_count;
      lowering_.emit_body(root, lowering_.own_index(root));
      reused_.push_back({{root, stage, 0}, begin, lowering_.builder().kernel().value_count});
    }
    for (ValueId root : group_.roots)
      if (lowering_.level(root) == stage) survey_root(root);
  }
}

std::optional<Nest> Survey::outline() const {
  Nest outline;
  for (size_t dim = 0; dim < group_.domain.size(); ++dim) {
    const Expr& extent = group_.domain[dim];
    const std::optional<int64_t> size = lowering_.graph().env->hint(extent);
    if (!size || *size < 1) return std::nullopt;
    if (!extent.is_constant(1)) outline.axes.push_back({{dim}, extent, group_.reduced[dim], *size});
  }
  outline.stages = nest_.stages;
  return outline;
}

bool Survey::grow(const Group& joined) {
  const Schedule& schedule = lowering_.schedule();
  const bool adds_one = joined.roots.size() == group_.roots.size() + 1 &&
                        std::equal(group_.roots.begin(), group_.roots.end(), joined.roots.begin()) &&
                        joined.domain == group_.domain && joined.reduced == group_.reduced;
  // A root that takes an input's memory changes what others may read, and one without memory is computed again in later
  // stages.
  if (!adds_one || schedule.place_of(joined.roots.back()) ||
      !std::all_of(joined.roots.begin(), joined.roots.end(), [&](ValueId root) { return schedule.state(root).stored; }))
    return false;
  const ValueId root = joined.roots.back();
  group_.roots.push_back(root);
  if (lowering_.level(root) < lowering_.stage) return false;  // that stage has ended
  if (lowering_.level(root) > lowering_.stage) {
    end_stage();
    begin_stage();
  }
  survey_root(root);
  return true;
}

Nest Survey::nest() {
  end_stage();
  for (const auto& each : reused_) nest_.reused.push_back(each.value);
  order_dimensions();
  merge_dimensions();
  nest_.pool = lowering_.builder().kernel().pool;
  nest_.integers = lowering_.integers();
  nest_.symbols = lowering_.builder().kernel().integers;
  nest_.may_fail = !lowering_.builder().kernel().checks.empty();
  return std::move(nest_);
}

void Survey::begin_stage() {
  lowering_.stage = static_cast<int>(stages_.size());
  StageSurvey& survey = stages_.emplace_back();
  nest_.stages.emplace_back();
  indirect_.clear();
  lowering_.coordinates.clear();
  for (Expr size : group_.domain) lowering_.coordinates.push_back(lowering_.open(lowering_.to_kernel(size), {}));
  survey.coordinates = lowering_.coordinates;
  collected_ = innermost().size();
}

void Survey::end_stage() {
  while (lowering_.open_loops() > 0) lowering_.close();
}

void Survey::survey_root(ValueId root) {
  static Counter& surveyed = counter("roots_surveyed");
  surveyed.add();
  Stage& made = nest_.stages.back();
  if (lowering_.is_reduction(root)) {
    lowering_.emit(lowering_.reduction_source(root), lowering_.coordinates);
    ++made.reductions;
    made.ordered += is_ordered(lowering_.reduce_kind(root), lowering_.lane_dtype(root)) ? 1 : 0;
    lowering_.store(root, lowering_.builder().constant(int64_t{0}, lowering_.lane_dtype(root)));
  } else {
    lowering_.store(root, lowering_.emit_body(root, lowering_.own_index(root)));
  }
  if (lowering_.over_full_domain(root) || lowering_.is_reduction(root)) made.full = true;
  if (!lowering_.over_full_domain(root)) stages_.back().kept_stores.push_back(root);
  collect();
}

// Whether a root of this stage, without memory of its own, is read by a later one.
bool Survey::is_reused(ValueId id, int stage) {
  if (!group_.has_reduction() || lowering_.level(id) != stage || !lowering_.over_full_domain(id) ||
      lowering_.schedule().state(id).stored)
    return false;
  return std::any_of(group_.roots.begin(), group_.roots.end(), [&](ValueId other) {
    return lowering_.level(other) > stage && (lowering_.over_full_domain(other) || lowering_.is_reduction(other)) &&
           reads(other, id);
  });
}

bool Survey::reads(ValueId from, ValueId wanted) const {
  const ValueState& state = lowering_.schedule().state(from);
  bool found = false;
  if (!state.node) return false;
  graph::each_reference(*state.node, [&](ValueId input) {
    const ValueState& given = lowering_.schedule().state(input);
    // What another root reads, that one keeps for itself.
    found |= input == wanted || (!lowering_.schedule().is_input(given.base) && !given.root && reads(input, wanted));
  });
  return found;
}

// Of the loops of the stage at hand, which are the last that was opened.
const loop::Block& Survey::innermost() {
  const loop::Block* block = &lowering_.builder().kernel().body;
  for (size_t dim = 0; dim < group_.domain.size(); ++dim)
    block = &std::get<std::unique_ptr<loop::Loop>>(block->back())->body;
  return *block;
}

// Takes down what was lowered since. A scope's operations move while it grows: nothing points to them.
void Survey::collect() {
  const loop::Block& body = innermost();
  for (; collected_ < body.size(); ++collected_) collect(body[collected_]);
}

void Survey::collect(const loop::Statement& statement) {
  if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement)) {
    for (const loop::Statement& each : (*inner)->body) collect(each);
    return;
  }
  const loop::Op& op = std::get<loop::Op>(statement);
  const size_t stage = stages_.size() - 1;
  nest_.stages[stage].work += instructions(op);
  for (auto& [reused, begin, end] : reused_)
    if (op.result >= begin && op.result < end) reused.work += instructions(op);
  if (op.code == loop::OpCode::BindIndex) indirect_.insert(op.index.symbol_id());
  if (op.code != loop::OpCode::Load && op.code != loop::OpCode::Store) return;
  Access access;
  access.value = lowering_.buffer_values()[static_cast<size_t>(op.buffer)];
  access.dtype = lowering_.builder().kernel().buffers[static_cast<size_t>(op.buffer)].dtype;
  access.store = op.code == loop::OpCode::Store;
  access.stage = static_cast<int>(stage);
  const std::vector<ValueId>& kept = stages_[stage].kept_stores;
  access.kept_only = access.store && std::find(kept.begin(), kept.end(), access.value) != kept.end();
  for (int32_t symbol : sym::symbols_of(op.index)) access.indirect |= indirect_.contains(symbol);
  // By dimension for now; by axis once they are merged.
  sym::ExprPool& pool = lowering_.pool();
  std::unordered_map<int32_t, Expr> first_stage;
  for (size_t dim = 0; stage > 0 && dim < stages_[stage].coordinates.size(); ++dim)
    first_stage[stages_[stage].coordinates[dim].symbol_id()] = stages_[0].coordinates[dim];
  access.index = pool.substitute(op.index, first_stage);
  for (const Expr& coordinate : stages_[stage].coordinates) {
    Expr next = pool.substitute(op.index, {{coordinate.symbol_id(), coordinate + 1}});
    Expr step = next - op.index;
    bool linear = true;
    for (int32_t symbol : sym::symbols_of(step))
      for (const Expr& other : stages_[stage].coordinates) linear &= symbol != other.symbol_id();
    access.stride.push_back(linear ? step : Expr());
    std::optional<int64_t> known = linear ? lowering_.hint(step) : std::nullopt;
    access.step.push_back(known.value_or(Access::kScattered));
  }
  nest_.accesses.push_back(std::move(access));
}

// Of two dimensions, whether the first belongs outside: accesses are asked in turn, stores first where they see both.
bool Survey::belongs_outside(size_t a, size_t b) const {
  for (bool stores : {true, false})
    for (const Access& access : nest_.accesses) {
      if (access.store != stores || (group_.reduced[a] && access.kept_only)) continue;
      const int64_t first = access.step[a], second = access.step[b];
      if (first == Access::kScattered || second == Access::kScattered || first == 0 || second == 0) continue;
      if (std::abs(first) != std::abs(second)) return std::abs(first) > std::abs(second);
    }
  return false;
}

void Survey::order_dimensions() {
  for (bool reduced : {false, true}) {
    size_t begin = order_.size();
    for (size_t dim = 0; dim < group_.domain.size(); ++dim)
      if (!group_.domain[dim].is_constant(1) && group_.reduced[dim] == reduced) order_.push_back(dim);
    // Not every pair can be told apart, so this is an insertion by neighbours rather than a sort.
    for (size_t at = begin + 1; at < order_.size(); ++at)
      for (size_t to = at; to > begin && belongs_outside(order_[to], order_[to - 1]); --to)
        std::swap(order_[to], order_[to - 1]);
  }
}

bool Survey::mergeable(size_t outer, size_t inner) {
  for (const Access& access : nest_.accesses) {
    const Expr &a = access.stride[outer], &b = access.stride[inner];
    if (!a.defined() || !b.defined() || a != b * lowering_.to_kernel(group_.domain[inner])) return false;
  }
  return true;
}

void Survey::merge_dimensions() {
  for (size_t dim : order_) {
    Expr extent = lowering_.to_kernel(group_.domain[dim]);
    const bool reduced = group_.reduced[dim];
    if (!nest_.axes.empty() && nest_.axes.back().reduced == reduced && mergeable(nest_.axes.back().dims.back(), dim)) {
      nest_.axes.back().dims.push_back(dim);
      nest_.axes.back().extent = nest_.axes.back().extent * extent;
    } else {
      nest_.axes.push_back({{dim}, extent, reduced, 0});
    }
  }
  for (NestAxis& axis : nest_.axes) axis.size = lowering_.hint(axis.extent).value_or(kUnknownSize);
  for (Access& access : nest_.accesses) {
    std::vector<Expr> stride;
    std::vector<int64_t> step;
    for (const NestAxis& axis : nest_.axes) {
      stride.push_back(access.stride[axis.dims.back()]);
      step.push_back(access.step[axis.dims.back()]);
    }
    access.stride = std::move(stride);
    access.step = std::move(step);
  }
}

}  // namespace tenon::schedule
