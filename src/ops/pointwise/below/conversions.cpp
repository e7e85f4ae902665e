// Conversions as graphs name them.
#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(conversions) {
  // Without a C++ function: `x.to({})` would have two meanings. Who wants another order in memory calls `contiguous`.
  op("to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
      .decompose([](const Tensor& self, std::optional<Dtype> dtype, std::optional<Layout>, std::optional<Device> device,
                    std::optional<bool>, bool, bool copy, std::optional<MemoryFormat> format) {
        TENON_CHECK(self.defined(), "[to] expected a tensor, got an undefined one");
        TENON_CHECK_IMPLEMENTED(device.value_or(self.device()) == self.device(), "[to] there is no way from {} to {}",
                                self.device().str(), device.value_or(self.device()).str());
        return to(self, dtype.value_or(self.dtype()), false, copy, format);
      });
}

}  // namespace tenon::ops
