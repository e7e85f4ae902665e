// The loops of a group: its nest, run as a loop schedule says. Nothing is decided here.
//
// Kept pieces are loops outside, and inside them stands one loop nest per stage, where a stage computes the reductions
// (and stores the values) that need nothing but the reductions of earlier stages.
#include "emit.h"

#include "lowering.h"

#include <algorithm>
#include <utility>

namespace tenon::schedule {
namespace {

using loop::Lane;

Expr ceil_div(Expr a, int64_t b) { return floor_div(a + (b - 1), a.pool().constant(b)); }

// Where a loop over an axis stands: the elements [base, base + left) are still to be walked.
struct Reach {
  Expr base, left;
};

class LoopEmitter {
 public:
  LoopEmitter(const Schedule& schedule, const Group& group, const Nest& nest, const LoopSchedule& loops,
              std::string name, std::span<const ValueId> over_what_is_read)
      : low_(schedule, group, std::move(name)),
        group_(group),
        nest_(nest),
        loops_(loops),
        over_what_is_read_(over_what_is_read),
        split_(loops.split_axis(nest)) {
    low_.declare(nest.integers);
    low_.coordinates.assign(group.domain.size(), pool().constant(0));
    for (const NestAxis& axis : nest.axes) {
      Expr extent = pool().constant(1);
      for (size_t dim : axis.dims) extent = extent * low_.to_kernel(group.domain[dim]);
      extents_.push_back(extent);
      reach_.push_back({pool().constant(0), extent});
    }
    Expr row = pool().constant(1);
    for (size_t at = nest.kept_count(); at < extents_.size(); ++at) row = row * extents_[at];
    for (ValueId id : loops.scratch)
      low_.scratch[id] = low_.extra_buffer(fmt::format("row{}", low_.scratch.size()), low_.lane_dtype(id),
                                           loop::BufferRole::Scratch, row, id);
  }

  // All of it; of a split sum the first kernel, which leaves what every piece comes to.
  EmittedKernel run() {
    open_kept_loops();
    if (!is_staged()) {
      write_out(0, [&] {
        for (ValueId root : group_.roots) store(root, low_.emit(root, low_.own_index(root)));
        store_waiting();
      });
    } else {
      for (int stage = 0, last = low_.last_level(); stage <= last; ++stage) {
        emit_stage(stage);
        store_waiting();
      }
    }
    return finish();
  }

  // The second kernel of a split sum: adds up what the pieces came to.
  EmittedKernel run_finish() {
    for (size_t at = 0; at < nest_.kept_count(); ++at) {
      const bool last = at + 1 == nest_.kept_count();
      walk(static_cast<int>(at), low_.open(extents_[at], {.parallel = at == 0, .vector = last}), 1);
    }
    std::vector<ValueId> reductions = reductions_of(0);
    for (size_t at = 0; at < reductions.size(); ++at) {
      ValueId root = reductions[at];
      int buffer = partial_buffer(at, root, loop::BufferRole::In);
      Expr piece = low_.open(pieces_of_split(), {.reduction = true, .pairwise = true});
      Lane value = low_.builder().load(buffer, piece * kept_total() + kept_position());
      Lane sum = low_.builder().reduce(low_.reduce_kind(root), value);
      low_.close();
      finish_reduction(root, sum);
    }
    for (int stage = 0, last = low_.last_level(); stage <= last; ++stage) {
      low_.stage = stage;
      emit_kept_roots(stage);
      store_waiting();
    }
    return finish();
  }

 private:
  sym::ExprPool& pool() const { return low_.pool(); }
  const NestAxis& axis(int at) const { return nest_.axes[static_cast<size_t>(at)]; }
  Reach& reach(int at) { return reach_[static_cast<size_t>(at)]; }

  EmittedKernel finish() {
    EmittedKernel emitted = low_.finish();
    for (size_t at = 0; at < emitted.buffers.size(); ++at)
      emitted.kernel.buffers[at].streaming =
          std::find(loops_.streaming.begin(), loops_.streaming.end(), emitted.buffers[at]) != loops_.streaming.end();
    return emitted;
  }

  // ---- Loops over axes

