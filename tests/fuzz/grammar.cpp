#include "fuzz/grammar.h"

#include <tenon/tenon.h>

#include <algorithm>

namespace tenon::fuzz {

const int64_t kSizes[kAllSizes][3] = {{5, 9, 3}, {6, 17, 4}, {8, 35, 7}, {3, 6, 1}, {1, 3, 2}, {2, 1, 3}, {4, 0, 3}};

// The text is both compiled here and printed. As many elements of x as it has rows are looked at.
#define WITH_TEXT(name, ...) __VA_ARGS__ const char* const name = #__VA_ARGS__;
WITH_TEXT(
    kHelperText,
    SymInt positives(const Tensor& x) {
      return sum(slice(flatten(x.to(kFloat64)), 0, 0, x.size(0)) > 0.1).item<SymInt>();
    } Tensor positive_rows(const Tensor& x) {
      return squeeze(nonzero(slice(flatten(x.to(kFloat64)), 0, 0, x.size(0)) > 0.1), 1);
    } Tensor first_number(const Tensor& x) {
      return amax(slice(flatten(x.to(kFloat64)), 0, 0, 1));
    } Tensor piece(const std::vector<Tensor>& list, size_t at) {
      if (at >= list.size()) fail("[fuzz] there is no such piece");
      return list[at];
    })
#undef WITH_TEXT
const char* const kHelpers = kHelperText;

// The expression is both the code and its text.
#define ROW(feature, traits, ...)                                                                \
  {#__VA_ARGS__, traits, feature,                                                                \
   [](const Tensor& x, [[maybe_unused]] const Tensor& y, [[maybe_unused]] int64_t n) -> Tensor { \
     return __VA_ARGS__;                                                                         \
   }}
#define ONE(traits, ...) ROW(Feature::Count, traits, __VA_ARGS__)
#define TWO(traits, ...) ROW(Feature::Count, (traits) | kBinary, __VA_ARGS__)

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = {
      // Pointwise
      ONE(kMath, sin(x)),
      ONE(kMath, cos(x)),
      ONE(kMath, tanh(x)),
      ONE(kMath, sigmoid(x)),
      ONE(kMath, erf(x)),
      ONE(kNone, relu(x)),
      ONE(kNone, abs(x)),
      ONE(kNone, -x),
      ONE(kUnstable | kMath, exp(x)),
      ONE(kUnstable | kMath, log(abs(x))),
      ONE(kUnstable, sqrt(abs(x))),
      ONE(kUnstable | kMath, rsqrt(abs(x) + 1)),
      ONE(kUnstable, sign(x)),
      ONE(kUnstable, reciprocal(x)),
      ONE(kNone, x * 1.5 + 0.25),
      ONE(kNone, 2 - x),
      ONE(kNone, x * x),
      ONE(kUnstable, x > 0.1),
      ONE(kUnstable, logical_not(x)),
      ONE(kUnstable, isnan(x)),
      ONE(kUnstable | kMath, pow(x, 3)),
      ONE(kNone, full_like(x, 0.5)),
      ONE(kNone, clone(x)),
      ONE(kNone, x.to(kFloat64)),
      ONE(kNone, x.to(kFloat32)),
      ONE(kHalf, x.to(kFloat16)),
      ONE(kHalf, x.to(kBFloat16)),
      ONE(kUnstable, x.to(kInt32)),
      ONE(kUnstable, x.to(kInt64)),
      ONE(kUnstable, x.to(kUInt8)),
      TWO(kNone, x + y),
      TWO(kNone, x - y),
      TWO(kNone, x * y),
      TWO(kNone, add(x, y, 2)),
      TWO(kUnstable, x / y),
      TWO(kNone, maximum(x, y)),
      TWO(kNone, minimum(x, y)),
      TWO(kUnstable, where(x > y, x, y)),
      TWO(kUnstable, where(x, y, y * 2)),
      TWO(kUnstable, x <= y),
      TWO(kUnstable, x == y),
      TWO(kUnstable, logical_and(x, y)),
      // Views
      ONE(kView, transpose(x, n, -1)),
      ONE(kView, unsqueeze(x, n)),
      ONE(kView, squeeze(x)),
      ONE(kView, squeeze(x, n)),
      ONE(kView, slice(x, n, 1)),
      ONE(kView, slice(x, n, 0, -1)),
      ONE(kView, slice(x, n, 1, x.size(n), 2)),
      ONE(kView, select(x, n, 0)),
      ONE(kView, select(x, n, -1)),
      ONE(kView, flatten(x)),
      ONE(kView, flatten(x, 0, 1)),
      ONE(kView, reshape(x, SymInts{x.size(1), x.size(0)})),
      ONE(kView, reshape(x, SymInts{-1, x.size(0)})),
      ONE(kNone, expand(unsqueeze(x, 0), SymInts{3, x.size(0), x.size(1)})),
      ONE(kView, x.contiguous()),
      ONE(kView, detach(x)),
      TWO(kNone, cat({x, y}, n)),
      // On values made before, and so on everything that shares their memory
      ONE(kInplace | kMath, sin_(x)),
      ONE(kInplace, relu_(x)),
      ONE(kInplace, mul_(x, 0.5)),
      ONE(kInplace, add_(x, 1)),
      ONE(kInplace, fill_(slice(x, n, 1), 0.25)),
      ONE(kInplace, zero_(select(x, n, 0))),
      TWO(kInplace, add_(x, y)),
      TWO(kInplace, mul_(x, y)),
      TWO(kInplace, copy_(x, y)),
      TWO(kNone, add_(clone(x), y)),
      // Breaks, and sizes from data
      ONE(kBreaks | kMath, (graph_break(), cos(x))),
      ONE(kBreaks, (graph_break(), x)),
      ONE(kBreaks, x * first_number(x).item()),
      ONE(kBreaks | kUnstable, bool(first_number(x).item<SymFloat>() > 0.0) ? x + 1 : x - 1),
      ONE(kData | kUnstable, masked_select(x, x > 0.1)),
      ONE(kData | kUnstable, nonzero(x)),
      ONE(kData | kUnstable, index(x, {x > 0.2})),
      // Reductions and products
      ONE(kInexact, sum(x)),
      ONE(kInexact, sum(x, n)),
      ONE(kInexact, sum(x, n, true)),
      ONE(kInexact, mean(x, n, true)),
      ONE(kInexact, mean(x)),
      ONE(kInexact, softmax(x, n)),
      ONE(kInexact, log_softmax(x, n)),
      ONE(kUnstable | kInexact, amax(x, n, true)),  // of zeros of either sign, any
      ONE(kUnstable | kInexact, amin(x, n)),
      ONE(kInexact, x - mean(x, -1, true)),
      TWO(kInexact, mm(x, y)),
      TWO(kInexact, mm(x, t(y))),
      TWO(kInexact, matmul(x, y)),
      TWO(kInexact, relu(mm(t(x), y))),
      // Numbers from data, and sizes that are those numbers
      ROW(Feature::Unbacked, kData | kUnstable, slice(x, 0, 0, positives(x))),
      ROW(Feature::Unbacked, kData | kUnstable, slice(x, 0, positives(x))),
      ROW(Feature::Unbacked, kData | kUnstable | kBinary, slice(x, 0, 0, positives(y)) * 2),
      ROW(Feature::Unbacked, kData | kUnstable, index_select(x, 0, positive_rows(x))),
      ROW(Feature::Unbacked, kData | kUnstable | kBinary, cat({index_select(x, 0, positive_rows(x)), y})),
      ROW(Feature::Unbacked, kData | kUnstable | kBinary, cat({masked_select(x, x > 0.1), masked_select(y, y > 0.1)})),
      ROW(Feature::Unbacked, kData | kUnstable, view(masked_select(x, x > 0.1), SymInts{-1, 1})),
      ROW(Feature::Unbacked, kData | kUnstable, x * positives(x)),
      ROW(Feature::Unbacked, kData | kUnstable, ones(SymInts{positives(x), x.size(-1)}) * select(x, 0, 0)),
      ROW(Feature::Unbacked, kData | kUnstable, constant_pad_nd(x, SymInts{0, positives(x)})),
      ROW(Feature::Unbacked, kData | kUnstable | kInexact, sum(slice(x, 0, 0, positives(x)), 0)),
      ROW(Feature::Unbacked, kData | kUnstable, expand(slice(flatten(x), 0, 0, 1), SymInts{positives(x)})),
      // Random numbers
      ROW(Feature::Random, kRandom | kMath, randn_like(x)),
      ROW(Feature::Random, kRandom, x * rand_like(x)),
      ROW(Feature::Random, kRandom | kMath, x + randn(x.sym_sizes())),
      ROW(Feature::Random, kRandom, dropout(x, 0.5, true)),
      ROW(Feature::Random, kRandom, dropout(x, 0.2, true)),
      ROW(Feature::Random, kRandom, bernoulli(x, 0.3)),
      ROW(Feature::Random, kRandom | kUnstable | kMath, bernoulli(sigmoid(x))),
      ROW(Feature::Random, kRandom, x + randint(10, x.sym_sizes())),
      ROW(Feature::Random, kRandom | kBinary | kInexact, dropout(mm(x, t(y)), 0.5, true)),
      ROW(Feature::Random, kRandom | kInexact, mm(x, randn(SymInts{x.size(1), 4}))),
      ROW(Feature::Random, kRandom | kInexact, mm(dropout(softmax(x, -1), 0.3, true), t(x))),
      // Leaves made inside
      ROW(Feature::Leaves, kEffect, detach(x).set_requires_grad()),
      ROW(Feature::Leaves, kEffect, clone(detach(x)).set_requires_grad()),
      ROW(Feature::Leaves, kEffect, ones_like(x).set_requires_grad()),
      ROW(Feature::Leaves, kEffect, full(x.sym_sizes(), 0.5, kFloat32).set_requires_grad()),
      // Gradients that are there
      ROW(Feature::GradInside, kBreaks | kInexact, x.grad().defined() ? x.grad() * 2 : x * 3),
      // Sizes as plain numbers
      ROW(Feature::Pins, kNone, x.dim() > 0 ? x * static_cast<double>(x.sizes()[0]) : x * 3),
      ROW(Feature::Pins, kNone, x + x.numel().plain()),
      ROW(Feature::Pins, kView, slice(x, 0, 0, int64_t(x.size(0)) - 1)),
      ROW(Feature::Pins, kNone, x.dim() > 0 && x.sizes()[0] > 1 ? x * static_cast<double>(x.strides()[0]) : x * 2),
      // Sizes that come to 0 or 1
      ROW(Feature::SmallSizes, kView, view(x, SymInts{-1, 3})),
      ROW(Feature::SmallSizes, kView, reshape(x, SymInts{-1, 3})),
      ROW(Feature::SmallSizes, kView, unflatten(flatten(x), 0, SymInts{-1, 3})),
      ROW(Feature::SmallSizes, kView, unflatten(flatten(x), 0, SymInts{3, -1})),
      ROW(Feature::SmallSizes, kView | kBinary, view_as(x, y)),
      ROW(Feature::SmallSizes, kView | kBinary, reshape_as(x, y)),
      ROW(Feature::SmallSizes, kView, slice(x, n, x.size(n) - 1)),
      ROW(Feature::SmallSizes, kView, slice(x, n, 2)),
      ROW(Feature::SmallSizes, kView, slice(x, n, x.size(n))),
      ROW(Feature::SmallSizes, kUnstable | kInexact, std::get<0>(min(x, n))),
      ROW(Feature::SmallSizes, kUnstable | kInexact, std::get<0>(max(x, n, true))),
      ROW(Feature::SmallSizes, kBinary, embedding(x, zeros_like(select(y, 0, 0), kInt64))),
      ROW(Feature::SmallSizes, kNone, constant_pad_nd(x, SymInts{0, 1 - x.size(-1)})),
      ROW(Feature::SmallSizes, kNone, constant_pad_nd(x, SymInts{0, -x.size(-1)})),
      ROW(Feature::SmallSizes, kNone, constant_pad_nd(x, SymInts{-1, 0})),
      // Elements that share memory
      ROW(Feature::Overlap, kView, unfold(x, n, 2, 1)),
      ROW(Feature::Overlap, kView, expand(unsqueeze(x, 0), SymInts{2, x.size(0)})),
      ROW(Feature::Overlap, kView, select(expand(unsqueeze(x, 0), SymInts{2, x.size(0), x.size(1)}), 0, 1)),
      // Pieces
      ROW(Feature::Pieces, kView, piece(unbind(x, n), 0)),
      ROW(Feature::Pieces, kView, piece(chunk(x, 2, n), 1)),
      ROW(Feature::Pieces, kView, piece(split(x, 1, n), 0)),
      ROW(Feature::Pieces, kNone, piece(unbind(x, n), 0) * piece(unbind(x, n), 1)),
      ROW(Feature::Pieces, kNone, cat(std::vector{piece(chunk(x, 2, n), 1), piece(chunk(x, 2, n), 0)}, n)),
  };
  return table;
}

