#include "choose.h"

#include "machine.h"

#include <tenon/support/log.h>

#include <algorithm>
#include <bit>

namespace tenon::schedule::cpu {
namespace {

constexpr size_t kMostCandidates = 64;
constexpr int64_t kEnoughTrips = 64;  // of a parallel loop, to keep any number of threads busy
constexpr int64_t kAlong = 64;        // of the axis that vectors walk along
constexpr int64_t kTile = 32;         // of both axes where two accesses run across each other
constexpr int64_t kPiece = 16384;     // elements of a split sum or row that one thread takes at least
constexpr int64_t kMostPieces = 1024;
constexpr size_t kLongestBody = 96;  // instructions of rows that are taken together
constexpr int64_t kFewestPasses = 64;

// Sizes and counts from here on decide alike.
constexpr int64_t kLargest = int64_t{1} << 40;
int64_t size_of(const NestAxis& axis) { return std::min(axis.size, kLargest); }
int64_t product(int64_t a, int64_t b) {
  int64_t made;
  return __builtin_mul_overflow(a, b, &made) ? kLargest : std::min(made, kLargest);
}

class Candidates {
 public:
  explicit Candidates(const Nest& nest) : nest_(nest), kept_(static_cast<int>(nest.kept_count())) {}

  std::vector<LoopSchedule> run() {
    const int last = static_cast<int>(nest_.axes.size()) - 1;
    for (int lanes = 0; lanes < kept_; ++lanes) with_lanes_along(lanes);
    if (nest_.has_reduction()) with_lanes_along(last);
    if (nest_.axes.empty()) add({});
    return std::move(found_);
  }

 private:
  // At least 1: what runs over nothing may run in any way.
  int64_t size(int axis) const { return std::max<int64_t>(1, size_of(nest_.axes[static_cast<size_t>(axis)])); }

  void add(LoopSchedule schedule) {
    if (found_.size() < kMostCandidates && legal(nest_, schedule) &&
        std::find(found_.begin(), found_.end(), schedule) == found_.end())
      found_.push_back(std::move(schedule));
  }

  void with_lanes_along(int lanes) {
    const bool reduced = nest_.axes[static_cast<size_t>(lanes)].reduced;
    // Kept axes in the order of memory, the one with lanes last; then the reduced ones.
    std::vector<Piece> outer, inner;
    for (int axis = 0; axis < kept_; ++axis)
      if (axis != lanes) outer.push_back({axis, 0, Role::Serial});
    for (int axis = kept_; axis < static_cast<int>(nest_.axes.size()); ++axis)
      inner.push_back({axis, 0, axis == lanes ? Role::Vector : Role::Serial});
    std::vector<Piece> pieces = outer;
    if (!reduced) pieces.push_back({lanes, 0, Role::Vector});
    add_parallel(pieces, inner);
    if (!reduced) {
      // A long row is cut for threads where there are few rows.
      if (size(lanes) > 2 * kPiece && !outer.empty()) {
        std::vector<Piece> cut = outer;
        cut.push_back({lanes, 0, Role::Serial});
        cut.push_back({lanes, kPiece, Role::Vector});
        add_parallel(cut, inner);
      }
      for (const Piece& other : outer)
        if (size(other.axis) > 1) add_tiles(outer, other.axis, lanes, inner);
    }
    add_split(outer, lanes, inner);
  }

  // The first loops become parallel, until there are enough iterations to share.
  static std::vector<Piece> with_threads(std::vector<Piece> pieces, const Nest& nest) {
    int64_t trips = 1;
    std::vector<int64_t> left;
    for (const NestAxis& axis : nest.axes) left.push_back(size_of(axis));
    for (size_t at = 0; at < pieces.size() && trips < kEnoughTrips; ++at) {
      if ((pieces[at].vector() && at > 0) || pieces[at].factor > 0) break;
      int64_t step = 1;
      for (size_t inner = at + 1; inner < pieces.size() && step == 1; ++inner)
        if (pieces[inner].axis == pieces[at].axis) step = pieces[inner].factor;
      int64_t& now = left[static_cast<size_t>(pieces[at].axis)];
      trips = product(trips, (now + step - 1) / step);
      now = step;
      pieces[at].role = pieces[at].vector() ? Role::ParallelVector : Role::Parallel;
      if (pieces[at].vector()) break;
    }
    return pieces;
  }

