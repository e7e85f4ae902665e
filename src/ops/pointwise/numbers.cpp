// Functions of one and two numbers that look at signs, remainders and values that are no numbers.
#include "ops/pointwise/each_pair.h"

#include <tenon/ops/table.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace tenon::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void check_floats(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK_IMPLEMENTED(is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}",
                          arguments.op().brief_name(), self.description());
}

const Tensor& defined(const Tensor& self, const char* op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return self;
}

// Whether the sign bit of a number is set: a zero has one, too.
Lane is_negative(Lane x) {
  if (!is_floating(x.dtype())) return x.dtype() == kBool || x.dtype() == kUInt8 ? x != x : x < 0.0;
  return (x < 0.0) | ((x == 0.0) & (reciprocal(x) < 0.0));
}

Lane nan_like(Lane x) { return number(x, std::numeric_limits<double>::quiet_NaN()); }

// The largest number that is not infinite.
double largest(Dtype dtype) {
  switch (dtype) {
    case kFloat16: return 65504;
    case kBFloat16: return 3.3895313892515355e38;
    case kFloat32: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

Tensor finite_numbers(const Tensor& self, std::optional<double> nan, std::optional<double> high,
                      std::optional<double> low) {
  if (!is_floating(defined(self, "nan_to_num").dtype())) return clone(self);
  auto constant = [&](double value) { return full(SymInts{}, value, TensorOptions(self.dtype(), self.device())); };
  Tensor numbers = where(isnan(self), constant(nan.value_or(0)), self);
  numbers = where(self == kInf, constant(high.value_or(largest(self.dtype()))), numbers);
  return where(self == -kInf, constant(low.value_or(-largest(self.dtype()))), numbers);
}

// Where a NaN loses, the other one has the gradient.
Tensor where_chosen(Grad& g, const Tensor& chosen) { return where(chosen, g.grad(), zeros_like(g.grad())); }
Tensor first_of_fmax(Grad& g) { return logical_or(g.saved("self") >= g.saved("other"), isnan(g.saved("other"))); }
Tensor first_of_fmin(Grad& g) { return logical_or(g.saved("self") <= g.saved("other"), isnan(g.saved("other"))); }

// log(b^x + b^y) from the larger one and the distance.
Lane log_of_sum(Lane x, Lane y, double scale) {
  Lane high = maximum(x, y), distance = abs(x - y);
  Lane sum = high + log1p(exp(distance * -scale)) / scale;
  return select(abs(high) == kInf, select(x == y, high, sum), sum);
}

Lane x_log_y(Lane x, Lane y) { return select(isnan(y), nan_like(x), select(x == 0.0, number(x, 0), x * log(y))); }

// How finely a dtype's numbers lie: the bits of a significand, and the exponent of the smallest one that is not 0.
struct Grid {
  int digits, least;
  static Grid of(Dtype dtype) {
    switch (dtype) {
      case kFloat16: return {11, -24};
      case kBFloat16: return {8, -133};
      case kFloat32: return {24, -149};
      default: return {53, -1074};
    }
  }
  double slope() const { return std::ldexp(1 + std::ldexp(2, -digits), -digits); }
};

// Neighbours by arithmetic alone (Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor and successor in
// rounding to nearest", 2009): u (1 + 2u) times a number is more than half a step of its last digit and less than one
// and a half, so that adding or subtracting it and rounding gives the neighbour. `size`: not negative; `sign`: 1 or -1.
Lane neighbour(Lane size, Lane sign, const Grid& grid) {
  Lane least = number(size, std::ldexp(1, grid.least));
  if (grid.digits < 53) return size + sign * maximum(size * grid.slope(), least);  // rounded later
  // Products of very small numbers are not exact: those are made larger, or have neighbours that are equally far.
  const double scale = std::ldexp(1, grid.digits);
  Lane scaled = size * scale;
  Lane small = (scaled + sign * (scaled * grid.slope())) / scale;
  return select(size >= std::ldexp(1, 2 * grid.digits - 1 + grid.least), size + sign * (size * grid.slope()),
                select(size < std::ldexp(1, grid.digits + grid.least), size + sign * least, small));
}

Lane next_after(Dtype dtype, Lane from, Lane to) {
  Lane x = cast(from, kFloat64), y = cast(to, kFloat64), size = abs(x);
  Grid grid = Grid::of(dtype);
  Lane outward = select(x < 0.0, y<x, y> x);
  Lane next = neighbour(size, select(outward, number(x, 1), number(x, -1)), grid);
  next = select(size == kInf, number(x, largest(dtype)), next);
  Lane least = number(x, std::ldexp(1, grid.least));
  next = select(x == 0.0, select(y > 0.0, least, -least), select(x < 0.0, -next, next));
  next = select(x == y, y, select(isnan(x), x, select(isnan(y), y, next)));
  return from.dtype() == kFloat64 ? next : cast(next, from.dtype());
}

void check_promoted_floats(const Arguments& arguments) {
  Dtype dtype = result_type(arguments);
  TENON_CHECK_IMPLEMENTED(is_floating(dtype), "[{}] expected floating point tensors, got numbers of {}",
                          arguments.op().brief_name(), name(dtype));
}

Tensor rounded(const Tensor& self, int64_t decimals) {
  if (decimals == 0 || !is_floating(defined(self, "round").dtype())) return round(self);
  double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return decimals > 0 ? round(self * scale) / scale : round(self / scale) * scale;
}

Tensor power_of_number(const Scalar& self, const Tensor& exponent) {
  Dtype dtype = defined(exponent, "pow").dtype();
  if (!is_floating(dtype) && self.is_real()) dtype = kFloat32;
  if (dtype == kBool) dtype = kInt64;
  Tensor base = full(SymInts{}, self, TensorOptions(dtype, exponent.device()));
  return pow(base, exponent.to(dtype));
}

}  // namespace

OPS(numbers) {
  op("sgn(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return sign(x); })
      .grad("self", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("signbit(Tensor self) -> Tensor")
      .pointwise(Promotion::Compare, [](Lane x) { return is_negative(x); })
      .no_inplace();
  op("copysign.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x, Lane y) { return select(is_negative(y), -abs(x), abs(x)); })
      .grad("self", saves("self", "result"),
            [](Grad& g) {
              Tensor x = g.saved("self");
              return where(x == 0, zeros_like(g.grad()), g.grad() * (g.saved("result") / x));
            })
      .grad("other", saves(), [](Grad& g) { return zeros_like(g.grad()); });
  op("copysign.Scalar(Tensor self, Scalar other) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x, Lane y) { return select(is_negative(y), -abs(x), abs(x)); })
      .grad("self", saves("self", "result"), [](Grad& g) {
        Tensor x = g.saved("self");
        return where(x == 0, zeros_like(g.grad()), g.grad() * (g.saved("result") / x));
      });
  op("nextafter(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Dtype dtype, Lane x, Lane y) { return next_after(dtype, x, y); })
      .rounds_operands()
      .check(check_promoted_floats)
      .grad_not_implemented("self")
      .grad_not_implemented("other");
  op("frac(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return x - trunc(x); })
      .check(check_floats)
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  op("heaviside(Tensor self, Tensor values) -> Tensor").pointwise(Promotion::Same, [](Lane x, Lane at_zero) {
    return select(x == 0.0, at_zero, select(x > 0.0, number(x, 1), number(x, 0)));
  });
  op("round.decimals(Tensor self, *, int decimals) -> Tensor").decompose(rounded).grad("self", saves(), [](Grad& g) {
    return zeros_like(g.grad());
  });
  op("deg2rad(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return x * (std::numbers::pi / 180); })
      .grad("self", saves(), [](Grad& g) { return g.grad() * (std::numbers::pi / 180); });
  op("rad2deg(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return x * (180 / std::numbers::pi); })
      .grad("self", saves(), [](Grad& g) { return g.grad() * (180 / std::numbers::pi); });

  // What is no number, or none that can be counted with.
  op("isposinf(Tensor self) -> Tensor")
      .pointwise(Promotion::Compare, [](Lane x) { return is_floating(x.dtype()) ? x == kInf : x != x; })
      .no_inplace();
  op("isneginf(Tensor self) -> Tensor")
      .pointwise(Promotion::Compare, [](Lane x) { return is_floating(x.dtype()) ? x == -kInf : x != x; })
      .no_inplace();
  op("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
      .decompose(finite_numbers)
      .with_inplace();
  // A NaN loses against a number.
  op("fmax(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane x, Lane y) {
                   if (!is_floating(x.dtype())) return maximum(x, y);
                   return select(isnan(x), y, select(isnan(y), x, maximum(x, y)));
                 })
      .no_inplace()
      .grad("self", saves("self", "other"), [](Grad& g) { return where_chosen(g, first_of_fmax(g)); })
      .grad("other", saves("self", "other"), [](Grad& g) { return where_chosen(g, logical_not(first_of_fmax(g))); });
  op("fmin(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane x, Lane y) {
                   if (!is_floating(x.dtype())) return minimum(x, y);
                   return select(isnan(x), y, select(isnan(y), x, minimum(x, y)));
                 })
      .no_inplace()
      .grad("self", saves("self", "other"), [](Grad& g) { return where_chosen(g, first_of_fmin(g)); })
      .grad("other", saves("self", "other"), [](Grad& g) { return where_chosen(g, logical_not(first_of_fmin(g))); });

  // The root of the squares' sum, without squares that overflow.
  op("hypot(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane x, Lane y) {
                   Lane high = maximum(abs(x), abs(y)), ratio = minimum(abs(x), abs(y)) / high;
                   Lane length = high * sqrt(ratio * ratio + 1.0);
                   Lane infinite = (abs(x) == kInf) | (abs(y) == kInf);
                   return select(infinite, number(x, kInf), select(high == 0.0, number(x, 0), length));
                 })
      .rounds_operands()
      .check(check_floats)
      .grad("self", saves("self", "result"), [](Grad& g) { return g.grad() * (g.saved("self") / g.saved("result")); })
      .grad("other", saves("other", "result"),
            [](Grad& g) { return g.grad() * (g.saved("other") / g.saved("result")); });
  op("logaddexp(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return log_of_sum(x, y, 1); })
      .rounds_operands()
      .check(check_floats)
      .no_inplace()
      .grad("self", saves("self", "other"),
            [](Grad& g) { return g.grad() / (1 + exp(g.saved("other") - g.saved("self"))); })
      .grad("other", saves("self", "other"),
            [](Grad& g) { return g.grad() / (1 + exp(g.saved("self") - g.saved("other"))); });
  op("logaddexp2(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return log_of_sum(x, y, std::numbers::ln2); })
      .rounds_operands()
      .check(check_floats)
      .no_inplace()
      .grad("self", saves("self", "other"),
            [](Grad& g) { return g.grad() / (1 + exp2(g.saved("other") - g.saved("self"))); })
      .grad("other", saves("self", "other"),
            [](Grad& g) { return g.grad() / (1 + exp2(g.saved("self") - g.saved("other"))); });
  op("xlogy.Tensor(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x, Lane y) { return x_log_y(x, y); })
      .rounds_operands()
      .grad("self", saves("self", "other"),
            [](Grad& g) {
              Tensor x = g.saved("self"), y = g.saved("other"), slope = g.grad() * log(y);
              return where(logical_and(x == 0, y <= 0), zeros_like(slope), slope);
            })
      .grad("other", saves("self", "other"), [](Grad& g) { return g.grad() * (g.saved("self") / g.saved("other")); });
  op("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor").decompose([](const Scalar& x, const Tensor& y) {
    return xlogy(beside(x, y), y);
  });
  op("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor").decompose([](const Tensor& x, const Scalar& y) {
    return xlogy(x, beside(y, x));
  });
  op("special_xlogy(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& x, const Tensor& y) {
    return xlogy(defined(x, "special_xlogy"), defined(y, "special_xlogy"));
  });
  op("special_xlog1py(Tensor self, Tensor other) -> Tensor")
      .pointwise(
          Promotion::ToFloat,
          [](Lane x, Lane y) { return select(isnan(y), nan_like(x), select(x == 0.0, number(x, 0), x * log1p(y))); })
      .rounds_operands()
      .no_inplace()
      .grad("self", saves("self", "other"),
            [](Grad& g) {
              Tensor x = g.saved("self"), y = g.saved("other"), slope = g.grad() * log1p(y);
              return where(logical_and(x == 0, y <= -1), zeros_like(slope), slope);
            })
      .grad("other", saves("self", "other"),
            [](Grad& g) { return g.grad() * (g.saved("self") / (g.saved("other") + 1)); });
  op("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& y) { return special_xlog1py(beside(x, y), y); });
  op("special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& y) { return special_xlog1py(x, beside(y, x)); });
  op("pow.Scalar(Scalar self, Tensor exponent) -> Tensor").decompose(power_of_number);
}

}  // namespace tenon::ops