size_t find_operation(std::string_view text) {
  for (size_t at = 0; at < operations().size(); ++at)
    if (operations()[at].text == text) return at;
  fail("[fuzz] no operation is written '{}'", text);
}

#define VIEW(group, extra, ...) {#__VA_ARGS__, group, extra, [](const Tensor& base) -> Tensor { return __VA_ARGS__; }}

const std::vector<ViewRow>& views() {
  static const std::vector<ViewRow> table = {
      VIEW(1, 0, base),
      VIEW(1, 0, view(base, base.sym_sizes())),
      VIEW(1, 0, detach(base)),
      VIEW(2, 1, slice(base, 0, 0, -1)),
      VIEW(2, 1, slice(base, 0, 1)),
      VIEW(3, -1, slice(base, 0, 0, base.sizes()[0] / 2)),
      VIEW(3, -1, slice(base, 0, base.sizes()[0] / 2)),
      VIEW(3, -1, slice(base, 0, 0, base.sizes()[0], 2)),
      VIEW(3, -1, slice(base, 0, 1, base.sizes()[0], 2)),
      VIEW(0, 0, select(base, 0, 0)),
      VIEW(0, 0, select(base, 0, -1)),
      VIEW(0, 0, transpose(base, 0, -1)),
      VIEW(0, 0, view(base, SymInts{-1})),
      VIEW(0, 0, unsqueeze(base, 0)),
      VIEW(0, 0, slice(base, 0, 0, 3)),
      VIEW(0, 0, slice(base, 0, 2)),
  };
  return table;
}

