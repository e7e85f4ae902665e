// Products of vectors and matrices by other names, and distances between points.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

using Tensors = std::vector<Tensor>;

Tensor cross_product(const Tensor& a, const Tensor& b, int64_t dim, const char* op_name) {
  TENON_CHECK(given(a, op_name).dim() == given(b, op_name).dim(),
              "[{}] expected tensors of as many dimensions, got {} and {}", op_name, a.description(), b.description());
  const int64_t along = wrap_dim(dim, a.dim(), op_name);
  TENON_CHECK(a.dim() > 0 && same_size(a.size(along), 3) && same_size(b.size(along), 3),
              "[{}] expected vectors of 3 elements along dimension {}, got {} and {}", op_name, along, a.description(),
              b.description());
  auto part = [&](const Tensor& of, int64_t at) { return select(of, along, at % 3); };
  Tensors parts;
  for (int64_t at = 0; at < 3; ++at)
    parts.push_back(part(a, at + 1) * part(b, at + 2) - part(a, at + 2) * part(b, at + 1));
  return stack(parts, along);
}

Tensor contracted(const Tensor& self, const Tensor& other, const Ints& dims_self, const Ints& dims_other) {
  TENON_CHECK(dims_self.size() == dims_other.size(),
              "[tensordot] expected as many dimensions of both, got [{}] and [{}]", fmt::join(dims_self, ", "),
              fmt::join(dims_other, ", "));
  TENON_CHECK(given(self, "tensordot").dtype() == given(other, "tensordot").dtype(),
              "[tensordot] expected tensors of one dtype, got {} and {}", self.description(), other.description());
  std::vector<bool> of_self(static_cast<size_t>(self.dim())), of_other(static_cast<size_t>(other.dim()));
  Ints left, right, back;
  SymInt inner = 1, rows = 1, columns = 1;
  for (size_t at = 0; at < dims_self.size(); ++at) {
    const int64_t a = wrap_dim(dims_self[at], self.dim(), "tensordot"),
                  b = wrap_dim(dims_other[at], other.dim(), "tensordot");
    TENON_CHECK(!of_self[static_cast<size_t>(a)] && !of_other[static_cast<size_t>(b)],
                "[tensordot] a dimension appears twice in [{}] or [{}]", fmt::join(dims_self, ", "),
                fmt::join(dims_other, ", "));
    TENON_CHECK(same_size(self.size(a), other.size(b)),
                "[tensordot] expected dimensions of one size, got {} of {} and {} of {}", a, self.description(), b,
                other.description());
    of_self[static_cast<size_t>(a)] = of_other[static_cast<size_t>(b)] = true;
    inner *= self.size(a);
    back.push_back(a);
    right.push_back(b);
  }
  SymInts sizes;
  for (int64_t dim = 0; dim < self.dim(); ++dim)
    if (!of_self[static_cast<size_t>(dim)]) {
      left.push_back(dim);
      rows *= self.size(dim);
      sizes.push_back(self.size(dim));
    }
  for (int64_t dim : back) left.push_back(dim);
  for (int64_t dim = 0; dim < other.dim(); ++dim)
    if (!of_other[static_cast<size_t>(dim)]) {
      right.push_back(dim);
      columns *= other.size(dim);
      sizes.push_back(other.size(dim));
    }
  return reshape(
      mm(reshape(permute(self, left), SymInts{rows, inner}), reshape(permute(other, right), SymInts{inner, columns})),
      sizes);
}

Tensor kronecker(const Tensor& self, const Tensor& other) {
  const int64_t rank = std::max(given(self, "kron").dim(), given(other, "kron").dim());
  SymInts first, second, sizes;
  for (int64_t dim = 0; dim < rank; ++dim) {
    auto size_of = [&](const Tensor& of) {
      const int64_t at = dim - (rank - of.dim());
      return at < 0 ? SymInt(1) : of.size(at);
    };
    const SymInt a = size_of(self), b = size_of(other);
    first.push_back(a);
    first.push_back(1);
    second.push_back(1);
    second.push_back(b);
    sizes.push_back(a * b);
  }
  return reshape(reshape(self, first) * reshape(other, second), sizes);
}

