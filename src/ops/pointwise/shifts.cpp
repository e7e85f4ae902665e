// Bits of integers moved to the left, and to the right with the sign kept.
#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

void check_integers(const Arguments& arguments) {
  Dtype dtype = result_type(arguments);
  TENON_CHECK_IMPLEMENTED(!is_floating(dtype) && dtype != kBool, "[{}] expected integers, got {} and {}",
                          arguments.op().brief_name(), arguments.tensor("self").description(),
                          arguments["other"].str());
}

Lane left(Lane x, Lane y) { return x.builder().binary(loop::OpCode::Shl, x, y); }
Lane right(Lane x, Lane y) { return x.builder().binary(loop::OpCode::Shr, x, y); }

}  // namespace

OPS(shifts) {
  op("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return left(x, y); })
      .check(check_integers);
  op("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return left(x, y); })
      .check(check_integers);
  op("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return right(x, y); })
      .check(check_integers);
  op("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return right(x, y); })
      .check(check_integers);
}

}  // namespace tenon::ops
