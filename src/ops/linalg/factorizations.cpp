// Factors of matrices: Cholesky's, L D Lᵀ, orthogonal and triangular ones, singular values.
#include "ops/linalg/matrices.h"
#include "ops/linalg/reflections.h"

#include <tenon/kernels/factorizations.h>

namespace tenon::ops {
namespace {

constexpr std::string_view kPositive = "positive definite matrices, whose pivots are positive";

std::vector<TensorMeta> cholesky_shape(const Arguments& arguments) {
  const Tensor& self = matrices(arguments.tensor("self"), "linalg_cholesky", true);
  return {by_columns(self.sym_sizes(), self), numbers(outer_sizes(self), self, kInt32)};
}

// As in PyTorch a gradient among symmetric matrices, whichever triangle was read.
Tensor cholesky_gradient(Grad& g) {
  const bool upper = g.argument("upper").boolean();
  Tensor l = upper ? turned(g.saved("L")) : g.saved("L"), grad = upper ? turned(g.grad()) : g.grad();
  Tensor inner = tril(matmul(turned(l), grad));
  inner = inner - unsqueeze(diagonal(inner, 0, -2, -1) * 0.5, -1) * unit_like(l, l.size(-1));
  inner = linalg_solve_triangular(turned(l), inner, true);
  inner = linalg_solve_triangular(l, inner, false, false);
  return (inner + turned(inner)) * 0.5;
}

std::vector<TensorMeta> blocks_shape(const Arguments& arguments) {
  const Tensor& self = matrices(arguments.tensor("self"), "linalg_ldl_factor", true);
  const SymInts batch = outer_sizes(self);
  return {by_columns(self.sym_sizes(), self), numbers(with(batch, {self.size(-1)}), self, kInt32),
          numbers(batch, self, kInt32)};
}

std::vector<TensorMeta> blocks_solve_shape(const Arguments& arguments) {
  const Tensor &ld = matrices(arguments.tensor("LD"), "linalg_ldl_solve", true), &pivots = arguments.tensor("pivots"),
               &b = matrices(arguments.tensor("B"), "linalg_ldl_solve");
  TENON_CHECK(pivots.defined() && pivots.dtype() == kInt32 && pivots.dim() == ld.dim() - 1 &&
                  same_size(pivots.size(-1), ld.size(-1)),
              "[linalg_ldl_solve] expected pivots of int32, a list for each of {}, got {}", ld.description(),
              pivots.defined() ? pivots.description() : "an undefined tensor");
  TENON_CHECK(same_size(ld.size(-1), b.size(-2)) && ld.dtype() == b.dtype(),
              "[linalg_ldl_solve] expected columns that fit matrices {}, got {}", ld.description(), b.description());
  const SymInts shapes[] = {outer_sizes(ld), outer_sizes(b)};
  return {by_columns(with(broadcast(shapes, "linalg_ldl_solve"), {b.size(-2), b.size(-1)}), b)};
}

std::vector<TensorMeta> reflections_shape(const Arguments& arguments) {
  const Tensor& self = matrices(arguments.tensor("self"), "geqrf");
  return {by_columns(self.sym_sizes(), self),
          numbers(with(outer_sizes(self), {smaller(self.size(-2), self.size(-1))}), self, self.dtype())};
}

// Checks the reflections' factors; `most`: how many there may be.
void check_tau(const Tensor& input, const Tensor& tau, std::string_view op_name) {
  const bool fits = tau.defined() && tau.dim() == input.dim() - 1 && tau.dtype() == input.dtype();
  TENON_CHECK(fits, "[{}] expected a list of factors for each of {}, got {}", op_name, input.description(),
              tau.defined() ? tau.description() : "an undefined tensor");
  const SymInts expected = outer_sizes(input), got = outer_sizes(tau, 1);
  for (size_t dim = 0; dim < expected.size(); ++dim)
    TENON_CHECK(same_size(expected[dim], got[dim]), "[{}] expected a list of factors for each of {}, got {}", op_name,
                input.description(), tau.description());
  TENON_CHECK(expect(tau.size(-1) <= input.size(-1)), "[{}] expected at most {} reflections, got {}", op_name,
              input.size(-1).str(), tau.description());
}

std::vector<TensorMeta> product_shape(const Arguments& arguments) {
  const Tensor &input = matrices(arguments.tensor("input"), "linalg_householder_product"),
               &tau = arguments.tensor("tau");
  TENON_CHECK(expect(input.size(-2) >= input.size(-1)),
              "[linalg_householder_product] expected at least as many rows as columns, got {}", input.description());
  check_tau(input, tau, "linalg_householder_product");
  return {by_columns(input.sym_sizes(), input)};
}

std::vector<TensorMeta> apply_shape(const Arguments& arguments) {
  const Tensor &self = matrices(arguments.tensor("self"), "ormqr"), &tau = arguments.tensor("input2"),
               &other = matrices(arguments.tensor("input3"), "ormqr");
  check_tau(self, tau, "ormqr");
  const bool left = arguments.boolean("left");
  TENON_CHECK(same_size(self.size(-2), other.size(left ? -2 : -1)) && self.dtype() == other.dtype() &&
                  self.dim() == other.dim(),
              "[ormqr] expected matrices that fit reflections {}, got {}", self.description(), other.description());
  TENON_CHECK(expect(tau.size(-1) <= self.size(-2)), "[ormqr] expected at most {} reflections, got {}",
              self.size(-2).str(), tau.description());
  return {by_columns(other.sym_sizes(), other)};
}

// How many columns Q has: as many as A, as rows, or none.
enum class Mode : uint8_t { Reduced, Complete, Triangle };

Mode mode_of(std::string_view text) {
  if (text == "reduced") return Mode::Reduced;
  if (text == "complete") return Mode::Complete;
  TENON_CHECK(text == "r", "[linalg_qr] expected mode to be 'reduced', 'complete' or 'r', got '{}'", text);
  return Mode::Triangle;
}

std::vector<TensorMeta> orthogonal_shape(const Arguments& arguments) {
  const Tensor& a = matrices(arguments.tensor("A"), "linalg_qr");
  const SymInts batch = outer_sizes(a);
  const Mode mode = mode_of(arguments["mode"].string());
  const SymInt rows = a.size(-2), columns = a.size(-1), most = mode == Mode::Complete ? rows : smaller(rows, columns);
  return {mode == Mode::Triangle ? nothing_like(a) : by_columns(with(batch, {rows, most}), a),
          by_columns(with(batch, {most, columns}), a)};
}

void orthogonal(const Arguments& arguments, std::span<Tensor> outputs) {
  const Tensor& a = arguments.tensor("A");
  const int64_t rows = a.size(-2).plain(), columns = a.size(-1).plain();
  Tensor reflections = empty_like(a, TensorOptions(), MemoryFormat::Contiguous);
  Tensor tau = empty(with(outer_sizes(a), {std::min(rows, columns)}), TensorOptions(a.dtype(), a.device()));
  kernels::householder_factor(a, reflections, tau);
  if (mode_of(arguments["mode"].string()) != Mode::Triangle) kernels::householder_product(reflections, tau, outputs[0]);
  kernels::upper_triangle(reflections, outputs[1]);
}

// Of A = Q R for a Q with orthonormal columns and a square R. (Walter and Lehmann, 2010.)
Tensor square_gradient(const Tensor& q, const Tensor& r, const Tensor& q_grad, const Tensor& r_grad) {
  Tensor m = matmul(r, turned(r_grad)) - matmul(turned(q_grad), q);
  Tensor symmetric = tril(m) + turned(tril(m, -1));
  return linalg_solve_triangular(turned(r), q_grad + matmul(q, symmetric), false, false);
}

Tensor orthogonal_gradient(Grad& g) {
  const Mode mode = mode_of(g.argument("mode").string());
  TENON_CHECK(mode != Mode::Triangle, "[linalg_qr] the derivative needs Q: expected mode 'reduced', got 'r'");
  const SymInts& sizes = g.sizes("A");
  const SymInt rows = sizes[sizes.size() - 2], columns = sizes.back();
  const bool tall = decide_typically(rows >= columns);
  TENON_CHECK(mode == Mode::Reduced || !decide_typically(rows > columns),
              "[linalg_qr] Q of mode 'complete' has columns that A does not determine: expected at most as many rows "
              "as columns, got {}",
              str(sizes));
  Tensor q = g.saved("Q"), r = g.saved("R"), q_grad = g.grad(0), r_grad = g.grad(1);
  if (tall) return square_gradient(q, r, q_grad, r_grad);
  // The columns beyond the square follow from Q.
  Tensor beyond = narrow(r_grad, -1, rows, columns - rows), a = matmul(q, narrow(r, -1, rows, columns - rows));
  Tensor first =
      square_gradient(q, narrow(r, -1, 0, rows), q_grad + matmul(a, turned(beyond)), narrow(r_grad, -1, 0, rows));
  return cat({first, matmul(q, beyond)}, -1);
}

std::vector<TensorMeta> singular_shape(const Arguments& arguments) {
  const Tensor& a = matrices(arguments.tensor("A"), "linalg_svd");
  const SymInts batch = outer_sizes(a);
  const SymInt rows = a.size(-2), columns = a.size(-1), most = smaller(rows, columns);
  const bool full = arguments.boolean("full_matrices"), vectors = arguments.boolean("compute_uv");
  return {vectors ? by_columns(with(batch, {rows, full ? rows : most}), a) : nothing_like(a),
          numbers(with(batch, {most}), a, a.dtype()),
          vectors ? by_columns(with(batch, {full ? columns : most, columns}), a) : nothing_like(a)};
}

// How values move and vectors turn: among themselves, the more the closer the values are, and out of the plane that
// they span.
Tensor singular_gradient(Grad& g) {
  Tensor a = g.saved("A");
  const bool vectors = g.argument("compute_uv").boolean();
  Tensor u = g.saved("U"), s = g.saved("S"), vh = g.saved("Vh");
  const SymInt most = s.size(-1);
  if (!vectors) {
    std::tie(u, s, vh) = _linalg_svd(a);
    return matmul(u * unsqueeze(g.grad(1), -2), vh);
  }
  u = narrow(u, -1, 0, most);
  vh = narrow(vh, -2, 0, most);
  Tensor u_grad = narrow(g.grad(0), -1, 0, most), v = turned(vh), v_grad = turned(narrow(g.grad(2), -2, 0, most));
  Tensor unit = unit_like(s, most), columns = unsqueeze(s, -2), rows = unsqueeze(s, -1);
  Tensor apart = columns * columns - rows * rows + unit;
  // Where nothing is asked of vectors it does not matter that equal values leave them free.
  auto over = [](const Tensor& x, const Tensor& by) { return where(x == 0, zeros_like(x), x / by); };
  auto skew = [&](const Tensor& x) { return over(x - turned(x), apart); };
  Tensor inner =
      skew(matmul(turned(u), u_grad)) * columns + rows * skew(matmul(vh, v_grad)) + unit * unsqueeze(g.grad(1), -1);
  Tensor result = matmul(matmul(u, inner), vh);
  const SymInts sizes = a.sym_sizes();
  if (decide_typically(sizes[sizes.size() - 2] > most)) {
    Tensor outside = u_grad - matmul(u, matmul(turned(u), u_grad));
    result = result + matmul(over(outside, columns), vh);
  }
  if (decide_typically(sizes.back() > most)) {
    Tensor outside = v_grad - matmul(v, matmul(vh, v_grad));
    result = result + matmul(u, turned(over(outside, columns)));
  }
  return result;
}

// Of the reflections' columns and factors, when they are multiplied: the first columns of what they make of a unit
// matrix.
const std::vector<Tensor>& product_gradients(Grad& g) {
  return g.once([&] {
    Tensor input = g.saved("input");
    const SymInts sizes = input.sym_sizes();
    Tensor unit = eye(sizes[sizes.size() - 2], sizes.back(), TensorOptions(input.dtype(), input.device()));
    const ReflectionGradients all = reflection_gradients(input, g.saved("tau"), expand(unit, sizes), false, g.grad());
    return std::vector<Tensor>{all.input, all.tau};
  });
}
// Of these, and of the matrix that they are applied to. From the right: all of it transposed.
const std::vector<Tensor>& applied_gradients(Grad& g) {
  return g.once([&] {
    const bool left = g.argument("left").boolean(), transposed = g.argument("transpose").boolean();
    auto side = [&](const Tensor& x) { return left ? x : turned(x); };
    const ReflectionGradients all = reflection_gradients(g.saved("self"), g.saved("input2"), side(g.saved("input3")),
                                                         left ? transposed : !transposed, side(g.grad()));
    return std::vector<Tensor>{all.input, all.tau, side(all.matrix)};
  });
}

}  // namespace

OPS(factorizations) {
  // L of L Lᵀ (U of Uᵀ U), and the first pivot, from 1 on, that is not positive.
  // Example: linalg_cholesky_ex(eye(3));
  op("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::cholesky_factor(arguments.tensor("self"), arguments.boolean("upper"), outputs[0], outputs[1]);
        if (arguments.boolean("check_errors")) check_factored(outputs[1], "linalg_cholesky", kPositive);
      })
      .shape(cholesky_shape)
      .not_differentiable("info")
      .grad("self", saves("L"), cholesky_gradient);
  // Example: linalg_cholesky(eye(3));
  op("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor").decompose([](const Tensor& self, bool upper) {
    return std::get<0>(linalg_cholesky_ex(self, upper, true));
  });
  // Example: cholesky(eye(3));
  op("cholesky(Tensor self, bool upper=False) -> Tensor").decompose([](const Tensor& self, bool upper) {
    return std::get<0>(linalg_cholesky_ex(self, upper, true));
  });
  // X of A X = B by the Cholesky factor of A.
  // Example: cholesky_solve(ones({3, 2}), eye(3));
  op("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& factor, bool upper) {
        matrices(factor, "cholesky_solve", true);
        Tensor l = upper ? turned(factor) : factor;
        return linalg_solve_triangular(turned(l), linalg_solve_triangular(l, self, false), true);
      });
  // Example: cholesky_inverse(eye(3));
  op("cholesky_inverse(Tensor self, bool upper=False) -> Tensor").decompose([](const Tensor& self, bool upper) {
    matrices(self, "cholesky_inverse", true);
    return cholesky_solve(unit_like(self, self.size(-1)), self, upper);
  });
  // L D Lᵀ of symmetric matrices by Bunch and Kaufman's pivots.
  // Example: linalg_ldl_factor_ex(eye(3));
  op("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor "
     "pivots, Tensor info)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::ldl_factor(arguments.tensor("self"), outputs[0], outputs[1], outputs[2]);
        if (arguments.boolean("check_errors"))
          check_factored(outputs[2], "linalg_ldl_factor", "invertible matrices, whose pivots are not zero");
      })
      .shape(blocks_shape)
      .not_differentiable("pivots")
      .not_differentiable("info")
      .grad_not_implemented("self");
  // Example: linalg_ldl_factor(eye(3));
  op("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
      .decompose([](const Tensor& self, bool hermitian) {
        auto [ld, pivots, info] = linalg_ldl_factor_ex(self, hermitian, true);
        return std::tuple(ld, pivots);
      });
  // Example: linalg_ldl_solve(eye(3), tensor({1, 2, 3}, kInt32), ones({3, 2}));
  op("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::ldl_solve(arguments.tensor("LD"), arguments.tensor("pivots"), arguments.tensor("B"), outputs[0]);
      })
      .shape(blocks_solve_shape)
      .grad_not_implemented("LD")
      .grad_not_implemented("B");
  // Householder's reflections, below the diagonal of R, and their factors.
  op("geqrf(Tensor self) -> (Tensor a, Tensor tau)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::householder_factor(arguments.tensor("self"), outputs[0], outputs[1]);
      })
      .shape(reflections_shape)
      .grad_not_implemented("self");
  // Example: linalg_householder_product(eye(3), ones({3}));
  op("linalg_householder_product(Tensor input, Tensor tau) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::householder_product(arguments.tensor("input"), arguments.tensor("tau"), outputs[0]);
      })
      .shape(product_shape)
      .grad("input", saves("input", "tau"), [](Grad& g) { return product_gradients(g)[0]; })
      .grad("tau", saves("input", "tau"), [](Grad& g) { return product_gradients(g)[1]; });
  // Example: ormqr(eye(3), ones({3}), ones({3, 2}));
  op("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::householder_apply(arguments.tensor("self"), arguments.tensor("input2"), arguments.tensor("input3"),
                                   arguments.boolean("left"), arguments.boolean("transpose"), outputs[0]);
      })
      .shape(apply_shape)
      .grad("self", saves("self", "input2", "input3"), [](Grad& g) { return applied_gradients(g)[0]; })
      .grad("input2", saves("self", "input2", "input3"), [](Grad& g) { return applied_gradients(g)[1]; })
      .grad("input3", saves("self", "input2", "input3"), [](Grad& g) { return applied_gradients(g)[2]; });
  // Q with orthonormal columns and an upper triangular R.
  op("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)")
      .kernel(orthogonal)
      .shape(orthogonal_shape)
      .grad("A", saves("Q", "R"), orthogonal_gradient);
  op("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)").decompose([](const Tensor& self, bool some) {
    return linalg_qr(self, some ? "reduced" : "complete");
  });
  // U diag(S) Vh with orthonormal columns of U and rows of Vh, S descending; the sign of a pair of vectors means
  // nothing.
  op("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor "
     "S, Tensor Vh)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const bool vectors = arguments.boolean("compute_uv");
        kernels::singular_values(arguments.tensor("A"), vectors ? outputs[0] : TensorBase(), outputs[1],
                                 vectors ? outputs[2] : TensorBase());
      })
      .shape(singular_shape)
      .grad("A", saves("A", "U", "S", "Vh"), singular_gradient);
  op("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
      .decompose([](const Tensor& a, bool full, std::optional<std::string_view> driver) {
        return _linalg_svd(a, full, true, driver);
      });
  op("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
      .decompose([](const Tensor& a, std::optional<std::string_view> driver) {
        return std::get<1>(_linalg_svd(a, false, false, driver));
      });
  op("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
      .decompose([](const Tensor& self, bool some, bool vectors) {
        auto [u, s, vh] = _linalg_svd(self, !some, vectors);
        if (vectors) return std::tuple(u, s, turned(vh));
        const SymInts batch = outer_sizes(self);
        const TensorOptions options(self.dtype(), self.device());
        return std::tuple(zeros(with(batch, {self.size(-2), self.size(-2)}), options), s,
                          turned(zeros(with(batch, {self.size(-1), self.size(-1)}), options)));
      });
  // Example: _linalg_eigh(eye(3));
  op("_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
      .decompose([](const Tensor& a, std::string_view triangle, bool vectors) {
        auto [values, found] = linalg_eigh(a, triangle);
        return std::tuple(values, vectors ? found : zeros(SymInts{0}, TensorOptions(a.dtype(), a.device())));
      });
  // Example: linalg_eigvalsh(eye(3));
  op("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor")
      .decompose(
          [](const Tensor& self, std::string_view triangle) { return std::get<0>(linalg_eigh(self, triangle)); });
}

}  // namespace tenon::ops