// The cheapest order of products, by what the best orders of shorter chains cost.
Tensor chain(const Tensors& tensors) {
  TENON_CHECK(tensors.size() >= 2, "[linalg_multi_dot] expected at least two tensors, got {}", tensors.size());
  Tensors parts = tensors;
  for (size_t at = 0; at < parts.size(); ++at) {
    const bool end = at == 0 || at + 1 == parts.size();
    TENON_CHECK(given(parts[at], "linalg_multi_dot").dim() == 2 || (end && parts[at].dim() == 1),
                "[linalg_multi_dot] expected matrices, and vectors at the ends, got {}", parts[at].description());
  }
  const bool row = parts.front().dim() == 1, column = parts.back().dim() == 1;
  if (row) parts.front() = unsqueeze(parts.front(), 0);
  if (column) parts.back() = unsqueeze(parts.back(), 1);
  for (size_t at = 0; at + 1 < parts.size(); ++at)
    TENON_CHECK(same_size(parts[at].size(1), parts[at + 1].size(0)),
                "[linalg_multi_dot] expected matrices that can be multiplied, got {} and {}", parts[at].description(),
                parts[at + 1].description());
  while (parts.size() > 1) {
    size_t best = 0;
    auto inner = [&](size_t at) { return parts[at].size(1); };
    // The largest inner dimension first: it is then gone from every later product.
    for (size_t at = 1; at + 1 < parts.size(); ++at)
      if (decide_typically(inner(at) > inner(best))) best = at;
    parts[best] = mm(parts[best], parts[best + 1]);
    parts.erase(parts.begin() + static_cast<int64_t>(best) + 1);
  }
  Tensor result = parts[0];
  if (column) result = squeeze(result, 1);
  return row ? squeeze(result, 0) : result;
}

// Σ over `sumdim` of the product of three, each with dimensions of size 1 put in.
Tensor product_of_three(const Tensor& a, const Tensor& b, const Tensor& c, const Ints& expand1, const Ints& expand2,
                        const Ints& expand3, const Ints& sumdim, int64_t) {
  auto widened = [](const Tensor& of, const Ints& dims) {
    Tensor result = given(of, "_trilinear");
    const int64_t rank = of.dim() + static_cast<int64_t>(dims.size());
    Ints order;
    for (int64_t dim : dims) order.push_back(wrap_dim(dim, rank, "_trilinear"));
    std::sort(order.begin(), order.end());
    for (int64_t dim : order) result = unsqueeze(result, dim);
    return result;
  };
  Tensor x = widened(a, expand1), y = widened(b, expand2), z = widened(c, expand3);
  TENON_CHECK(x.dim() == y.dim() && y.dim() == z.dim(),
              "[_trilinear] expected as many dimensions of all, got {}, {} and {}", x.dim(), y.dim(), z.dim());
  // Halves are computed in float32 and rounded once.
  const Dtype dtype = promote(promote(x.dtype(), y.dtype()), z.dtype()), wide = compute_dtype(dtype);
  Tensor product = x.to(wide) * y.to(wide) * z.to(wide);
  return (sumdim.empty() ? product : sum(product, OptionalInts(sumdim), false, wide)).to(dtype);
}

// [.., P, M] and [.., R, M] to [.., P, R].
Tensor distances(const Tensor& a, const Tensor& b, double p, const char* op_name) {
  TENON_CHECK(given(a, op_name).dim() >= 2 && given(b, op_name).dim() >= 2 && is_floating(a.dtype()) &&
                  a.dtype() == b.dtype() && same_size(a.size(-1), b.size(-1)),
              "[{}] expected rows of as many floating point numbers, got {} and {}", op_name, a.description(),
              b.description());
  TENON_CHECK(p >= 0, "[{}] expected an order of at least 0, got {}", op_name, p);
  return linalg_vector_norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, OptionalInts(Ints{-1}));
}

// Of each pair of rows, the first with all later ones, then the second, and so on.
Tensor distances_within(const Tensor& self, double p, const char* op_name) {
  TENON_CHECK(given(self, op_name).dim() == 2 && is_floating(self.dtype()),
              "[{}] expected rows of floating point numbers, got {}", op_name, self.description());
  TENON_CHECK(p >= 0, "[{}] expected an order of at least 0, got {}", op_name, p);
  const SymInt rows = self.size(0), count = rows * (rows - 1) / 2;
  Tensor above = triu(ones(SymInts{rows, rows}, TensorOptions(kBool, self.device())), 1);
  Tensor pairs = call_in_order("aten::nonzero_static", {above, count, int64_t{0}});
  Tensor apart = index_select(self, 0, select(pairs, 1, 0)) - index_select(self, 0, select(pairs, 1, 1));
  return linalg_vector_norm(apart, p, OptionalInts(Ints{-1}));
}

// Slices along `dim` whose norm is larger are scaled to `most`.
Tensor renormed(const Tensor& self, const Scalar& p, int64_t given_dim, const Scalar& most) {
  TENON_CHECK(given(self, "renorm").dim() >= 2 && is_floating(self.dtype()),
              "[renorm] expected a floating point tensor of at least 2 dimensions, got {}", self.description());
  TENON_CHECK(p.to_double() > 0 && most.to_double() >= 0,
              "[renorm] expected an order above 0 and a norm of at least 0, got {} and {}", p.to_double(),
              most.to_double());
  const int64_t dim = wrap_dim(given_dim, self.dim(), "renorm");
  Ints others;
  for (int64_t each = 0; each < self.dim(); ++each)
    if (each != dim) others.push_back(each);
  const Dtype wide = compute_dtype(self.dtype());
  Tensor norm = linalg_vector_norm(self, p, OptionalInts(others), true, wide);
  Tensor factor = where(norm > most.to_double(), most.to_double() / (norm + 1e-7), ones_like(norm));
  return contiguous((self.to(wide) * factor).to(self.dtype()));
}

}  // namespace

