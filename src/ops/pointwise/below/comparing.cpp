// Comparisons, positions and numbers by ATen's names.
#include "ops/by_name.h"

#include <tenon/kernels/order.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

Tensor is_in(const Tensor& elements, const Tensor& among, bool invert) {
  given(elements, "isin");
  Tensor list = reshape(given(among, "isin"), {-1});
  Tensor found = any(unsqueeze(elements, -1) == list, OptionalInts(Ints{-1}));
  return invert ? logical_not(found) : found;
}

// Positions of what is not zero, `size` of them: the first ones, then `fill`.
Tensor first_positions(const Tensor& self, const SymInt& size, int64_t fill) {
  given(self, "nonzero_static");
  TENON_CHECK(may_be_size(size), "[nonzero_static] expected a size of at least 0, got {}", size.str());
  const TensorOptions options(kInt64, self.device());
  Tensor found = reshape(self != 0, {-1});
  // The n-th one goes to place n; those that are left over go behind the end, which is cut off.
  Tensor number = cumsum(found, 0) - 1;
  Tensor place = where(logical_and(found, number < Scalar(size)), number, full(SymInts{}, Scalar(size), options));
  Tensor base = full(SymInts{size + 1}, -1, options);
  Tensor flat = narrow(scatter(base, 0, place, arange(Scalar(found.numel()), options)), 0, 0, size);
  std::vector<Tensor> columns;
  Tensor rest = clamp_min(flat, 0), none = full(SymInts{}, fill, options);
  for (int64_t dim = self.dim(); dim-- > 0;) {
    const SymInt length = self.size(dim);
    if (decide_or(length == 0, false))
      columns.push_back(expand(none, SymInts{size}));
    else
      columns.push_back(where(flat < 0, none, remainder(rest, Scalar(length)))),
          rest = floor_divide(rest, Scalar(length));
  }
  std::reverse(columns.begin(), columns.end());
  return columns.empty() ? zeros(SymInts{size, 0}, options) : stack(columns, 1);
}

// Subsets of `r` of the elements of a list, in their order; each element once, or as often as may be.
Tensor subsets(const Tensor& self, int64_t r, bool with_replacement) {
  TENON_CHECK(given(self, "combinations").dim() == 1, "[combinations] expected a list, got {}", self.description());
  TENON_CHECK(r >= 0 && r <= 8, "[combinations] expected from 0 to 8 elements, got {}", r);
  if (r == 0) return zeros(SymInts{0}, TensorOptions(self.dtype(), self.device()));
  const SymInt size = self.size(0);
  // n (n - 1) … / r!, with each factor divided out as soon as it can be.
  SymInt count = 1;
  for (int64_t at = 0; at < r; ++at) count = count * (with_replacement ? size + at : size - at) / (at + 1);
  Tensor numbers = arange(Scalar(size), TensorOptions(kInt64, self.device())), mask;
  for (int64_t at = 0; at + 1 < r; ++at) {
    SymInts low(static_cast<size_t>(r), SymInt(1)), high = low;
    low[static_cast<size_t>(at)] = high[static_cast<size_t>(at) + 1] = size;
    Tensor first = view(numbers, low), second = view(numbers, high);
    Tensor ordered = with_replacement ? first <= second : first < second;
    mask = mask.defined() ? logical_and(mask, ordered) : ordered;
  }
  if (r == 1) return unsqueeze(self, 1);
  mask = expand(mask, SymInts(static_cast<size_t>(r), size));
  Tensor places = first_positions(mask, count, 0);
  return reshape(index_select(self, 0, reshape(places, {-1})), SymInts{count, SymInt(r)});
}

auto integers_of_pairs(bool multiple) {
  return [multiple](RowBuilder&& row) -> RowBuilder&& {
    return std::move(row)
        .kernel([multiple](const Arguments& arguments, std::span<Tensor> outputs) {
          const Dtype dtype = outputs[0].dtype();
          kernels::common_divisor(arguments.tensor("self").to(dtype), arguments.tensor("other").to(dtype), multiple,
                                  outputs[0]);
        })
        .shape([](const Arguments& arguments) {
          const Tensor inputs[] = {arguments.tensor("self"), arguments.tensor("other")};
          for (const Tensor& input : inputs)
            TENON_CHECK_IMPLEMENTED(input.defined() && !is_floating(input.dtype()) && input.dtype() != kBool,
                                    "[{}] expected integers, got {}", arguments.op().brief_name(),
                                    input.defined() ? input.description() : "an undefined tensor");
          const SymInts shapes[] = {inputs[0].sym_sizes(), inputs[1].sym_sizes()};
          SymInts sizes = broadcast(shapes, arguments.op().brief_name());
          return std::vector{
              TensorMeta{sizes, pointwise_strides(sizes, inputs), result_type(arguments), inputs[0].device()}};
        });
  };
}

}  // namespace

