#include "lowering.h"

#include <algorithm>

namespace tenon::schedule {

using loop::Lane;

Lowering::Lowering(const Schedule& schedule, const Group& group, std::string name)
    : schedule_(schedule), graph_(schedule.graph), group_(group), builder_(std::move(name)) {
  memo_.emplace_back();
}

// ---- Roots of the group

bool Lowering::is_reduction(ValueId id) const {
  const ValueState& state = schedule_.state(id);
  // Over no dimensions it is a conversion of one element.
  return state.row && state.row->kind == ops::Kind::Reduction && graph_.meta(reduction_source(id)).dim() > 0;
}
bool Lowering::in_group(ValueId id) const {
  return std::find(group_.roots.begin(), group_.roots.end(), id) != group_.roots.end();
}
// Of bools: the largest is whether there is any, the smallest whether all are.
loop::ReduceKind Lowering::reduce_kind(ValueId id) const {
  loop::ReduceKind kind = schedule_.state(id).row->reduction.kind;
  if (lane_dtype(id) != kBool) return kind;
  return kind == loop::ReduceKind::Min || kind == loop::ReduceKind::Product || kind == loop::ReduceKind::All
             ? loop::ReduceKind::All
             : loop::ReduceKind::Any;
}
// The coordinates at which a root of this group is made.
std::vector<Expr> Lowering::own_index(ValueId id) const {
  std::vector<Expr> sizes = size_exprs(graph_, id);
  if (!is_reduction(id) && sizes == group_.domain) return coordinates;
  std::vector<Expr> index;
  bool keeps_rank = sizes.size() == group_.domain.size();
  for (size_t dim = 0; dim < group_.domain.size(); ++dim) {
    if (!group_.reduced[dim])
      index.push_back(coordinates[dim]);
    else if (keeps_rank)
      index.push_back(pool().constant(0));
  }
  return index;
}
bool Lowering::over_full_domain(ValueId id) const {
  return !is_reduction(id) && (!group_.has_reduction() || size_exprs(graph_, id) == group_.domain);
}

// How many stages must have ended before a value can be computed.
int Lowering::level(ValueId id) {
  if (auto found = levels_.find(id); found != levels_.end()) return found->second;
  int result = 0;
  const ValueState& state = schedule_.state(id);
  if (state.node && (in_group(id) || !state.root)) {
    for (size_t at = 0; at < state.node->args.size(); ++at) {
      if (state.row->ignores(state.row->schema.arguments[at].name)) continue;
      graph::each_reference(state.node->args[at], [&](ValueId input) {
        ValueId base = schedule_.state(input).base;
        if (schedule_.is_input(base)) return;
        bool reduced_here = in_group(base) && is_reduction(base);
        result = std::max(result, level(schedule_.state(base).root ? base : input) + (reduced_here ? 1 : 0));
      });
    }
  }
  return levels_[id] = result;
}

int Lowering::last_level() {
  int last = 0;
  for (ValueId root : group_.roots) last = std::max(last, level(root));
  return last;
}

// ---- Numbers

void Lowering::declare(std::span<const Expr> symbols) {
  for (Expr symbol : symbols) to_kernel(symbol);
}

std::optional<int64_t> Lowering::hint(Expr kernel_expr) const {
  std::vector<int64_t> values(static_cast<size_t>(pool().symbol_count()));
  std::vector<bool> known(values.size());
  for (size_t at = 0; at < integers_.size(); ++at) {
    Expr parameter = const_cast<loop::Builder&>(builder_).kernel().integers[at];
    std::optional<int64_t> value = graph_.env->hint(integers_[at]);
    if (!value) continue;
    values[static_cast<size_t>(parameter.symbol_id())] = *value;
    known[static_cast<size_t>(parameter.symbol_id())] = true;
  }
  for (int32_t symbol : sym::symbols_of(kernel_expr))
    if (!known[static_cast<size_t>(symbol)]) return std::nullopt;
  return sym::evaluate(kernel_expr, values);
}

Expr Lowering::to_kernel(Expr expr) {
  expr = graph_.env->pool().simplify(expr);
  if (!sym::is_index_arithmetic(expr)) return rebuild(expr);
  for (int32_t id : sym::symbols_of(expr)) {
    if (symbols_.contains(id)) continue;
    Expr symbol = graph_.env->pool().symbol(id);
    symbols_[id] = builder_.integer(symbol.name(), graph_.env->pool().range(symbol));
    integers_.push_back(symbol);
  }
  return pool().import(expr, symbols_);
}
// Parts that are more than index arithmetic (powers, roundings of reals, divisions by what may be 0 or -1) are computed
// before the launch and passed.
Expr Lowering::rebuild(Expr expr) {
  if (sym::is_index_arithmetic(expr)) return to_kernel(expr);
  std::span<const Expr> args = expr.args();
  auto fold = [&](auto&& combine) {
    Expr result = rebuild(args[0]);
    for (const Expr& arg : args.subspan(1)) result = combine(result, rebuild(arg));
    return result;
  };
  const bool divides = expr.op() == sym::Op::FloorDiv || expr.op() == sym::Op::Mod;
  const bool traps = divides && graph_.env->pool().range(args[1]).min < 1;
  if (!traps) switch (expr.op()) {
      case sym::Op::Add: return fold([](Expr a, Expr b) { return a + b; });
      case sym::Op::Mul: return fold([](Expr a, Expr b) { return a * b; });
      case sym::Op::FloorDiv: return fold([](Expr a, Expr b) { return floor_div(a, b); });
      case sym::Op::Mod: return fold([](Expr a, Expr b) { return mod(a, b); });
      case sym::Op::Min: return fold([](Expr a, Expr b) { return min(a, b); });
      case sym::Op::Max: return fold([](Expr a, Expr b) { return max(a, b); });
      default: break;
    }
  auto [found, added] = computed_.try_emplace(expr);
  if (added) {
    found->second = builder_.integer(fmt::format("n{}", computed_.size() - 1), graph_.env->pool().range(expr));
    integers_.push_back(expr);
  }
  return found->second;
}
Lane Lowering::number_lane(const Node& node, size_t at, const dispatch::Value& value, Dtype dtype) {
  Scalar scalar = value.scalar();
  dtype = compute_dtype(dtype);
  if (scalar.is_symbolic()) return symbolic_lane(scalar, dtype);
  if (schedule_.options.scalar_parameters) {
    auto [found, added] = number_parameters_.try_emplace({&node, at}, -1);
    if (added) {
      found->second = builder_.scalar(fmt::format("{}", node.op->schema().arguments[at].name),
                                      scalar.is_real() ? kFloat64 : kInt64);
      runtime::ScalarSource source;
      source.index = static_cast<int32_t>(at);
      double real = scalar.is_real() ? scalar.real() : 0;
      source.bits = scalar.is_real() ? std::bit_cast<uint64_t>(real) : static_cast<uint64_t>(scalar.to_int());
      scalars_.push_back(source);
    }
    return loop::cast(builder_.parameter(found->second), dtype);
  }
  if (scalar.is_real() && !is_floating(dtype)) return loop::cast(builder_.constant(scalar.real(), kFloat64), dtype);
  return scalar.is_real() ? builder_.constant(scalar.real(), dtype) : builder_.constant(scalar.to_int(), dtype);
}

// Integers of sizes are index arithmetic; reals and truths are computed before the launch. (So are integers, once: what
// 64 bits do not hold is an Error there, and another number here.)
Lane Lowering::symbolic_lane(const Scalar& scalar, Dtype dtype) {
  if (scalar.kind() == Scalar::Kind::Int) {
    if (!scalar.integer().expr().is_symbol()) numbers_.push_back(scalar.integer().expr());
    return loop::cast(builder_.index(to_kernel(scalar.integer())), dtype);
  }
  Expr expr = scalar.is_real() ? scalar.sym_real().expr() : scalar.integer().expr();
  auto [found, added] = scalar_parameters_.try_emplace(expr, -1);
  if (added) {
    found->second = builder_.scalar(fmt::format("x{}", scalar_exprs_.size()), scalar.is_real() ? kFloat64 : kInt64);
    scalars_.push_back({runtime::ScalarSource::Kind::Expr, 0, static_cast<int32_t>(scalar_exprs_.size())});
    scalar_exprs_.push_back(expr);
  }
  return loop::cast(builder_.parameter(found->second), dtype);
}

// ---- Memory

// Elements that a tensor of these sizes and strides may address.
Expr Lowering::extent_of(const SymInts& sizes, const SymInts& strides) {
  Expr extent = pool().constant(1), count = extent;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    extent = extent + (to_kernel(sizes[dim]) - 1) * to_kernel(strides[dim]);
    count = count * to_kernel(sizes[dim]);
  }
  if (extent == count) return extent;
  // With gaps, a size of 0 does not show in the sum.
  for (const SymInt& each : sizes)
    if (Expr size = to_kernel(each); pool().range(size).min <= 0) extent = extent * min(size, pool().constant(1));
  return extent;
}

