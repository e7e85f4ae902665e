// Writing elements to places that others may have written to: instead of what is there, or added to it. One small
// routine for each size of elements, or for each dtype; threads, lines and indices are their callers'.
#pragma once

#include "kernels/wide_lines.h"

namespace tenon::kernels {

struct ElementWrites {
  // to[at * to_step] becomes from[at * from_step], or more by that.
  void (*row)(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t count);
  // to[to_places[at]] becomes from[from_places[at]], or more by that, in this order.
  void (*places)(const void* from, const int64_t* from_places, void* to, const int64_t* to_places, int64_t count);
  // to[pick * stride + at * to_step] becomes from[at * from_step], or more by that, with pick = picks[at * pick_step].
  // Gives how many were written: all of them, or those before the first pick that is not in [0, reach).
  int64_t (*picked)(const void* from, int64_t from_step, const int64_t* picks, int64_t pick_step, int64_t reach,
                    void* to, int64_t stride, int64_t to_step, int64_t count);
  int64_t element;  // its size in bytes
};

// Integers wrap around; of bools the sum is whether any is true. There are no sums of halves: they are added in
// float32.
ElementWrites replacing_writes(Dtype dtype);
ElementWrites adding_writes(Dtype dtype);

// `self` written to by `write(result, sources)` with what is in `src`. Sums of halves are those of float32, in memory
// of their own, rounded once.
template <typename Write>
void write_into(const TensorBase& self, const TensorBase& src, bool in_float32, const TensorBase& out, Write&& write) {
  if (!in_float32 || (out.dtype() != kFloat16 && out.dtype() != kBFloat16)) {
    if (self.raw_data() != out.raw_data()) copy_elements(self, out);
    return write(out, src);
  }
  auto in_wide = [](const TensorBase& narrow) {
    TensorBase wide = core::allocate_base(narrow.sizes(), core::contiguous_strides(narrow.sizes()), kFloat32, kCPU);
    copy_elements(narrow, wide);
    return wide;
  };
  const TensorBase wide = in_wide(self);
  write(wide, in_wide(src));
  copy_elements(wide, out);
}

// Indices of int32 or int64 along dimension `dim` of a target, of `reach` elements that lie `stride` apart.
struct Picks {
  Picks(const TensorBase& indices, const Strided& target, size_t along, const char* name_of_op)
      : index(indices), reach(target.sizes[along]), stride(target.strides[along]), dim(along), op(name_of_op) {}

  const TensorBase& index;
  const int64_t reach, stride;
  const size_t dim;
  const char* const op;  // for errors

  int64_t at(int64_t place) const {
    const int64_t pick = index.dtype() == kInt32 ? index.data<int32_t>()[place] : index.data<int64_t>()[place];
    if (pick < 0 || pick >= reach) out_of_range(pick);
    return pick;
  }
  // Writes elements where the indices from `offset` on say, each `to_step` behind the one before if theirs are the
  // same.
  void write(const ElementWrites& writes, int64_t offset, int64_t step, int64_t count, const void* from,
             int64_t from_step, void* to, int64_t to_step) const;
  [[noreturn]] void out_of_range(int64_t pick) const;
};

}  // namespace tenon::kernels
