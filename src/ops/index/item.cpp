// Reading one element: the way from data to numbers. It has no row, because its result is no tensor.
#include <tenon/dispatch/call.h>
#include <tenon/kernels/item.h>

namespace tenon::ops {
namespace {

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op = dispatch::define(schema::parse("aten::_local_scalar_dense(Tensor self) -> Scalar"));
  dispatch::register_kernel(op, DispatchKey::CPU,
                            dispatch::boxed([](const Tensor& self) { return kernels::item(self); }));
  return true;
}();

}  // namespace
}  // namespace tenon::ops
