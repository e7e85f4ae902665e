// Reductions to truth values, by forms that only graphs name.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

// Of bytes these are bytes, as in PyTorch.
Tensor truth(const Tensor& result, const Tensor& self) { return self.dtype() == kUInt8 ? result.to(kUInt8) : result; }

Ints one_dim(const Tensor& self, int64_t dim, const char* op_name) {
  return {wrap_dim(dim, given(self, op_name).dim(), op_name)};
}

}  // namespace

OPS(reductions) {
  op("any(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return truth(any(given(self, "any"), OptionalInts()), self);
  });
  op("all(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return truth(all(given(self, "all"), OptionalInts()), self);
  });
  op("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return truth(any(self, OptionalInts(one_dim(self, dim, "any")), keepdim), self);
      });
  op("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return truth(all(self, OptionalInts(one_dim(self, dim, "all")), keepdim), self);
      });
}

}  // namespace tenon::ops