int Lowering::buffer_of(ValueId base, loop::BufferRole role) {
  auto found = buffers_.find(base);
  if (found == buffers_.end()) {
    if (role == loop::BufferRole::In && schedule_.is_written_by(group_, base)) role = loop::BufferRole::InOut;
    const Tensor& meta = graph_.meta(base);
    Expr extent = extent_of(meta.sym_sizes(), meta.sym_strides());
    // Named by position, so that equal kernels of different graphs are one text and one object.
    std::string name = fmt::format("{}{}", role == loop::BufferRole::In ? "in" : "out", buffers_.size());
    int made = builder_.buffer(std::move(name), meta.dtype(), role, extent);
    found = buffers_.emplace(base, made).first;
    buffer_values_.push_back(base);
  }
  return found->second;
}

Expr Lowering::address(ValueId id, std::span<const Expr> index) {
  const Tensor& meta = graph_.meta(id);
  SymInts strides = meta.sym_strides();
  ValueId base = schedule_.state(id).base;
  Expr position = to_kernel(meta.sym_storage_offset() - graph_.meta(base).sym_storage_offset());
  for (size_t dim = 0; dim < index.size(); ++dim) position = position + index[dim] * to_kernel(strides[dim]);
  return position;
}

std::pair<int, Expr> Lowering::home(ValueId id, std::span<const Expr> index) {
  std::optional<Schedule::Place> written = schedule_.place_of(id);
  if (!written) return {buffer_of(id, loop::BufferRole::Out), address(id, index)};
  SymInts strides = written->place->sym_strides();
  Expr position = to_kernel(written->place->sym_storage_offset() - graph_.meta(written->input).sym_storage_offset());
  for (size_t dim = 0; dim < index.size(); ++dim) position = position + index[dim] * to_kernel(strides[dim]);
  return {buffer_of(written->input, loop::BufferRole::Out), position};
}

