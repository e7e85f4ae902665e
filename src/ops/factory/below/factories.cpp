// Tensors from nothing by other names, and what graphs call one that has just been made.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {

OPS(factories) {
  op("new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .uninitialised()
      .ignores("self")
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[new_empty_strided] expected a tensor, got an undefined one");
        const dispatch::Value &dtype = arguments["dtype"], &device = arguments["device"];
        TensorMeta meta{arguments["size"].sym_ints(), arguments["stride"].sym_ints(),
                        dtype.is_none() ? self.dtype() : dtype.dtype(),
                        device.is_none() ? self.device() : device.device()};
        TENON_CHECK(meta.sizes.size() == meta.strides.size(),
                    "[new_empty_strided] expected a stride for each of {}, got {}", str(meta.sizes), str(meta.strides));
        for (const SymInt& size : meta.sizes)
          TENON_CHECK(may_be_size(size), "[new_empty_strided] expected sizes of at least 0, got {}", str(meta.sizes));
        return std::vector{meta};
      });
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
