// Functions of one element.
#include <tenon/ops/table.h>

#include <limits>
#include <numbers>

namespace tenon::ops {
namespace {

void check_numbers(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.dtype() != kBool, "[{}] expected a tensor of numbers, got {}", arguments.op().brief_name(),
              self.description());
}

// Whether a conversion to this format leaves the tensor as it lies. As in PyTorch, what is in no order of channels last
// is in the usual one.
bool is_in_order(const Tensor& self, std::optional<MemoryFormat> format) {
  return !format || *format == MemoryFormat::Preserve || *format == self.suggested_format();
}

}  // namespace

OPS(unary) {
  op("neg(Tensor self) -> Tensor")
      .role(Role::Negate)
      .pointwise(Promotion::Same, [](Lane x) { return -x; })
      .check([](const Arguments& arguments) {
        TENON_CHECK(arguments.tensor("self").dtype() != kBool,
                    "[neg] bools have no opposite sign, got {}: logical_not gives their opposite",
                    arguments.tensor("self").description());
      })
      .grad("self", saves(), [](Grad& g) { return -g.grad(); });
  op("abs(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return abs(x); })
      .check(check_numbers)
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * sign(g.saved("self")); });
  op("sign(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return sign(x); })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  // Integers are whole already.
  op("trunc(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return is_floating(x.dtype()) ? trunc(x) : x; })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("floor(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return is_floating(x.dtype()) ? floor(x) : x; })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("ceil(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return is_floating(x.dtype()) ? ceil(x) : x; })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("round(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return is_floating(x.dtype()) ? round(x) : x; })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("exp(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return exp(x); })
      .grad("self", saves("result"), [](Grad& g) { return g.grad() * g.saved("result"); });
  op("log(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return log(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() / g.saved("self"); });
  op("sqrt(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return sqrt(x); })
      .grad("self", saves("result"), [](Grad& g) { return g.grad() / (g.saved("result") * 2); });
  op("rsqrt(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return rsqrt(x); })
      .grad("self", saves("result"), [](Grad& g) {
        Tensor y = g.saved("result");
        return g.grad() * (y * y * y) * -0.5;
      });
  op("reciprocal(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return reciprocal(x); })
      .grad("self", saves("result"), [](Grad& g) { return -g.grad() * (g.saved("result") * g.saved("result")); });
  op("sin(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return sin(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * cos(g.saved("self")); });
  op("cos(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return cos(x); })
      .grad("self", saves("self"), [](Grad& g) { return -g.grad() * sin(g.saved("self")); });
  op("tan(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return tan(x); })
      .grad("self", saves("result"), [](Grad& g) {
        Tensor y = g.saved("result");
        return g.grad() * (1 + y * y);
      });
  op("asin(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return asin(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * rsqrt(1 - x * x);
      });
  op("acos(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return acos(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return -g.grad() * rsqrt(1 - x * x);
      });
  op("atan(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return atan(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() / (1 + x * x);
      });
  op("sinh(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return sinh(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * cosh(g.saved("self")); });
  op("cosh(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return cosh(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * sinh(g.saved("self")); });
  op("asinh(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return asinh(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * rsqrt(x * x + 1);
      });
  op("acosh(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return acosh(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * rsqrt(x * x - 1);
      });
  op("atanh(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return atanh(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() / (1 - x * x);
      });
  op("exp2(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return exp2(x); })
      .grad("self", saves("result"), [](Grad& g) { return g.grad() * (g.saved("result") * std::numbers::ln2); });
  op("expm1(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return expm1(x); })
      .grad("self", saves("result"), [](Grad& g) { return g.grad() * (g.saved("result") + 1); });
  op("log2(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return log2(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() / (g.saved("self") * std::numbers::ln2); });
  op("log10(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return log10(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() / (g.saved("self") * std::numbers::ln10); });
  op("log1p(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return log1p(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() / (g.saved("self") + 1); });
  op("square(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return x * x; })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * (g.saved("self") * 2); });
  op("tanh(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return tanh(x); })
      .grad("self", saves("result"), [](Grad& g) {
        Tensor y = g.saved("result");
        return g.grad() * (1 - y * y);
      });
  op("sigmoid(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return sigmoid(x); })
      .grad("self", saves("result"), [](Grad& g) {
        Tensor y = g.saved("result");
        return g.grad() * (y * (1 - y));
      });
  op("erf(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return erf(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * (exp(-(x * x)) * 1.1283791670955126);
      });
  op("relu(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return maximum(x, number(x, 0)); })
      .is_epilogue(dispatch::Epilogue::Relu)
      .check(check_numbers)
      .grad("self", saves("result"), [](Grad& g) { return threshold_backward(g.grad(), g.saved("result"), 0); });
  op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane grad, Lane x, Lane threshold) { return select(x <= threshold, number(grad, 0), grad); })
      .grad("grad_output", saves("self"),
            [](Grad& g) { return threshold_backward(g.grad(), g.saved("self"), g.argument("threshold").scalar()); });
  op("logical_not(Tensor self) -> Tensor").pointwise(Promotion::Logical, [](Lane x) { return !x; });
  op("isnan(Tensor self) -> Tensor").pointwise(Promotion::Compare, [](Lane x) { return x != x; }).no_inplace();
  // Integers are always finite.
  op("isinf(Tensor self) -> Tensor")
      .pointwise(
          Promotion::Compare,
          [](Lane x) { return is_floating(x.dtype()) ? abs(x) == std::numeric_limits<double>::infinity() : x != x; })
      .no_inplace();
  op("isfinite(Tensor self) -> Tensor")
      .pointwise(
          Promotion::Compare,
          [](Lane x) { return is_floating(x.dtype()) ? abs(x) < std::numeric_limits<double>::infinity() : x == x; })
      .no_inplace();
  op("bitwise_not(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK_IMPLEMENTED(self.defined() && !is_floating(self.dtype()),
                            "[bitwise_not] expected a tensor of integers or bools, got {}",
                            self.defined() ? self.description() : "an undefined one");
    return self.dtype() == kBool ? logical_not(self) : bitwise_xor(self, -1);
  });

  // Copies and conversions.
  op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
      .role(Role::Clone)
      .pointwise(Promotion::Same, [](Lane x) { return x; })
      .moves_elements()
      .no_inplace()
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  op("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, "
     "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor")
      .role(Role::Convert)
      .pointwise(Promotion::Argument, [](Lane x) { return x; })
      .moves_elements()
      .no_inplace()
      .grad("self", saves(), [](Grad& g) { return g.grad().to(g.dtype("self")); });
  op("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
     "memory_format=None) "
     "-> Tensor(a)")
      .role(Role::Convert)
      .decompose([](const Tensor& self, Dtype dtype, bool, bool copy, std::optional<MemoryFormat> format) {
        if (self.dtype() == dtype && !copy && is_in_order(self, format)) return self;
        return _to_copy(self, TensorOptions(dtype), false, format);
      });
  op("type_as(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    TENON_CHECK(self.defined() && other.defined(), "[type_as] expected a tensor, got an undefined one");
    return self.to(other.dtype());
  });
  op("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
      .decompose([](const Tensor& self, MemoryFormat format) {
        TENON_CHECK(format != MemoryFormat::Preserve, "[contiguous] expected an order of dimensions, got preserve");
        return self.is_contiguous(format) ? self : clone(self, format);
      });

  // Overwriting: the in-place forms are what people call.
  op("fill.Scalar(Tensor self, Scalar value) -> Tensor")
      .pointwise(Promotion::Self, [](Lane, Lane value) { return value; })
      .moves_elements()
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("fill.Tensor(Tensor self, Tensor value) -> Tensor")
      .pointwise(Promotion::Self, [](Lane, Lane value) { return value; })
      .moves_elements()
      .check([](const Arguments& arguments) {
        TENON_CHECK(arguments.tensor("value").dim() == 0, "[{}] expected a value of no dimensions, got {}",
                    arguments.op().brief_name(), arguments.tensor("value").description());
      })
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); })
      .grad("value", saves(), [](Grad& g) { return g.grad(); });
  op("zero(Tensor self) -> Tensor")
      .pointwise(Promotion::Self, [](Lane self) { return number(self, 0); })
      .moves_elements()
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
      .role(Role::Copy)
      .pointwise(Promotion::Self, [](Lane, Lane src) { return src; })
      .moves_elements()
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); })
      .grad("src", saves(), [](Grad& g) { return g.grad(); });
}

}  // namespace tenon::ops