void Lowering::store(ValueId id, Lane value) {
  if (!schedule_.state(id).stored) return;
  auto [buffer, position] = home(id, own_index(id));
  builder_.store(buffer, position, value);
}

// ---- Elements

Lowering::MemoKey Lowering::memo_key(ValueId id, std::span<const Expr> index) const {
  std::span<const Lane> conditions = builder_.conditions();
  MemoKey key{id, {}, conditions.empty() ? loop::kNone : conditions.back().id()};
  for (const Expr& each : index) key.index.push_back(each.node());
  return key;
}

const Lane* Lowering::remembered(MemoKey key) const {
  // Made under a condition around this one it serves too.
  std::span<const Lane> conditions = builder_.conditions();
  for (size_t around = 0; around <= conditions.size(); ++around) {
    key.condition = around == 0 ? loop::kNone : conditions[around - 1].id();
    for (size_t depth = memo_.size(); depth-- > 0;)
      if (auto found = memo_[depth].find(key); found != memo_[depth].end()) return &found->second;
  }
  return nullptr;
}

// Indices are clamped to elements that exist, if one does.
bool Lowering::never_empty(ValueId id) {
  for (const SymInt& size : graph_.meta(id).sym_sizes())
    if (pool().range(to_kernel(size)).min < 1) return false;
  return true;
}

// The value of one element.
Lane Lowering::emit(ValueId id, const std::vector<Expr>& index) {
  MemoKey key = memo_key(id, index);
  if (const Lane* known = remembered(key)) return *known;
  Lane lane = emit_anew(id, index);
  memo_.back()[key] = lane;
  return lane;
}

