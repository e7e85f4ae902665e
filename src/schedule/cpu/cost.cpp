// Counting: how often each instruction runs, and how many cache lines it waits for.
#include "choose.h"
#include "machine.h"

#include <algorithm>
#include <cmath>

namespace tenon::schedule::cpu {
namespace {

// A loop, as the sizes of capture make it.
struct Counted {
  const Piece* piece;
  double trips;
  double step;  // elements of its axis that one iteration covers
  bool reduced;
};

std::vector<Counted> count_loops(const Nest& nest, const LoopSchedule& schedule) {
  std::vector<Counted> loops;
  std::vector<double> left;
  for (const NestAxis& axis : nest.axes) left.push_back(std::max<double>(1, static_cast<double>(axis.size)));
  for (size_t at = 0; at < schedule.pieces.size(); ++at) {
    const Piece& piece = schedule.pieces[at];
    double step = 1;
    for (size_t inner = at + 1; inner < schedule.pieces.size() && step == 1; ++inner)
      if (schedule.pieces[inner].axis == piece.axis) step = static_cast<double>(schedule.pieces[inner].factor);
    double& now = left[static_cast<size_t>(piece.axis)];
    step = std::min(step, now);
    loops.push_back({&piece, std::ceil(now / step), step, nest.axes[static_cast<size_t>(piece.axis)].reduced});
    now = step;
  }
  return loops;
}

class Counter {
 public:
  Counter(const Nest& nest, const LoopSchedule& schedule)
      : nest_(nest), loops_(count_loops(nest, schedule)), split_(schedule.split_axis(nest) >= 0) {
    for (size_t at = 0; at < loops_.size(); ++at)
      if (loops_[at].piece->vector()) vector_ = static_cast<int>(at);
    if (vector_ >= 0 && vector_ + 1 < static_cast<int>(loops_.size()) && loops_.back().piece->role == Role::Unroll)
      along_ = loops_.back().piece->axis;
    // Memory sees the lanes of some vectors as the innermost loop, wherever the loop over vectors stands.
    walked_ = loops_;
    if (vector_ < 0) return;
    Counted& vectors = walked_[static_cast<size_t>(vector_)];
    Counted lanes = vectors;
    lanes.trips = std::min(vectors.trips, kColumns);
    vectors.step *= lanes.trips;
    vectors.trips = std::ceil(vectors.trips / lanes.trips);
    walked_.push_back(lanes);
  }

  Cost run() {
    for (const Access& access : nest_.accesses) count_access(access);
    for (size_t stage = 0; stage < nest_.stages.size(); ++stage) count_stage(stage);
    for (double capacity : {kFirstCache, kSecondCache}) count_lines(capacity);
    count_threads();
    return cost_;
  }

 private:
  bool is_around(const Counted& loop, bool kept_only) const { return !kept_only || !loop.reduced; }
  bool vector_reduced() const { return vector_ >= 0 && loops_[static_cast<size_t>(vector_)].reduced; }

  // How often the body runs, one for all lanes.
  double runs(bool kept_only) const {
    double count = 1;
    for (size_t at = 0; at < loops_.size(); ++at)
      if (is_around(loops_[at], kept_only))
        count *= static_cast<int>(at) == vector_ ? std::ceil(loops_[at].trips / kLanes) : loops_[at].trips;
    return count;
  }

  // Elements from one iteration of a loop to the next.
  double step_of(const Access& access, const Counted& loop) const {
    const int64_t step = access.step[static_cast<size_t>(loop.piece->axis)];
    if (step == Access::kScattered) return kFar;
    if (step == 0 && access.indirect) return kFar;
    return std::abs(static_cast<double>(step)) * loop.step;
  }

  // Squares of it are loaded along the other axis and turned in registers.
  bool is_turned(const Access& access) const {
    if (along_ < 0 || access.store || access.indirect || access.step[static_cast<size_t>(along_)] != 1) return false;
    const int64_t step = access.step[static_cast<size_t>(loops_[static_cast<size_t>(vector_)].piece->axis)];
    return step != 0 && step != 1;
  }

  void count_access(const Access& access) {
    double each = 1;
    if (vector_ >= 0 && is_around(loops_[static_cast<size_t>(vector_)], access.kept_only)) {
      const int64_t step = access.step[static_cast<size_t>(loops_[static_cast<size_t>(vector_)].piece->axis)];
      const bool gathers = step != 0 && step != 1;
      if (is_turned(access))
        each = kTurned;
      else if (gathers || (step == 0 && access.indirect))
        each = kLanes * (access.store ? kScatterLane : kGatherLane);
    }
    double count = runs(access.kept_only);
    // A load that the innermost loops do not move is made once before them.
    if (!access.store && !access.indirect)
      for (size_t at = loops_.size(); at-- > 0;) {
        if (!is_around(loops_[at], access.kept_only)) continue;
        if (access.step[static_cast<size_t>(loops_[at].piece->axis)] != 0) break;
        count /= static_cast<int>(at) == vector_ ? std::ceil(loops_[at].trips / kLanes) : loops_[at].trips;
      }
    cost_.instructions += count * each;
  }

