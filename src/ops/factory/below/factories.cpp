// Tensors from nothing by other names, and what graphs call one that has just been made.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {

OPS(factories) {
  op("arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .decompose([](const Scalar& start, const Scalar& end, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        TensorOptions options;
        options.dtype = dtype;
        options.device = device;
        return arange(start, end, 1, options);
      });
  op("lift_fresh(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) { return given(self, "lift_fresh"); });
}

}  // namespace tenon::ops