Lane Lowering::emit_anew(ValueId id, const std::vector<Expr>& index) {
  const ValueState& state = schedule_.state(id);
  // Of what may be empty nothing is read where it is not asked, nor of what it looks into.
  struct Doubt {
    int& count;
    bool here;
    Doubt(int& doubtful, bool empty) : count(doubtful), here(empty) { count += here ? 1 : 0; }
    ~Doubt() { count -= here ? 1 : 0; }
  } doubt(doubtful_, !builder_.conditions().empty() && !never_empty(id));
  ValueId base = state.base;
  const ValueState& memory = schedule_.state(base);
  if (memory.memory != graph::kNoValue && !in_group(base) && schedule_.is_written_by(group_, memory.memory))
    throw Refused{
        fmt::format("%{} is there only once this kernel has ended", graph_.values[static_cast<size_t>(base)].name)};
  if (schedule_.is_input(base) || (memory.root && !in_group(base)))
    return builder_.load(buffer_of(base, loop::BufferRole::In), address(id, index),
                         !builder_.conditions().empty() && doubtful_ == 0);
  if (state.source != graph::kNoValue) return emit(state.source, source_index(id, index));
  if (in_group(id)) {
    if (std::vector<Expr> own = own_index(id); index != own) {
      // The survey compared them by dimension; by the axes that dimensions were merged to, equal ones may look unlike.
      if (!surveying) return emit(id, own);
      throw Refused{fmt::format("%{} is read at another position than where it is made",
                                graph_.values[static_cast<size_t>(id)].name)};
    }
    if (is_reduction(id)) {
      if (surveying) return builder_.constant(int64_t{0}, lane_dtype(id));
      auto found = reduced.find(id);
      if (found == reduced.end()) throw Refused{"a reduction is read before it ends"};
      return found->second;
    }
    if (auto kept = scratch.find(id); kept != scratch.end() && level(id) < stage)
      return builder_.load(kept->second, scratch_position);
    if (state.stored && level(id) < stage) {
      auto [buffer, position] = home(id, index);
      return builder_.load(buffer, position);
    }
  }
  return emit_body(id, index);
}

Lane Lowering::emit_body(ValueId id, const std::vector<Expr>& index) {
  MemoKey key = memo_key(id, index);
  if (const Lane* known = remembered(key)) return *known;
  const ValueState& state = schedule_.state(id);
  Lane lane = state.row->kind == ops::Kind::Pointwise   ? emit_pointwise(id, index)
              : state.row->kind == ops::Kind::Reduction ? loop::cast(emit(reduction_source(id), {}), dtype_of(id))
                                                        : emit_element(id, index);
  memo_.back()[key] = lane;
  return lane;
}

class Lowering::SourceIndex final : public ops::ViewIndex {
 public:
  SourceIndex(Lowering& emitter, const ops::Arguments& arguments) : emitter_(emitter), arguments_(arguments) {}
  const ops::Arguments& arguments() const override { return arguments_; }
  Expr integer(const SymInt& number) override { return emitter_.to_kernel(number); }

 private:
  Lowering& emitter_;
  const ops::Arguments& arguments_;
};

std::vector<Expr> Lowering::source_index(ValueId id, const std::vector<Expr>& index) {
  const ValueState& state = schedule_.state(id);
  if (needs_memory(schedule_, id))
    throw Refused{fmt::format("%{} shows memory that is not written yet", graph_.values[static_cast<size_t>(id)].name)};
  dispatch::Values values = node_values(graph_, *state.node);
  ops::Arguments arguments(*state.node->op, values);
  SourceIndex source(*this, arguments);
  source.index = index;
  return state.row->view.index(source);
}

// An input's coordinates under broadcasting: aligned at the right, 0 where its size is 1.
std::vector<Expr> Lowering::broadcast_index(ValueId input, const std::vector<Expr>& index) {
  std::vector<Expr> sizes = size_exprs(graph_, input), result;
  size_t lead = index.size() - sizes.size();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    result.push_back(sizes[dim].is_constant(1) ? pool().constant(0) : index[lead + dim]);
  return result;
}

