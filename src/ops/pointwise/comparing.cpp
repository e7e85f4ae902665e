// Comparisons, choices and numbers by ATen's names.
#include "ops/by_name.h"

#include <tenon/kernels/order.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

Tensor is_in(const Tensor& elements, const Tensor& among, bool invert) {
  given(elements, "isin");
  Tensor list = reshape(given(among, "isin"), {-1});
  Tensor found = any(unsqueeze(elements, -1) == list, OptionalInts(Ints{-1}));
  return invert ? logical_not(found) : found;
}

auto integers_of_pairs(bool multiple) {
  return [multiple](RowBuilder&& row) -> RowBuilder&& {
    return std::move(row)
        .kernel([multiple](const Arguments& arguments, std::span<Tensor> outputs) {
          const Dtype dtype = outputs[0].dtype();
          kernels::common_divisor(arguments.tensor("self").to(dtype), arguments.tensor("other").to(dtype), multiple,
                                  outputs[0]);
        })
        .shape([](const Arguments& arguments) {
          const Tensor inputs[] = {arguments.tensor("self"), arguments.tensor("other")};
          for (const Tensor& input : inputs)
            TENON_CHECK_IMPLEMENTED(input.defined() && !is_floating(input.dtype()) && input.dtype() != kBool,
                                    "[{}] expected integers, got {}", arguments.op().brief_name(),
                                    input.defined() ? input.description() : "an undefined tensor");
          const SymInts shapes[] = {inputs[0].sym_sizes(), inputs[1].sym_sizes()};
          SymInts sizes = broadcast(shapes, arguments.op().brief_name());
          return std::vector{
              TensorMeta{sizes, pointwise_strides(sizes, inputs), result_type(arguments), inputs[0].device()}};
        });
  };
}

Tensor as_zero_d(const Scalar& number, const Tensor& beside) {
  Dtype dtype = beside.dtype();
  if (number.is_real() && !is_floating(dtype)) dtype = kFloat32;
  return full(SymInts{}, number, TensorOptions(dtype, beside.device()));
}

Tensor as_zero_d(const Scalar& number) {
  return full(SymInts{}, number, TensorOptions(number.is_real() ? kFloat32 : kInt64, kCPU));
}

}  // namespace

OPS(comparing) {
  op("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
     "Tensor")
      .decompose([](const Tensor& elements, const Tensor& among, bool, bool invert) {
        return is_in(elements, among, invert);
      });
  // Example: gcd(full({2}, 4), full({2}, 6));
  op("gcd(Tensor self, Tensor other) -> Tensor").as(integers_of_pairs(false)).with_inplace();
  // Example: lcm(full({2}, 4), full({2}, 6));
  op("lcm(Tensor self, Tensor other) -> Tensor").as(integers_of_pairs(true)).with_inplace();
  op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::split_exponent(arguments.tensor("self"), outputs[0], outputs[1]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK_IMPLEMENTED(self.defined() && is_floating(self.dtype()),
                                "[frexp] expected floating point numbers, got {}",
                                self.defined() ? self.description() : "an undefined tensor");
        SymInts sizes = self.sym_sizes(), strides = pointwise_strides(sizes, {&self, 1});
        return std::vector{TensorMeta{sizes, strides, self.dtype(), self.device()},
                           TensorMeta{sizes, strides, kInt32, self.device()}};
      })
      .not_differentiable("exponent")
      .grad("self", saves("exponent"),
            [](Grad& g) { return g.grad() / pow(2.0, g.saved("exponent")).to(g.grad().dtype()); });
  op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& exponent) {
        return pow(given(self, "float_power").to(kFloat64), given(exponent, "float_power").to(kFloat64));
      })
      .with_inplace();
  op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
      .decompose([](const Tensor& self, const Scalar& exponent) {
        return pow(given(self, "float_power").to(kFloat64), exponent.to_double());
      })
      .with_inplace();
  // For graphs alone.
  op("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .decompose([](const Scalar& self, const Tensor& other) {
        Dtype dtype = given(other, "remainder").dtype();
        if (self.is_real() && !is_floating(dtype)) dtype = kFloat32;
        return remainder(full(SymInts{}, self, TensorOptions(dtype, other.device())), other);
      });
  // For graphs alone.
  op("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& other, const Scalar& alpha) {
        return sub(given(other, "rsub"), given(self, "rsub"), alpha);
      });
  op("ldexp.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& other) {
        return given(self, "ldexp") * pow(2.0, given(other, "ldexp"));
      })
      .with_inplace();
  // For graphs alone.
  op("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
      .decompose([](const Tensor& condition, const Tensor& self, const Scalar& other) {
        return where(condition, self, as_zero_d(other, given(self, "where")));
      });
  // For graphs alone.
  op("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
      .decompose([](const Tensor& condition, const Scalar& self, const Tensor& other) {
        return where(condition, as_zero_d(self, given(other, "where")), other);
      });
  // For graphs alone.
  op("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
      .decompose([](const Tensor& condition, const Scalar& self, const Scalar& other) {
        return where(condition, as_zero_d(self), as_zero_d(other));
      });
  op("positive(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "positive").dtype() != kBool, "[positive] expected numbers, got {}", self.description());
    return self;
  });
}

}  // namespace tenon::ops