bool has_shared_elements(const Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t dim = 0; dim < static_cast<size_t>(tensor.dim()); ++dim) {
    if (tensor.sizes()[dim] == 0) return false;
    if (tensor.sizes()[dim] > 1) dims.emplace_back(tensor.strides()[dim], tensor.sizes()[dim]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

namespace {

std::vector<int64_t> places(const Tensor& tensor) {
  std::vector<int64_t> list = {tensor.storage_offset()};
  for (size_t dim = 0; dim < static_cast<size_t>(tensor.dim()); ++dim) {
    std::vector<int64_t> longer;
    for (int64_t place : list)
      for (int64_t at = 0; at < tensor.sizes()[dim]; ++at) longer.push_back(place + at * tensor.strides()[dim]);
    list = std::move(longer);
  }
  return list;
}

}  // namespace

void check_write(const Operation& operation, const Tensor& x, const Tensor& y) {
  if (!(operation.traits & kInplace)) return;
  TENON_CHECK(!has_shared_elements(x), "[fuzz] elements that share memory are written");
  if (!(operation.traits & kBinary) || !x.is_same_storage(y)) return;
  std::vector<int64_t> written = places(x), read = places(y), both;
  if (written == read && std::ranges::equal(x.sizes(), y.sizes())) return;
  std::sort(written.begin(), written.end());
  std::sort(read.begin(), read.end());
  std::set_intersection(written.begin(), written.end(), read.begin(), read.end(), std::back_inserter(both));
  TENON_CHECK(both.empty(), "[fuzz] what is written overlaps what is read");
}

}  // namespace tenon::fuzz