OPS(products) {
  op("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor")
      .decompose(
          [](const Tensor& a, const Tensor& b, int64_t dim) { return cross_product(a, b, dim, "linalg_cross"); });
  op("cross(Tensor self, Tensor other, int? dim=None) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, std::optional<int64_t> dim) {
        int64_t along = dim.value_or(0);
        if (!dim) {
          while (along < given(a, "cross").dim() && !decide_typically(a.size(along) == 3)) ++along;
          TENON_CHECK(along < a.dim(), "[cross] expected a dimension of size 3, got {}", a.description());
        }
        return cross_product(a, b, along, "cross");
      });
  op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y, int64_t dim) {
        Tensor product = given(x, "linalg_vecdot") * given(y, "linalg_vecdot");
        return sum(product, OptionalInts(Ints{dim}), false, product.dtype());
      });
  // Example: vdot(ones({3}), ones({3}));
  op("vdot(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    return dot(self, other);
  });
  op("inner(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    if (given(self, "inner").dim() == 0 || given(other, "inner").dim() == 0) return self * other;
    return contracted(self, other, Ints{-1}, Ints{-1});
  });
  op("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor").decompose(contracted);
  op("kron(Tensor self, Tensor other) -> Tensor").decompose(kronecker);
  // Example: linalg_multi_dot({x, y.t(), x});
  op("linalg_multi_dot(Tensor[] tensors) -> Tensor").decompose(chain);
  // Example: chain_matmul({x, y.t(), x});
  op("chain_matmul(Tensor[] matrices) -> Tensor").decompose([](const Tensors& matrices) {
    return matrices.size() == 1 ? matrices[0] : chain(matrices);
  });
  op("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
      .decompose([](const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
        return diagonal(given(a, "linalg_diagonal"), offset, dim1, dim2);
      });
  op("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor")
      .decompose([](const Tensor& x, const std::optional<SymInt>& n) {
        TENON_CHECK(given(x, "linalg_vander").dim() > 0, "[linalg_vander] expected a tensor with dimensions, got {}",
                    x.description());
        const SymInt columns = n ? *n : x.size(-1);
        TENON_CHECK(expect(columns > 1), "[linalg_vander] expected at least 2 columns, got {}", columns.str());
        SymInts sizes = x.sym_sizes();
        sizes.push_back(columns - 1);
        Tensor powers = cumprod(expand(unsqueeze(x, -1), sizes), -1);
        return cat({ones_like(narrow(powers, -1, 0, 1)), powers}, -1);
      });
  // For graphs alone.
  op("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int "
     "unroll_dim=1) -> Tensor")
      .decompose(product_of_three);
  // Example: bilinear(x, y, ones({4, 3, 3}), std::nullopt);
  op("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, const Tensor& weight, const std::optional<Tensor>& bias) {
        TENON_CHECK(
            given(a, "bilinear").dim() >= 1 && given(b, "bilinear").dim() == a.dim() &&
                given(weight, "bilinear").dim() == 3 && same_size(a.size(-1), weight.size(1)) &&
                same_size(b.size(-1), weight.size(2)),
            "[bilinear] expected inputs whose last dimensions are the last two of the weight, got {}, {} and {}",
            a.description(), b.description(), weight.description());
        // [.., 1, I, 1] and [.., 1, 1, J] with [O, I, J].
        Tensor product = unsqueeze(unsqueeze(a, -1), -3) * unsqueeze(unsqueeze(b, -2), -3) * weight;
        Tensor result = sum(product, Ints{-2, -1});
        return bias ? result + *bias : result;
      });
}

OPS(distances) {
  // For graphs alone.
  op("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, double p, std::optional<int64_t>) {
        return distances(a, b, p, "_cdist_forward");
      });
  // For graphs alone.
  op("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor").decompose([](const Tensor& a, const Tensor& b) {
    return distances(a, b, 2, "_euclidean_dist");
  });
  op("cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, double p, std::optional<int64_t>) {
        return distances(a, b, p, "cdist");
      });
  // For graphs alone.
  op("_pdist_forward(Tensor self, float p=2.) -> Tensor").decompose([](const Tensor& self, double p) {
    return distances_within(self, p, "_pdist_forward");
  });
  op("pdist(Tensor self, float p=2.) -> Tensor").decompose([](const Tensor& self, double p) {
    return distances_within(self, p, "pdist");
  });
  op("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor").decompose(renormed).with_inplace();
}

}  // namespace tenon::ops