  // One step of a loop over the axis covers `step` elements.
  void walk(int at, Expr index, int64_t step) {
    Reach& now = reach(at);
    now.base = now.base + index * step;
    if (step == 1) {
      now.left = pool().constant(1);
    } else {
      const bool divides = now.left.is_constant() && now.left.constant() % step == 0;
      now.left = divides ? pool().constant(step) : min(pool().constant(step), now.left - index * step);
    }
    set_coordinates(at);
  }
  Expr trips(int at, int64_t step) { return step == 1 ? reach(at).left : ceil_div(reach(at).left, step); }

  void set_coordinates(int at) {
    Expr index = reach(at).base;
    const std::vector<size_t>& dims = axis(at).dims;
    for (size_t i = dims.size(); i-- > 0;) {
      Expr size = low_.to_kernel(group_.domain[dims[i]]);
      low_.coordinates[dims[i]] = i == 0 ? index : mod(index, size);
      index = floor_div(index, size);
    }
  }

  // What one iteration of a piece covers: the tile that comes next, or one element.
  int64_t step_of(size_t at) const {
    for (size_t inner = at + 1; inner < loops_.pieces.size(); ++inner)
      if (loops_.pieces[inner].axis == loops_.pieces[at].axis) return loops_.pieces[inner].factor;
    return 1;
  }

  void open_kept_loops() {
    size_t at = open_parallel_loop();
    bool lanes = at > 0 && loops_.pieces[at - 1].vector();
    for (; at < loops_.pieces.size(); ++at) {
      const Piece& piece = loops_.pieces[at];
      if (axis(piece.axis).reduced) continue;
      lanes |= piece.vector();
      if (piece.role == Role::Unroll && !lanes) {
        written_out_.push_back({piece.axis, piece.factor});
        continue;
      }
      const bool last = is_last_kept(at);
      if (last && low_.open_loops() > 0 && !group_.has_reduction() && written_out_.empty() && step_of(at) == 1)
        low_.hoist_before(axis(piece.axis).dims, group_.roots);
      const int64_t step = step_of(at);
      walk(piece.axis, low_.open(trips(piece.axis, step), {.vector = piece.vector()}), step);
    }
  }
  bool is_last_kept(size_t at) const {
    for (size_t inner = at + 1; inner < loops_.pieces.size(); ++inner)
      if (!axis(loops_.pieces[inner].axis).reduced) return false;
    return true;
  }

  // The parallel pieces as one loop; gives the position of the first piece after them.
  size_t open_parallel_loop() {
    size_t count = 0;
    while (count < loops_.pieces.size() && loops_.pieces[count].parallel()) ++count;
    if (count == 0) return 0;
    std::vector<Expr> each;
    Expr total = pool().constant(1);
    for (size_t at = 0; at < count; ++at) {
      each.push_back(trips(loops_.pieces[at].axis, step_of(at)));
      total = total * each.back();
    }
    Expr index = low_.open(total, {.parallel = true, .vector = loops_.pieces[0].vector()});
    std::vector<Expr> own(count);
    for (size_t at = count; at-- > 0;) {
      own[at] = at == 0 ? index : mod(index, each[at]);
      index = floor_div(index, each[at]);
    }
    for (size_t at = 0; at < count; ++at) {
      const int over = loops_.pieces[at].axis;
      if (over == split_) piece_ = own[at];
      walk(over, own[at], step_of(at));
    }
    return count;
  }

  // The body once for every copy of the rows that are taken together.
  template <typename Body>
  void write_out(size_t level, Body body) {
    if (level == written_out_.size()) return body();
    auto [over, count] = written_out_[level];
    const Reach before = reach(over);
    for (int64_t copy = 0; copy < count; ++copy) {
      reach(over) = before;
      walk(over, pool().constant(copy), 1);
      write_out(level + 1, body);
    }
    reach(over) = before;
  }

  // ---- Stages

  bool is_staged() const {
    // The sum of a 0-d tensor reduces nothing, but is a stage all the same.
    return group_.has_reduction() ||
           std::any_of(group_.roots.begin(), group_.roots.end(), [&](ValueId root) { return low_.is_reduction(root); });
  }

