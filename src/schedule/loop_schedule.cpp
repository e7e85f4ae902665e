#include "loop_schedule.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace tenon::schedule {
namespace {

constexpr std::string_view kRoleNames[] = {"", "parallel ", "vector ", "parallel vector ", "unroll "};

bool is_power_of_two(int64_t number) { return number > 0 && std::has_single_bit(static_cast<uint64_t>(number)); }

Decision legal_pieces_of(const Nest& nest, const LoopSchedule& schedule, int axis) {
  bool rest = false, lanes = false;  // lanes: a loop around has some
  for (const Piece& piece : schedule.pieces) {
    lanes |= piece.vector();
    if (piece.axis != axis) continue;
    if (piece.factor < 0) return Decision::forbid("a{} has a tile of {}", axis, piece.factor);
    if (piece.factor == 0 && rest) return Decision::forbid("a{} has two loops over the rest", axis);
    if (piece.factor > 0 && !rest)
      return Decision::forbid("the tile a{}:{} stands outside its rest", axis, piece.factor);
    rest = true;
    const NestAxis& described = nest.axes[static_cast<size_t>(axis)];
    if (piece.role != Role::Unroll || lanes) continue;
    if (described.reduced) return Decision::forbid("a{} is reduced: its loop cannot be written out", axis);
    if (piece.factor < 2 || piece.factor > 8)
      return Decision::forbid("unroll a{}:{}: expected 2 to 8 copies", axis, piece.factor);
    if (!described.extent.is_constant() || described.extent.constant() % piece.factor != 0)
      return Decision::forbid("unroll a{}:{} does not divide {}", axis, piece.factor, described.extent.str());
  }
  if (!rest) return Decision::forbid("a{} has no loop", axis);
  return Decision::allow();
}

Decision legal_reduced(const Nest& nest, const LoopSchedule& schedule) {
  const int split = schedule.split_axis(nest);
  const auto kept = static_cast<int>(nest.kept_count()), last = static_cast<int>(nest.axes.size()) - 1;
  int before = kept - 1;
  bool inside = false;  // a serial reduced loop was met: no kept ones follow
  for (const Piece& piece : schedule.pieces) {
    const bool reduced = nest.axes[static_cast<size_t>(piece.axis)].reduced;
    if (!reduced) {
      if (inside) return Decision::forbid("a{} is kept and stands inside a reduced loop", piece.axis);
      continue;
    }
    if (piece.parallel() && piece.role != Role::Parallel)
      return Decision::forbid("a{} is reduced: lanes and threads cannot share one loop of it", piece.axis);
    if (piece.role == Role::Parallel) continue;
    inside = true;
    if (piece.axis != split && piece.factor != 0)
      return Decision::forbid("a{} is reduced: only pieces for threads are cut off it", piece.axis);
    if (piece.axis <= before)
      return Decision::forbid("sums run along a{} before a{}, and the order is part of them", before, piece.axis);
    before = piece.axis;
    if (piece.vector() && piece.axis != last)
      return Decision::forbid("a{} is not the innermost reduced axis: no lanes along it", piece.axis);
  }
  if (split < 0) return Decision::allow();
  if (split != kept) return Decision::forbid("a{} is not the outermost reduced axis: it is not split", split);
  for (size_t stage = 0; stage < nest.stages.size(); ++stage) {
    if (stage > 0 && nest.stages[stage].full)
      return Decision::forbid("stage {} needs the whole sum over a{}: it is not split", stage, split);
    const int64_t unit = split == last && nest.stages[stage].ordered > 0 ? loop::kBlock : 1;
    for (const Piece& piece : schedule.pieces)
      if (piece.axis == split && piece.factor > 0 &&
          (piece.factor % unit != 0 || !is_power_of_two(piece.factor / unit)))
        return Decision::forbid("a{}:{} is not {} times a power of two, so the tree of the sum would change", split,
                                piece.factor, unit);
  }
  const auto tiles = std::count_if(schedule.pieces.begin(), schedule.pieces.end(),
                                   [&](const Piece& piece) { return piece.axis == split; });
  if (tiles != 2) return Decision::forbid("a{} is split into threads' pieces and one loop over each", split);
  return Decision::allow();
}

}  // namespace

int LoopSchedule::split_axis(const Nest& nest) const {
  for (const Piece& piece : pieces)
    if (piece.axis >= 0 && static_cast<size_t>(piece.axis) < nest.axes.size() &&
        nest.axes[static_cast<size_t>(piece.axis)].reduced && piece.role == Role::Parallel)
      return piece.axis;
  return -1;
}

