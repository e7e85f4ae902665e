// Systems of linear equations: factors by Gauss' elimination, triangular systems, determinants, inverses.
#include "ops/linalg/matrices.h"

#include <tenon/kernels/factorizations.h>

namespace tenon::ops {

void check_factored(const Tensor& info, std::string_view op_name, std::string_view what) {
  Tensor flat = contiguous(reshape(info, {-1}));
  for (int64_t at = 0; at < flat.numel().plain(); ++at) {
    const int32_t pivot = flat.data<int32_t>()[at];
    TENON_CHECK(pivot == 0, "[{}] expected {}, got one whose pivot {} is not (batch element {})", op_name, what, pivot,
                at);
  }
}

namespace {

constexpr std::string_view kInvertible = "invertible matrices, whose pivots are not zero";

std::vector<TensorMeta> factor_shape(const Arguments& arguments) {
  const Tensor& a = matrices(arguments.values()[0].tensor(), arguments.op().brief_name());
  TENON_CHECK_IMPLEMENTED(arguments.boolean("pivot"), "[{}] LU without pivoting is not implemented on the CPU",
                          arguments.op().brief_name());
  const SymInts batch = outer_sizes(a);
  return {by_columns(a.sym_sizes(), a), numbers(with(batch, {smaller(a.size(-2), a.size(-1))}), a, kInt32),
          numbers(batch, a, kInt32)};
}

void factor(const Arguments& arguments, std::span<Tensor> outputs) {
  kernels::lu_factor(arguments.tensor("A"), outputs[0], outputs[1], outputs[2]);
  if (arguments.boolean("check_errors")) check_factored(outputs[2], "linalg_lu_factor_ex", kInvertible);
}

// Of the product L U, by the gradients of the factors, for a square L and U.
Tensor product_gradient(const Tensor& l, const Tensor& u, const Tensor& l_grad, const Tensor& u_grad) {
  Tensor inner = tril(matmul(turned(l), l_grad), -1) + triu(matmul(u_grad, turned(u)));
  inner = linalg_solve_triangular(turned(l), inner, true, true, true);
  return linalg_solve_triangular(turned(u), inner, false, false);
}

// The part of L, or U, beyond the square follows from the rest: its gradient moves to what it was computed from.
Tensor factor_gradient(Grad& g) {
  Tensor lu = g.saved("LU"), grad = g.grad();
  auto [p, l, u] = lu_unpack(lu, g.saved("pivots"));
  const SymInt rows = lu.size(-2), columns = lu.size(-1);
  if (decide_typically(rows == columns)) return matmul(p, product_gradient(l, u, tril(grad, -1), triu(grad)));
  if (decide_typically(rows > columns)) {
    Tensor below = narrow(l, -2, columns, rows - columns);
    Tensor below_grad = linalg_solve_triangular(turned(u), narrow(grad, -2, columns, rows - columns), false, false);
    Tensor top_grad = narrow(grad, -2, 0, columns);
    Tensor top = product_gradient(narrow(l, -2, 0, columns), u, tril(top_grad, -1),
                                  triu(top_grad - matmul(turned(below), below_grad)));
    return matmul(p, cat({top, below_grad}, -2));
  }
  Tensor beside = narrow(u, -1, rows, columns - rows);
  Tensor beside_grad = linalg_solve_triangular(turned(l), narrow(grad, -1, rows, columns - rows), true, true, true);
  Tensor first_grad = narrow(grad, -1, 0, rows);
  Tensor first = product_gradient(l, narrow(u, -1, 0, rows), tril(first_grad - matmul(beside_grad, turned(beside)), -1),
                                  triu(first_grad));
  return matmul(p, cat({first, beside_grad}, -1));
}

std::vector<TensorMeta> unpacked_shape(const Arguments& arguments) {
  const Tensor &lu = matrices(arguments.tensor("LU_data"), "lu_unpack"), &pivots = arguments.tensor("LU_pivots");
  const SymInts batch = outer_sizes(lu);
  const SymInt rows = lu.size(-2), columns = lu.size(-1), most = smaller(rows, columns);
  const bool data = arguments.boolean("unpack_data"), order = arguments.boolean("unpack_pivots");
  TENON_CHECK(!order || (pivots.defined() && pivots.dtype() == kInt32 && pivots.dim() == lu.dim() - 1),
              "[lu_unpack] expected pivots of int32, a list for each of {}, got {}", lu.description(),
              pivots.defined() ? pivots.description() : "an undefined tensor");
  const SymInts wanted = with(batch, {most});
  for (size_t dim = 0; order && dim < wanted.size(); ++dim)
    TENON_CHECK(same_size(wanted[dim], pivots.sym_sizes()[dim]), "[lu_unpack] expected pivots {}, got {}", str(wanted),
                pivots.description());
  auto plain = [&](const SymInts& sizes) { return numbers(sizes, lu, lu.dtype()); };
  return {order ? plain(with(batch, {rows, rows})) : nothing_like(lu),
          data ? plain(with(batch, {rows, most})) : nothing_like(lu),
          data ? plain(with(batch, {most, columns})) : nothing_like(lu)};
}

void unpack(const Arguments& arguments, std::span<Tensor> outputs) {
  const bool data = arguments.boolean("unpack_data"), order = arguments.boolean("unpack_pivots");
  kernels::lu_unpack(arguments.tensor("LU_data"), arguments.tensor("LU_pivots"), order ? outputs[0] : TensorBase(),
                     data ? outputs[1] : TensorBase(), data ? outputs[2] : TensorBase());
}

Tensor unpacked_gradient(Grad& g) {
  const SymInts sizes = g.sizes("LU_data");
  const SymInt rows = sizes[sizes.size() - 2], columns = sizes.back();
  if (!g.argument("unpack_data").boolean()) return zeros(sizes, TensorOptions(g.dtype("LU_data"), kCPU));
  const SymInt most = smaller(rows, columns);
  return constant_pad_nd(tril(g.grad(1), -1), SymInts{0, columns - most}) +
         constant_pad_nd(triu(g.grad(2)), SymInts{0, 0, 0, rows - most});
}

SymInts together(const SymInts& a, const SymInts& b, std::string_view op_name) {
  const SymInts shapes[] = {a, b};
  return broadcast(shapes, op_name);
}

// Checks that A and B have what it takes to solve for X; gives the sizes of X.
SymInts solution_sizes(const Tensor& a, const Tensor& b, bool left, std::string_view op_name) {
  matrices(b, op_name);
  TENON_CHECK(a.dtype() == b.dtype(), "[{}] expected tensors of the same dtype, got {} and {}", op_name,
              a.description(), b.description());
  TENON_CHECK(same_size(a.size(-1), b.size(left ? -2 : -1)), "[{}] expected {} that fit matrices {}, got {}", op_name,
              left ? "columns" : "rows", a.description(), b.description());
  return with(together(outer_sizes(a), outer_sizes(b), op_name), {b.size(-2), b.size(-1)});
}

std::vector<TensorMeta> lu_solve_shape(const Arguments& arguments) {
  const Tensor &lu = matrices(arguments.tensor("LU"), "linalg_lu_solve", true), &b = arguments.tensor("B"),
               &pivots = arguments.tensor("pivots");
  const bool left = arguments.boolean("left");
  TENON_CHECK(pivots.defined() && pivots.dtype() == kInt32 && pivots.dim() == lu.dim() - 1 &&
                  same_size(pivots.size(-1), lu.size(-1)),
              "[linalg_lu_solve] expected pivots of int32, a list for each of {}, got {}", lu.description(),
              pivots.defined() ? pivots.description() : "an undefined tensor");
  SymInts sizes = solution_sizes(lu, b, left, "linalg_lu_solve");
  return {left ? by_columns(sizes, b) : numbers(sizes, b, b.dtype())};
}

// What the gradient of B, with the solution, says of the matrix itself.
Tensor matrix_gradient(const Tensor& b_grad, const Tensor& x, bool left, bool transposed) {
  if (left) return transposed ? -matmul(x, turned(b_grad)) : -matmul(b_grad, turned(x));
  return transposed ? -matmul(turned(b_grad), x) : -matmul(turned(x), b_grad);
}

Tensor lu_solve_gradient(Grad& g, bool of_factors) {
  Tensor lu = g.saved("LU"), pivots = g.saved("pivots");
  const bool left = g.argument("left").boolean(), adjoint = g.argument("adjoint").boolean();
  Tensor b_grad = linalg_lu_solve(lu, pivots, g.grad(), left, !adjoint);
  if (!of_factors) return sum_to_size(b_grad, g.sizes("B"));
  auto [p, l, u] = lu_unpack(lu, pivots);
  Tensor whole = matmul(turned(p), matrix_gradient(b_grad, g.saved("result"), left, adjoint));
  return sum_to_size(tril(matmul(whole, turned(u)), -1) + triu(matmul(turned(l), whole)), g.sizes("LU"));
}

std::vector<TensorMeta> triangular_shape(const Arguments& arguments) {
  const Tensor &a = matrices(arguments.tensor("self"), "linalg_solve_triangular", true), &b = arguments.tensor("B");
  return {by_columns(solution_sizes(a, b, arguments.boolean("left"), "linalg_solve_triangular"), b)};
}

Tensor triangular_gradient(Grad& g, bool of_matrix) {
  Tensor a = g.saved("self");
  const bool upper = g.argument("upper").boolean(), left = g.argument("left").boolean(),
             unit = g.argument("unitriangular").boolean();
  Tensor b_grad = linalg_solve_triangular(turned(a), g.grad(), !upper, left, unit);
  if (!of_matrix) return sum_to_size(b_grad, g.sizes("B"));
  Tensor whole = matrix_gradient(b_grad, g.saved("result"), left, false);
  return sum_to_size(upper ? triu(whole, unit ? 1 : 0) : tril(whole, unit ? -1 : 0), g.sizes("self"));
}

// Whether B is a vector for each matrix of A, and not a matrix.
bool solves_vectors(const SymInts& a, const SymInts& b) {
  if (b.size() == 1) return true;
  if (b.size() + 1 != a.size()) return false;
  for (size_t dim = 0; dim < b.size(); ++dim)
    if (!decide_typically(a[dim] == b[dim])) return false;
  return true;
}

std::vector<TensorMeta> solve_shape(const Arguments& arguments) {
  const Tensor &a = matrices(arguments.tensor("A"), "linalg_solve", true), &b = arguments.tensor("B");
  TENON_CHECK(b.defined() && b.dim() > 0, "[linalg_solve] expected a vector or matrices, got {}",
              b.defined() ? b.description() : "an undefined tensor");
  const bool left = arguments.boolean("left"), vectors = solves_vectors(a.sym_sizes(), b.sym_sizes());
  TENON_CHECK(left || !vectors, "[linalg_solve] expected matrices where A stands on the right, got {}",
              b.description());
  SymInts sizes = solution_sizes(a, vectors ? unsqueeze(b, -1) : b, left, "linalg_solve");
  if (vectors) sizes.pop_back();
  const SymInts batch = outer_sizes(a);
  return {left ? by_columns(sizes, b) : numbers(sizes, b, b.dtype()), by_columns(a.sym_sizes(), a),
          numbers(with(batch, {a.size(-1)}), a, kInt32), numbers(batch, a, kInt32)};
}

void solve(const Arguments& arguments, std::span<Tensor> outputs) {
  const Tensor &a = arguments.tensor("A"), &b = arguments.tensor("B");
  kernels::lu_factor(a, outputs[1], outputs[2], outputs[3]);
  if (arguments.boolean("check_errors")) check_factored(outputs[3], "linalg_solve", kInvertible);
  const bool vectors = solves_vectors(a.sym_sizes(), b.sym_sizes());
  kernels::lu_solve(outputs[1], outputs[2], vectors ? unsqueeze(b, -1) : b, arguments.boolean("left"), false,
                    vectors ? unsqueeze(outputs[0], -1) : outputs[0]);
}

Tensor solve_gradient(Grad& g, bool of_matrix) {
  Tensor a = g.saved("A"), grad = g.grad();
  const bool left = g.argument("left").boolean(), as_columns = solves_vectors(g.sizes("A"), g.sizes("B"));
  if (as_columns) grad = unsqueeze(grad, -1);
  Tensor b_grad = std::get<0>(_linalg_solve_ex(turned(a), grad, left));
  if (!of_matrix) return sum_to_size(as_columns ? squeeze(b_grad, -1) : b_grad, g.sizes("B"));
  Tensor x = g.saved("result");
  return sum_to_size(matrix_gradient(b_grad, as_columns ? unsqueeze(x, -1) : x, left, false), g.sizes("A"));
}

std::vector<TensorMeta> determinant_shape(const Arguments& arguments) {
  const Tensor& a = matrices(arguments.tensor("A"), arguments.op().brief_name(), true);
  const SymInts batch = outer_sizes(a);
  std::vector<TensorMeta> shapes(arguments.op().schema().returns.size() - 2, numbers(batch, a, a.dtype()));
  shapes.push_back(by_columns(a.sym_sizes(), a));
  shapes.push_back(numbers(with(batch, {a.size(-1)}), a, kInt32));
  return shapes;
}

void factor_for_determinant(const Tensor& a, const Tensor& lu, const Tensor& pivots) {
  Tensor info = empty(outer_sizes(a), TensorOptions(kInt32, a.device()));
  kernels::lu_factor(a, lu, pivots, info);
}

// The matrix of cofactors, the determinant's slope. It is finite for singular matrices too, where the inverse is not;
// one that will be differentiated goes through the inverse.
Tensor cofactors(Grad& g) {
  Tensor a = g.saved("A");
  if (g.is_recorded()) return unsqueeze(unsqueeze(g.saved("result"), -1), -1) * turned(std::get<0>(linalg_inv_ex(a)));
  auto [u, s, vh] = _linalg_svd(a);
  Tensor unit = unit_like(a, a.size(-1)) != 0;
  Tensor others = prod(where(unit, ones_like(unsqueeze(s, -2)), unsqueeze(s, -2)), -1);
  Tensor sign = std::get<0>(_linalg_det(u)) * std::get<0>(_linalg_det(vh));
  return matmul(u * unsqueeze(others, -2), vh) * unsqueeze(unsqueeze(sign, -1), -1);
}

std::vector<TensorMeta> inverse_shape(const Arguments& arguments) {
  const Tensor& a = matrices(arguments.tensor("A"), "linalg_inv", true);
  return {by_columns(a.sym_sizes(), a), numbers(outer_sizes(a), a, kInt32)};
}

void invert(const Arguments& arguments, std::span<Tensor> outputs) {
  const Tensor& a = arguments.tensor("A");
  Tensor pivots = empty(outer_sizes(a, 1), TensorOptions(kInt32, a.device()));
  Tensor lu = empty_like(a, TensorOptions(), MemoryFormat::Contiguous);
  kernels::lu_factor(a, lu, pivots, outputs[1]);
  if (arguments.boolean("check_errors")) check_factored(outputs[1], "linalg_inv", kInvertible);
  kernels::identity(outputs[0]);
  kernels::lu_solve(lu, pivots, outputs[0], true, false, outputs[0]);
}

}  // namespace

OPS(linear_systems) {
  // L and U in one matrix, the rows that were exchanged, and the first pivot that is zero, from 1 on.
  op("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor "
     "info)")
      .kernel(factor)
      .shape(factor_shape)
      .not_differentiable("pivots")
      .not_differentiable("info")
      .grad("A", saves("LU", "pivots"), factor_gradient);
  op("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
      .decompose([](const Tensor& a, bool pivot) {
        auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot);
        return std::tuple(lu, pivots);
      });
  op("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)")
      .decompose([](const Tensor& self, bool pivot, bool check) { return linalg_lu_factor_ex(self, pivot, check); });
  // Example: lu_unpack(eye(3), ones({3}, kInt32));
  op("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor "
     "L, Tensor U)")
      .kernel(unpack)
      .shape(unpacked_shape)
      .not_differentiable("P")
      .grad("LU_data", saves(), unpacked_gradient);
  op("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
      .decompose([](const Tensor& a, bool pivot) {
        auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot);
        return lu_unpack(lu, pivots);
      });
  // Example: linalg_lu_solve(eye(3), tensor({1, 2, 3}, kInt32), ones({3, 2}));
  op("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::lu_solve(arguments.tensor("LU"), arguments.tensor("pivots"), arguments.tensor("B"),
                          arguments.boolean("left"), arguments.boolean("adjoint"), outputs[0]);
      })
      .shape(lu_solve_shape)
      .grad("LU", saves("LU", "pivots", "result"), [](Grad& g) { return lu_solve_gradient(g, true); })
      .grad("B", saves("LU", "pivots"), [](Grad& g) { return lu_solve_gradient(g, false); });
  // Example: lu_solve(ones({3, 2}), eye(3), tensor({1, 2, 3}, kInt32));
  op("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor")
      .decompose(
          [](const Tensor& self, const Tensor& lu, const Tensor& pivots) { return linalg_lu_solve(lu, pivots, self); });
  // X of A X = B, or X A = B, for a triangular A.
  // Example: linalg_solve_triangular(eye(3), ones({3, 2}), true);
  op("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
     "Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::solve_triangular(arguments.tensor("self"), arguments.tensor("B"), arguments.boolean("upper"),
                                  arguments.boolean("left"), arguments.boolean("unitriangular"), false, outputs[0]);
      })
      .shape(triangular_shape)
      .grad("self", saves("self", "result"), [](Grad& g) { return triangular_gradient(g, true); })
      .grad("B", saves("self"), [](Grad& g) { return triangular_gradient(g, false); });
  // Example: triangular_solve(ones({3, 2}), eye(3));
  op("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
     "(Tensor solution, Tensor cloned_coefficient)")
      .decompose([](const Tensor& self, const Tensor& given, bool upper, bool transposed, bool unit) {
        matrices(self, "triangular_solve");
        matrices(given, "triangular_solve", true);
        SymInts batch = together(outer_sizes(self), outer_sizes(given), "triangular_solve");
        Tensor a = expand(given, with(batch, {given.size(-2), given.size(-1)}));
        return std::tuple(linalg_solve_triangular(transposed ? turned(a) : a, self, upper != transposed, true, unit),
                          turned(clone(turned(a), MemoryFormat::Contiguous)));
      });
  // X of A X = B, or X A = B; what A was factored into, and the first pivot that is zero, from 1 on.
  // Example: _linalg_solve_ex(eye(3), ones({3, 2}));
  op("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, "
     "Tensor pivots, Tensor info)")
      .kernel(solve)
      .shape(solve_shape)
      .not_differentiable("LU")
      .not_differentiable("pivots")
      .not_differentiable("info")
      .grad("A", saves("A", "result"), [](Grad& g) { return solve_gradient(g, true); })
      .grad("B", saves("A"), [](Grad& g) { return solve_gradient(g, false); });
  // Example: linalg_solve_ex(eye(3), ones({3, 2}));
  op("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)")
      .decompose([](const Tensor& a, const Tensor& b, bool left, bool check) {
        auto [x, lu, pivots, info] = _linalg_solve_ex(a, b, left, check);
        return std::tuple(x, info);
      });
  // Example: linalg_solve(eye(3), ones({3, 2}));
  op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
      .decompose(
          [](const Tensor& a, const Tensor& b, bool left) { return std::get<0>(_linalg_solve_ex(a, b, left, true)); });
  // Example: linalg_inv_ex(eye(3));
  op("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)")
      .kernel(invert)
      .shape(inverse_shape)
      .not_differentiable("info")
      .grad("A", saves("inverse"), [](Grad& g) {
        Tensor inverse = turned(g.saved("inverse"));
        return -matmul(inverse, matmul(g.grad(), inverse));
      });
  // Example: linalg_inv(eye(3));
  op("linalg_inv(Tensor A) -> Tensor").decompose([](const Tensor& a) { return std::get<0>(linalg_inv_ex(a, true)); });
  // Example: inverse(eye(3));
  op("inverse(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return std::get<0>(linalg_inv_ex(self, true));
  });
  // Example: _linalg_det(eye(3));
  op("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        factor_for_determinant(arguments.tensor("A"), outputs[1], outputs[2]);
        kernels::lu_determinant(outputs[1], outputs[2], outputs[0]);
      })
      .shape(determinant_shape)
      .not_differentiable("LU")
      .not_differentiable("pivots")
      .grad("A", saves("A", "result"), [](Grad& g) { return unsqueeze(unsqueeze(g.grad(), -1), -1) * cofactors(g); });
  // Example: linalg_det(eye(3));
  op("linalg_det(Tensor A) -> Tensor").decompose([](const Tensor& a) { return std::get<0>(_linalg_det(a)); });
  // Example: det(eye(3));
  op("det(Tensor self) -> Tensor").decompose([](const Tensor& self) { return std::get<0>(_linalg_det(self)); });
  // (The sign has a history, as in PyTorch, and a slope of 0.)
  // Example: _linalg_slogdet(eye(3));
  op("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        factor_for_determinant(arguments.tensor("A"), outputs[2], outputs[3]);
        kernels::lu_determinant(outputs[2], outputs[3], outputs[0], outputs[1]);
      })
      .shape(determinant_shape)
      .not_differentiable("LU")
      .not_differentiable("pivots")
      .grad("A", saves("A"), [](Grad& g) {
        return unsqueeze(unsqueeze(g.grad(1), -1), -1) * turned(std::get<0>(linalg_inv_ex(g.saved("A"))));
      });
  // Example: linalg_slogdet(eye(3));
  op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)").decompose([](const Tensor& a) {
    auto [sign, logarithm, lu, pivots] = _linalg_slogdet(a);
    return std::tuple(sign, logarithm);
  });
  // Example: logdet(eye(3));
  op("logdet(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    auto [sign, logarithm, lu, pivots] = _linalg_slogdet(self);
    return where(sign == -1, full_like(logarithm, std::numeric_limits<double>::quiet_NaN()), logarithm);
  });
}

}  // namespace tenon::ops
