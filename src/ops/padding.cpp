// Borders around a tensor, and images of other sizes.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <cmath>

namespace tenon::ops {
namespace {

struct Border {
  SymInt before, after;
};

// By dimension of self; given from the last dimension forwards, two numbers each.
std::vector<Border> borders(const Tensor& self, const SymInts& pad, std::string_view op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size() / 2) <= self.dim(),
              "[{}] expected two numbers for each of at most {} dimensions, got {}", op_name, self.dim(), str(pad));
  std::vector<Border> list(static_cast<size_t>(self.dim()), Border{0, 0});
  for (size_t at = 0; at < pad.size() / 2; ++at) list[list.size() - 1 - at] = {pad[2 * at], pad[2 * at + 1]};
  return list;
}

SymInts padded_sizes(const Tensor& self, const std::vector<Border>& list) {
  SymInts sizes = self.sym_sizes();
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    sizes[dim] = sizes[dim] + list[dim].before + list[dim].after;
    TENON_CHECK(expect(sizes[dim] >= 0), "[constant_pad_nd] padding of {} and {} leaves nothing of dimension {} of {}",
                list[dim].before.str(), list[dim].after.str(), dim, self.description());
  }
  return sizes;
}

Lane padded_element(Element& e) {
  const Tensor& self = e.arguments().tensor("self");
  std::vector<Border> list = borders(self, e.arguments()["pad"].sym_ints(), "constant_pad_nd");
  loop::Builder& b = e.builder();
  Lane value = e.scalar("value", e.dtype()), inside;
  Expr zero = e.integer(0);
  std::vector<Expr> at;
  for (size_t dim = 0; dim < list.size(); ++dim) {
    SymInt size = self.size(static_cast<int64_t>(dim));
    if (statically_true(size == 0)) return value;
    Expr place = e.index(dim) - e.integer(list[dim].before);
    bool cut_before = statically_true(list[dim].before <= 0), cut_after = statically_true(list[dim].after <= 0);
    if (!cut_before || !cut_after) {
      Lane position = b.index(place), here = (position >= b.index(zero)) & (position < b.index(e.integer(size)));
      inside = inside.defined() ? inside & here : here;
      // Coordinates in the border are clamped into the tensor, and nothing is read there.
      place = max(zero, min(e.integer(size) - 1, place));
    }
    at.push_back(place);
  }
  if (!inside.defined()) return e.load(self, at);
  return b.choose(inside, [&] { return e.load(self, at); }, [&] { return value; });
}

SymInts negated(SymInts numbers) {
  for (SymInt& number : numbers) number = -number;
  return numbers;
}

// Which element of `size` stands at each place of a dimension with borders.
Tensor border_positions(const Tensor& self, const SymInt& size, const Border& border, std::string_view mode) {
  Tensor at = arange(Scalar(-border.before), Scalar(size + border.after), 1, TensorOptions(kInt64, self.device()));
  if (mode == "replicate") return clamp(at, std::optional<Scalar>(0), std::optional<Scalar>(size - 1));
  if (mode == "circular") return remainder(at, Scalar(size));
  // Folded at both ends.
  return Scalar(size - 1) - abs(Scalar(size - 1) - abs(at));
}

Tensor pad_by_copies(const Tensor& self, const SymInts& pad, std::string_view mode) {
  std::vector<Border> list = borders(self, pad, "pad");
  Tensor result = self;
  for (size_t dim = 0; dim < list.size(); ++dim) {
    const Border& border = list[dim];
    if (statically_true(border.before == 0) && statically_true(border.after == 0)) continue;
    SymInt size = self.size(static_cast<int64_t>(dim));
    TENON_CHECK(expect(size > 0), "[pad] nothing can be repeated around {}", self.description());
    SymInt most = mode == "reflect" ? size - 1 : size;
    TENON_CHECK(mode == "replicate" || (expect(border.before <= most) && expect(border.after <= most)),
                "[pad] expected padding of at most {} for mode '{}' at dimension {} of {}, got {} and {}", most.str(),
                mode, dim, self.description(), border.before.str(), border.after.str());
    TENON_CHECK(expect(size + border.before + border.after > 0),
                "[pad] padding of {} and {} leaves nothing of dimension {} of {}", border.before.str(),
                border.after.str(), dim, self.description());
    result = index_select(result, static_cast<int64_t>(dim), border_positions(self, size, border, mode));
  }
  return result.is(self) ? clone(self) : result;
}

