// Variances by their older names, covariances, and slopes of sampled functions.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

using Tensors = std::vector<Tensor>;
using OptionalTensor = std::optional<Tensor>;

std::optional<Scalar> less(bool unbiased) { return Scalar(int64_t{unbiased ? 1 : 0}); }

// Of variables in rows, observations in columns, each with a weight and a number of times.
Tensor covariance(const Tensor& self, int64_t correction, const OptionalTensor& times, const OptionalTensor& weights) {
  TENON_CHECK(given(self, "cov").dim() <= 2 && self.dtype() != kBool,
              "[cov] expected numbers of at most two dimensions, got {}", self.description());
  const Dtype dtype = is_floating(self.dtype()) ? self.dtype() : kFloat32;
  Tensor x = (self.dim() == 2 ? self : reshape(self, SymInts{1, self.numel()})).to(dtype);
  Tensor share;
  if (times) {
    TENON_CHECK(times->dim() == 1 && !is_floating(times->dtype()) && same_size(times->size(0), x.size(1)),
                "[cov] expected a whole number for each of {} observations, got {}", x.size(1).str(),
                times->description());
    share = times->to(dtype);
  }
  if (weights) {
    TENON_CHECK(weights->dim() == 1 && is_floating(weights->dtype()) && same_size(weights->size(0), x.size(1)),
                "[cov] expected a weight for each of {} observations, got {}", x.size(1).str(), weights->description());
    share = share.defined() ? share * weights->to(dtype) : weights->to(dtype);
  }
  Tensor total = share.defined() ? sum(share) : full(SymInts{}, Scalar(x.size(1)), TensorOptions(dtype, x.device()));
  Tensor center = (share.defined() ? sum(x * share, Ints{1}) : sum(x, Ints{1})) / total;
  Tensor norm = total - correction;
  if (weights && correction != 0) norm = total - sum(share * weights->to(dtype)) / total * correction;
  Tensor apart = x - unsqueeze(center, 1);
  Tensor result = mm(apart, transpose(share.defined() ? apart * share : apart, 0, 1)) / clamp_min(norm, 0);
  return self.dim() == 2 ? squeeze(result) : reshape(result, {});
}

// The slope at each place along `dim`, by its neighbours; `apart`: how far each two neighbours are, as many as there
// are pairs, or one number for all.
Tensor slopes(const Tensor& self, int64_t dim, const Tensor& apart, int64_t edge_order) {
  const SymInt size = self.size(dim);
  TENON_CHECK(expect(size >= edge_order + 1), "[gradient] expected at least {} elements along dimension {}, got {}",
              edge_order + 1, dim, self.description());
  SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
  Tensor steps = apart;
  if (apart.dim() == 0) steps = expand(apart, SymInts{size - 1});
  shape[static_cast<size_t>(dim)] = size - 1;
  steps = reshape(steps, shape);
  auto part = [&](const Tensor& of, const SymInt& from, const SymInt& count) { return narrow(of, dim, from, count); };
  Tensor rises = (part(self, 1, size - 1) - part(self, 0, size - 1)) / steps;
  Tensor first = part(rises, 0, 1), last = part(rises, size - 2, 1);
  if (is_one(size - 1)) return cat({first, last}, dim);
  // Weighted by the other's distance.
  Tensor before = part(steps, 0, size - 2), after = part(steps, 1, size - 2);
  Tensor inner = (part(rises, 0, size - 2) * after + part(rises, 1, size - 2) * before) / (before + after);
  if (edge_order == 2) {
    Tensor a = part(steps, 0, 1), b = part(steps, 1, 1);
    first = first + (first - part(rises, 1, 1)) * a / (a + b);
    Tensor c = part(steps, size - 2, 1), d = part(steps, size - 3, 1);
    last = last + (last - part(rises, size - 3, 1)) * c / (c + d);
  }
  return cat({first, inner, last}, dim);
}

void check_edges(const Tensor& self, int64_t edge_order) {
  given(self, "gradient");
  TENON_CHECK(edge_order == 1 || edge_order == 2, "[gradient] expected an edge_order of 1 or 2, got {}", edge_order);
}

Ints all_or(const Tensor& self, const std::optional<int64_t>& dim) {
  Ints dims;
  if (dim)
    dims.push_back(*dim);
  else
    for (int64_t each = 0; each < self.dim(); ++each) dims.push_back(each);
  return dims;
}