  std::vector<ValueId> reductions_of(int stage) {
    std::vector<ValueId> found;
    for (ValueId root : group_.roots)
      if (low_.is_reduction(root) && low_.level(root) == stage) found.push_back(root);
    return found;
  }

  // Values over the kept dimensions that the ended stages determine.
  void emit_kept_roots(int stage) {
    for (ValueId root : group_.roots) {
      if (low_.over_full_domain(root) || low_.is_reduction(root) || low_.level(root) != stage) continue;
      store(root, low_.emit_body(root, low_.own_index(root)));
    }
  }

  // What goes where something else is read is stored when nothing of the scope reads it any more.
  void store(ValueId root, Lane value) {
    const bool over = std::find(over_what_is_read_.begin(), over_what_is_read_.end(), root) != over_what_is_read_.end();
    if (over || low_.schedule().place_of(root))
      waiting_.emplace_back(root, value);
    else
      low_.store(root, value);
  }
  void store_waiting() {
    for (auto& [root, value] : waiting_) low_.store(root, value);
    waiting_.clear();
  }

  void finish_reduction(ValueId root, Lane value) {
    // Halves are summed in float32 and rounded once.
    low_.reduced[root] = loop::cast(value, low_.dtype_of(root));
    low_.store(root, low_.reduced[root]);
  }

  bool is_ordered(const std::vector<ValueId>& reductions) const {
    return std::any_of(reductions.begin(), reductions.end(), [&](ValueId root) {
      loop::ReduceKind kind = low_.reduce_kind(root);
      return is_floating(low_.lane_dtype(root)) && (kind == loop::ReduceKind::Sum || kind == loop::ReduceKind::Product);
    });
  }

  // Opens the loops over a reduced axis; gives how many.
  int open_reduced(const Piece& piece, bool last, bool ordered, bool reduction) {
    Reach& now = reach(piece.axis);
    const sym::Range range = pool().range(now.left);
    int opened = 1;
    if (ordered && last && range.max > loop::kBlock) {
      Expr block = low_.open(ceil_div(now.left, loop::kBlock), {.reduction = true, .pairwise = true});
      walk(piece.axis, block, loop::kBlock);
      ++opened;
    }
    const bool pairwise = ordered && !last;
    walk(piece.axis, low_.open(now.left, {.vector = piece.vector(), .reduction = reduction, .pairwise = pairwise}), 1);
    return opened;
  }

  void emit_stage(int stage) {
    low_.stage = stage;
    if (split_ >= 0 && stage > 0) return;
    if (split_ < 0) emit_kept_roots(stage);
    std::vector<ValueId> reductions = reductions_of(stage), targets;
    for (ValueId root : group_.roots)
      if (low_.over_full_domain(root) && low_.schedule().state(root).stored && low_.level(root) == stage)
        targets.push_back(root);
    const std::vector<ValueId> stores = targets;
    if (reductions.empty() && stores.empty()) return;
    targets.insert(targets.end(), reductions.begin(), reductions.end());
    const std::vector<Expr> outside = low_.coordinates;
    const std::vector<Reach> before = reach_;
    std::vector<const Piece*> inner;
    for (const Piece& piece : loops_.pieces)
      if (axis(piece.axis).reduced && !piece.parallel()) inner.push_back(&piece);
    int opened = 0;
    for (size_t at = 0; at < inner.size(); ++at) {
      const bool last = at + 1 == inner.size();
      if (last) low_.hoist_before(axis(inner[at]->axis).dims, targets);
      opened += open_reduced(*inner[at], last, is_ordered(reductions), !reductions.empty());
    }
    low_.scratch_position = pool().constant(0);
    for (size_t at = nest_.kept_count(); at < extents_.size(); ++at)
      low_.scratch_position = low_.scratch_position * extents_[at] + reach_[at].base;
    for (const auto& [id, buffer] : low_.scratch)
      if (low_.level(id) == stage)
        low_.builder().store(buffer, low_.scratch_position, low_.emit(id, low_.own_index(id)));
    std::vector<Lane> partial;
    for (ValueId root : reductions) {
      Lane value = loop::cast(low_.emit(low_.reduction_source(root), low_.coordinates), low_.lane_dtype(root));
      partial.push_back(opened == 0 ? value : low_.builder().reduce(low_.reduce_kind(root), value));
    }
    std::vector<std::pair<ValueId, Lane>> kept = std::exchange(waiting_, {});
    for (ValueId root : stores) store(root, low_.emit(root, low_.own_index(root)));
    store_waiting();
    waiting_ = std::move(kept);
    for (int at = opened; at-- > 0;) {
      low_.close();
      if (at > 0)
        for (size_t each = 0; each < reductions.size(); ++each)
          partial[each] = low_.builder().reduce(low_.reduce_kind(reductions[each]), partial[each]);
    }
    reach_ = before;
    low_.coordinates = outside;
    for (size_t each = 0; each < reductions.size(); ++each) {
      if (split_ < 0) {
        finish_reduction(reductions[each], partial[each]);
      } else {
        int buffer = partial_buffer(each, reductions[each], loop::BufferRole::Out);
        low_.builder().store(buffer, piece_ * kept_total() + kept_position(), partial[each]);
      }
    }
  }