const Tensor& image(const Tensor& self, const SymInts& output_size, std::string_view op_name) {
  TENON_CHECK(self.defined() && self.dim() == 4, "[{}] expected a tensor of 4 dimensions, got {}", op_name,
              self.defined() ? self.description() : "an undefined one");
  TENON_CHECK(output_size.size() == 2, "[{}] expected an output_size of two numbers, got {}", op_name,
              str(output_size));
  for (size_t at = 0; at < 2; ++at) {
    TENON_CHECK(expect(output_size[at] > 0), "[{}] expected sizes of at least 1, got {}", op_name, str(output_size));
    TENON_CHECK(expect(self.size(static_cast<int64_t>(2 + at)) > 0), "[{}] nothing can be interpolated from {}",
                op_name, self.description());
  }
  return self;
}

// Below it a scale is a whole number of 64 bits, if it is one at all.
constexpr double kLargestScale = 0x1p62;

// The element nearest below each output position, by the scale if one is given.
Tensor nearest_positions(const Tensor& self, const SymInt& size, const SymInt& count, std::optional<double> scale) {
  Tensor at = arange(Scalar(count), TensorOptions(kInt64, self.device()));
  Tensor below;
  if (!scale || !(*scale > 0 && *scale < kLargestScale))
    below = floor_divide(at * Scalar(size), Scalar(count));
  else if (*scale == std::floor(*scale))
    below = floor_divide(at, static_cast<int64_t>(*scale));
  else
    below = floor(at.to(kFloat64) / *scale).to(kInt64);
  return clamp_max(below, Scalar(size - 1));
}

struct Between {
  Tensor below, above, weight;
};

// The two elements around each output position, and how far it is from the first to the second.
Between linear_positions(const Tensor& self, const SymInt& size, const SymInt& count, bool align_corners,
                         std::optional<double> scale, Dtype dtype) {
  Tensor at = arange(Scalar(count), TensorOptions(kInt64, self.device())).to(dtype), place;
  if (align_corners)
    place = at * Scalar(size - 1) / Scalar(max(count - 1, SymInt(1)));
  else if (scale && *scale > 0)
    place = clamp_min((at + 0.5) / *scale - 0.5, 0);
  else
    place = clamp_min((at + 0.5) * Scalar(size) / Scalar(count) - 0.5, 0);
  Tensor below = clamp_max(floor(place).to(kInt64), Scalar(size - 1));
  return {below, clamp_max(below + 1, Scalar(size - 1)), place - below.to(dtype)};
}

// Sizes of a scaled image: whole scales keep a symbol.
SymInt scaled_size(const SymInt& size, double scale) {
  TENON_CHECK(std::isfinite(scale) && std::fabs(scale) < kLargestScale, "[upsample] expected a scale below {}, got {}",
              kLargestScale, scale);
  if (scale == std::floor(scale)) return size * static_cast<int64_t>(scale);
  return floor(SymFloat(size) * scale);
}

SymInts image_size(const Tensor& input, const std::optional<SymInts>& output_size,
                   const std::optional<std::vector<double>>& scales, std::string_view op_name) {
  TENON_CHECK(output_size.has_value() != scales.has_value(), "[{}] expected either an output_size or scale_factors",
              op_name);
  if (output_size) return *output_size;
  TENON_CHECK(scales->size() == 2 && input.defined() && input.dim() == 4,
              "[{}] expected two scale_factors and a tensor of 4 dimensions", op_name);
  return {scaled_size(input.size(2), (*scales)[0]), scaled_size(input.size(3), (*scales)[1])};
}

