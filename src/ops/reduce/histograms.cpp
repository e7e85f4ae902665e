// How often numbers fall into bins.
#include "ops/by_name.h"

#include <tenon/kernels/order.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

using OptionalTensor = std::optional<Tensor>;
using Tensors = std::vector<Tensor>;

constexpr int64_t kMostBins = int64_t{1} << 24;

const Tensor& real(const Tensor& self, const char* op_name) {
  TENON_CHECK_IMPLEMENTED(self.defined() && (self.dtype() == kFloat32 || self.dtype() == kFloat64),
                          "[{}] expected numbers of float32 or float64, got {}", op_name,
                          self.defined() ? self.description() : "an undefined tensor");
  return self;
}

// steps + 1 numbers from one to the other, as far from either end as they are.
Tensor edges_between(const Tensor& low, const Tensor& high, int64_t bins) {
  Tensor at = arange(Scalar(bins + 1), TensorOptions(low.dtype(), low.device())), step = (high - low) / bins;
  return where(at < (bins + 1) / 2, low + at * step, high - (static_cast<double>(bins) - at) * step);
}

// The ends of the data; if these are one number, `around` it.
std::pair<Tensor, Tensor> ends_of(const Tensor& self, double around) {
  if (decide_or(self.numel() == 0, false)) {
    Tensor zero = zeros(SymInts{}, TensorOptions(self.dtype(), self.device()));
    return {zero, zero + 1};
  }
  Tensor low = min(self), high = max(self), apart = (low == high).to(self.dtype()) * around;
  return {low - apart, high + apart};
}

std::pair<Tensor, Tensor> ends_given(double low, double high, const Tensor& like, double around, const char* op_name) {
  TENON_CHECK(low <= high, "[{}] expected a range whose end is not below its beginning, got {} to {}", op_name, low,
              high);
  if (low == high) low -= around, high += around;
  const TensorOptions options(like.dtype(), like.device());
  return {full(SymInts{}, low, options), full(SymInts{}, high, options)};
}

void check_bins(int64_t bins, const char* op_name) {
  TENON_CHECK(bins > 0 && bins <= kMostBins, "[{}] expected from 1 to 2^24 bins, got {}", op_name, bins);
}

// [N, D] points in D dimensions.
Tensor points(const Tensor& self, const char* op_name) {
  TENON_CHECK(real(self, op_name).dim() >= 2, "[{}] expected points in the rows of a matrix, got {}", op_name,
              self.description());
  return reshape(self, SymInts{self.numel() / self.size(-1), self.size(-1)});
}

Tensors bin_edges(const Tensor& self, const Ints& bins, const std::optional<std::vector<double>>& range,
                  const char* op_name) {
  Tensor x = points(self, op_name);
  TENON_CHECK(expect(x.size(1) == static_cast<int64_t>(bins.size())),
              "[{}] expected a number of bins for each of {} dimensions, got [{}]", op_name, x.size(1).str(),
              fmt::join(bins, ", "));
  TENON_CHECK(!range || range->size() == 2 * bins.size(), "[{}] expected two ends for each of {} dimensions, got {}",
              op_name, bins.size(), range ? range->size() : 0);
  Tensors edges;
  for (size_t dim = 0; dim < bins.size(); ++dim) {
    check_bins(bins[dim], op_name);
    auto [low, high] = range ? ends_given((*range)[2 * dim], (*range)[2 * dim + 1], x, 0.5, op_name)
                             : ends_of(select(x, 1, static_cast<int64_t>(dim)), 0.5);
    edges.push_back(edges_between(low, high, bins[dim]));
  }
  return edges;
}

