// By order along a dimension: medians, quantiles, the k-th, the most frequent, the largest so far, both extrema.
#include "ops/by_name.h"

#include <tenon/kernels/order.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <limits>

namespace tenon::ops {
namespace {

using Two = std::tuple<Tensor, Tensor>;

const Tensor& numbers(const Tensor& self, const char* op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK_IMPLEMENTED(self.dtype() != kBool, "[{}] expected numbers, got {}", op_name, self.description());
  return self;
}

void check_not_empty(const Tensor& self, int64_t dim, const char* op_name) {
  TENON_CHECK_INDEX(self.dim() == 0 || expect(self.size(dim) > 0),
                    "[{}] expected at least one element along dimension {}, got {}", op_name, dim, self.description());
}

Two taken(const Tensor& values, const Tensor& indices, int64_t dim, const Tensor& place, bool keepdim) {
  Tensor chosen = gather(values, dim, place), where_from = gather(indices, dim, place);
  return keepdim ? Two(chosen, where_from) : Two(squeeze(chosen, dim), squeeze(where_from, dim));
}

// The lower one of two in the middle. NaNs stand last in order: with one, it is the median, unless they do not count.
Two median_along(const Tensor& self, int64_t given_dim, bool keepdim, bool without_nan, const char* op_name) {
  const int64_t dim = wrap_dim(given_dim, numbers(self, op_name).dim(), op_name);
  if (self.dim() == 0) return {clone(self), zeros(SymInts{}, TensorOptions(kInt64, self.device()))};
  check_not_empty(self, dim, op_name);
  auto [values, indices] = sort(self, dim);
  const SymInt size = self.size(dim);
  SymInts one = self.sym_sizes();
  one[static_cast<size_t>(dim)] = 1;
  const TensorOptions options(kInt64, self.device());
  if (!is_floating(self.dtype()))
    return taken(values, indices, dim, expand(full(SymInts{}, Scalar((size - 1) / 2), options), one), keepdim);
  Tensor nans = sum(isnan(self), OptionalInts(Ints{dim}), true);
  Tensor place = without_nan ? clamp_min(floor_divide(Scalar(size - 1) - nans, 2), 0)
                             : where(nans > 0, Scalar(size) - nans, full(SymInts{}, Scalar((size - 1) / 2), options));
  return taken(values, indices, dim, place.to(kInt64), keepdim);
}

Tensor median_of_all(const Tensor& self, bool without_nan, const char* op_name) {
  Tensor flat = reshape(numbers(self, op_name), {-1});
  if (decide_or(flat.numel() == 0, false)) {
    TENON_CHECK(is_floating(self.dtype()), "[{}] expected at least one element, got {}", op_name, self.description());
    return full(SymInts{}, std::numeric_limits<double>::quiet_NaN(), TensorOptions(self.dtype(), self.device()));
  }
  return std::get<0>(median_along(flat, 0, false, without_nan, op_name));
}

Two kth(const Tensor& self, const SymInt& k, int64_t given_dim, bool keepdim) {
  const int64_t dim = wrap_dim(given_dim, numbers(self, "kthvalue").dim(), "kthvalue");
  const SymInt size = self.dim() == 0 ? SymInt(1) : self.size(dim);
  TENON_CHECK(expect(k >= 1) && expect(k <= size), "[kthvalue] expected k from 1 to {}, got {}", size.str(), k.str());
  if (self.dim() == 0) return {clone(self), zeros(SymInts{}, TensorOptions(kInt64, self.device()))};
  auto [values, indices] = sort(self, dim);
  Tensor chosen = narrow(values, dim, k - 1, 1), from = narrow(indices, dim, k - 1, 1);
  auto plain = [&](const Tensor& each) { return clone(keepdim ? each : squeeze(each, dim), MemoryFormat::Contiguous); };
  return {plain(chosen), plain(from)};
}

// Between the two elements around each position, as asked for; `q`: numbers of [0, 1], their dimension goes in front.
Tensor quantiles(const Tensor& given, const Tensor& q, std::optional<int64_t> given_dim, bool keepdim,
                 std::string_view how, bool without_nan, const char* op_name) {
  TENON_CHECK(numbers(given, op_name).dtype() == kFloat32 || given.dtype() == kFloat64,
              "[{}] expected numbers of float32 or float64, got {}", op_name, given.description());
  TENON_CHECK(q.defined() && q.dim() <= 1 && q.dtype() == given.dtype(),
              "[{}] expected a number or a list of the dtype of {}", op_name, given.description());
  TENON_CHECK(how == "linear" || how == "lower" || how == "higher" || how == "midpoint" || how == "nearest",
              "[{}] expected interpolation to be linear, lower, higher, midpoint or nearest, got '{}'", op_name, how);
  TENON_CHECK(!decide_or(given.numel() == 0, false), "[{}] expected at least one element, got {}", op_name,
              given.description());
  Tensor self = given_dim ? given : reshape(given, {-1});
  const int64_t dim = given_dim ? wrap_dim(*given_dim, given.dim(), op_name) : 0;
  // The dimension last, positions of all q beside each other.
  Tensor lines = self.dim() == 0 ? reshape(self, {1}) : movedim(self, dim, -1);
  Tensor ordered = std::get<0>(sort(lines, -1)), nans = sum(isnan(lines), OptionalInts(Ints{-1}), true);
  Tensor last = without_nan
                    ? clamp_min(Scalar(lines.size(-1)) - nans - 1, 0).to(given.dtype())
                    : expand(full(SymInts{}, Scalar(lines.size(-1) - 1), TensorOptions(given.dtype(), given.device())),
                             nans.sym_sizes());
  Tensor rank = last * reshape(q, {-1});
  if (!without_nan) rank = where(nans > 0, last, rank);
  if (how == "lower") rank = floor(rank);
  if (how == "higher") rank = ceil(rank);
  if (how == "nearest") rank = round(rank);
  Tensor below = floor(rank), low = gather(ordered, -1, below.to(kInt64));
  Tensor result = low;
  if (how == "linear" || how == "midpoint") {
    Tensor share = how == "midpoint" ? where(rank == below, zeros_like(rank), full_like(rank, 0.5)) : rank - below;
    result = lerp(low, gather(ordered, -1, ceil(rank).to(kInt64)), share);
  }
  result = movedim(result, -1, 0);  // [q, …]
  if (keepdim) {
    if (given_dim && given.dim() > 0) {
      result = unsqueeze(result, dim + 1);
    } else {
      SymInts sizes(static_cast<size_t>(given.dim()), SymInt(1));
      sizes.insert(sizes.begin(), q.numel());
      result = reshape(result, sizes);
    }
  } else if (given_dim && given.dim() == 0) {
    result = reshape(result, SymInts{q.numel()});
  }
  return q.dim() == 0 ? squeeze(result, 0) : result;
}

Tensor as_tensor(double q, const Tensor& self, const char* op_name) {
  TENON_CHECK(q >= 0 && q <= 1, "[{}] expected q of [0, 1], got {}", op_name, q);
  return full(SymInts{}, q, TensorOptions(numbers(self, op_name).dtype(), self.device()));
}

std::vector<TensorMeta> running_shape(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", arguments.op().brief_name());
  arguments.dim("dim", self.dim());
  return {TensorMeta::contiguous(self.sym_sizes(), self.dtype(), self.device()),
          TensorMeta::contiguous(self.sym_sizes(), kInt64, self.device())};
}

Tensor running_gradient(Grad& g) {
  const SymInts& sizes = g.sizes("self");
  if (sizes.empty()) return g.grad();
  Tensor zero = zeros(sizes, TensorOptions(g.dtype("self"), g.grad().device()));
  return scatter_add(zero, g.argument("dim").integer(), g.saved("indices"), g.grad());
}

void running(const Arguments& arguments, std::span<Tensor> outputs, bool largest) {
  const Tensor& self = arguments.tensor("self");
  kernels::running_extremum(self, arguments.dim("dim", self.dim()), largest, outputs[0], outputs[1]);
}

std::vector<TensorMeta> mode_shape(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.defined(), "[mode] expected a tensor, got an undefined one");
  const int64_t dim = arguments.dim("dim", self.dim());
  check_not_empty(self, dim, "mode");
  SymInts sizes = self.sym_sizes();
  if (!sizes.empty() && arguments.boolean("keepdim"))
    sizes[static_cast<size_t>(dim)] = 1;
  else if (!sizes.empty())
    sizes.erase(sizes.begin() + dim);
  return {TensorMeta::contiguous(sizes, self.dtype(), self.device()),
          TensorMeta::contiguous(sizes, kInt64, self.device())};
}

}  // namespace

