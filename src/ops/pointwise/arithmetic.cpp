// Functions of several elements beyond the basic operators: division with remainder, bits, bounds, combinations.
#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

// Floats as Python divides them: from the exact remainder, so that 1 // 0.1 is 9.
Lane floor_divided(Lane x, Lane y) {
  if (!is_floating(x.dtype())) return floor_div(x, y);
  Lane rest = rem(x, y), zero = number(x, 0);
  Lane quotient = (x - rest) / y;
  quotient = select((rest != zero) & ((y < zero) ^ (rest < zero)), quotient - 1.0, quotient);
  Lane whole = floor(quotient);
  whole = select(quotient - whole > 0.5, whole + 1.0, whole);
  // A zero keeps the sign of the true quotient, and division by zero is what it is for floats.
  return select(y == zero, x / y, select(quotient == zero, (x / y) * 0.0, whole));
}

Lane truncated(Lane x, Lane y) {
  Lane quotient = x / y;
  return is_floating(x.dtype()) ? trunc(quotient) : quotient;
}

void check_bits(const Arguments& arguments) {
  Dtype dtype = result_type(arguments);
  TENON_CHECK_IMPLEMENTED(!is_floating(dtype), "[{}] expected integers or bools, got {}", arguments.op().brief_name(),
                          name(dtype));
}

template <typename Kind>
void check_floats(const Arguments& arguments) {
  Dtype dtype = result_type(arguments);
  if (!is_floating(dtype))
    fail<Kind>("[{}] expected floating point tensors, got {}", arguments.op().brief_name(), name(dtype));
}

void check_bounds(const Arguments& arguments) {
  TENON_CHECK(!arguments["min"].is_none() || !arguments["max"].is_none(), "[{}] expected at least one of min and max",
              arguments.op().brief_name());
}

// The lower bound first, so that the upper one wins where they cross; NaNs of any operand come through.
Lane clamped(Lane x, Lane low, Lane high) {
  if (low.defined()) x = maximum(x, low);
  return high.defined() ? minimum(x, high) : x;
}

// Where the input itself came through: the gradient of the bounds' edges belongs to it, as in PyTorch.
Tensor inside(Grad& g, const Tensor& mask) { return where(mask, g.grad(), zeros_like(g.grad())); }

Tensor scalar_clamp_grad(Grad& g) {
  Tensor x = g.saved("self");
  const dispatch::Value &low = g.argument("min"), &high = g.argument("max");
  if (low.is_none()) return inside(g, x <= high.scalar());
  if (high.is_none()) return inside(g, x >= low.scalar());
  return inside(g, logical_and(x >= low.scalar(), x <= high.scalar()));
}

Tensor tensor_clamp_grad(Grad& g) {
  Tensor x = g.saved("self");
  if (!g.has("min")) return inside(g, x <= g.saved("max"));
  if (!g.has("max")) return inside(g, x >= g.saved("min"));
  return inside(g, logical_and(x >= g.saved("min"), x <= g.saved("max")));
}

// Near its end an interpolation is measured from there, so that it arrives exactly.
Lane interpolated(Lane start, Lane end, Lane weight) {
  Lane distance = end - start;
  return select(abs(weight) < 0.5, start + weight * distance, end - distance * (1.0 - weight));
}

// value / (x² + y²); at the origin, where an angle has no slope, 0.
Tensor by_square(const Tensor& value, const Tensor& y, const Tensor& x) {
  Tensor square = x * x + y * y;
  return where(square == 0, zeros_like(square), value / square);
}

// Of `lerp`: the operands have one dtype, a floating one.
void check_interpolation(const Arguments& arguments) {
  Dtype dtype = arguments.tensor("self").dtype();
  auto check_dtype = [&](const Tensor& tensor) {
    TENON_CHECK(tensor.dtype() == dtype, "[lerp] expected tensors of one dtype, got {} and {}", name(dtype),
                name(tensor.dtype()));
  };
  check_dtype(arguments.tensor("end"));
  // A weight of no dimensions is as good as a number.
  const dispatch::Value& weight = arguments["weight"];
  if (weight.is_tensor() && weight.tensor().dim() > 0) check_dtype(weight.tensor());
  check_floats<NotImplementedError>(arguments);
}

