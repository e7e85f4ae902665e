// Orthogonal polynomials of a degree for each element.
#include "ops/pointwise/each_pair.h"

namespace tenon::ops {

OPS(polynomials) {
  op("special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::chebyshev_t));
  op("special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_chebyshev_polynomial_t(beside(x, n), n); });
  op("special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_chebyshev_polynomial_t(x, beside(n, x)); });
  op("special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::chebyshev_u));
  op("special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_chebyshev_polynomial_u(beside(x, n), n); });
  op("special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_chebyshev_polynomial_u(x, beside(n, x)); });
  op("special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::chebyshev_v));
  op("special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_chebyshev_polynomial_v(beside(x, n), n); });
  op("special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_chebyshev_polynomial_v(x, beside(n, x)); });
  op("special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::chebyshev_w));
  op("special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_chebyshev_polynomial_w(beside(x, n), n); });
  op("special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_chebyshev_polynomial_w(x, beside(n, x)); });
  op("special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor")
      .as(each_pair(kernels::shifted_chebyshev_t));
  op("special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose(
          [](const Scalar& x, const Tensor& n) { return special_shifted_chebyshev_polynomial_t(beside(x, n), n); });
  op("special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose(
          [](const Tensor& x, const Scalar& n) { return special_shifted_chebyshev_polynomial_t(x, beside(n, x)); });
  op("special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor")
      .as(each_pair(kernels::shifted_chebyshev_u));
  op("special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose(
          [](const Scalar& x, const Tensor& n) { return special_shifted_chebyshev_polynomial_u(beside(x, n), n); });
  op("special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose(
          [](const Tensor& x, const Scalar& n) { return special_shifted_chebyshev_polynomial_u(x, beside(n, x)); });
  op("special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor")
      .as(each_pair(kernels::shifted_chebyshev_v));
  op("special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose(
          [](const Scalar& x, const Tensor& n) { return special_shifted_chebyshev_polynomial_v(beside(x, n), n); });
  op("special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose(
          [](const Tensor& x, const Scalar& n) { return special_shifted_chebyshev_polynomial_v(x, beside(n, x)); });
  op("special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor")
      .as(each_pair(kernels::shifted_chebyshev_w));
  op("special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose(
          [](const Scalar& x, const Tensor& n) { return special_shifted_chebyshev_polynomial_w(beside(x, n), n); });
  op("special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose(
          [](const Tensor& x, const Scalar& n) { return special_shifted_chebyshev_polynomial_w(x, beside(n, x)); });
  op("special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::hermite_h));
  op("special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_hermite_polynomial_h(beside(x, n), n); });
  op("special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_hermite_polynomial_h(x, beside(n, x)); });
  op("special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::hermite_he));
  op("special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_hermite_polynomial_he(beside(x, n), n); });
  op("special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_hermite_polynomial_he(x, beside(n, x)); });
  op("special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::laguerre_l));
  op("special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_laguerre_polynomial_l(beside(x, n), n); });
  op("special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_laguerre_polynomial_l(x, beside(n, x)); });
  op("special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor").as(each_pair(kernels::legendre_p));
  op("special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor")
      .decompose([](const Scalar& x, const Tensor& n) { return special_legendre_polynomial_p(beside(x, n), n); });
  op("special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor")
      .decompose([](const Tensor& x, const Scalar& n) { return special_legendre_polynomial_p(x, beside(n, x)); });
}

}  // namespace tenon::ops
