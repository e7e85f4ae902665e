// What a group computes, as a loop nest: axes, stages and accesses. It says nothing of how the loops run: that is a
// `LoopSchedule` (loop_schedule.h).
//
//   nest()
//     axis a0 kept 512
//     axis a1 reduced 4096
//     stage 0: work 1, ordered sums 1
//     load v0 f32 stage 0 [4096, 1]
//     store v1 f32 stage 0 kept [1, 0]
//
// An axis is a run of dimensions that every access walks as one; merging them is a fact, not a choice. Kept axes come
// first, then reduced ones; their order is that of memory, outermost first. The order of the reduced axes is part of
// what is computed: sums of floats are combined along it. A stage is what can be computed once the reductions of the
// stages before it are known.
#pragma once

#include "fusion.h"

#include <memory>

namespace tenon::schedule {

struct NestAxis {
  std::vector<size_t> dims;  // of the group's domain, outermost first
  Expr extent;
  bool reduced = false;
  int64_t size = 0;  // the extent at the sizes of capture
};

struct Access {
  ValueId value = graph::kNoValue;  // the memory
  Dtype dtype = Dtype::Float32;
  bool store = false;
  int stage = 0;
  bool kept_only = false;     // once for all iterations of the reduced axes
  bool indirect = false;      // its place depends on data, too
  std::vector<Expr> stride;   // by axis, in elements; undefined where it is not linear
  std::vector<int64_t> step;  // the same at the sizes of capture; kScattered where it is not linear
  Expr index;                 // the position as an expression of the first stage's coordinates; not part of the text
  static constexpr int64_t kScattered = INT64_MIN;
};

struct Stage {
  int work = 0;        // instructions of one iteration, roughly
  int reductions = 0;  // …of which `ordered` are sums or products of floats
  int ordered = 0;
  bool full = false;  // writes or sums over the whole domain; false: over the kept axes alone
};

// A value over the whole domain that has no memory, and that later stages use again.
struct Reused {
  ValueId value = graph::kNoValue;
  int stage = 0;  // the first that computes it
  int work = 0;   // instructions of one element
};

struct Nest {
  std::shared_ptr<sym::ExprPool> pool;  // of extents and strides
  std::vector<NestAxis> axes;
  std::vector<Stage> stages;
  std::vector<Access> accesses;
  std::vector<Reused> reused;
  std::vector<Expr> symbols;   // of the pool: sizes and strides that are passed at run time
  std::vector<Expr> integers;  // what they stand for in the graph
  bool may_fail = false;       // it checks indices or other data; not part of the text

  size_t kept_count() const;
  bool has_reduction() const { return kept_count() < axes.size(); }
};

// Throws `Refused` (lowering.h) if the group is no loop nest: every value of the group that is read inside it must be
// read where it is made.
Nest make_nest(const Schedule& schedule, const Group& group);

std::string to_string(const Nest& nest);
Nest parse_nest(std::string_view text);

}  // namespace tenon::schedule
