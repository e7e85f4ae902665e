// Functions of two or three elements.
#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

// Scalars come in the promoted dtype; a factor of one is exact, so it needs no special case.
Lane add_scaled(Lane x, Lane y, Lane alpha) { return x + alpha * y; }

Tensor scaled(const Tensor& grad, const dispatch::Value& alpha) {
  Scalar factor = alpha.scalar();
  if (!factor.is_symbolic() && factor.to_double() == 1) return grad;
  return grad * factor;
}

// Of two equal ones each has half of the gradient; a NaN, which is not less than anything, passes it on to both.
Tensor unless(Grad& g, const Tensor& lost) {
  Tensor equal = g.saved("self") == g.saved("other");
  return where(equal, g.grad() / 2, where(lost, zeros_like(g.grad()), g.grad()));
}

void check_condition(const Arguments& arguments) {
  const Tensor& condition = arguments.tensor("condition");
  TENON_CHECK(condition.dtype() == kBool || condition.dtype() == kUInt8,
              "[where] expected a condition of bools, got {}", condition.description());
}

// Bools have no difference: whoever writes one means another operator.
void check_difference(const Arguments& arguments) {
  auto is_bool = [&](const char* argument) {
    const dispatch::Value& value = arguments[argument];
    return value.is_tensor() ? value.tensor().dtype() == kBool : value.scalar().kind() == Scalar::Kind::Bool;
  };
  bool self = is_bool("self"), other = is_bool("other");
  TENON_CHECK(!self || !other, "[{}] two bools cannot be subtracted: use ^ or logical_xor()",
              arguments.op().brief_name());
  TENON_CHECK(!self && !other,
              "[{}] a bool cannot be subtracted, nor subtracted from: use ~ or logical_not() for a mask",
              arguments.op().brief_name());
}

}  // namespace