Lane Lowering::emit_pointwise(ValueId id, const std::vector<Expr>& index) {
  const ValueState& state = schedule_.state(id);
  const Node& node = *state.node;
  dispatch::Values values = node_values(graph_, node);
  ops::Arguments arguments(*node.op, values);
  ops::Dtypes dtypes = ops::pointwise_dtypes(*state.row, arguments);
  Dtype compute = compute_dtype(dtypes.compute);
  bool logical = state.row->pointwise.promotion == ops::Promotion::Logical;
  // Arithmetic on bools is done on bytes; any non-zero result is true.
  if (compute == kBool && !logical) compute = kUInt8;
  // Through bool, not straight to bytes: 256 and 0.5 are true.
  auto converted = [&](Lane lane, Dtype wanted) {
    return loop::cast(dtypes.compute == kBool && wanted == kUInt8 ? loop::cast(lane, kBool) : lane, wanted);
  };
  bool rounds = state.row->pointwise.rounds_operands && compute != dtypes.compute && is_floating(dtypes.compute);
  auto rounded = [&](Lane lane) { return rounds ? loop::cast(lane, dtypes.compute) : lane; };
  std::vector<Lane> lanes;
  for (size_t at = 0; at < node.args.size(); ++at) {
    const schema::Argument& argument = state.row->schema.arguments[at];
    if (!ops::is_lane(argument)) continue;
    bool condition = state.row->pointwise.promotion == ops::Promotion::Branch && lanes.empty();
    Dtype wanted = condition ? kBool : compute;
    if (values[at].is_none())
      lanes.emplace_back();
    else if (!values[at].is_tensor())
      lanes.push_back(
          loop::cast(rounded(number_lane(node, at, values[at], condition ? kBool : dtypes.compute)), wanted));
    else if (state.row->ignores(argument.name))
      lanes.push_back(builder_.constant(int64_t{0}, wanted));
    else {
      auto input = std::get<ValueId>(node.args[at]);
      lanes.push_back(converted(rounded(emit(input, broadcast_index(input, index))), wanted));
    }
  }
  return loop::cast(state.row->pointwise.body(lanes, dtypes.compute), dtype_of(id));
}

class Lowering::ElementContext final : public ops::Element {
 public:
  ElementContext(Lowering& emitter, ValueId id, const std::vector<Expr>& index)
      : emitter_(emitter),
        node_(*emitter.schedule_.state(id).node),
        id_(id),
        index_(index),
        values_(node_values(emitter.graph_, node_)),
        arguments_(*node_.op, values_) {}

  loop::Builder& builder() override { return emitter_.builder_; }
  const ops::Arguments& arguments() const override { return arguments_; }
  Expr index(size_t dim) override { return index_[dim]; }
  Expr linear_index() override {
    Expr position = emitter_.pool().constant(0);
    SymInts sizes = emitter_.graph_.meta(id_).sym_sizes();
    for (size_t dim = 0; dim < sizes.size(); ++dim) position = position * integer(sizes[dim]) + index_[dim];
    return position;
  }
  Expr integer(const SymInt& number) override { return emitter_.to_kernel(number); }
  Lane load(const Tensor& input, std::span<const Expr> index) override {
    ValueId id = graph::kNoValue;
    graph::each_reference(node_, [&](ValueId each) {
      if (emitter_.graph_.meta(each).is(input)) id = each;
    });
    TENON_ASSERT(id != graph::kNoValue, "{} reads a tensor that is not its argument", node_.op->name());
    return emitter_.emit(id, {index.begin(), index.end()});
  }
  Lane scalar(std::string_view argument, Dtype dtype) override {
    auto at = static_cast<size_t>(node_.op->schema().argument_index(argument));
    return emitter_.number_lane(node_, at, values_[at], dtype);
  }
  Lane random_bits(Expr word) override {
    auto [seed, offset] = emitter_.random_parameters(node_);
    return emitter_.builder_.random_bits(seed, offset, word);
  }
  Dtype dtype() const override {
    Dtype dtype = compute_dtype(emitter_.graph_.meta(id_).dtype());
    return dtype;
  }

 private:
  Lowering& emitter_;
  const Node& node_;
  ValueId id_;
  const std::vector<Expr>& index_;
  dispatch::Values values_;
  ops::Arguments arguments_;
};

Lane Lowering::emit_element(ValueId id, const std::vector<Expr>& index) {
  ElementContext context(*this, id, index);
  return loop::cast(schedule_.state(id).row->element.body(context), dtype_of(id));
}

std::pair<Lane, Lane> Lowering::random_parameters(const Node& node) {
  auto [found, added] = random_.try_emplace(&node, std::pair<int, int>{-1, -1});
  if (added) {
    int use = static_cast<int>(random_nodes_.size());
    random_nodes_.push_back(&node);
    found->second = {builder_.scalar(fmt::format("seed{}", use), kInt64),
                     builder_.scalar(fmt::format("offset{}", use), kInt64)};
    scalars_.push_back({runtime::ScalarSource::Kind::Seed, 0, use});
    scalars_.push_back({runtime::ScalarSource::Kind::Offset, 0, use});
  }
  return {builder_.parameter(found->second.first), builder_.parameter(found->second.second)};
}

// ---- Loops

