// Positions of what is not zero, what is chosen by them, and positions repeated by counts.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

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

}  // namespace

OPS(positions) {
  op("argwhere(Tensor self) -> Tensor").decompose([](const Tensor& self) { return nonzero(given(self, "argwhere")); });
  // For graphs alone.
  op("nonzero_numpy(Tensor self) -> Tensor[]").decompose([](const Tensor& self) {
    return where(given(self, "nonzero_numpy") != 0);
  });
  op("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
      .decompose(first_positions)
      .not_differentiable("result");
  // Example: combinations(arange(4), 2);
  op("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor").decompose(subsets);
  // For graphs alone.
  op("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
      .decompose([](const Tensor& repeats, const std::optional<SymInt>& output_size) {
        TENON_CHECK(repeats.defined(), "[repeat_interleave] expected a tensor, got an undefined one");
        return _repeated_positions(repeats, output_size);
      });
}

}  // namespace tenon::ops
