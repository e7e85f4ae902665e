// Functions of one element.
#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(unary) {
  op("neg(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return -x; })
      .grad("self", saves(), [](Grad& g) { return -g.grad(); });
  op("abs(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return abs(x); })
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
      .grad("self", saves("result"), [](Grad& g) { return threshold_backward(g.grad(), g.saved("result"), 0); });
  op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
      .pointwise(Promotion::Same, [](Lane grad, Lane x, Lane threshold) { return select(x <= threshold, number(grad, 0), grad); })
      .grad("grad_output", saves("self"), [](Grad& g) {
        return threshold_backward(g.grad(), g.saved("self"), g.argument("threshold").scalar());
      });
  op("logical_not(Tensor self) -> Tensor").pointwise(Promotion::Logical, [](Lane x) { return !x; });
  op("isnan(Tensor self) -> Tensor").pointwise(Promotion::Compare, [](Lane x) { return x != x; }).no_inplace();

  // Copies and conversions.
  op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return x; })
      .no_inplace()
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  op("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
     "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor")
      .pointwise(Promotion::Argument, [](Lane x) { return x; })
      .no_inplace()
      .grad("self", saves(), [](Grad& g) { return g.grad().to(g.dtype("self")); });
  op("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) "
     "-> Tensor(a)")
      .decompose([](const Tensor& self, Dtype dtype, bool, bool copy, std::optional<MemoryFormat> format) {
        if (self.dtype() == dtype && !copy) return self;
        return _to_copy(self, TensorOptions(dtype), false, format);
      });
  op("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
      .decompose([](const Tensor& self, MemoryFormat) {
        return self.is_contiguous() ? self : clone(self, MemoryFormat::Contiguous);
      });

  // Overwriting: the in-place forms are what people call.
  op("fill.Scalar(Tensor self, Scalar value) -> Tensor")
      .pointwise(Promotion::Self, [](Lane, Lane value) { return value; })
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("fill.Tensor(Tensor self, Tensor value) -> Tensor")
      .pointwise(Promotion::Self, [](Lane, Lane value) { return value; })
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); })
      .grad("value", saves(), [](Grad& g) { return g.grad(); });
  op("zero(Tensor self) -> Tensor")
      .pointwise(Promotion::Self, [](Lane self) { return number(self, 0); })
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
      .pointwise(Promotion::Self, [](Lane, Lane src) { return src; })
      .ignores("self")
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); })
      .grad("src", saves(), [](Grad& g) { return g.grad(); });
}

}  // namespace tenon::ops
