// Positions of the triangles of matrices.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

#include <algorithm>

namespace tenon::ops {
namespace {

// [2, count]: rows and columns of a triangle, by rows.
Tensor triangle(int64_t rows, int64_t columns, int64_t offset, bool upper, std::optional<Dtype> dtype,
                std::optional<Device> device, const char* op_name) {
  constexpr int64_t kFar = int64_t{1} << 31;
  TENON_CHECK(rows >= 0 && columns >= 0 && rows < kFar && columns < kFar && offset > -kFar && offset < kFar,
              "[{}] expected sizes from 0 to 2^31 and an offset below that, got {}, {} and {}", op_name, rows, columns,
              offset);
  Tensor whole = ones(SymInts{rows, columns}, TensorOptions(kBool, device.value_or(kCPU)));
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t below = std::clamp<int64_t>(row + offset + (upper ? 0 : 1), 0, columns);
    count += upper ? columns - below : below;
  }
  Tensor places =
      call_in_order("aten::nonzero_static", {upper ? triu(whole, offset) : tril(whole, offset), count, int64_t{0}});
  return contiguous(transpose(places, 0, 1)).to(dtype.value_or(kInt64));
}

}  // namespace

OPS(triangles) {
  op("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](int64_t rows, int64_t columns, int64_t offset, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        return triangle(rows, columns, offset, false, dtype, device, "tril_indices");
      });
  op("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](int64_t rows, int64_t columns, int64_t offset, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        return triangle(rows, columns, offset, true, dtype, device, "triu_indices");
      });
}

}  // namespace tenon::ops
