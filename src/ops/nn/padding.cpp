// Borders around a tensor, and images of other sizes.
#include "ops/nn/resample.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

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

}  // namespace

OPS(padding) {
  op("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
      .moves_elements()
      .element(padded_element)
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        SymInts pads = arguments["pad"].sym_ints();
        SymInts sizes = padded_sizes(self, borders(self, pads, "constant_pad_nd"));
        TensorMeta padded = TensorMeta::in_order_of(self, sizes, self.dtype());
        // Made smaller it is the copy of a view, which keeps the order of the dimensions.
        if (std::all_of(pads.begin(), pads.end(), [](const SymInt& each) { return decide_or(each <= 0, false); }))
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
        return resampled(self, output_size, {"upsample_nearest2d", Resampling::Nearest, false, {scales_h, scales_w}});
      });
  op("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose([](const Tensor& input, const std::optional<SymInts>& output_size,
                    const std::optional<std::vector<double>>& scale_factors) {
        SymInts sizes = resampled_sizes(input, output_size, scale_factors, 2, "upsample_nearest2d");
        return resampled(input, sizes, {"upsample_nearest2d", Resampling::Nearest, false, scales_of(scale_factors, 2)});
      });
  op("upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& output_size, bool align_corners, std::optional<double> scales_h,
                    std::optional<double> scales_w) {
        return resampled(self, output_size,
                         {"upsample_bilinear2d", Resampling::Linear, align_corners, {scales_h, scales_w}});
      });
  op("upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
     "Tensor")
      .decompose([](const Tensor& input, const std::optional<SymInts>& output_size, bool align_corners,
                    const std::optional<std::vector<double>>& scale_factors) {
        SymInts sizes = resampled_sizes(input, output_size, scale_factors, 2, "upsample_bilinear2d");
        return resampled(input, sizes,
                         {"upsample_bilinear2d", Resampling::Linear, align_corners, scales_of(scale_factors, 2)});
      });
}

}  // namespace tenon::ops