  // ---- What the pieces of a split sum come to: by piece, then by kept element

  int64_t split_factor() const {
    for (const Piece& piece : loops_.pieces)
      if (piece.axis == split_ && piece.factor > 0) return piece.factor;
    return 1;
  }
  Expr pieces_of_split() { return ceil_div(extents_[static_cast<size_t>(split_)], split_factor()); }
  Expr kept_total() {
    Expr total = pool().constant(1);
    for (size_t at = 0; at < nest_.kept_count(); ++at) total = total * extents_[at];
    return total;
  }
  Expr kept_position() {
    Expr position = pool().constant(0);
    for (size_t at = 0; at < nest_.kept_count(); ++at) position = position * extents_[at] + reach_[at].base;
    return position;
  }
  int partial_buffer(size_t at, ValueId root, loop::BufferRole role) {
    return low_.extra_buffer(fmt::format("partial{}", at), low_.lane_dtype(root), role,
                             pieces_of_split() * kept_total(), partial_id(at));
  }

  Lowering low_;
  const Group& group_;
  const Nest& nest_;
  const LoopSchedule& loops_;
  std::span<const ValueId> over_what_is_read_;
  int split_;
  std::vector<Expr> extents_;                         // by axis, in the kernel's pool
  std::vector<Reach> reach_;                          // by axis
  std::vector<std::pair<int, int64_t>> written_out_;  // axes and copies
  Expr piece_;                                        // of a split sum: which one this is
  std::vector<std::pair<ValueId, Lane>> waiting_;     // stores that come last in their scope
};

}  // namespace

EmittedGroup emit(const Schedule& schedule, const Group& group, const Nest& nest, const LoopSchedule& loops,
                  const std::string& name, std::span<const ValueId> over_what_is_read) {
  Decision decision = legal(nest, loops);
  TENON_ASSERT(decision, "{}: {}\n{}", decision.why(), to_string(loops), to_string(nest));
  EmittedGroup emitted;
  emitted.kernels.push_back(LoopEmitter(schedule, group, nest, loops, name, over_what_is_read).run());
  const int split = loops.split_axis(nest);
  if (split < 0) return emitted;
  emitted.kernels.push_back(
      LoopEmitter(schedule, group, nest, loops, name + "_finish", over_what_is_read).run_finish());
  // How many partial sums there are, in the graph's numbers.
  sym::ExprPool& pool = schedule.graph.env->pool();
  Expr count = pool.constant(1);
  for (size_t at = 0; at < nest.axes.size(); ++at) {
    Expr extent = pool.constant(1);
    for (size_t dim : nest.axes[at].dims) extent = extent * group.domain[dim];
    if (!nest.axes[at].reduced) count = count * extent;
    if (static_cast<int>(at) != split) continue;
    for (const Piece& piece : loops.pieces)
      if (piece.axis == split && piece.factor > 0) count = count * ceil_div(extent, piece.factor);
  }
  for (const loop::Buffer& buffer : emitted.kernels[0].kernel.buffers)
    if (buffer.name.starts_with("partial")) emitted.partials.push_back({buffer.dtype, pool.simplify(count)});
  return emitted;
}

}  // namespace tenon::schedule
