// Searching in what runs upwards, by forms that only graphs name.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(searching) {
  op("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
     "side=None, Tensor? sorter=None) -> Tensor")
      .decompose([](const Tensor& sorted, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
        TENON_CHECK(given(sorted, "searchsorted").dim() == 1,
                    "[searchsorted] expected a sequence of one dimension for a number, got {}", sorted.description());
        Dtype dtype = sorted.dtype();
        if (self.is_real() && !is_floating(dtype)) dtype = kFloat64;
        Tensor number = full(SymInts{}, self, TensorOptions(dtype, sorted.device()));
        return searchsorted(sorted.to(dtype), number, out_int32, right, side, sorter);
      });
}

}  // namespace tenon::ops
