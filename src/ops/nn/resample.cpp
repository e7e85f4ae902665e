#include "ops/nn/resample.h"

#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <cmath>

namespace tenon::ops {
namespace {

// Below it a scale is a whole number of 64 bits, if it is one at all.
constexpr double kLargestScale = 0x1p62;

// Between two bytes the larger one, whatever the sum lost on the way.
constexpr double kHalf = 0.5 + 0x1p-20;

// For each position of the result an element, and what it counts for; no weight is 1.
struct Tap {
  Tensor at;
  std::optional<Tensor> weight;
};

Tensor positions(const SymInt& count, Device device) { return arange(Scalar(count), TensorOptions(kInt64, device)); }

// The element below each position, by the scale if one is given. Between whole numbers, so that nothing is rounded.
std::vector<Tap> nearest_taps(const SymInt& size, const SymInt& count, std::optional<double> scale, Device device,
                              bool exact) {
  Tensor at = positions(count, device), below;
  bool scaled = scale && *scale > 0 && *scale < kLargestScale;
  if (scaled && (exact || *scale != std::floor(*scale)))
    below = floor((exact ? at.to(kFloat64) + 0.5 : at.to(kFloat64)) / *scale).to(kInt64);
  else if (scaled)
    below = floor_divide(at, static_cast<int64_t>(*scale));
  else if (exact)
    below = floor_divide((at * 2 + 1) * Scalar(size), Scalar(count * 2));
  else
    below = floor_divide(at * Scalar(size), Scalar(count));
  return {{clamp_max(below, Scalar(size - 1)), std::nullopt}};
}

// Where the positions of the result lie among the elements.
Tensor places(const SymInt& size, const SymInt& count, bool align_corners, std::optional<double> scale, Device device,
              Dtype dtype) {
  Tensor at = positions(count, device).to(dtype);
  if (align_corners) return at * Scalar(size - 1) / Scalar(max(count - 1, SymInt(1)));
  if (scale && *scale > 0) return (at + 0.5) / *scale - 0.5;
  return (at + 0.5) * Scalar(size) / Scalar(count) - 0.5;
}

std::vector<Tap> linear_taps(const Tensor& place, const SymInt& size) {
  Tensor inside = clamp_min(place, 0);
  Tensor below = clamp_max(floor(inside).to(kInt64), Scalar(size - 1));
  Tensor weight = inside - below.to(place.dtype());
  return {{below, 1 - weight}, {clamp_max(below + 1, Scalar(size - 1)), weight}};
}

// Keys' polynomials of the distance, for elements within 1 of a place and for those within 2.
Tensor near_weight(const Tensor& distance) {
  constexpr double a = -0.75;
  return ((distance * (a + 2) - (a + 3)) * distance) * distance + 1;
}
Tensor far_weight(const Tensor& distance) {
  constexpr double a = -0.75;
  return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

std::vector<Tap> cubic_taps(const Tensor& place, const SymInt& size) {
  Tensor below = floor(place), part = place - below, first = below.to(kInt64);
  auto element = [&](int64_t step) { return clamp_max(clamp_min(first + step, 0), Scalar(size - 1)); };
  return {{element(-1), far_weight(part + 1)},
          {element(0), near_weight(part)},
          {element(1), near_weight(1 - part)},
          {element(2), far_weight(2 - part)}};
}

std::vector<Tap> taps(const Resample& how, size_t dim, const SymInt& size, const SymInt& count, Device device,
                      Dtype dtype) {
  std::optional<double> scale = how.scales[dim];
  if (how.kind == Resampling::Nearest || how.kind == Resampling::NearestExact)
    return nearest_taps(size, count, scale, device, how.kind == Resampling::NearestExact);
  Tensor place = places(size, count, how.align_corners, scale, device, dtype);
  return how.kind == Resampling::Linear ? linear_taps(place, size) : cubic_taps(place, size);
}

// A weight for each position along `dim`, beside a tensor of `rank` dimensions.
Tensor along(const Tensor& weight, int64_t dim, int64_t rank) {
  Tensor shaped = weight;
  for (int64_t at = dim + 1; at < rank; ++at) shaped = unsqueeze(shaped, -1);
  return shaped;
}

void check_sizes(const SymInts& input, const SymInts& sizes, const Resample& how) {
  for (size_t at = 0; at < sizes.size(); ++at) {
    TENON_CHECK(expect(sizes[at] > 0), "[{}] expected sizes of at least 1, got {}", how.op_name, str(sizes));
    TENON_CHECK(expect(input[2 + at] > 0), "[{}] nothing can be interpolated from {}", how.op_name, str(input));
  }
}

void check(const Tensor& tensor, const SymInts& sizes, const Resample& how) {
  size_t rank = how.scales.size() + 2;
  TENON_CHECK(tensor.defined() && static_cast<size_t>(tensor.dim()) == rank,
              "[{}] expected a tensor of {} dimensions, got {}", how.op_name, rank,
              tensor.defined() ? tensor.description() : "an undefined one");
  TENON_CHECK(sizes.size() == rank - 2, "[{}] expected an output_size of {} numbers, got {}", how.op_name, rank - 2,
              str(sizes));
  // (Between bytes there are only bytes.)
  bool any_dtype = how.kind == Resampling::Nearest || how.kind == Resampling::NearestExact || tensor.dtype() == kUInt8;
  TENON_CHECK_IMPLEMENTED(any_dtype || is_floating(tensor.dtype()), "[{}] expected a floating point tensor, got {}",
                          how.op_name, tensor.description());
}

// Sizes of a scaled tensor: whole scales keep a symbol.
SymInt scaled_size(const SymInt& size, double scale) {
  TENON_CHECK(std::isfinite(scale) && std::fabs(scale) < kLargestScale, "[upsample] expected a scale below {}, got {}",
              kLargestScale, scale);
  if (scale == std::floor(scale)) return size * static_cast<int64_t>(scale);
  return floor(SymFloat(size) * scale);
}

}  // namespace

Tensor resampled(const Tensor& self, const SymInts& sizes, const Resample& how) {
  check(self, sizes, how);
  check_sizes(self.sym_sizes(), sizes, how);
  // Halves are computed in float32 and rounded once.
  const bool weighs = how.kind == Resampling::Linear || how.kind == Resampling::Cubic;
  const Dtype wide = weighs && self.dtype() == kUInt8 ? kFloat64 : compute_dtype(self.dtype());
  Tensor x = weighs ? self.to(wide) : self;
  const bool bytes = weighs && self.dtype() == kUInt8;
  for (size_t which = 0; which < sizes.size(); ++which) {
    const size_t at = bytes ? sizes.size() - 1 - which : which;  // (columns first, as in PyTorch)
    auto dim = static_cast<int64_t>(2 + at);
    Tensor total;
    for (const Tap& tap : taps(how, at, self.size(dim), sizes[at], self.device(), wide)) {
      Tensor picked = index_select(x, dim, tap.at);
      if (tap.weight) picked = picked * along(*tap.weight, dim, self.dim());
      total = total.defined() ? total + picked : picked;
    }
    x = bytes ? clamp(floor(total + kHalf), Scalar(0), Scalar(255)) : total;
  }
  x = x.to(self.dtype());
  return self.dim() == 5 ? contiguous(x, self.suggested_format()) : x;
}

Tensor resampled_backward(const Tensor& grad, const SymInts& sizes, const SymInts& input_sizes, const Resample& how) {
  check(grad, sizes, how);
  bool fits = input_sizes.size() == static_cast<size_t>(grad.dim());
  for (size_t at = 0; fits && at < input_sizes.size(); ++at)
    fits = same_size(grad.size(static_cast<int64_t>(at)), at < 2 ? input_sizes[at] : sizes[at - 2]);
  TENON_CHECK(fits, "[{}] {} is no gradient of an input of {} that was made {}", how.op_name, grad.description(),
              str(input_sizes), str(sizes));
  check_sizes(input_sizes, sizes, how);
  Dtype wide = compute_dtype(grad.dtype());
  Tensor g = grad.to(wide);
  for (size_t at = sizes.size(); at-- > 0;) {
    auto dim = static_cast<int64_t>(2 + at);
    SymInts shape = g.sym_sizes();
    shape[2 + at] = input_sizes[2 + at];
    Tensor total = zeros(shape, TensorOptions(wide, grad.device()));
    for (const Tap& tap : taps(how, at, input_sizes[2 + at], sizes[at], grad.device(), wide))
      total = index_add(total, dim, tap.at, tap.weight ? g * along(*tap.weight, dim, grad.dim()) : g);
    g = total;
  }
  return g.to(grad.dtype());
}

SymInts resampled_sizes(const Tensor& input, const std::optional<SymInts>& sizes,
                        const std::optional<std::vector<double>>& scales, size_t dims, std::string_view op_name) {
  TENON_CHECK(sizes.has_value() != scales.has_value(), "[{}] expected either an output_size or scale_factors", op_name);
  if (sizes) return *sizes;
  TENON_CHECK(scales->size() == dims && input.defined() && static_cast<size_t>(input.dim()) == dims + 2,
              "[{}] expected {} scale_factors and a tensor of {} dimensions", op_name, dims, dims + 2);
  SymInts result;
  for (size_t at = 0; at < dims; ++at)
    result.push_back(scaled_size(input.size(static_cast<int64_t>(2 + at)), (*scales)[at]));
  return result;
}

std::vector<std::optional<double>> scales_of(const std::optional<std::vector<double>>& scales, size_t dims) {
  std::vector<std::optional<double>> each(dims);
  for (size_t at = 0; scales && at < dims; ++at) each[at] = (*scales)[at];
  return each;
}

}  // namespace tenon::ops
