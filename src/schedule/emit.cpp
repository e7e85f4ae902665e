// The loops of a group.
//
// The emitter runs twice. First over the plain iteration space, one loop per dimension, to see every access: that tells
// whether the group can be emitted at all, which dimension is best innermost, and which dimensions lie densely in every
// access and become one loop. Then for real: kept dimensions outside, and inside them one loop nest per stage, where a
// stage computes the reductions (and stores the values) that need nothing but the reductions of earlier stages.
#include "fusion.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::schedule {
namespace {

using loop::Lane;

struct Refused {
  std::string why;
};

// A run of dimensions that one loop covers.
struct Axis {
  std::vector<size_t> dims;
  bool reduced = false;
};

// The loops of a kernel: kept axes, then reduced ones, each from the outside in.
struct Axes {
  std::vector<Axis> kept, reduced;
  bool vector_reduced = false;  // the innermost reduced axis is the vector one, else the innermost kept axis
};

struct Access {
  Expr index;
  bool store;
};

void collect_accesses(const loop::Block& block, std::vector<Access>& accesses) {
  for (const loop::Statement& statement : block) {
    if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement)) {
      collect_accesses((*inner)->body, accesses);
    } else {
      const loop::Op& op = std::get<loop::Op>(statement);
      if (op.code == loop::OpCode::Load) accesses.push_back({op.index, false});
      if (op.code == loop::OpCode::Store) accesses.push_back({op.index, true});
    }
  }
}

class Emitter final {
 public:
  Emitter(const Schedule& schedule, const Group& group, std::string name)
      : schedule_(schedule), graph_(schedule.graph), group_(group), builder_(std::move(name)) {
    memo_.emplace_back();
  }

  // Every access over the plain iteration space.
  std::vector<Access> survey() {
    flat_ = true;
    for (size_t dim = 0; dim < group_.domain.size(); ++dim)
      coordinates_.push_back(open(to_kernel(group_.domain[dim]), {}));
    survey_axes_ = coordinates_;
    for (ValueId root : group_.roots) {
      if (is_reduction(root))
        emit(reduction_source(root), coordinates_);
      else
        store(root, emit_body(root, own_index(root)));
      if (is_reduction(root) && schedule_.state(root).stored)
        store(root, builder_.constant(int64_t{0}, lane_dtype(root)));
    }
    std::vector<Access> accesses;
    // The loops are still open: their blocks hang in the builder's scopes until they end.
    while (open_loops_ > 0) close();
    collect_accesses(builder_.kernel().body, accesses);
    return accesses;
  }

  Axes choose_axes(const std::vector<Access>& accesses);
  // Parameters are declared before any loop is opened, in the order in which the survey met them.
  const std::vector<Expr>& integers() const { return integers_; }
  void declare(std::span<const Expr> symbols) {
    for (Expr symbol : symbols) to_kernel(symbol);
  }
  EmittedKernel run(const Axes& axes);

 private:
  // ---- Values
  // -------------------------------------------------------------------------------------------------------------

  bool is_reduction(ValueId id) const {
    const ValueState& state = schedule_.state(id);
    // Over no dimensions it is a conversion of one element.
    return state.row && state.row->kind == ops::Kind::Reduction && graph_.meta(reduction_source(id)).dim() > 0;
  }
  bool in_group(ValueId id) const {
    return std::find(group_.roots.begin(), group_.roots.end(), id) != group_.roots.end();
  }
  // Of bools: the largest is whether there is any, the smallest whether all are.
  loop::ReduceKind reduce_kind(ValueId id) const {
    loop::ReduceKind kind = schedule_.state(id).row->reduction.kind;
    if (lane_dtype(id) != kBool) return kind;
    return kind == loop::ReduceKind::Min || kind == loop::ReduceKind::Product || kind == loop::ReduceKind::All
               ? loop::ReduceKind::All
               : loop::ReduceKind::Any;
  }
  ValueId reduction_source(ValueId id) const { return std::get<ValueId>(schedule_.state(id).node->args[0]); }
  Dtype dtype_of(ValueId id) const { return graph_.meta(id).dtype(); }
  Dtype lane_dtype(ValueId id) const { return compute_dtype(dtype_of(id)); }

