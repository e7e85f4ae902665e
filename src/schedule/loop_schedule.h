// How a nest runs: the order of its loops, tiles, threads, lanes. Any legal schedule of a nest computes the same bits.
//
//   parallel a0, vector a1                          rows on threads, lanes along the row
//   parallel a0, a1, a0:64, vector a1:64            tiles of 64 × 64
//   parallel a1, parallel a0, vector a0:4096        both axes share one parallel loop
//   parallel a0, unroll a0:4, vector a1             four rows in one pass
//   parallel a0, vector a1, unroll a0:64            vectors of a1 walk along a0: where an access is dense along a0,
//                                                   not a1, squares of it are turned in registers
//   parallel a1, vector a0, a1:16384                a sum over a1: each thread sums pieces of 16384, a second kernel
//                                                   adds the pieces up
//
// A piece is a loop over an axis, outermost first. An axis that is listed again is tiled: the later piece, with its
// factor, is a tile of the earlier. Parallel pieces form one collapsed loop. A reduced axis that is parallel makes two
// kernels. Sums over more than loop::kBlock elements are blocked in any case: that is what they mean, not how they run.
#pragma once

#include "nest.h"

namespace tenon::schedule {

enum class Role : uint8_t { Serial, Parallel, Vector, ParallelVector, Unroll };

struct Piece {
  int axis = 0;
  int64_t factor = 0;  // iterations; 0: the rest, as many as it takes
  Role role = Role::Serial;
  bool parallel() const { return role == Role::Parallel || role == Role::ParallelVector; }
  bool vector() const { return role == Role::Vector || role == Role::ParallelVector; }
  bool operator==(const Piece&) const = default;
};

struct LoopSchedule {
  std::vector<Piece> pieces;
  std::vector<ValueId> streaming = {};  // results that are written past the caches
  std::vector<ValueId> scratch =
      {};  // reused values that each thread keeps, a row at a time, instead of computing them again
  bool operator==(const LoopSchedule&) const = default;

  // The reduced axis whose pieces are summed on different threads; -1: none.
  int split_axis(const Nest& nest) const;
};

// Whether the nest can run so.
Decision legal(const Nest& nest, const LoopSchedule& schedule);

std::string to_string(const LoopSchedule& schedule);
LoopSchedule parse_loop_schedule(std::string_view text);

}  // namespace tenon::schedule