// Of `addcdiv`: a quotient of integers would be cut.
void check_quotient(const Arguments& arguments) {
  const Tensor &a = arguments.tensor("tensor1"), &b = arguments.tensor("tensor2");
  TENON_CHECK(is_floating(a.dtype()) || is_floating(b.dtype()),
              "[addcdiv] expected floating point tensors to divide, got {} and {}", a.description(), b.description());
  check_floats<RuntimeError>(arguments);
}

Tensor scaled(const Tensor& tensor, const dispatch::Value& factor) {
  Scalar value = factor.scalar();
  return !value.is_symbolic() && value.to_double() == 1 ? tensor : tensor * value;
}

}  // namespace

OPS(division) {
  // A quotient that is rounded is flat wherever it has a slope.
  op("floor_divide(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return floor_divided(x, y); })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); })
      .grad("other", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("floor_divide.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return floor_divided(x, y); })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("remainder.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return mod(x, y); })
      .rounds_operands()
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("other", saves("self", "other"),
            [](Grad& g) { return -g.grad() * floor_divide(g.saved("self"), g.saved("other")); });
  op("remainder.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return mod(x, y); })
      .rounds_operands()
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  op("fmod.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return rem(x, y); })
      .rounds_operands()
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("other", saves("self", "other"),
            [](Grad& g) { return -g.grad() * trunc(g.saved("self") / g.saved("other")); });
  op("fmod.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return rem(x, y); })
      .rounds_operands()
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  // Towards zero; with no mode it is the quotient.
  op("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
        if (!mode) return div(self, other);
        TENON_CHECK(*mode == "floor" || *mode == "trunc",
                    "[div] expected a rounding mode of 'floor', 'trunc' or none, got '{}'", *mode);
        if (*mode == "floor") return floor_divide(self, other);
        // The quotient of halves is a half before it is cut.
        const bool halves = compute_dtype(self.dtype()) != self.dtype() && self.dtype() == other.dtype();
        return halves ? trunc(div(self, other)) : _trunc_divide(self, other);
      });
  op("_trunc_divide(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return truncated(x, y); })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); })
      .grad("other", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("atan2(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane y, Lane x) { return atan2(y, x); })
      .rounds_operands()
      .grad("self", saves("self", "other"),
            [](Grad& g) { return g.grad() * by_square(g.saved("other"), g.saved("self"), g.saved("other")); })
      .grad("other", saves("self", "other"),
            [](Grad& g) { return -g.grad() * by_square(g.saved("self"), g.saved("self"), g.saved("other")); });
}

OPS(bits) {
  op("logical_xor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Logical, [](Lane x, Lane y) {
    return x ^ y;
  });
  op("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x & y; })
      .check(check_bits);
  op("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x & y; })
      .check(check_bits);
  op("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x | y; })
      .check(check_bits);
  op("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x | y; })
      .check(check_bits);
  op("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x ^ y; })
      .check(check_bits);
  op("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x ^ y; })
      .check(check_bits);
}

OPS(bounds) {
  op("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane low, Lane high) { return clamped(x, low, high); })
      .check(check_bounds)
      .grad("self", saves("self"), scalar_clamp_grad);
  op("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane low, Lane high) { return clamped(x, low, high); })
      .check(check_bounds)
      .grad("self", saves("self", "min", "max"), tensor_clamp_grad)
      .grad("min", saves("self", "min", "max"),
            [](Grad& g) {
              Tensor low = g.saved("min"), below = g.saved("self") < low;
              return inside(g, g.has("max") ? logical_and(below, low < g.saved("max")) : below);
            })
      .grad("max", saves("self", "min", "max"), [](Grad& g) {
        Tensor high = g.saved("max"), x = g.saved("self");
        return inside(g, g.has("min") ? logical_or(x > high, high < g.saved("min")) : x > high);
      });
  op("clamp_min(Tensor self, Scalar min) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane low) { return maximum(x, low); })
      .grad("self", saves("self"), [](Grad& g) { return inside(g, g.saved("self") >= g.argument("min").scalar()); });
  op("clamp_max(Tensor self, Scalar max) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane high) { return minimum(x, high); })
      .grad("self", saves("self"), [](Grad& g) { return inside(g, g.saved("self") <= g.argument("max").scalar()); });
  op("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane low) { return maximum(x, low); })
      .grad("self", saves("self", "min"), [](Grad& g) { return inside(g, g.saved("self") >= g.saved("min")); })
      .grad("min", saves("self", "min"), [](Grad& g) { return inside(g, g.saved("self") < g.saved("min")); });
  op("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane high) { return minimum(x, high); })
      .grad("self", saves("self", "max"), [](Grad& g) { return inside(g, g.saved("self") <= g.saved("max")); })
      .grad("max", saves("self", "max"), [](Grad& g) { return inside(g, g.saved("self") > g.saved("max")); });
  // In the dtype of self, whatever the value is.
  op("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor")
      .moves_elements()
      .pointwise(Promotion::Self, [](Lane x, Lane mask, Lane value) { return select(mask != 0.0, value, x); })
      .check([](const Arguments& arguments) {
        TENON_CHECK(arguments.tensor("mask").dtype() == kBool, "[masked_fill] expected a mask of bools, got {}",
                    arguments.tensor("mask").description());
      })
      .grad("self", saves("mask"), [](Grad& g) { return masked_fill(g.grad(), g.saved("mask"), 0); });
  op("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor")
      .moves_elements()
      .pointwise(Promotion::Self, [](Lane x, Lane mask, Lane value) { return select(mask != 0.0, value, x); })
      .check([](const Arguments& arguments) {
        TENON_CHECK(arguments.tensor("mask").dtype() == kBool, "[masked_fill] expected a mask of bools, got {}",
                    arguments.tensor("mask").description());
        TENON_CHECK(arguments.tensor("value").dim() == 0, "[masked_fill] expected a value of no dimensions, got {}",
                    arguments.tensor("value").description());
      })
      .grad("self", saves("mask"), [](Grad& g) { return masked_fill(g.grad(), g.saved("mask"), 0); })
      .grad("value", saves("mask"), [](Grad& g) { return inside(g, g.saved("mask")); });
}

OPS(combination) {
  op("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane weight) { return interpolated(x, y, weight); })
      .check(check_interpolation)
      .grad("self", saves(), [](Grad& g) { return g.grad() * (1 - g.argument("weight").scalar().to_double()); })
      .grad("end", saves(), [](Grad& g) { return g.grad() * g.argument("weight").scalar(); });
  op("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane weight) { return interpolated(x, y, weight); })
      .check(check_interpolation)
      .grad("self", saves("weight"), [](Grad& g) { return g.grad() * (1 - g.saved("weight")); })
      .grad("end", saves("weight"), [](Grad& g) { return g.grad() * g.saved("weight"); })
      .grad("weight", saves("self", "end"), [](Grad& g) { return g.grad() * (g.saved("end") - g.saved("self")); });
  op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane a, Lane b, Lane value) { return x + value * a * b; })
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("tensor1", saves("tensor2"),
            [](Grad& g) { return scaled(g.grad() * g.saved("tensor2"), g.argument("value")); })
      .grad("tensor2", saves("tensor1"),
            [](Grad& g) { return scaled(g.grad() * g.saved("tensor1"), g.argument("value")); });
  op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane a, Lane b, Lane value) { return x + value * a / b; })
      .check(check_quotient)
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("tensor1", saves("tensor2"),
            [](Grad& g) { return scaled(g.grad() / g.saved("tensor2"), g.argument("value")); })
      .grad("tensor2", saves("tensor1", "tensor2"), [](Grad& g) {
        Tensor b = g.saved("tensor2");
        return scaled(-g.grad() * (g.saved("tensor1") / (b * b)), g.argument("value"));
      });
}

}  // namespace tenon::ops