OPS(binary) {
  op("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .role(Role::Add)
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane alpha) { return add_scaled(x, y, alpha); })
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("other", saves(), [](Grad& g) { return scaled(g.grad(), g.argument("alpha")); });
  op("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .role(Role::Add)
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane alpha) { return add_scaled(x, y, alpha); })
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  op("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .role(Role::Subtract)
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane alpha) { return x - alpha * y; })
      .check(check_difference)
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("other", saves(), [](Grad& g) { return scaled(-g.grad(), g.argument("alpha")); });
  op("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .role(Role::Subtract)
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane alpha) { return x - alpha * y; })
      .check(check_difference)
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  op("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y, Lane alpha) { return y - alpha * x; })
      .check(check_difference)
      .grad("self", saves(), [](Grad& g) { return scaled(-g.grad(), g.argument("alpha")); })
      .no_inplace();
  op("mul.Tensor(Tensor self, Tensor other) -> Tensor")
      .role(Role::Multiply)
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x * y; })
      .grad("self", saves("other"), [](Grad& g) { return g.grad() * g.saved("other"); })
      .grad("other", saves("self"), [](Grad& g) { return g.grad() * g.saved("self"); });
  op("mul.Scalar(Tensor self, Scalar other) -> Tensor")
      .role(Role::Multiply)
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return x * y; })
      .grad("self", saves(), [](Grad& g) { return g.grad() * g.argument("other").scalar(); });
  op("div.Tensor(Tensor self, Tensor other) -> Tensor")
      .role(Role::Divide)
      .pointwise(Promotion::ToFloat, [](Lane x, Lane y) { return x / y; })
      .grad("self", saves("other"), [](Grad& g) { return g.grad() / g.saved("other"); })
      .grad("other", saves("self", "other"), [](Grad& g) {
        Tensor other = g.saved("other");
        return -g.grad() * ((g.saved("self") / other) / other);
      });
  op("div.Scalar(Tensor self, Scalar other) -> Tensor")
      .role(Role::Divide)
      .pointwise(Promotion::ToFloat, [](Lane x, Lane y) { return x / y; })
      .grad("self", saves(), [](Grad& g) { return g.grad() / g.argument("other").scalar(); });
  op("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return pow(x, y); })
      .rounds_operands()
      .grad("self", saves("self", "exponent"),
            [](Grad& g) {
              Tensor x = g.saved("self"), y = g.saved("exponent");
              return where(y == 0, zeros_like(x), g.grad() * (y * pow(x, y - 1)));
            })
      .grad("exponent", saves("self", "exponent", "result"), [](Grad& g) {
        Tensor x = g.saved("self"), y = g.saved("exponent");
        Tensor slope = g.grad() * (g.saved("result") * log(x));
        return where(logical_and(x == 0, y >= 0), zeros_like(slope), slope);
      });
  op("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
      .decompose([](const Tensor& self, const Scalar& exponent) {
        // Small whole powers and the root are exact; everything else is the general function.
        if (!exponent.is_symbolic()) {
          double y = exponent.to_double();
          bool floating = is_floating(self.dtype());
          // The power of a bool is a number, unless its exponent is a bool too.
          if (self.dtype() == kBool && exponent.kind() == Scalar::Kind::Int) return pow(self.to(kInt64), exponent);
          if (y == 1) return exponent.is_real() && !floating ? self.to(kFloat32) : clone(self);
          if (y == 2 && (floating || !exponent.is_real())) return self * self;
          if (y == 3 && (floating || !exponent.is_real())) return self * self * self;
          if (y == 0.5 && floating) return sqrt(self);
          if (y == -1 && floating) return reciprocal(self);
          TENON_CHECK(floating || exponent.is_real() || y >= 0,
                      "[pow] integers cannot be raised to the negative power {}", exponent.str());
        }
        Dtype dtype = exponent.is_real() && !is_floating(self.dtype()) ? kFloat32 : self.dtype();
        return pow(self.to(dtype), full(SymInts{}, exponent, TensorOptions(dtype, self.device())));
      })
      .grad("self", saves("self"), [](Grad& g) {
        Scalar exponent = g.argument("exponent").scalar();
        if (!exponent.is_symbolic() && exponent.to_double() == 0) return zeros_like(g.grad());
        Scalar lower = exponent.is_real() ? Scalar(exponent.sym_real() - 1) : Scalar(exponent.integer() - 1);
        return g.grad() * (pow(g.saved("self"), lower) * exponent);
      });
  op("maximum(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return maximum(x, y); })
      .no_inplace()
      .grad("self", saves("self", "other"), [](Grad& g) { return unless(g, g.saved("self") < g.saved("other")); })
      .grad("other", saves("self", "other"), [](Grad& g) { return unless(g, g.saved("self") > g.saved("other")); });
  op("minimum(Tensor self, Tensor other) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane y) { return minimum(x, y); })
      .no_inplace()
      .grad("self", saves("self", "other"), [](Grad& g) { return unless(g, g.saved("self") > g.saved("other")); })
      .grad("other", saves("self", "other"), [](Grad& g) { return unless(g, g.saved("self") < g.saved("other")); });
  op("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor")
      .moves_elements()
      .pointwise(Promotion::Branch, [](Lane condition, Lane x, Lane y) { return select(condition, x, y); })
      .check(check_condition)
      .grad("self", saves("condition"),
            [](Grad& g) { return where(g.saved("condition"), g.grad(), zeros_like(g.grad())); })
      .grad("other", saves("condition"),
            [](Grad& g) { return where(g.saved("condition"), zeros_like(g.grad()), g.grad()); });
}

OPS(comparison) {
  op("eq.Tensor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x == y;
  });
  op("eq.Scalar(Tensor self, Scalar other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x == y;
  });
  op("ne.Tensor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x != y;
  });
  op("ne.Scalar(Tensor self, Scalar other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x != y;
  });
  op("lt.Tensor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x < y;
  });
  op("lt.Scalar(Tensor self, Scalar other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x < y;
  });
  op("le.Tensor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x <= y;
  });
  op("le.Scalar(Tensor self, Scalar other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x <= y;
  });
  op("gt.Tensor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x > y;
  });
  op("gt.Scalar(Tensor self, Scalar other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x > y;
  });
  op("ge.Tensor(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x >= y;
  });
  op("ge.Scalar(Tensor self, Scalar other) -> Tensor").pointwise(Promotion::Compare, [](Lane x, Lane y) {
    return x >= y;
  });
  op("logical_and(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Logical, [](Lane x, Lane y) {
    return x & y;
  });
  op("logical_or(Tensor self, Tensor other) -> Tensor").pointwise(Promotion::Logical, [](Lane x, Lane y) {
    return x | y;
  });
}

}  // namespace tenon::ops