Expr Lowering::open(Expr extent, loop::LoopFlags flags) {
  memo_.emplace_back();
  ++open_loops_;
  return builder_.begin_loop(extent, flags);
}
void Lowering::close() {
  builder_.end_loop();
  --open_loops_;
  memo_.pop_back();
}

// Computes in the current scope whatever `id` at `index` needs that does not vary with the loops still to be opened.
void Lowering::hoist(ValueId id, const std::vector<Expr>& index, const std::set<int32_t>& pending,
                     std::set<MemoKey>& seen) {
  if (!seen.insert(memo_key(id, index)).second) return;
  bool varies = false;
  for (const Expr& each : index)
    for (int32_t symbol : sym::symbols_of(each)) varies |= pending.contains(symbol);
  const ValueState& state = schedule_.state(id);
  if (!varies && !(in_group(id) && is_reduction(id) && !reduced.contains(id))) {
    if (level(id) <= stage || !in_group(id)) emit(id, index);
    return;
  }
  if (schedule_.is_input(state.base) || (schedule_.state(state.base).root && !in_group(state.base))) return;
  if (state.source != graph::kNoValue) {
    hoist(state.source, source_index(id, index), pending, seen);
  } else if (state.row->kind == ops::Kind::Pointwise) {
    if (in_group(id) && (state.stored || scratch.contains(id)) && level(id) < stage) return;
    for (size_t at = 0; at < state.node->args.size(); ++at)
      if (const auto* input = std::get_if<ValueId>(&state.node->args[at]))
        if (*input != graph::kNoValue && !state.row->ignores(state.row->schema.arguments[at].name))
          hoist(*input, broadcast_index(*input, index), pending, seen);
  }
}

void Lowering::hoist_before(std::span<const size_t> dims, const std::vector<ValueId>& targets) {
  // Stand-ins for the coordinates of the loops to come.
  std::vector<Expr> before = coordinates;
  std::set<int32_t> pending;
  for (size_t dim : dims) {
    Expr stand_in = pool().symbol(fmt::format("pending{}", stand_ins_++));
    coordinates[dim] = stand_in;
    pending.insert(stand_in.symbol_id());
  }
  std::set<MemoKey> seen;
  for (ValueId target : targets) {
    if (is_reduction(target))
      hoist(reduction_source(target), coordinates, pending, seen);
    else
      hoist(target, own_index(target), pending, seen);
  }
  coordinates = before;
}

int Lowering::extra_buffer(std::string name, Dtype dtype, loop::BufferRole role, Expr extent, ValueId stands_for) {
  int made = builder_.buffer(std::move(name), dtype, role, extent);
  buffer_values_.push_back(stands_for);
  return made;
}

namespace {

void renumber(loop::Block& block, const std::vector<int32_t>& place) {
  for (loop::Statement& statement : block) {
    if (auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement))
      renumber((*inner)->body, place);
    else if (auto& op = std::get<loop::Op>(statement); op.buffer >= 0)
      op.buffer = place[static_cast<size_t>(op.buffer)];
  }
}

}  // namespace

// Scratch comes last among the buffers; the launcher makes it, so it stands for no value.
void Lowering::put_scratch_last() {
  loop::Kernel& kernel = builder_.kernel();
  std::vector<loop::Buffer> buffers;
  std::vector<ValueId> values;
  std::vector<int32_t> place(kernel.buffers.size());
  for (bool last : {false, true})
    for (size_t at = 0; at < kernel.buffers.size(); ++at) {
      if ((kernel.buffers[at].role == loop::BufferRole::Scratch) != last) continue;
      place[at] = static_cast<int32_t>(buffers.size());
      buffers.push_back(kernel.buffers[at]);
      if (!last) values.push_back(buffer_values_[at]);
    }
  kernel.buffers = std::move(buffers);
  buffer_values_ = std::move(values);
  renumber(kernel.body, place);
}

EmittedKernel Lowering::finish() {
  while (open_loops_ > 0) close();
  if (!scratch.empty()) put_scratch_last();
  EmittedKernel emitted;
  emitted.kernel = builder_.finish();
  emitted.buffers = std::move(buffer_values_);
  emitted.integers = std::move(integers_);
  emitted.scalars = std::move(scalars_);
  emitted.scalar_exprs = std::move(scalar_exprs_);
  emitted.numbers = std::move(numbers_);
  emitted.random_nodes = std::move(random_nodes_);
  return emitted;
}

}  // namespace tenon::schedule
