// Arguments of rows about matrices, by operator: well-conditioned ones of at most six rows.
#include <limits>

#include "ops/sample_maker.h"

#include <tenon/generated/ops.h>

namespace tenon::test {
namespace {

bool is_taken(const Maker& m) { return m.recipe.dtype == kFloat32 || m.recipe.dtype == kFloat64; }

void prepare(Maker& m) {
  if (m.recipe.values == Values::NotFinite || m.recipe.values == Values::Extreme) m.recipe.values = Values::Ordinary;
  // One row many times over has no inverse.
  if (m.recipe.placement == Placement::Expanded) m.recipe.placement = Placement::Contiguous;
}

int64_t rows_of(const Maker& m) { return std::min<int64_t>(6, m.size(0, 3)); }
Ints batch(const Maker& m, std::initializer_list<int64_t> own) {
  Ints shape = m.even() ? Ints{} : Ints{2};
  for (int64_t size : own) shape.push_back(size);
  return shape;
}

// With a diagonal that outweighs the rest.
Tensor heavy(Maker& m, int64_t rows, int64_t columns) {
  prepare(m);
  Tensor matrix = m.tensor(batch(m, {rows, columns}));
  if (is_taken(m)) {
    Tensor steps = arange(std::min(rows, columns)).to(m.recipe.dtype) * 3 + 9;
    diagonal(matrix, 0, -2, -1).add_(steps);
  }
  return matrix;
}
Tensor square(Maker& m) { return heavy(m, rows_of(m), rows_of(m)); }
// One more row, as many, or one less.
Tensor oblong(Maker& m) { return heavy(m, rows_of(m), std::max<int64_t>(0, rows_of(m) + m.recipe.variant % 3 - 1)); }

Tensor symmetric(Maker& m) {
  Tensor matrix = square(m);
  return is_taken(m) ? matmul(matrix, transpose(matrix, -2, -1)) : matrix;
}

Tensor no_exchanges(Maker& m, int64_t count) {
  return m.numbers(batch(m, {count}), [&](int64_t at) { return at % std::max<int64_t>(1, count) + 1; }, kInt32);
}

template <Tensor (*make)(Maker&)>
Overrides matrix_rule(Maker& m) {
  Tensor matrix = make(m);
  return {{"self", matrix}, {"A", matrix}, {"input", matrix}};
}

// A matrix and what it is to be multiplied with: columns, or rows.
Overrides system_rule(Maker& m) {
  Tensor matrix = square(m);
  const int64_t n = rows_of(m);
  const bool left = m.recipe.variant % 4 < 2;
  Tensor right = m.tensor(left ? batch(m, {n, 3}) : batch(m, {3, n}));
  return {{"self", matrix},
          {"A", matrix},
          {"LU", matrix},
          {"B", right},
          {"pivots", no_exchanges(m, n)},
          {"left", left},
          {"adjoint", m.recipe.variant % 3 == 1},
          {"upper", m.even()},
          {"unitriangular", m.recipe.variant % 3 == 2}};
}

Overrides solve_rule(Maker& m) {
  Overrides rule = system_rule(m);
  if (m.recipe.variant % 3 != 1) return rule;
  rule.erase("B");
  rule.erase("left");
  rule.insert({{"B", m.tensor(batch(m, {rows_of(m)}))}, {"left", true}});
  return rule;
}

Overrides columns_rule(Maker& m) {
  const int64_t n = rows_of(m);
  Tensor matrix = square(m), right = m.tensor(batch(m, {n, 2}));
  return {{"self", right},
          {"A", matrix},
          {"input2", matrix},
          {"LU_data", matrix},
          {"LU_pivots", no_exchanges(m, n)},
          {"upper", m.recipe.variant % 4 < 2},
          {"transpose", m.recipe.variant % 3 == 1}};
}

Overrides reflections_rule(Maker& m) {
  const int64_t n = rows_of(m);
  Tensor vectors = heavy(m, n + 1, n), tau = m.tensor(batch(m, {n}));
  const bool left = m.recipe.variant % 4 < 2;
  return {{"self", vectors},
          {"input", vectors},
          {"tau", tau},
          {"input2", tau},
          {"input3", m.tensor(left ? batch(m, {n + 1, 2}) : batch(m, {2, n + 1}))},
          {"left", left},
          {"transpose", m.recipe.variant % 3 == 1}};
}

Overrides norm_rule(Maker& m) {
  constexpr double orders[] = {1, -1, 2, std::numeric_limits<double>::infinity(), -2};
  return {
      {"self", oblong(m)}, {"ord", Value(orders[m.recipe.variant % 5])}, {"p", Value(orders[m.recipe.variant % 5])}};
}

// A cube of six rows and columns, of which the rows are two by three.
Overrides tensor_rule(Maker& m) {
  prepare(m);
  m.recipe.variant = 0;
  Tensor whole = heavy(m, 6, 6);
  return {{"self", reshape(whole, {2, 3, 6})}, {"other", m.tensor({2, 3})}, {"ind", int64_t{2}}, {"dims", Ints{2}}};
}

}  // namespace

const Rules& matrix_rules() {
  static const Rules rules = {
      {"linalg_lu_factor_ex.", matrix_rule<oblong>},
      {"linalg_lu_factor.", matrix_rule<oblong>},
      {"_lu_with_info.", matrix_rule<oblong>},
      {"linalg_lu.", matrix_rule<oblong>},
      {"lu_unpack.",
       [](Maker& m) {
         Tensor matrix = oblong(m);
         const auto sizes = matrix.sizes();
         return Overrides{{"LU_data", matrix},
                          {"LU_pivots", no_exchanges(m, std::min(sizes[sizes.size() - 1], sizes[sizes.size() - 2]))}};
       }},
      {"linalg_lu_solve.", system_rule},
      {"lu_solve.", columns_rule},
      {"linalg_solve_triangular.", system_rule},
      {"triangular_solve.", columns_rule},
      {"_linalg_solve_ex.", solve_rule},
      {"linalg_solve_ex.", solve_rule},
      {"linalg_solve.", solve_rule},
      {"linalg_inv_ex.", matrix_rule<square>},
      {"linalg_inv.", matrix_rule<square>},
      {"inverse.", matrix_rule<square>},
      {"_linalg_det.", matrix_rule<square>},
      {"linalg_det.", matrix_rule<square>},
      {"det.", matrix_rule<square>},
      {"_linalg_slogdet.", matrix_rule<square>},
      {"linalg_slogdet.", matrix_rule<square>},
      {"logdet.", matrix_rule<square>},
      {"linalg_cholesky_ex.", matrix_rule<symmetric>},
      {"linalg_cholesky.", matrix_rule<symmetric>},
      {"cholesky.", matrix_rule<symmetric>},
      {"cholesky_solve.", columns_rule},
      {"cholesky_inverse.", matrix_rule<square>},
      {"linalg_ldl_factor_ex.", matrix_rule<symmetric>},
      {"linalg_ldl_factor.", matrix_rule<symmetric>},
      {"linalg_ldl_solve.",
       [](Maker& m) {
         Tensor matrix = square(m);
         return Overrides{
             {"LD", matrix}, {"pivots", no_exchanges(m, rows_of(m))}, {"B", m.tensor(batch(m, {rows_of(m), 2}))}};
       }},
      {"geqrf.", matrix_rule<oblong>},
      {"linalg_householder_product.", reflections_rule},
      {"ormqr.", reflections_rule},
      {"linalg_qr.",
       [](Maker& m) {
         Overrides rule = matrix_rule<oblong>(m);
         rule.insert({"mode", std::string(m.recipe.variant % 5 == 4   ? "complete"
                                          : m.recipe.variant % 7 == 6 ? "r"
                                                                      : "reduced")});
         return rule;
       }},
      {"qr.", matrix_rule<oblong>},
      {"_linalg_svd.",
       [](Maker& m) {
         Overrides rule = matrix_rule<oblong>(m);
         rule.insert({{"full_matrices", m.recipe.variant % 8 == 5}, {"compute_uv", m.recipe.variant % 8 != 6}});
         return rule;
       }},
      {"linalg_svd.",
       [](Maker& m) {
         Overrides rule = matrix_rule<oblong>(m);
         // Of a matrix that is not square some vectors are anybody's choice, and have no gradient.
         rule.insert({"full_matrices", m.recipe.variant % 8 == 5});
         return rule;
       }},
      {"linalg_svdvals.", matrix_rule<oblong>},
      {"svd.", matrix_rule<oblong>},
      {"_linalg_eigh.", matrix_rule<symmetric>},
      {"linalg_eigvalsh.", matrix_rule<symmetric>},
      {"linalg_matrix_exp.",
       [](Maker& m) {
         prepare(m);
         return Overrides{{"self", m.tensor(batch(m, {rows_of(m), rows_of(m)}))}};
       }},
      {"matrix_exp.",
       [](Maker& m) {
         prepare(m);
         return Overrides{{"self", m.tensor(batch(m, {rows_of(m), rows_of(m)}))}};
       }},
      {"linalg_matrix_power.",
       [](Maker& m) {
         Overrides rule = matrix_rule<square>(m);
         rule.insert({"n", int64_t{m.recipe.variant % 5 - 1}});
         return rule;
       }},
      {"linalg_pinv.atol_rtol_tensor", matrix_rule<oblong>},
      {"linalg_pinv.atol_rtol_float", matrix_rule<oblong>},
      {"pinverse.", matrix_rule<oblong>},
      {"linalg_matrix_rank.atol_rtol_tensor", matrix_rule<oblong>},
      {"linalg_matrix_rank.atol_rtol_float", matrix_rule<oblong>},
      {"linalg_lstsq.",
       [](Maker& m) {
         constexpr std::string_view drivers[] = {"gelsy", "gels", "gelsd"};
         Tensor matrix = oblong(m);
         return Overrides{{"self", matrix},
                          {"b", m.tensor(batch(m, {rows_of(m), 2}))},
                          // Singular values are given without a gradient.
                          {"driver", std::string(drivers[m.recipe.variant % (m.recipe.dtype == kFloat64 ? 2 : 3)])}};
       }},
      {"linalg_matrix_norm.", norm_rule},
      {"linalg_matrix_norm.str_ord",
       [](Maker& m) { return Overrides{{"self", oblong(m)}, {"ord", std::string(m.even() ? "nuc" : "fro")}}; }},
      {"linalg_norm.",
       [](Maker& m) {
         Overrides rule = norm_rule(m);
         rule.insert({"dim", Ints{-2, -1}});
         return rule;
       }},
      {"linalg_norm.ord_str",
       [](Maker& m) {
         return Overrides{{"self", oblong(m)}, {"ord", std::string(m.even() ? "nuc" : "fro")}, {"dim", Ints{-2, -1}}};
       }},
      {"linalg_cond.",
       [](Maker& m) {
         Overrides rule = norm_rule(m);
         rule.erase("self");
         rule.insert({"self", square(m)});
         return rule;
       }},
      {"linalg_tensorinv.", tensor_rule},
      {"linalg_tensorsolve.", tensor_rule},
  };
  return rules;
}

}  // namespace tenon::test