OPS(order_statistics) {
  op("median(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return median_of_all(self, false, "median");
  });
  op("nanmedian(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return median_of_all(self, true, "nanmedian");
  });
  op("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return median_along(self, dim, keepdim, false, "median");
      });
  op("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return median_along(self, dim, keepdim, true, "nanmedian");
      });
  op("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .decompose(kth);
  // Example: quantile(x, rand({2}), 1);
  op("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor")
      .decompose([](const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                    std::string_view how) { return quantiles(self, q, dim, keepdim, how, false, "quantile"); });
  op("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
     "Tensor")
      .decompose([](const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
        return quantiles(self, as_tensor(q, self, "quantile"), dim, keepdim, how, false, "quantile");
      });
  // Example: nanquantile(x, rand({2}), 1);
  op("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor")
      .decompose([](const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                    std::string_view how) { return quantiles(self, q, dim, keepdim, how, true, "nanquantile"); });
  op("nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
     "Tensor")
      .decompose([](const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
        return quantiles(self, as_tensor(q, self, "nanquantile"), dim, keepdim, how, true, "nanquantile");
      });
  op("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) { running(arguments, outputs, true); })
      .shape(running_shape)
      .not_differentiable("indices")
      .grad("self", saves("indices"), running_gradient);
  op("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) { running(arguments, outputs, false); })
      .shape(running_shape)
      .not_differentiable("indices")
      .grad("self", saves("indices"), running_gradient);
  op("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        const int64_t dim = arguments.dim("dim", self.dim());
        const bool kept = arguments.boolean("keepdim") || self.dim() == 0;
        kernels::mode(self, dim, kept ? outputs[0] : unsqueeze(outputs[0], dim),
                      kept ? outputs[1] : unsqueeze(outputs[1], dim));
      })
      .shape(mode_shape)
      .not_differentiable("indices")
      .grad("self", saves("indices"), [](Grad& g) {
        const SymInts& sizes = g.sizes("self");
        if (sizes.empty()) return g.grad();
        const int64_t dim = wrap_dim(g.argument("dim").integer(), static_cast<int64_t>(sizes.size()), "mode");
        Tensor zero = zeros(sizes, TensorOptions(g.dtype("self"), g.grad().device()));
        if (g.argument("keepdim").boolean()) return scatter(zero, dim, g.saved("indices"), g.grad());
        return scatter(zero, dim, unsqueeze(g.saved("indices"), dim), unsqueeze(g.grad(), dim));
      });
  op("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
      .decompose([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
        Ints dims;
        if (dim) dims.push_back(wrap_dim(*dim, given(self, "aminmax").dim(), "aminmax"));
        for (int64_t each = 0; !dim && each < given(self, "aminmax").dim(); ++each) dims.push_back(each);
        return std::tuple(amin(self, dims, keepdim), amax(self, dims, keepdim));
      });
}

}  // namespace tenon::ops