  // The coordinates at which a root of this group is made.
  std::vector<Expr> own_index(ValueId id) const {
    std::vector<Expr> sizes = size_exprs(graph_, id);
    if (!is_reduction(id) && sizes == group_.domain) return coordinates_;
    std::vector<Expr> index;
    bool keeps_rank = sizes.size() == group_.domain.size();
    for (size_t dim = 0; dim < group_.domain.size(); ++dim) {
      if (!group_.reduced[dim])
        index.push_back(coordinates_[dim]);
      else if (keeps_rank)
        index.push_back(builder_pool().constant(0));
    }
    return index;
  }
  bool over_full_domain(ValueId id) const {
    return !is_reduction(id) && (!group_.has_reduction() || size_exprs(graph_, id) == group_.domain);
  }

  // How many stages must have ended before a value can be computed.
  int level(ValueId id) {
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

  // ---- Numbers
  // ------------------------------------------------------------------------------------------------------------

  sym::ExprPool& builder_pool() const { return const_cast<loop::Builder&>(builder_).pool(); }

  Expr to_kernel(Expr expr) {
    expr = graph_.env->pool().simplify(expr);
    if (!sym::is_index_arithmetic(expr)) return rebuild(expr);
    for (int32_t id : sym::symbols_of(expr)) {
      if (symbols_.contains(id)) continue;
      Expr symbol = graph_.env->pool().symbol(id);
      symbols_[id] = builder_.integer(symbol.name(), graph_.env->pool().range(symbol));
      integers_.push_back(symbol);
    }
    return builder_pool().import(expr, symbols_);
  }
  // Parts that are more than index arithmetic (powers, roundings of reals) are computed before the launch and passed.
  Expr rebuild(Expr expr) {
    if (sym::is_index_arithmetic(expr)) return to_kernel(expr);
    std::span<const Expr> args = expr.args();
    auto fold = [&](auto&& combine) {
      Expr result = rebuild(args[0]);
      for (const Expr& arg : args.subspan(1)) result = combine(result, rebuild(arg));
      return result;
    };
    switch (expr.op()) {
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
  Expr to_kernel(const SymInt& number) { return to_kernel(to_expr(graph_, number)); }

  Lane number_lane(const Node& node, size_t at, const dispatch::Value& value, Dtype dtype) {
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

  // Integers of sizes are index arithmetic; reals and truths are computed before the launch.
  Lane symbolic_lane(const Scalar& scalar, Dtype dtype) {
    if (scalar.kind() == Scalar::Kind::Int) return loop::cast(builder_.index(to_kernel(scalar.integer())), dtype);
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
  // -------------------------------------------------------------------------------------------------------------

  // Elements that a tensor of these sizes and strides may address.
  Expr extent_of(const SymInts& sizes, const SymInts& strides) {
    Expr extent = builder_pool().constant(1), count = extent;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      extent = extent + (to_kernel(sizes[dim]) - 1) * to_kernel(strides[dim]);
      count = count * to_kernel(sizes[dim]);
    }
    if (extent == count) return extent;
    // With gaps, a size of 0 does not show in the sum.
    for (const SymInt& each : sizes)
      if (Expr size = to_kernel(each); builder_pool().range(size).min <= 0)
        extent = extent * min(size, builder_pool().constant(1));
    return extent;
  }

  int buffer_of(ValueId base, loop::BufferRole role) {
    auto found = buffers_.find(base);
    if (found == buffers_.end()) {
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

  Expr address(ValueId id, std::span<const Expr> index) {
    const Tensor& meta = graph_.meta(id);
    SymInts strides = meta.sym_strides();
    ValueId base = schedule_.state(id).base;
    Expr position = to_kernel(meta.sym_storage_offset() - graph_.meta(base).sym_storage_offset());
    for (size_t dim = 0; dim < index.size(); ++dim) position = position + index[dim] * to_kernel(strides[dim]);
    return position;
  }

  void store(ValueId id, Lane value) {
    if (!schedule_.state(id).stored) return;
    std::vector<Expr> index = own_index(id);
    builder_.store(buffer_of(id, loop::BufferRole::Out), address(id, index), value);
  }

  // ---- Expressions
  // --------------------------------------------------------------------------------------------------------

  // A value, where it is read, and the condition under which it was made (loop::kNone: any).
  struct MemoKey {
    ValueId id;
    std::vector<const sym::ExprNode*> index;
    loop::ValueId condition;
    auto operator<=>(const MemoKey&) const = default;
  };

  MemoKey memo_key(ValueId id, std::span<const Expr> index) const {
    std::span<const Lane> conditions = builder_.conditions();
    MemoKey key{id, {}, conditions.empty() ? loop::kNone : conditions.back().id()};
    for (const Expr& each : index) key.index.push_back(each.node());
    return key;
  }

  const Lane* remembered(MemoKey key) const {
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
  bool never_empty(ValueId id) {
    for (const SymInt& size : graph_.meta(id).sym_sizes())
      if (builder_pool().range(to_kernel(size)).min < 1) return false;
    return true;
  }

  // The value of one element.
  Lane emit(ValueId id, const std::vector<Expr>& index) {
    MemoKey key = memo_key(id, index);
    if (const Lane* known = remembered(key)) return *known;
    Lane lane = emit_anew(id, index);
    memo_.back()[key] = lane;
    return lane;
  }

  Lane emit_anew(ValueId id, const std::vector<Expr>& index) {
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
    if (schedule_.is_input(base) || (memory.root && !in_group(base)))
      return builder_.load(buffer_of(base, loop::BufferRole::In), address(id, index),
                           !builder_.conditions().empty() && doubtful_ == 0);
    if (state.source != graph::kNoValue) return emit(state.source, source_index(id, index));
    if (in_group(id)) {
      if (index != own_index(id))
        throw Refused{fmt::format("%{} is read at another position than where it is made",
                                  graph_.values[static_cast<size_t>(id)].name)};
      if (is_reduction(id)) {
        if (flat_) return builder_.constant(int64_t{0}, lane_dtype(id));
        auto found = reduced_.find(id);
        if (found == reduced_.end()) throw Refused{"a reduction is read before it ends"};
        return found->second;
      }
      if (!flat_ && state.stored && level(id) < stage_)
        return builder_.load(buffer_of(id, loop::BufferRole::Out), address(id, index));
    }
    return emit_body(id, index);
  }

  Lane emit_body(ValueId id, const std::vector<Expr>& index) {
    MemoKey key = memo_key(id, index);
    if (const Lane* known = remembered(key)) return *known;
    const ValueState& state = schedule_.state(id);
    Lane lane = state.row->kind == ops::Kind::Pointwise   ? emit_pointwise(id, index)
                : state.row->kind == ops::Kind::Reduction ? loop::cast(emit(reduction_source(id), {}), dtype_of(id))
                                                          : emit_element(id, index);
    memo_.back()[key] = lane;
    return lane;
  }

  class SourceIndex final : public ops::ViewIndex {
   public:
    SourceIndex(Emitter& emitter, const ops::Arguments& arguments) : emitter_(emitter), arguments_(arguments) {}
    const ops::Arguments& arguments() const override { return arguments_; }
    Expr integer(const SymInt& number) override { return emitter_.to_kernel(number); }

   private:
    Emitter& emitter_;
    const ops::Arguments& arguments_;
  };

  std::vector<Expr> source_index(ValueId id, const std::vector<Expr>& index) {
    const ValueState& state = schedule_.state(id);
    if (needs_memory(schedule_, id))
      throw Refused{
          fmt::format("%{} shows memory that is not written yet", graph_.values[static_cast<size_t>(id)].name)};
    dispatch::Values values = node_values(graph_, *state.node);
    ops::Arguments arguments(*state.node->op, values);
    SourceIndex source(*this, arguments);
    source.index = index;
    return state.row->view.index(source);
  }

  // An input's coordinates under broadcasting: aligned at the right, 0 where its size is 1.
  std::vector<Expr> broadcast_index(ValueId input, const std::vector<Expr>& index) {
    std::vector<Expr> sizes = size_exprs(graph_, input), result;
    size_t lead = index.size() - sizes.size();
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      result.push_back(sizes[dim].is_constant(1) ? builder_pool().constant(0) : index[lead + dim]);
    return result;
  }

  Lane emit_pointwise(ValueId id, const std::vector<Expr>& index) {
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
    std::vector<Lane> lanes;
    for (size_t at = 0; at < node.args.size(); ++at) {
      const schema::Argument& argument = state.row->schema.arguments[at];
      if (!ops::is_lane(argument)) continue;
      bool condition = state.row->pointwise.promotion == ops::Promotion::Branch && lanes.empty();
      Dtype wanted = condition ? kBool : compute;
      if (values[at].is_none())
        lanes.emplace_back();
      else if (!values[at].is_tensor())
        lanes.push_back(loop::cast(number_lane(node, at, values[at], condition ? kBool : dtypes.compute), wanted));
      else if (state.row->ignores(argument.name))
        lanes.push_back(builder_.constant(int64_t{0}, wanted));
      else {
        auto input = std::get<ValueId>(node.args[at]);
        lanes.push_back(converted(emit(input, broadcast_index(input, index)), wanted));
      }
    }
    return loop::cast(state.row->pointwise.body(lanes), dtype_of(id));
  }

  class ElementContext final : public ops::Element {
   public:
    ElementContext(Emitter& emitter, ValueId id, const std::vector<Expr>& index)
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
      Expr position = emitter_.builder_pool().constant(0);
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
    Emitter& emitter_;
    const Node& node_;
    ValueId id_;
    const std::vector<Expr>& index_;
    dispatch::Values values_;
    ops::Arguments arguments_;
  };

  Lane emit_element(ValueId id, const std::vector<Expr>& index) {
    ElementContext context(*this, id, index);
    return loop::cast(schedule_.state(id).row->element.body(context), dtype_of(id));
  }

  std::pair<Lane, Lane> random_parameters(const Node& node) {
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
  // --------------------------------------------------------------------------------------------------------------

  Expr open(Expr extent, loop::LoopFlags flags) {
    memo_.emplace_back();
    ++open_loops_;
    return builder_.begin_loop(extent, flags);
  }
  void close() {
    builder_.end_loop();
    --open_loops_;
    memo_.pop_back();
  }

  Expr extent_of(const Axis& axis) {
    Expr extent = builder_pool().constant(1);
    for (size_t dim : axis.dims) extent = extent * to_kernel(group_.domain[dim]);
    return extent;
  }

  void set_coordinates(const Axis& axis, Expr index) {
    for (size_t at = axis.dims.size(); at-- > 0;) {
      Expr size = to_kernel(group_.domain[axis.dims[at]]);
      coordinates_[axis.dims[at]] = at == 0 ? index : mod(index, size);
      index = floor_div(index, size);
    }
  }

  // Computes in the current scope whatever `id` at `index` needs that does not vary with the loops still to be opened.
  void hoist(ValueId id, const std::vector<Expr>& index, const std::set<int32_t>& pending, std::set<MemoKey>& seen) {
    if (!seen.insert(memo_key(id, index)).second) return;
    bool varies = false;
    for (const Expr& each : index)
      for (int32_t symbol : sym::symbols_of(each)) varies |= pending.contains(symbol);
    const ValueState& state = schedule_.state(id);
    if (!varies && !(in_group(id) && is_reduction(id) && !reduced_.contains(id))) {
      if (level(id) <= stage_ || !in_group(id)) emit(id, index);
      return;
    }
    if (schedule_.is_input(state.base) || (schedule_.state(state.base).root && !in_group(state.base))) return;
    if (state.source != graph::kNoValue) {
      hoist(state.source, source_index(id, index), pending, seen);
    } else if (state.row->kind == ops::Kind::Pointwise) {
      if (in_group(id) && state.stored && level(id) < stage_) return;
      for (size_t at = 0; at < state.node->args.size(); ++at)
        if (const auto* input = std::get_if<ValueId>(&state.node->args[at]))
          if (*input != graph::kNoValue && !state.row->ignores(state.row->schema.arguments[at].name))
            hoist(*input, broadcast_index(*input, index), pending, seen);
    }
  }

  void emit_stage(int stage, const Axes& axes);
  void emit_kept_roots(int stage);
  void hoist_before(const Axis& axis, const std::vector<ValueId>& targets);

  const Schedule& schedule_;
  const Graph& graph_;
  const Group& group_;
  loop::Builder builder_;
  bool flat_ = false;
  int stage_ = 0;
  int open_loops_ = 0;
  int stand_ins_ = 0;
  int doubtful_ = 0;  // values that may be empty, of those being emitted under a condition
  std::vector<Expr> coordinates_, survey_axes_;
  std::vector<std::map<MemoKey, Lane>> memo_;  // by scope
  std::map<ValueId, int> levels_;
  std::map<ValueId, Lane> reduced_;            // results of ended reductions
  std::unordered_map<int32_t, Expr> symbols_;  // the graph's symbols to the kernel's
  std::vector<Expr> integers_;                 // what is passed: symbols, and expressions computed before the launch
  std::unordered_map<Expr, Expr> computed_;    // the latter, by what they are in the graph
  std::unordered_map<Expr, int> scalar_parameters_;
  std::vector<Expr> scalar_exprs_;
  std::map<ValueId, int> buffers_;
  std::vector<ValueId> buffer_values_;
  std::map<std::pair<const Node*, size_t>, int> number_parameters_;
  std::map<const Node*, std::pair<int, int>> random_;
  std::vector<const Node*> random_nodes_;
  std::vector<runtime::ScalarSource> scalars_;
};

Axes Emitter::choose_axes(const std::vector<Access>& accesses) {
  sym::ExprPool& pool = builder_pool();
  size_t rank = group_.domain.size();
  // coefficient[access][dim]; undefined where the access is not linear in the dimension.
  std::vector<std::vector<Expr>> coefficients;
  for (const Access& access : accesses) {
    std::vector<Expr>& row = coefficients.emplace_back();
    for (size_t dim = 0; dim < rank; ++dim) {
      Expr axis = survey_axes_[dim];
      Expr next = pool.substitute(access.index, {{axis.symbol_id(), axis + 1}});
      Expr step = next - access.index;
      bool linear = true;
      for (int32_t symbol : sym::symbols_of(step))
        for (const Expr& other : survey_axes_) linear &= symbol != other.symbol_id();
      row.push_back(linear ? step : Expr());
    }
  }
  std::vector<size_t> kept, reduced;
  std::vector<int> score(rank);
  std::optional<size_t> innermost;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (group_.domain[dim].is_constant(1)) continue;
    (group_.reduced[dim] ? reduced : kept).push_back(dim);
    for (size_t at = 0; at < accesses.size(); ++at)
      if (coefficients[at][dim].defined() && coefficients[at][dim].is_constant(1))
        score[dim] += accesses[at].store ? 2 : 1;
    if (!innermost || score[dim] >= score[*innermost]) innermost = dim;
  }
  auto move_last = [&](std::vector<size_t>& dims) {
    auto found = innermost ? std::find(dims.begin(), dims.end(), *innermost) : dims.end();
    if (found != dims.end()) std::rotate(found, found + 1, dims.end());
  };
  move_last(kept);
  move_last(reduced);
  auto mergeable = [&](size_t outer, size_t inner) {
    for (size_t at = 0; at < accesses.size(); ++at) {
      const Expr &a = coefficients[at][outer], &b = coefficients[at][inner];
      if (!a.defined() || !b.defined() || a != b * to_kernel(group_.domain[inner])) return false;
    }
    return true;
  };
  Axes axes;
  for (bool is_reduced : {false, true}) {
    std::vector<Axis>& list = is_reduced ? axes.reduced : axes.kept;
    for (size_t dim : is_reduced ? reduced : kept) {
      if (!list.empty() && mergeable(list.back().dims.back(), dim))
        list.back().dims.push_back(dim);
      else
        list.push_back({{dim}, is_reduced});
    }
  }
  axes.vector_reduced = axes.kept.empty() || (innermost && group_.reduced[*innermost]);
  return axes;
}

// Before a loop is opened: what `targets` need that does not vary with it.
void Emitter::hoist_before(const Axis& axis, const std::vector<ValueId>& targets) {
  // Stand-ins for the coordinates of the loop to come.
  std::vector<Expr> before = coordinates_;
  std::set<int32_t> pending;
  for (size_t dim : axis.dims) {
    Expr stand_in = builder_pool().symbol(fmt::format("pending{}", stand_ins_++));
    coordinates_[dim] = stand_in;
    pending.insert(stand_in.symbol_id());
  }
  std::set<MemoKey> seen;
  for (ValueId target : targets) {
    if (is_reduction(target))
      hoist(reduction_source(target), coordinates_, pending, seen);
    else
      hoist(target, own_index(target), pending, seen);
  }
  coordinates_ = before;
}

// Values over the kept dimensions that the ended stages determine.
void Emitter::emit_kept_roots(int stage) {
  for (ValueId root : group_.roots) {
    if (over_full_domain(root) || is_reduction(root) || level(root) != stage) continue;
    store(root, emit_body(root, own_index(root)));
  }
}

void Emitter::emit_stage(int stage, const Axes& axes) {
  stage_ = stage;
  emit_kept_roots(stage);
  std::vector<ValueId> reductions, stores;
  for (ValueId root : group_.roots) {
    if (is_reduction(root) && level(root) == stage) reductions.push_back(root);
    if (over_full_domain(root) && schedule_.state(root).stored && level(root) == stage) stores.push_back(root);
  }
  if (reductions.empty() && stores.empty()) return;
  std::vector<ValueId> targets = stores;
  targets.insert(targets.end(), reductions.begin(), reductions.end());
  std::vector<Expr> outside = coordinates_;
  for (size_t at = 0; at < axes.reduced.size(); ++at) {
    const Axis& axis = axes.reduced[at];
    bool last = at + 1 == axes.reduced.size();
    if (last) hoist_before(axis, targets);
    set_coordinates(axis,
                    open(extent_of(axis), {.vector = last && axes.vector_reduced, .reduction = !reductions.empty()}));
  }
  std::vector<Lane> partial;
  for (ValueId root : reductions) {
    Dtype dtype = lane_dtype(root);
    Lane value = loop::cast(emit(reduction_source(root), coordinates_), dtype);
    partial.push_back(axes.reduced.empty() ? value : builder_.reduce(reduce_kind(root), value));
  }
  for (ValueId root : stores) store(root, emit(root, own_index(root)));
  for (size_t at = axes.reduced.size(); at-- > 0;) {
    close();
    if (at > 0)
      for (size_t each = 0; each < reductions.size(); ++each)
        partial[each] = builder_.reduce(reduce_kind(reductions[each]), partial[each]);
  }
  coordinates_ = outside;
  for (size_t each = 0; each < reductions.size(); ++each) {
    ValueId root = reductions[each];
    // Halves are summed in float32 and rounded once.
    reduced_[root] = loop::cast(partial[each], dtype_of(root));
    store(root, reduced_[root]);
  }
}

EmittedKernel Emitter::run(const Axes& axes) {
  coordinates_.assign(group_.domain.size(), builder_pool().constant(0));
  for (size_t at = 0; at < axes.kept.size(); ++at) {
    const Axis& axis = axes.kept[at];
    bool last = at + 1 == axes.kept.size();
    if (last && at > 0 && !group_.has_reduction()) hoist_before(axis, group_.roots);
    set_coordinates(axis, open(extent_of(axis), {.parallel = at == 0, .vector = last && !axes.vector_reduced}));
  }
  // The sum of a 0-d tensor reduces nothing, but is a stage all the same.
  bool staged = group_.has_reduction() ||
                std::any_of(group_.roots.begin(), group_.roots.end(), [&](ValueId root) { return is_reduction(root); });
  if (!staged) {
    for (ValueId root : group_.roots) store(root, emit(root, own_index(root)));
  } else {
    int last_stage = 0;
    for (ValueId root : group_.roots) last_stage = std::max(last_stage, level(root));
    for (int stage = 0; stage <= last_stage; ++stage) emit_stage(stage, axes);
    stage_ = last_stage + 1;
  }
  while (open_loops_ > 0) close();
  EmittedKernel emitted;
  emitted.kernel = builder_.finish();
  emitted.buffers = std::move(buffer_values_);
  emitted.integers = std::move(integers_);
  emitted.scalars = std::move(scalars_);
  emitted.scalar_exprs = std::move(scalar_exprs_);
  emitted.random_nodes = std::move(random_nodes_);
  return emitted;
}

}  // namespace

Decision can_emit(const Schedule& schedule, const Group& group) {
  try {
    Emitter(schedule, group, "survey").survey();
    return Decision::allow();
  } catch (const Refused& refused) {
    return Decision::forbid("{}", refused.why);
  }
}

EmittedKernel emit(const Schedule& schedule, const Group& group, const std::string& name) {
  try {
    Emitter surveyor(schedule, group, "survey");
    std::vector<Access> accesses = surveyor.survey();
    Axes axes = surveyor.choose_axes(accesses);
    Emitter emitter(schedule, group, name);
    emitter.declare(surveyor.integers());
    return emitter.run(axes);
  } catch (const Refused& refused) {
    support::internal("a chosen group can be emitted", __FILE__, __LINE__, "{}", refused.why);
  }
}

}  // namespace tenon::schedule
