// Special functions that take a loop for each element.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The n-th derivative of digamma, in float64, rounded once.
void polygamma(int64_t n, const TensorBase& self, const TensorBase& out);

// The regularized incomplete gamma function of the parameter `self` at `other`, the lower one or the upper one: the
// share of gamma's integral up to there, or from there on. Both are broadcast to `out`. In float64, rounded once.
void incomplete_gamma(const TensorBase& self, const TensorBase& other, bool is_upper, const TensorBase& out);

// A function of each element, or of each pair of them (which are broadcast to the sizes of `out`), in float64, rounded
// once.
void each_element(double (*function)(double), const TensorBase& self, const TensorBase& out);
void each_pair(double (*function)(double, double), const TensorBase& a, const TensorBase& b, const TensorBase& out);

// exp(x²) erfc(x); the logarithm of the normal distribution function, and its inverse.
double scaled_erfc(double x);
double log_normal_distribution(double x);
double normal_quantile(double p);
// Hurwitz' zeta function: the sum of (q + k)^-s for k >= 0.
double hurwitz_zeta(double s, double q);

// Bessel's functions of the first and second kind, of order 0 and 1.
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double spherical_bessel_j0(double x);
// The modified ones, and those times exp(-|x|) (first kind), exp(x) (second kind).
double modified_bessel_i0(double x);
double modified_bessel_i1(double x);
double scaled_modified_bessel_i0(double x);
double scaled_modified_bessel_i1(double x);
double modified_bessel_k0(double x);
double modified_bessel_k1(double x);
double scaled_modified_bessel_k0(double x);
double scaled_modified_bessel_k1(double x);
// Airy's function Ai.
double airy_ai(double x);

// Orthogonal polynomials in x of the degree that is the whole part of n, cut towards 0; 0 for a negative one.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double shifted_chebyshev_t(double x, double n);
double shifted_chebyshev_u(double x, double n);
double shifted_chebyshev_v(double x, double n);
double shifted_chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace tenon::kernels