OPS(comparing) {
  op("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
     "Tensor")
      .decompose([](const Tensor& elements, const Tensor& among, bool, bool invert) {
        return is_in(elements, among, invert);
      });
  op("argwhere(Tensor self) -> Tensor").decompose([](const Tensor& self) { return nonzero(given(self, "argwhere")); });
  op("nonzero_numpy(Tensor self) -> Tensor[]").decompose([](const Tensor& self) {
    return where(given(self, "nonzero_numpy") != 0);
  });
  op("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
      .decompose(first_positions)
      .not_differentiable("result");
  op("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor").decompose(subsets);
  op("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
     "side=None, Tensor? sorter=None) -> Tensor")
      .decompose([](const Tensor& sorted, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
        TENON_CHECK(given(sorted, "searchsorted").dim() == 1,
                    "[searchsorted] expected a sequence of one dimension for a number, got {}", sorted.description());
        Dtype dtype = sorted.dtype();
        if (self.is_real() && !is_floating(dtype)) dtype = kFloat64;
        Tensor number = full(SymInts{}, self, TensorOptions(dtype, sorted.device()));
        return searchsorted(sorted.to(dtype), number, out_int32, right, side, sorter);
      });
  op("gcd(Tensor self, Tensor other) -> Tensor").as(integers_of_pairs(false)).with_inplace();
  op("lcm(Tensor self, Tensor other) -> Tensor").as(integers_of_pairs(true)).with_inplace();
  op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::split_exponent(arguments.tensor("self"), outputs[0], outputs[1]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK_IMPLEMENTED(self.defined() && is_floating(self.dtype()),
                                "[frexp] expected floating point numbers, got {}",
                                self.defined() ? self.description() : "an undefined tensor");
        SymInts sizes = self.sym_sizes(), strides = pointwise_strides(sizes, {&self, 1});
        return std::vector{TensorMeta{sizes, strides, self.dtype(), self.device()},
                           TensorMeta{sizes, strides, kInt32, self.device()}};
      })
      .not_differentiable("exponent")
      .grad("self", saves("exponent"),
            [](Grad& g) { return g.grad() / pow(2.0, g.saved("exponent")).to(g.grad().dtype()); });
  op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& exponent) {
        return pow(given(self, "float_power").to(kFloat64), given(exponent, "float_power").to(kFloat64));
      });
  op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
      .decompose([](const Tensor& self, const Scalar& exponent) {
        return pow(given(self, "float_power").to(kFloat64), exponent.to_double());
      });
  op("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .decompose([](const Scalar& self, const Tensor& other) {
        Dtype dtype = given(other, "remainder").dtype();
        if (self.is_real() && !is_floating(dtype)) dtype = kFloat32;
        return remainder(full(SymInts{}, self, TensorOptions(dtype, other.device())), other);
      });
  op("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
      .decompose([](const Tensor& self, int64_t given_dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
        TENON_CHECK(given(index, "index_reduce").dim() <= 1 && (index.dtype() == kInt64 || index.dtype() == kInt32),
                    "[index_reduce] expected a list of int64 or int32 as the index, got {}", index.description());
        TENON_CHECK(
            given(self, "index_reduce").dtype() == given(source, "index_reduce").dtype() && self.dim() == source.dim(),
            "[index_reduce] expected a source of as many dimensions and the dtype of {}, got {}", self.description(),
            source.description());
        TENON_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
                    "[index_reduce] expected reduce to be prod, mean, amax or amin, got '{}'", reduce);
        const int64_t dim = wrap_dim(given_dim, self.dim(), "index_reduce");
        const SymInt count = source.dim() == 0 ? SymInt(1) : source.size(dim);
        TENON_CHECK(same_size(index.numel(), count), "[index_reduce] expected {} positions, got {}", count.str(),
                    index.description());
        SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
        if (self.dim() > 0) shape[static_cast<size_t>(dim)] = count;
        Tensor place = expand(reshape(index.to(kInt64), shape), source.sym_sizes());
        return call_in_order("aten::scatter_reduce.two", {self, dim, place, source, reduce, include_self});
      })
      .with_inplace();
}

}  // namespace tenon::ops