// Counts, or sums of weights; a bin has its left edge, and the last one its right edge too.
Tensor counts(const Tensor& self, const Tensors& edges, const OptionalTensor& weight, bool density,
              const char* op_name) {
  Tensor x = points(self, op_name);
  const TensorOptions options(self.dtype(), self.device());
  SymInts sizes;
  SymInt total = 1;
  Tensor place = zeros(SymInts{x.size(0)}, TensorOptions(kInt64, self.device())), inside;
  for (size_t dim = 0; dim < edges.size(); ++dim) {
    const Tensor& edge = edges[dim];
    TENON_CHECK(edge.defined() && edge.dim() == 1 && edge.dtype() == self.dtype() && expect(edge.size(0) >= 2),
                "[{}] expected at least two edges of {} for each dimension", op_name, name(self.dtype()));
    const SymInt bins = edge.size(0) - 1;
    Tensor column = contiguous(select(x, 1, static_cast<int64_t>(dim)));
    Tensor found = searchsorted(edge, column, false, true) - 1;
    Tensor last = select(edge, 0, bins);
    found = where(column == last, full(SymInts{}, Scalar(bins - 1), TensorOptions(kInt64, self.device())), found);
    Tensor in_range = logical_and(found >= 0, logical_and(found < Scalar(bins), logical_not(isnan(column))));
    inside = inside.defined() ? logical_and(inside, in_range) : in_range;
    place = place * Scalar(bins) + found;
    sizes.push_back(bins);
    total *= bins;
  }
  Tensor amount = ones(SymInts{x.size(0)}, options);
  if (weight) {
    TENON_CHECK(weight->dtype() == self.dtype() && same_size(weight->numel(), x.size(0)),
                "[{}] expected a weight of {} for each point, got {}", op_name, name(self.dtype()),
                weight->description());
    amount = reshape(*weight, SymInts{x.size(0)}).detach();
  }
  amount = where(inside, amount, zeros_like(amount));
  Tensor result = scatter_add(zeros(SymInts{total}, options), 0, where(inside, place, zeros_like(place)), amount);
  result = reshape(result, sizes);
  if (!density) return result;
  result = result / sum(result);
  for (size_t dim = 0; dim < edges.size(); ++dim) {
    SymInts shape(edges.size(), SymInt(1));
    shape[dim] = sizes[dim];
    result = result / reshape(slice(edges[dim], 0, 1) - slice(edges[dim], 0, 0, sizes[dim]), shape);
  }
  return result;
}

Tensor as_points(const Tensor& self, const char* op_name) { return reshape(real(self, op_name), SymInts{-1, 1}); }

}  // namespace

