// Differences of neighbours along a dimension, and integrals of functions that are known at places.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

using OptionalTensor = std::optional<Tensor>;

Tensor differences(const Tensor& self, int64_t n, int64_t given_dim, const OptionalTensor& before,
                   const OptionalTensor& behind) {
  TENON_CHECK(given(self, "diff").dim() > 0, "[diff] expected a tensor with dimensions, got {}", self.description());
  TENON_CHECK(n >= 0 && n < (int64_t{1} << 20), "[diff] expected an order from 0 to 2^20, got {}", n);
  const int64_t dim = wrap_dim(given_dim, self.dim(), "diff");
  std::vector<Tensor> parts;
  if (before) parts.push_back(*before);
  parts.push_back(self);
  if (behind) parts.push_back(*behind);
  // No difference is taken of what is put before and behind alone, as in PyTorch.
  if (n == 0) return clone(self);
  Tensor x = parts.size() > 1 ? cat(parts, dim) : self;
  for (int64_t each = 0; each < n; ++each) {
    if (decide_or(x.size(dim) == 0, false)) return clone(x);
    const SymInt size = x.size(dim) - 1;
    Tensor later = narrow(x, dim, 1, size), earlier = narrow(x, dim, 0, size);
    x = self.dtype() == kBool ? logical_xor(later, earlier) : later - earlier;
  }
  return x;
}

// Means of neighbours, by how far they are apart.
Tensor trapezes(const Tensor& y, const Tensor& apart, int64_t dim) {
  const SymInt size = y.size(dim) - 1;
  return (narrow(y, dim, 1, size) + narrow(y, dim, 0, size)) * apart * 0.5;
}

// How far the neighbours of x are apart, so that it can be multiplied with what lies along `dim` of y.
Tensor steps_of(const Tensor& x, const Tensor& y, int64_t dim, const char* op_name) {
  TENON_CHECK(given(x, op_name).dim() > 0 && given(y, op_name).dim() > 0,
              "[{}] expected tensors with dimensions, got {} and {}", op_name, x.description(), y.description());
  Tensor steps = x.dim() == 1 ? x : x;
  if (x.dim() == 1) {
    TENON_CHECK(same_size(x.size(0), y.size(dim)), "[{}] expected a place for each of {}, got {}", op_name,
                y.description(), x.description());
    SymInts shape(static_cast<size_t>(y.dim()), SymInt(1));
    shape[static_cast<size_t>(wrap_dim(dim, y.dim(), op_name))] = x.size(0);
    steps = view(x, shape);
  }
  return differences(steps, 1, x.dim() == 1 ? wrap_dim(dim, y.dim(), op_name) : dim, {}, {});
}

Tensor one_of(const Scalar& number, const Tensor& like) {
  return full(SymInts{}, number,
              TensorOptions(number.is_real() ? promote(like.dtype(), kFloat32) : like.dtype(), like.device()));
}

Tensor integral(const Tensor& y, const Tensor& apart, int64_t given_dim, bool running, const char* op_name) {
  TENON_CHECK(given(y, op_name).dim() > 0, "[{}] expected a tensor with dimensions, got {}", op_name, y.description());
  const int64_t dim = wrap_dim(given_dim, y.dim(), op_name);
  Tensor parts = trapezes(y, apart, dim);
  return running ? cumsum(parts, dim) : sum(parts, OptionalInts(Ints{dim}));
}

}  // namespace

OPS(integrals) {
  op("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
      .decompose(differences);
  op("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Scalar& dx, int64_t dim) {
        return integral(y, one_of(dx, given(y, "trapezoid")), dim, false, "trapezoid");
      });
  op("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x, int64_t dim) {
        return integral(y, steps_of(x, y, dim, "trapezoid"), dim, false, "trapezoid");
      });
  op("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor").decompose([](const Tensor& y, double dx, int64_t dim) {
    return integral(y, one_of(dx, given(y, "trapz")), dim, false, "trapz");
  });
  op("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x, int64_t dim) {
        return integral(y, steps_of(x, y, dim, "trapz"), dim, false, "trapz");
      });
  op("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Scalar& dx, int64_t dim) {
        return integral(y, one_of(dx, given(y, "cumulative_trapezoid")), dim, true, "cumulative_trapezoid");
      });
  op("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x, int64_t dim) {
        return integral(y, steps_of(x, y, dim, "cumulative_trapezoid"), dim, true, "cumulative_trapezoid");
      });
}

}  // namespace tenon::ops