Decision legal(const Nest& nest, const LoopSchedule& schedule) {
  const auto count = static_cast<int>(nest.axes.size());
  for (const Piece& piece : schedule.pieces)
    if (piece.axis < 0 || piece.axis >= count) return Decision::forbid("there is no a{}", piece.axis);
  bool parallel = true;
  int vectors = 0;
  for (size_t at = 0; at < schedule.pieces.size(); ++at) {
    const Piece& piece = schedule.pieces[at];
    if (piece.parallel() && !parallel) return Decision::forbid("a{} is parallel inside a loop that is not", piece.axis);
    parallel &= piece.parallel();
    if (piece.parallel() && piece.factor > 0)
      return Decision::forbid("a{}:{} is a tile, and the last one may be smaller: it is no part of a collapsed loop",
                              piece.axis, piece.factor);
    if (piece.role == Role::ParallelVector && at > 0)
      return Decision::forbid("a{} is parallel and vector, but not the outermost loop", piece.axis);
    vectors += piece.vector() ? 1 : 0;
    // Lanes are the innermost kept loop but for what they walk along, or the innermost of all.
    if (piece.vector())
      for (size_t inner = at + 1; inner < schedule.pieces.size(); ++inner)
        if (const Piece& other = schedule.pieces[inner];
            !nest.axes[static_cast<size_t>(other.axis)].reduced && other.role != Role::Unroll)
          return Decision::forbid("a{} stands inside of the lanes along a{}", other.axis, piece.axis);
    if (piece.role == Role::Unroll) {
      if (nest.stages.size() != 1 || nest.stages[0].reductions > 0)
        return Decision::forbid("a nest with reductions takes no rows together");
      const bool around = at + 1 < schedule.pieces.size() && schedule.pieces[at + 1].role == Role::Vector;
      const bool inside = at > 0 && at + 1 == schedule.pieces.size() && schedule.pieces[at - 1].vector();
      if (inside && schedule.pieces[at - 1].axis == piece.axis)
        return Decision::forbid("lanes along a{} do not walk along it, too", piece.axis);
      if (!around && !inside) return Decision::forbid("unroll a{} does not stand next to the lanes", piece.axis);
    }
  }
  if (vectors > 1) return Decision::forbid("{} loops have lanes", vectors);
  for (int axis = 0; axis < count; ++axis)
    if (Decision decision = legal_pieces_of(nest, schedule, axis); !decision) return decision;
  for (ValueId id : schedule.streaming)
    for (const Access& access : nest.accesses)
      if (access.value == id && !access.store) return Decision::forbid("v{} is read: it does not stream", id);
  for (ValueId id : schedule.scratch) {
    if (std::none_of(nest.reused.begin(), nest.reused.end(), [&](const Reused& each) { return each.value == id; }))
      return Decision::forbid("v{} is not used again: it is not kept in scratch", id);
    if (schedule.split_axis(nest) >= 0) return Decision::forbid("v{} is kept a row at a time, and rows are split", id);
    for (const Piece& piece : schedule.pieces)
      if (piece.vector() && !nest.axes[static_cast<size_t>(piece.axis)].reduced)
        return Decision::forbid("v{} is kept a row at a time, and lanes go across rows", id);
  }
  return legal_reduced(nest, schedule);
}

std::string to_string(const LoopSchedule& schedule) {
  std::vector<std::string> words;
  for (const Piece& piece : schedule.pieces) {
    words.push_back(fmt::format("{}a{}", kRoleNames[static_cast<int>(piece.role)], piece.axis));
    if (piece.factor != 0) words.back() += fmt::format(":{}", piece.factor);
  }
  for (ValueId id : schedule.streaming) words.push_back(fmt::format("stream v{}", id));
  for (ValueId id : schedule.scratch) words.push_back(fmt::format("keep v{}", id));
  return fmt::format("{}", fmt::join(words, ", "));
}

LoopSchedule parse_loop_schedule(std::string_view text) {
  LoopSchedule schedule;
  auto integer = [](std::string_view& from) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
    TENON_CHECK(error == std::errc(), "[parse_loop_schedule] expected a number before '{}'", from);
    from.remove_prefix(static_cast<size_t>(end - from.data()));
    return value;
  };
  while (!text.empty()) {
    size_t end = std::min(text.find(", "), text.size());
    std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 2, text.size()));
    if (item.starts_with("stream v")) {
      item.remove_prefix(8);
      schedule.streaming.push_back(static_cast<ValueId>(integer(item)));
      continue;
    }
    if (item.starts_with("keep v")) {
      item.remove_prefix(6);
      schedule.scratch.push_back(static_cast<ValueId>(integer(item)));
      continue;
    }
    Piece piece;
    for (int role = static_cast<int>(std::size(kRoleNames)) - 1; role > 0; --role)
      if (item.starts_with(kRoleNames[role])) {
        piece.role = static_cast<Role>(role);
        item.remove_prefix(kRoleNames[role].size());
        break;
      }
    TENON_CHECK(item.starts_with('a'), "[parse_loop_schedule] expected an axis before '{}'", item);
    item.remove_prefix(1);
    piece.axis = static_cast<int>(integer(item));
    if (item.starts_with(':')) {
      item.remove_prefix(1);
      piece.factor = integer(item);
    }
    TENON_CHECK(item.empty(), "[parse_loop_schedule] expected ', ' before '{}'", item);
    schedule.pieces.push_back(piece);
  }
  return schedule;
}

}  // namespace tenon::schedule
