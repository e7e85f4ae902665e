// Functions of matrices over their factors: exponentials, powers, ranks, least squares.
#include "ops/by_name.h"
#include "ops/linalg/matrices.h"

#include <tenon/kernels/factorizations.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::ops {
namespace {

// The derivative of the exponential along G is a corner of that of [[A, G], [0, A]].
Tensor exponential_gradient(Grad& g) {
  Tensor a = turned(g.saved("self")), grad = g.grad();
  const SymInt size = a.size(-1);
  Tensor whole = cat({cat({a, grad}, -1), cat({zeros_like(a), a}, -1)}, -2);
  return narrow(narrow(linalg_matrix_exp(whole), -2, 0, size), -1, size, size);
}

// A bound that is a number, as the rows take it that have bounds for each matrix.
dispatch::Value as_tensor(const std::optional<double>& number, const Tensor& like) {
  if (!number) return {};
  return dispatch::Value(full(SymInts{}, *number, TensorOptions(like.dtype(), like.device()))).own();
}

Tensor pseudoinverse(const Tensor& self, const dispatch::Value& atol, const dispatch::Value& rtol, bool hermitian) {
  return call_in_order("aten::linalg_pinv.atol_rtol_tensor", {self, atol, rtol, hermitian});
}
Tensor rank_of(const Tensor& self, const dispatch::Value& atol, const dispatch::Value& rtol, bool hermitian) {
  return call_in_order("aten::linalg_matrix_rank.atol_rtol_tensor", {self, atol, rtol, hermitian});
}

Tensor power_of(const Tensor& self, int64_t n) {
  matrices(self, "linalg_matrix_power", true);
  // Of a history that no gradient comes through.
  if (n == 0)
    return where(ones(SymInts{}, TensorOptions(kBool, self.device())),
                 clone(expand(unit_like(self, self.size(-1)), self.sym_sizes()), MemoryFormat::Contiguous), self);
  TENON_CHECK_VALUE(n > std::numeric_limits<int64_t>::min(),
                    "[linalg_matrix_power] expected a power that has an "
                    "opposite, got {}",
                    n);
  Tensor base = n < 0 ? linalg_inv(self) : self, result;
  for (int64_t rest = std::abs(n); rest > 0; rest /= 2) {
    if (rest % 2 == 1) result = result.defined() ? matmul(result, base) : base;
    if (rest > 1) base = matmul(base, base);
  }
  return n == 1 ? clone(result) : result;
}

// Sizes multiplied.
SymInt product_of(const SymInts& sizes, size_t begin, size_t end) {
  SymInt product = 1;
  for (size_t dim = begin; dim < end; ++dim) product *= sizes[dim];
  return product;
}

Tensor inverse_of_tensor(const Tensor& self, int64_t ind) {
  TENON_CHECK(self.defined(), "[linalg_tensorinv] expected a tensor, got an undefined one");
  TENON_CHECK_VALUE(ind > 0 && ind <= self.dim(),
                    "[linalg_tensorinv] expected a number of dimensions from 1 to {}, got {}", self.dim(), ind);
  const SymInts sizes = self.sym_sizes();
  const auto first = static_cast<size_t>(ind);
  const SymInt rows = product_of(sizes, 0, first), columns = product_of(sizes, first, sizes.size());
  TENON_CHECK(same_size(rows, columns),
              "[linalg_tensorinv] expected as many elements in the first {} dimensions as in "
              "the others, got {}",
              ind, self.description());
  SymInts result;
  for (size_t dim = first; dim < sizes.size(); ++dim) result.push_back(sizes[dim]);
  for (size_t dim = 0; dim < first; ++dim) result.push_back(sizes[dim]);
  return reshape(linalg_inv(reshape(self, SymInts{rows, columns})), result);
}

Tensor solution_of_tensor(const Tensor& given, const Tensor& other, const OptionalInts& dims) {
  TENON_CHECK(given.defined() && other.defined(), "[linalg_tensorsolve] expected a tensor, got an undefined one");
  Tensor self = given;
  if (dims.has_value()) {
    Ints last;
    for (size_t at = 0; at < dims->size(); ++at)
      last.push_back(static_cast<int64_t>(at) - static_cast<int64_t>(dims->size()));
    self = movedim(self, *dims, last);
  }
  const auto first = static_cast<size_t>(other.dim());
  const SymInts sizes = self.sym_sizes();
  TENON_CHECK(first <= sizes.size() && same_size(product_of(sizes, 0, first), product_of(sizes, first, sizes.size())) &&
                  same_size(product_of(sizes, 0, first), other.numel()),
              "[linalg_tensorsolve] expected a square of as many elements as {}, got {}", other.description(),
              self.description());
  SymInts result;
  for (size_t dim = first; dim < sizes.size(); ++dim) result.push_back(sizes[dim]);
  const SymInt size = other.numel();
  return reshape(linalg_solve(reshape(self, SymInts{size, size}), reshape(other, SymInts{size})), result);
}

// The solution with the smallest norm of those that come closest.
std::tuple<Tensor, Tensor, Tensor, Tensor> least_squares(const Tensor& self, const Tensor& b,
                                                         std::optional<double> rcond,
                                                         std::optional<std::string_view> driver) {
  matrices(self, "linalg_lstsq");
  const std::string_view how = driver.value_or("gelsy");
  TENON_CHECK(how == "gelsy" || how == "gels" || how == "gelsd" || how == "gelss",
              "[linalg_lstsq] expected driver to be 'gels', 'gelsy', 'gelsd' or 'gelss', got '{}'", how);
  TENON_CHECK(b.defined() && b.dim() > 0 && b.dtype() == self.dtype(),
              "[linalg_lstsq] expected right sides of the dtype of {}, got {}", self.description(),
              b.defined() ? b.description() : "an undefined tensor");
  const bool vectors = b.dim() == self.dim() - 1;
  Tensor right = vectors ? unsqueeze(b, -1) : b;
  TENON_CHECK(right.dim() == self.dim() && same_size(right.size(-2), self.size(-2)),
              "[linalg_lstsq] expected a right side for each row of {}, got {}", self.description(), b.description());
  const TensorOptions options(self.dtype(), self.device());
  const SymInt rows = self.size(-2), columns = self.size(-1);
  const bool tall = decide_typically(rows > columns), values = how == "gelsd" || how == "gelss";
  const dispatch::Value share = rcond && *rcond >= 0 ? as_tensor(rcond, self) : dispatch::Value();
  Tensor solved = matmul(pseudoinverse(self, {}, share, false), right);
  Tensor spectrum = zeros(SymInts{0}, options), rank = spectrum.to(kInt64);
  // None, and yet with a history, as in PyTorch.
  Tensor residuals = narrow(reshape(solved, {-1}), 0, 0, 0);
  if (tall && how != "gelsy") {
    Tensor apart = matmul(self, solved) - right;
    residuals = sum(apart * apart, -2);
  }
  if (how != "gels") rank = rank_of(self.detach(), {}, share, false);
  if (values) spectrum = linalg_svdvals(self.detach());
  // It lies in memory where the right sides were, by columns.
  if (tall) solved = constant_pad_nd(solved, SymInts{0, 0, 0, rows - columns});
  solved = turned(clone(turned(solved), MemoryFormat::Contiguous));
  if (tall) solved = narrow(solved, -2, 0, columns);
  return {vectors ? squeeze(solved, -1) : solved, residuals, rank, spectrum};
}

}  // namespace