std::optional<double> scale_at(const std::optional<std::vector<double>>& scales, size_t at) {
  return scales ? std::optional((*scales)[at]) : std::nullopt;
}

}  // namespace

OPS(padding) {
  op("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
      .element(padded_element)
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        SymInts pads = arguments["pad"].sym_ints();
        TensorMeta padded = TensorMeta::contiguous(padded_sizes(self, borders(self, pads, "constant_pad_nd")),
                                                   self.dtype(), self.device());
        // By nothing it is a copy, which keeps the order of the dimensions.
        if (std::all_of(pads.begin(), pads.end(), [](const SymInt& each) { return decide_or(each == 0, false); }))
          padded.strides = pointwise_strides(padded.sizes, {&self, 1});
        return std::vector{padded};
      })
      .grad("self", saves(), [](Grad& g) { return constant_pad_nd(g.grad(), negated(g.argument("pad").sym_ints())); });
  op("pad(Tensor self, SymInt[] pad, str mode='constant', float? value=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& pad, std::string_view mode, std::optional<double> value) {
        if (mode == "constant") return constant_pad_nd(self, pad, value.value_or(0));
        TENON_CHECK_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular",
                                "[pad] expected a mode of 'constant', 'reflect', 'replicate' or 'circular', got '{}'",
                                mode);
        TENON_CHECK(!value || *value == 0, "[pad] mode '{}' takes no value, got {}", mode, *value);
        return pad_by_copies(self, pad, mode);
      });
}

OPS(upsampling) {
  op("upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& output_size, std::optional<double> scales_h,
                    std::optional<double> scales_w) {
        image(self, output_size, "upsample_nearest2d");
        Tensor rows = index_select(self, 2, nearest_positions(self, self.size(2), output_size[0], scales_h));
        return index_select(rows, 3, nearest_positions(self, self.size(3), output_size[1], scales_w));
      });
  op("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose([](const Tensor& input, const std::optional<SymInts>& output_size,
                    const std::optional<std::vector<double>>& scale_factors) {
        SymInts size = image_size(input, output_size, scale_factors, "upsample_nearest2d");
        return upsample_nearest2d(input, size, scale_at(scale_factors, 0), scale_at(scale_factors, 1));
      });
  op("upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& output_size, bool align_corners, std::optional<double> scales_h,
                    std::optional<double> scales_w) {
        image(self, output_size, "upsample_bilinear2d");
        TENON_CHECK_IMPLEMENTED(is_floating(self.dtype()),
                                "[upsample_bilinear2d] expected a floating point tensor, got {}", self.description());
        // Halves are computed in float32 and rounded once.
        Dtype wide = compute_dtype(self.dtype());
        Between rows = linear_positions(self, self.size(2), output_size[0], align_corners, scales_h, wide);
        Between columns = linear_positions(self, self.size(3), output_size[1], align_corners, scales_w, wide);
        Tensor x = self.to(wide), down = unsqueeze(rows.weight, 1), right = columns.weight;
        Tensor above = index_select(x, 2, rows.below), under = index_select(x, 2, rows.above);
        Tensor line = above * (1 - down) + under * down;
        return (index_select(line, 3, columns.below) * (1 - right) + index_select(line, 3, columns.above) * right)
            .to(self.dtype());
      });
  op("upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
     "Tensor")
      .decompose([](const Tensor& input, const std::optional<SymInts>& output_size, bool align_corners,
                    const std::optional<std::vector<double>>& scale_factors) {
        SymInts size = image_size(input, output_size, scale_factors, "upsample_bilinear2d");
        return upsample_bilinear2d(input, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1));
      });
}

}  // namespace tenon::ops
