// Reductions over dimensions.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

Dtype sum_dtype(Dtype dtype) { return is_floating(dtype) ? dtype : kInt64; }
Dtype to_bool(Dtype) { return kBool; }

// A gradient of the reduced shape, with the reduced dimensions put back as ones.
Tensor keep_dims(const Tensor& reduced, const Grad& g) {
  if (g.argument("keepdim").boolean()) return reduced;
  SymInts sizes = g.sizes("self");
  if (sizes.empty()) return reduced;
  const dispatch::Value& dim = g.argument("dim");
  Ints dims = dim.is_none() ? Ints{} : dim.ints();
  SymInts shape = sizes;
  if (dims.empty())
    for (SymInt& size : shape) size = 1;
  for (int64_t each : dims) shape[static_cast<size_t>(wrap_dim(each, static_cast<int64_t>(sizes.size()), "sum"))] = 1;
  return view(reduced, shape);
}

SymInt count(const Tensor& self, const OptionalInts& dim) {
  if (!dim.has_value() || dim->empty()) return self.numel();
  SymInt product = 1;
  for (int64_t each : *dim) {
    int64_t at = wrap_dim(each, self.dim(), "mean");
    if (self.dim() > 0) product *= self.size(at);
  }
  return product;
}

Tensor mean_over(const Tensor& self, const OptionalInts& dim, bool keepdim, std::optional<Dtype> dtype) {
  Dtype result = dtype.value_or(self.dtype());
  TENON_CHECK(is_floating(result), "[mean] expected a floating point dtype, got {}: pass dtype=float32", name(result));
  // Halves are summed and divided in float32, and rounded once.
  Dtype wide = compute_dtype(result);
  Tensor total = sum(self, dim, keepdim, wide) / Scalar(count(self, dim));
  return total.to(result);
}

// Ties share the gradient evenly.
Tensor extremum_grad(Grad& g) {
  Tensor result = keep_dims(g.saved("result"), g);
  Tensor mask = (g.saved("self") == result).to(g.dtype("self"));
  const dispatch::Value& dim = g.argument("dim");
  return mask * (keep_dims(g.grad(), g) / sum(mask, OptionalInts(dim.ints()), true));
}

Tensor without_nan(const Tensor& self) {
  return is_floating(self.dtype()) ? where(isnan(self), zeros_like(self), self) : self;
}

}  // namespace

OPS(reduction) {
  op("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .reduce(loop::ReduceKind::Sum, sum_dtype)
      .grad("self", saves(), [](Grad& g) { return expand(keep_dims(g.grad(), g), g.sizes("self")); });
  op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .decompose(
          [](const Tensor& self, std::optional<Dtype> dtype) { return sum(self, OptionalInts(), false, dtype); });
  op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, std::optional<Dtype> dtype) { return mean_over(self, {}, false, dtype); });
  op("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool keepdim, std::optional<Dtype> dtype) {
        return mean_over(self, dim, keepdim, dtype);
      });
  op("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
      .reduce(loop::ReduceKind::Max)
      .grad("self", saves("self", "result"), extremum_grad);
  op("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
      .reduce(loop::ReduceKind::Min)
      .grad("self", saves("self", "result"), extremum_grad);
  op("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor").reduce(loop::ReduceKind::Any, to_bool);
  op("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor").reduce(loop::ReduceKind::All, to_bool);
  op("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool keepdim, std::optional<Dtype> dtype) {
        return sum(without_nan(given(self, "nansum")), dim, keepdim, dtype);
      });
  op("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool keepdim, std::optional<Dtype> dtype) {
        TENON_CHECK(is_floating(given(self, "nanmean").dtype()), "[nanmean] expected a floating point tensor, got {}",
                    self.description());
        Tensor total = sum(without_nan(self), dim, keepdim, dtype);
        return total / sum(logical_not(isnan(self)), dim, keepdim).to(total.dtype());
      });
  op("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
      .decompose([](const Tensor& self, const Ints& dim) {
        return sum(given(self, "count_nonzero") != 0, OptionalInts(dim), false);
      })
      .not_differentiable("result");
  op("count_nonzero(Tensor self, int? dim=None) -> Tensor")
      .decompose([](const Tensor& self, std::optional<int64_t> dim) {
        Tensor found = given(self, "count_nonzero") != 0;
        return dim ? sum(found, OptionalInts(Ints{*dim}), false) : sum(found);
      })
      .not_differentiable("result");
  op("sum_to_size(Tensor self, SymInt[] size) -> Tensor").decompose([](const Tensor& self, const SymInts& size) {
    SymInts sizes = self.sym_sizes();
    TENON_CHECK(size.size() <= sizes.size(), "[sum_to_size] {} cannot be summed to {}", self.description(), str(size));
    size_t lead = sizes.size() - size.size();
    Ints dims;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      if (dim < lead || (is_one(size[dim - lead]) && !is_one(sizes[dim]))) dims.push_back(static_cast<int64_t>(dim));
    Tensor result = dims.empty() ? self : sum(self, dims, true, self.dtype());
    return lead == 0 ? result : view(result, size);
  });
}

}  // namespace tenon::ops