OPS(matrix_functions) {
  // Example: linalg_matrix_exp(eye(3));
  op("linalg_matrix_exp(Tensor self) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::matrix_exponential(arguments.tensor("self"), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(
            self.defined() && is_floating(self.dtype()) && self.dim() >= 2 && same_size(self.size(-1), self.size(-2)),
            "[linalg_matrix_exp] expected square matrices of floating point numbers, got {}",
            self.defined() ? self.description() : "an undefined tensor");
        return std::vector{numbers(self.sym_sizes(), self, self.dtype())};
      })
      .grad("self", saves("self"), exponential_gradient);
  // Example: matrix_exp(eye(3));
  op("matrix_exp(Tensor self) -> Tensor").decompose([](const Tensor& self) { return linalg_matrix_exp(self); });
  // Example: linalg_matrix_power(eye(3), 2);
  op("linalg_matrix_power(Tensor self, int n) -> Tensor").decompose(power_of);
  op("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor")
      .decompose([](const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
        matrices(self, "linalg_pinv", hermitian);
        return pseudoinverse(self, as_tensor(atol, self), as_tensor(rtol, self), hermitian);
      });
  op("pinverse(Tensor self, float rcond=1e-15) -> Tensor").decompose([](const Tensor& self, double rcond) {
    matrices(self, "pinverse");
    return pseudoinverse(self, {}, as_tensor(rcond, self), false);
  });
  op("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> "
     "Tensor")
      .decompose([](const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
        matrices(self, "linalg_matrix_rank", hermitian);
        return rank_of(self, as_tensor(atol, self), as_tensor(rtol, self), hermitian);
      });
  // Example: linalg_lstsq(ones({3, 2}), ones({3, 1}));
  op("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
     "residuals, Tensor rank, Tensor singular_values)")
      .decompose(least_squares);
  // Example: linalg_cond(eye(3));
  op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor")
      .decompose([](const Tensor& self, const std::optional<Scalar>& p) {
        matrices(self, "linalg_cond");
        const double order = p ? p->to_double() : 2;
        if (std::fabs(order) == 2) {
          Tensor values = linalg_svdvals(self);
          Tensor most = amax(values, Ints{-1}), least = amin(values, Ints{-1});
          return order > 0 ? most / least : least / most;
        }
        matrices(self, "linalg_cond", true);
        return matrix_norm(self, order) * matrix_norm(std::get<0>(linalg_inv_ex(self)), order);
      });
  // Example: linalg_tensorinv(reshape(eye(4), {2, 2, 4}), 2);
  op("linalg_tensorinv(Tensor self, int ind=2) -> Tensor").decompose(inverse_of_tensor);
  // Example: linalg_tensorsolve(reshape(eye(4), {2, 2, 4}), ones({2, 2}));
  op("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor").decompose(solution_of_tensor);
}

}  // namespace tenon::ops