  void count_stage(size_t stage) {
    const Stage& described = nest_.stages[stage];
    cost_.instructions += runs(!described.full) * (described.work + 1);
    if (described.reductions == 0) return;
    // Reductions: lanes are folded once a row; in a plain loop the accumulators of ordered ones lie in memory.
    double kept = runs(true), terms = 1;
    for (const Counted& loop : loops_)
      if (loop.reduced && !loop.piece->parallel()) terms *= loop.trips;
    if (vector_reduced()) {
      cost_.instructions += kept * described.reductions * kFoldLanes;
    } else {
      cost_.instructions += described.ordered * (runs(false) * 2 + kept * kAccumulatorFold * std::min(terms, 32.0));
      cost_.instructions += kept * described.reductions * kLoopStart;
    }
  }

  // Lines that the loops from `outer` on touch.
  double lines(const Access& access, size_t outer) const {
    double count = 1, dense = static_cast<double>(size_of(access.dtype));  // bytes, while within one line
    for (size_t at = walked_.size(); at-- > outer;) {
      if (!is_around(walked_[at], access.kept_only)) continue;
      const double bytes = step_of(access, walked_[at]) * static_cast<double>(size_of(access.dtype));
      if (bytes == 0) continue;
      if (bytes >= kLine)
        count *= walked_[at].trips;
      else
        dense = std::max(dense, bytes * walked_[at].trips);
    }
    return count * std::max(1.0, dense / kLine);
  }

  // Loops inside which everything fits the cache fetch each line once; those around them fetch it again.
  void count_lines(double capacity) {
    size_t inside = walked_.size();
    while (inside > 0) {
      double bytes = 0;
      for (const Access& access : nest_.accesses)
        if (!is_turned(access)) bytes += lines(access, inside - 1) * kLine;
      if (bytes > capacity) break;
      --inside;
    }
    const bool first = capacity == kFirstCache;
    for (const Access& access : nest_.accesses) {
      if (is_turned(access)) {
        // Every line is used up as it comes.
        cost_.memory += lines(access, 0) * (first ? kFirstMiss : kSecondMiss) * kTurnedLine;
        continue;
      }
      double fetched = lines(access, inside);
      for (size_t at = 0; at < inside; ++at)
        if (is_around(walked_[at], access.kept_only)) {
          const double bytes = step_of(access, walked_[at]) * static_cast<double>(size_of(access.dtype));
          // Next to each other, iterations share lines as long as these stay.
          const bool shares = at + 1 == inside && bytes < kLine;
          fetched *= shares ? std::max(1.0, bytes * walked_[at].trips / kLine) : walked_[at].trips;
        }
      double along = kFar;  // how the innermost loop that moves it goes
      for (size_t at = walked_.size(); at-- > 0;)
        if (is_around(walked_[at], access.kept_only) && step_of(access, walked_[at]) != 0) {
          along = step_of(access, walked_[at]) * static_cast<double>(size_of(access.dtype));
          break;
        }
      const double each = first ? kFirstMiss : kSecondMiss;
      cost_.memory += fetched * each * (along > kLine ? kJump : 1) * (access.store ? 2 : 1);
    }
  }

  void count_threads() {
    double trips = 1;
    for (const Counted& loop : loops_)
      if (loop.piece->parallel()) trips *= loop.piece->vector() ? std::ceil(loop.trips / kColumns) : loop.trips;
    cost_.threads = trips;
    if (split_) cost_.overhead += kSecondKernel;
  }

  const Nest& nest_;
  std::vector<Counted> loops_, walked_;
  bool split_;
  int vector_ = -1;  // position of the loop with lanes
  int along_ = -1;   // the axis that vectors walk along
  Cost cost_;
};

}  // namespace

double Cost::total() const {
  const double work = instructions + memory;
  auto shared_by = [&](double most) { return std::min(work, work / std::min(threads, most) + kFork) + overhead; };
  return (shared_by(kFewThreads) + shared_by(kManyThreads)) / 2;
}

Cost cost(const Nest& nest, const LoopSchedule& schedule) { return Counter(nest, schedule).run(); }

}  // namespace tenon::schedule::cpu