  void add_parallel(std::vector<Piece> pieces, const std::vector<Piece>& inner) {
    pieces = with_threads(std::move(pieces), nest_);
    pieces.insert(pieces.end(), inner.begin(), inner.end());
    add({pieces, {}});
  }

  // Tiles in which each line that one access fetches is used up before it goes.
  void add_tiles(const std::vector<Piece>& outer, int across, int lanes, const std::vector<Piece>& inner) {
    const bool crosses = std::any_of(nest_.accesses.begin(), nest_.accesses.end(), [&](const Access& access) {
      auto step = [&](int axis) { return access.step[static_cast<size_t>(axis)]; };
      return step(across) != 0 && step(lanes) != 0 && step(across) != Access::kScattered &&
             step(lanes) != Access::kScattered && std::abs(step(across)) < std::abs(step(lanes));
    });
    if (!crosses) return;
    std::vector<Piece> others;
    for (const Piece& piece : outer)
      if (piece.axis != across) others.push_back(piece);
    if (inner.empty()) {
      std::vector<Piece> turned = others;
      turned.push_back({across, 0, Role::Serial});
      turned.push_back({lanes, 0, Role::Vector});
      turned.push_back({across, kAlong, Role::Unroll});
      add_parallel(turned, inner);
    }
    std::vector<Piece> pieces = others;
    pieces.push_back({across, 0, Role::Serial});
    pieces.push_back({lanes, 0, Role::Serial});
    pieces.push_back({across, kTile, Role::Serial});
    pieces.push_back({lanes, 4 * kTile, Role::Vector});
    add_parallel(pieces, inner);
  }

  // A sum over the outermost reduced axis in pieces.
  void add_split(const std::vector<Piece>& outer, int lanes, std::vector<Piece> inner) {
    if (inner.empty()) return;
    const int split = kept_;
    const bool only = split + 1 == static_cast<int>(nest_.axes.size());
    int64_t kept = 1, row = 1;
    for (int axis = 0; axis < kept_; ++axis) kept = product(kept, size(axis));
    for (int axis = kept_; axis < static_cast<int>(nest_.axes.size()); ++axis) row = product(row, size(axis));
    const bool along = nest_.axes[static_cast<size_t>(lanes)].reduced;
    const int64_t rows = along ? kept : kept / size(lanes);  // iterations around the lanes
    const int64_t of_split = row / size(split);              // elements of one step
    // At least kPiece elements, at most kMostPieces pieces, and blocks times a power of two.
    int64_t factor = only ? loop::kBlock : 1;
    const int64_t columns = along ? 1 : std::min<int64_t>(size(lanes), 64);
    // The whole of it, however large: each piece has a place in memory.
    const int64_t length = nest_.axes[static_cast<size_t>(split)].size;
    while (factor < length &&
           (product(product(factor, of_split), columns) < kPiece || product(length / factor, rows) > kMostPieces))
      if (__builtin_mul_overflow(factor, 2, &factor)) return;
    if (factor >= length) return;
    std::vector<Piece> pieces{{split, 0, Role::Parallel}};
    int64_t trips = 1 + (length - 1) / factor;
    for (Piece piece : outer) {
      if (trips < kEnoughTrips && pieces.back().parallel()) piece.role = Role::Parallel;
      trips = product(trips, size(piece.axis));
      pieces.push_back(piece);
    }
    if (!along) pieces.push_back({lanes, 0, Role::Vector});
    for (Piece& piece : inner)
      if (piece.axis == split) piece.factor = factor;
    pieces.insert(pieces.end(), inner.begin(), inner.end());
    add({pieces, {}});
  }

