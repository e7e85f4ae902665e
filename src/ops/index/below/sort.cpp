// Orders along a dimension, by forms that only graphs name.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(stable_sort) {
  op("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .decompose([](const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
        return sort(given(self, "sort"), dim, descending);
      });
  op("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
      .decompose([](const Tensor& self, bool, int64_t dim, bool descending) { return argsort(self, dim, descending); });
}

}  // namespace tenon::ops
