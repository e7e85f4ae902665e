// Factors of matrices, and what is solved with them. Each works on batches [..., m, n] of float32 or float64, computes
// in float64 and rounds once. `info` (int32[...]) has 0 for each matrix that could be factored, or the number of the
// first pivot, from 1 on, that is zero or, of a Cholesky factor, not positive.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// Gauss' elimination with partial pivoting: L below the diagonal, whose own is of ones, and U; row `at` was exchanged
// with row pivots[at] - 1, one after another. (Golub and Van Loan, 3.4.)
void lu_factor(const TensorBase& self, const TensorBase& lu, const TensorBase& pivots, const TensorBase& info);

// X of A X = B (X A = B unless `left`), or with A transposed; A as `lu_factor` gives it.
void lu_solve(const TensorBase& lu, const TensorBase& pivots, const TensorBase& b, bool left, bool transposed,
              const TensorBase& result);

// P, L and U of which P L U is the matrix; each of them, but for L and U together, may be undefined.
void lu_unpack(const TensorBase& lu, const TensorBase& pivots, const TensorBase& p, const TensorBase& l,
               const TensorBase& u);

// The sign, and the logarithm of the magnitude, of the determinant of what was factored; and the determinant itself.
void lu_determinant(const TensorBase& lu, const TensorBase& pivots, const TensorBase& sign,
                    const TensorBase& logarithm);
void lu_determinant(const TensorBase& lu, const TensorBase& pivots, const TensorBase& determinant);

// L of L Lᵀ, or U of Uᵀ U, from that triangle of the matrix; the other triangle of the factor is zero.
void cholesky_factor(const TensorBase& self, bool upper, const TensorBase& factor, const TensorBase& info);

// X of A X = B, or X A = B, for a triangular A, of which the other triangle is not read, nor, if `unit`, the diagonal.
void solve_triangular(const TensorBase& a, const TensorBase& b, bool upper, bool left, bool unit, bool transposed,
                      const TensorBase& result);

// L D Lᵀ of symmetric matrices, from the lower triangle, by Bunch and Kaufman's pivots: D has blocks of one or two. A
// pivot above 0 is the row that was exchanged; two equal ones below 0 stand for a block of two. (Golub and Van Loan,
// 4.4; the order of pivots is LAPACK's.)
void ldl_factor(const TensorBase& self, const TensorBase& ld, const TensorBase& pivots, const TensorBase& info);
void ldl_solve(const TensorBase& ld, const TensorBase& pivots, const TensorBase& b, const TensorBase& result);

// Householder's reflections that make a matrix upper triangular: R on and above the diagonal, the reflections below it,
// whose first elements are 1; reflection i is 1 - tau[i] v vᵀ. (Golub and Van Loan, 5.2.)
void householder_factor(const TensorBase& self, const TensorBase& reflections, const TensorBase& tau);
// The first columns of the product of the reflections, as many as `result` has; from k of them, those of `tau`.
void householder_product(const TensorBase& reflections, const TensorBase& tau, const TensorBase& result);
// Q other, or other Q, or with Q transposed, where Q is the whole product.
void householder_apply(const TensorBase& reflections, const TensorBase& tau, const TensorBase& other, bool left,
                       bool transposed, const TensorBase& result);

// U diag(S) Vᵀ, S descending; U and Vᵀ may be undefined, and have all columns or as many as S. One-sided rotations
// (Golub and Van Loan, 8.6.3) find small singular values as exactly as the matrix has them. What is not finite has
// NaNs.
void singular_values(const TensorBase& self, const TensorBase& u, const TensorBase& s, const TensorBase& vh);

// Ones on the diagonal of each matrix, zeros elsewhere.
void identity(const TensorBase& result);
// The first rows of each matrix on and above the diagonal, as many as `result` has; zeros below.
void upper_triangle(const TensorBase& self, const TensorBase& result);

// The exponential of square matrices, by squaring that of a small one. (Golub and Van Loan, 9.3.)
void matrix_exponential(const TensorBase& self, const TensorBase& result);

}  // namespace tenon::kernels
