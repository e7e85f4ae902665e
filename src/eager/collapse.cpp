#include "collapse.h"

#include <algorithm>

namespace tenon::eager {
namespace {

bool is_one(const LoopDim& dim) { return dim.size == 1; }

}  // namespace

LoopDims collapse(LoopDims dims) {
  dims.resize(static_cast<size_t>(std::remove_if(dims.begin(), dims.end(), is_one) - dims.begin()));
  // Outermost first; operands are asked in turn until one tells two dimensions apart. Not every pair can be told apart,
  // so this is an insertion by neighbours rather than a sort, which would want a consistent order.
  auto belongs_outside = [](const LoopDim& a, const LoopDim& b) {
    if (a.reduced != b.reduced) return b.reduced;
    for (size_t operand = 0; operand < a.strides.size(); ++operand)
      if (a.strides[operand] != b.strides[operand] && a.strides[operand] != 0 && b.strides[operand] != 0)
        return a.strides[operand] > b.strides[operand];
    return false;
  };
  for (size_t at = 1; at < dims.size(); ++at)
    for (size_t to = at; to > 0 && belongs_outside(dims[to], dims[to - 1]); --to) std::swap(dims[to], dims[to - 1]);
  LoopDims joined;
  for (LoopDim& dim : dims) {
    bool dense = !joined.empty() && joined.back().reduced == dim.reduced;
    if (dense)
      for (size_t operand = 0; operand < dim.strides.size(); ++operand)
        dense &= joined.back().strides[operand] == dim.strides[operand] * dim.size;
    if (dense) {
      joined.back().size *= dim.size;
      joined.back().strides = dim.strides;
    } else {
      joined.push_back(std::move(dim));
    }
  }
  return joined;
}

}  // namespace tenon::eager