  const Nest& nest_;
  const int kept_;
  std::vector<LoopSchedule> found_;
};

// Rows that stream through are combined with a row that is the same for all of them (a bias): the streams push that one
// out of the first cache again and again. Several rows in one pass read it less often.
void take_rows_together(const Nest& nest, LoopSchedule& schedule) {
  if (nest.stages.size() != 1 || nest.stages[0].reductions > 0 || schedule.streaming.empty() ||
      schedule.pieces.size() != 2 || schedule.pieces[0].role != Role::Parallel ||
      schedule.pieces[1].role != Role::Vector)
    return;
  const int rows = schedule.pieces[0].axis, lanes = schedule.pieces[1].axis;
  const NestAxis& axis = nest.axes[static_cast<size_t>(rows)];
  bool shares = false;
  for (const Access& access : nest.accesses) {
    const int64_t over_rows = access.step[static_cast<size_t>(rows)], along = access.step[static_cast<size_t>(lanes)];
    if (access.indirect || over_rows == Access::kScattered || along == Access::kScattered) return;
    if (access.store && over_rows == 0) return;
    shares |= !access.store && over_rows == 0 && along != 0;
  }
  if (!shares || !axis.extent.is_constant()) return;
  const size_t body = static_cast<size_t>(nest.stages[0].work) + nest.accesses.size();
  for (int64_t count : {4, 2}) {
    if (axis.size % count != 0 || axis.size / count < kFewestPasses || body * static_cast<size_t>(count) > kLongestBody)
      continue;
    schedule.pieces.insert(schedule.pieces.begin() + 1, {rows, count, Role::Unroll});
    return;
  }
}

// What is dear to compute is kept for the stages that use it again, if a row of it stays in a near cache.
void keep_rows(const Nest& nest, LoopSchedule& schedule) {
  double row = 1;
  for (const NestAxis& axis : nest.axes)
    if (axis.reduced) row *= static_cast<double>(axis.size);
  double kept = 0;
  for (const Reused& reused : nest.reused) {
    if (reused.work < kDear || (kept + row * 8) > kSecondCache / 2) continue;
    LoopSchedule with = schedule;
    with.scratch.push_back(reused.value);
    if (!legal(nest, with)) continue;
    schedule = std::move(with);
    kept += row * 8;
  }
}

}  // namespace

bool may_lack_threads(const Nest& nest) {
  if (!nest.has_reduction()) return false;
  const bool waits =
      std::any_of(nest.stages.begin() + 1, nest.stages.end(), [](const Stage& stage) { return stage.full; });
  int64_t kept = 1, row = 1;
  for (const NestAxis& axis : nest.axes) {
    int64_t& count = axis.reduced ? row : kept;
    count = product(count, std::max<int64_t>(1, size_of(axis)));
  }
  return waits && kept < kEnoughTrips * static_cast<int64_t>(kColumns) && row >= 2 * kPiece / kept;
}

std::vector<LoopSchedule> candidates(const Nest& nest) { return Candidates(nest).run(); }

LoopSchedule choose(const Nest& nest, const std::vector<ValueId>& streaming) {
  std::vector<LoopSchedule> all = candidates(nest);
  TENON_ASSERT(!all.empty(), "no schedule is legal:\n{}", to_string(nest));
  const LoopSchedule* best = nullptr;
  double least = 0;
  for (const LoopSchedule& each : all) {
    const double total = cost(nest, each).total();
    TENON_LOG(Fusion, "schedule {}: {:.0f}", to_string(each), total);
    if (best && total >= least) continue;
    best = &each;
    least = total;
  }
  LoopSchedule chosen = *best;
  for (ValueId id : streaming) {
    const bool read = std::any_of(nest.accesses.begin(), nest.accesses.end(),
                                  [&](const Access& access) { return access.value == id && !access.store; });
    if (!read) chosen.streaming.push_back(id);
  }
  take_rows_together(nest, chosen);
  keep_rows(nest, chosen);
  return chosen;
}

}  // namespace tenon::schedule::cpu
