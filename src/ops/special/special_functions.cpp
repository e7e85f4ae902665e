// Bessel's functions, the normal distribution's and Hurwitz' zeta function: an element takes a loop, in a kernel that
// fusion does not see into.
#include "ops/pointwise/each_pair.h"

#include <tenon/kernels/special.h>
#include <tenon/ops/table.h>

#include <numbers>

namespace tenon::ops {
namespace {

// A function of each element of the only argument.
auto each(double (*function)(double)) {
  return [function](RowBuilder&& row) -> RowBuilder&& {
    return std::move(row)
        .kernel([function](const Arguments& arguments, std::span<Tensor> outputs) {
          kernels::each_element(function, arguments.values()[0].tensor(), outputs[0]);
        })
        .shape([](const Arguments& arguments) {
          const Tensor& x = arguments.values()[0].tensor();
          TENON_CHECK(x.defined(), "[{}] expected a tensor, got an undefined one", arguments.op().brief_name());
          SymInts sizes = x.sym_sizes();
          return std::vector{TensorMeta{sizes, pointwise_strides(sizes, {&x, 1}), real(x.dtype()), x.device()}};
        });
  };
}

Tensor minus_sign_times(const Tensor& grad, const Tensor& x, const Tensor& scaled) { return grad * -sign(x) * scaled; }

// I1(x) / x, which is 1/2 at 0.
Tensor over(const Tensor& numerator, const Tensor& x) {
  return where(x == 0, full_like(x, 0.5), numerator / where(x == 0, ones_like(x), x));
}

}  // namespace

OPS(bessel) {
  op("special_bessel_j0(Tensor self) -> Tensor").as(each(kernels::bessel_j0));
  op("special_bessel_j1(Tensor self) -> Tensor").as(each(kernels::bessel_j1));
  op("special_bessel_y0(Tensor self) -> Tensor").as(each(kernels::bessel_y0));
  op("special_bessel_y1(Tensor self) -> Tensor").as(each(kernels::bessel_y1));
  op("special_spherical_bessel_j0(Tensor x) -> Tensor").as(each(kernels::spherical_bessel_j0));
  op("special_modified_bessel_i0(Tensor self) -> Tensor").as(each(kernels::modified_bessel_i0));
  op("special_modified_bessel_i1(Tensor self) -> Tensor").as(each(kernels::modified_bessel_i1));
  op("special_modified_bessel_k0(Tensor self) -> Tensor").as(each(kernels::modified_bessel_k0));
  op("special_modified_bessel_k1(Tensor self) -> Tensor").as(each(kernels::modified_bessel_k1));
  op("special_scaled_modified_bessel_k0(Tensor x) -> Tensor").as(each(kernels::scaled_modified_bessel_k0));
  op("special_scaled_modified_bessel_k1(Tensor x) -> Tensor").as(each(kernels::scaled_modified_bessel_k1));
  op("special_airy_ai(Tensor x) -> Tensor").as(each(kernels::airy_ai));
  op("i0(Tensor self) -> Tensor")
      .as(each(kernels::modified_bessel_i0))
      .with_inplace()
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * special_i1(g.saved("self")); });
  op("special_i0(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(self.defined(), "[special_i0] expected a tensor, got an undefined one");
    return i0(self);
  });
  op("special_i1(Tensor self) -> Tensor")
      .as(each(kernels::modified_bessel_i1))
      .grad("self", saves("self", "result"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * (i0(x) - over(g.saved("result"), x));
      });
  op("special_i0e(Tensor self) -> Tensor")
      .as(each(kernels::scaled_modified_bessel_i0))
      .grad("self", saves("self", "result"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * special_i1e(x) + minus_sign_times(g.grad(), x, g.saved("result"));
      });
  op("special_i1e(Tensor self) -> Tensor")
      .as(each(kernels::scaled_modified_bessel_i1))
      .grad("self", saves("self", "result"), [](Grad& g) {
        Tensor x = g.saved("self"), y = g.saved("result");
        return g.grad() * (special_i0e(x) - over(y, x)) + minus_sign_times(g.grad(), x, y);
      });
}

OPS(normal_distribution) {
  op("special_erfcx(Tensor self) -> Tensor")
      .as(each(kernels::scaled_erfc))
      .grad("self", saves("self", "result"), [](Grad& g) {
        return g.grad() * (g.saved("self") * g.saved("result") * 2 - 2 * std::numbers::inv_sqrtpi);
      });
  op("special_log_ndtr(Tensor self) -> Tensor")
      .as(each(kernels::log_normal_distribution))
      .grad("self", saves("self"), [](Grad& g) {
        Tensor t = g.saved("self") * (-std::numbers::sqrt2 / 2);
        return g.grad() / special_erfcx(t) * (std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
      });
  op("special_ndtri(Tensor self) -> Tensor")
      .as(each(kernels::normal_quantile))
      .grad("self", saves("result"), [](Grad& g) {
        Tensor x = g.saved("result");
        return g.grad() * exp(x * x / 2) * (std::numbers::sqrt2 / std::numbers::inv_sqrtpi);
      });
}

OPS(zeta) {
  // Of s there is no gradient.
  op("special_zeta(Tensor self, Tensor other) -> Tensor")
      .as(each_pair(kernels::hurwitz_zeta))
      .grad("other", saves("self", "other"), [](Grad& g) {
        Tensor s = g.saved("self");
        return sum_to_size(g.grad() * -s * special_zeta(s + 1, g.saved("other")), g.sizes("other"));
      });
  op("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor").decompose([](const Scalar& s, const Tensor& q) {
    return special_zeta(beside(s, q), q);
  });
  op("special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor").decompose([](const Tensor& s, const Scalar& q) {
    return special_zeta(s, beside(q, s));
  });
}

}  // namespace tenon::ops