// Along each dimension, by the distances of its samples.
Tensors all_slopes(const Tensor& self, const Ints& dims, const std::vector<Scalar>& spacing, int64_t edge_order) {
  check_edges(self, edge_order);
  TENON_CHECK(spacing.size() == dims.size() || spacing.size() == 1,
              "[gradient] expected a distance for each of {} dimensions, got {}", dims.size(), spacing.size());
  const Dtype dtype = is_floating(self.dtype()) ? self.dtype() : kFloat32;
  Tensors result;
  for (size_t at = 0; at < dims.size(); ++at)
    result.push_back(
        slopes(self.to(dtype), wrap_dim(dims[at], self.dim(), "gradient"),
               full(SymInts{}, spacing[spacing.size() == 1 ? 0 : at].to_double(), TensorOptions(dtype, self.device())),
               edge_order));
  return result;
}

}  // namespace

OPS(moments) {
  // For graphs alone.
  op("var(Tensor self, bool unbiased=True) -> Tensor").decompose([](const Tensor& self, bool unbiased) {
    return tenon::var(given(self, "var"), OptionalInts(), less(unbiased), false);
  });
  // For graphs alone.
  op("std(Tensor self, bool unbiased=True) -> Tensor").decompose([](const Tensor& self, bool unbiased) {
    return tenon::std(given(self, "std"), OptionalInts(), less(unbiased), false);
  });
  // For graphs alone.
  op("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool unbiased, bool keepdim) {
        return tenon::var(given(self, "var"), dim, less(unbiased), keepdim);
      });
  // For graphs alone.
  op("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool unbiased, bool keepdim) {
        return tenon::std(given(self, "std"), dim, less(unbiased), keepdim);
      });
  // For graphs alone.
  op("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)").decompose([](const Tensor& self, bool unbiased) {
    return tenon::var_mean(given(self, "var_mean"), OptionalInts(), less(unbiased), false);
  });
  // For graphs alone.
  op("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)").decompose([](const Tensor& self, bool unbiased) {
    return tenon::std_mean(given(self, "std_mean"), OptionalInts(), less(unbiased), false);
  });
  // For graphs alone.
  op("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool unbiased, bool keepdim) {
        return tenon::var_mean(given(self, "var_mean"), dim, less(unbiased), keepdim);
      });
  // For graphs alone.
  op("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool unbiased, bool keepdim) {
        return tenon::std_mean(given(self, "std_mean"), dim, less(unbiased), keepdim);
      });
  op("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
      .decompose(covariance);
  op("corrcoef(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    Tensor together = covariance(given(self, "corrcoef"), 1, {}, {});
    if (together.dim() == 0) return together / together;
    Tensor deviation = sqrt(diagonal(together));
    return clamp(together / unsqueeze(deviation, 1) / unsqueeze(deviation, 0), Scalar(-1.0), Scalar(1.0));
  });
  op("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]")
      .decompose(
          [](const Tensor& self, const std::optional<Scalar>& spacing, std::optional<int64_t> dim, int64_t edge_order) {
            return all_slopes(self, all_or(given(self, "gradient"), dim), {spacing.value_or(Scalar(1.0))}, edge_order);
          });
  // Example: gradient(x, {arange(2).to(kFloat32)}, {0});
  op("gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]")
      .decompose([](const Tensor& self, const Tensors& spacing, const Ints& dims, int64_t edge_order) {
        check_edges(self, edge_order);
        TENON_CHECK(spacing.size() == dims.size(), "[gradient] expected places for each of {} dimensions, got {}",
                    dims.size(), spacing.size());
        Tensors result;
        for (size_t at = 0; at < dims.size(); ++at) {
          const int64_t dim = wrap_dim(dims[at], self.dim(), "gradient");
          const Tensor& places = given(spacing[at], "gradient");
          TENON_CHECK(places.dim() == 1 && same_size(places.size(0), self.size(dim)),
                      "[gradient] expected a place for each element along dimension {} of {}, got {}", dim,
                      self.description(), places.description());
          const SymInt pairs = places.size(0) - 1;
          result.push_back(slopes(self, dim, narrow(places, 0, 1, pairs) - narrow(places, 0, 0, pairs), edge_order));
        }
        return result;
      });
}

}  // namespace tenon::ops
