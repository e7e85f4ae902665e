// Dimensions that lie densely in every operand become one.
#pragma once

#include <tenon/core/lists.h>

namespace tenon::eager {

// One dimension of an iteration space: its extent and every operand's stride.
struct LoopDim {
  int64_t size;
  Ints strides;
  bool reduced = false;
};

using LoopDims = SmallVector<LoopDim, 4>;

// Drops dimensions of one element, orders the rest so that the first operand's strides fall (kept and reduced ones
// apart), and joins neighbours that every operand walks as one.
LoopDims collapse(LoopDims dims);

}  // namespace tenon::eager
