// Elements at the positions that index tensors give, as NumPy has it: where they stand in the result, and reading one.
#pragma once

#include <tenon/ops/row.h>

namespace tenon::ops {

// How positions and what is left of the dimensions make up the result of an indexing.
struct Picking {
  SymInts positions;         // the shape that the indices are broadcast to
  std::vector<bool> picked;  // by dimension of self: whether an index stands for it
  size_t first = 0;          // the result's dimension where `positions` stand
  SymInts result;
};

// Of the arguments self and indices: an Error unless they fit. Masks are positions already.
Picking picking(const Arguments& arguments, std::string_view op_name);

// The element of `self` for the output element at hand.
enum class Bounds : uint8_t { Checked, Promised };  // Promised: the caller knows that no position is out of range
Lane picked_element(Element& e, std::string_view op_name, Bounds bounds);

}  // namespace tenon::ops