OPS(histograms) {
  op("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor")
      .decompose([](const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
        check_bins(bins, "histc");
        TENON_CHECK_IMPLEMENTED(self.defined() && is_floating(self.dtype()),
                                "[histc] expected floating point numbers, got {}",
                                self.defined() ? self.description() : "an undefined tensor");
        Tensor x = as_points(self.detach().to(compute_dtype(self.dtype())), "histc");
        auto [low, high] = min.to_double() == max.to_double()
                               ? ends_of(x, 1)
                               : ends_given(min.to_double(), max.to_double(), x, 1, "histc");
        return counts(x, {edges_between(low, high, bins)}, std::nullopt, false, "histc").to(self.dtype());
      })
      .not_differentiable("result");
  op("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> "
     "(Tensor hist, Tensor bin_edges)")
      .decompose([](const Tensor& self, int64_t bins, const std::optional<std::vector<double>>& range,
                    const OptionalTensor& weight, bool density) {
        Tensor x = as_points(self.detach(), "histogram");
        Tensors edges = bin_edges(x, Ints{bins}, range, "histogram");
        return std::tuple(counts(x, edges, weight, density, "histogram"), edges[0]);
      })
      .not_differentiable("hist")
      .not_differentiable("bin_edges");
  // Example: histogram(x, arange(3).to(kFloat32));
  op("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
     "Tensor bin_edges)")
      .decompose([](const Tensor& self, const Tensor& bins, const OptionalTensor& weight, bool density) {
        return std::tuple(counts(as_points(self.detach(), "histogram"), {bins}, weight, density, "histogram"),
                          clone(bins.detach(), MemoryFormat::Contiguous));
      })
      .not_differentiable("hist")
      .not_differentiable("bin_edges");
  // For graphs alone.
  op("_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) "
     "-> Tensor[]")
      .decompose([](const Tensor& self, const Ints& bins, const std::optional<std::vector<double>>& range,
                    const OptionalTensor&, bool) { return bin_edges(self.detach(), bins, range, "histogramdd"); });
  // For graphs alone.
  op("_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
     "density=False) -> Tensor")
      .decompose([](const Tensor& self, const Ints& bins, const std::optional<std::vector<double>>& range,
                    const OptionalTensor& weight, bool density) {
        Tensor x = self.detach();
        return counts(x, bin_edges(x, bins, range, "histogramdd"), weight, density, "histogramdd");
      });
  // For graphs alone.
  op("_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor")
      .decompose([](const Tensor& self, const Tensors& bins, const OptionalTensor& weight, bool density) {
        TENON_CHECK(self.defined() && !bins.empty() && self.dim() >= 2 &&
                        expect(self.size(-1) == static_cast<int64_t>(bins.size())),
                    "[histogramdd] expected edges for each dimension of the points");
        return counts(self.detach(), bins, weight, density, "histogramdd");
      });
  // Example: histogramdd(x, {2, 2, 2});
  op("histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor "
     "hist, Tensor[] bin_edges)")
      .decompose([](const Tensor& self, const Ints& bins, const std::optional<std::vector<double>>& range,
                    const OptionalTensor& weight, bool density) {
        Tensor x = self.detach();
        Tensors edges = bin_edges(x, bins, range, "histogramdd");
        return std::tuple(counts(x, edges, weight, density, "histogramdd"), edges);
      });
  // Example: histogramdd(x, std::vector<Tensor>(3, arange(3).to(kFloat32)));
  op("histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool "
     "density=False) -> (Tensor hist, Tensor[] bin_edges)")
      .decompose([](const Tensor& self, const Tensors& bins, const std::optional<std::vector<double>>&,
                    const OptionalTensor& weight, bool density) {
        TENON_CHECK(self.defined() && !bins.empty() && self.dim() >= 2 &&
                        expect(self.size(-1) == static_cast<int64_t>(bins.size())),
                    "[histogramdd] expected edges for each dimension of the points");
        Tensors edges;
        for (const Tensor& each : bins) edges.push_back(clone(each.detach(), MemoryFormat::Contiguous));
        return std::tuple(counts(self.detach(), edges, weight, density, "histogramdd"), edges);
      });
  // Example: bincount(full({2}, 3));
  op("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
      .dynamic_kernel([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        const int64_t least = arguments["minlength"].sym_int();
        int64_t size = 0;
        if (self.numel().plain() > 0) {
          const Tensor numbers = self.to(kInt64).contiguous();
          const auto* first = numbers.data<int64_t>();
          const auto [low, high] = std::minmax_element(first, first + numbers.numel().plain());
          TENON_CHECK(*low >= 0, "[bincount] expected numbers of at least 0, got {}", *low);
          size = *high + 1;
        }
        const dispatch::Value& weights = arguments["weights"];
        Dtype dtype = kInt64;
        if (!weights.is_none()) dtype = weights.tensor().dtype() == kFloat32 ? kFloat32 : kFloat64;
        Tensor out = zeros(SymInts{std::max(size, least)}, TensorOptions(dtype, self.device()));
        Tensor wide = weights.is_none() ? Tensor() : weights.tensor().to(dtype);
        kernels::count_numbers(self, weights.is_none() ? nullptr : &wide, out);
        return std::vector{out};
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined() && self.dim() == 1 && !is_floating(self.dtype()) && self.dtype() != kBool,
                    "[bincount] expected a list of integers, got {}",
                    self.defined() ? self.description() : "an undefined tensor");
        const dispatch::Value& weights = arguments["weights"];
        TENON_CHECK(
            weights.is_none() || (weights.tensor().dim() == 1 && same_size(weights.tensor().size(0), self.size(0))),
            "[bincount] expected a weight for each of {}, got {}", self.description(),
            weights.is_none() ? "none" : weights.tensor().description());
        const SymInt least = arguments["minlength"].sym_int();
        TENON_CHECK(may_be_size(least), "[bincount] expected a minlength of at least 0, got {}", least.str());
        Dtype dtype = kInt64;
        if (!weights.is_none()) dtype = weights.tensor().dtype() == kFloat32 ? kFloat32 : kFloat64;
        return std::vector{
            TensorMeta::contiguous(SymInts{new_dynamic_size(least, std::nullopt)}, dtype, self.device())};
      });
}

}  // namespace tenon::ops
