#include <tenon/generated/ops.h>
#include <tenon/nn/shape.h>

#include <fmt/format.h>

namespace tenon {
namespace {

// [..., C, H, W]: what stands before the channels.
SymInts leading(const Tensor& input, const char* name) {
  TENON_CHECK(input.defined() && input.dim() >= 3, "[{}] expected a tensor [..., C, H, W], got {}", name,
              input.defined() ? input.description() : "an undefined one");
  SymInts sizes = input.sym_sizes();
  return SymInts(sizes.begin(), sizes.end() - 3);
}

SymInts with(SymInts sizes, std::initializer_list<SymInt> more) {
  for (const SymInt& size : more) sizes.push_back(size);
  return sizes;
}

// The dimensions before the last `count`, then those in the order given, counted from there.
Ints reordered(int64_t rank, const Ints& order) {
  int64_t lead = rank - static_cast<int64_t>(order.size());
  Ints dims;
  for (int64_t dim = 0; dim < lead; ++dim) dims.push_back(dim);
  for (int64_t dim : order) dims.push_back(lead + dim);
  return dims;
}

// Images with the channels last give such images.
Tensor in_order_of(const Tensor& images, const Tensor& result) { return contiguous(result, images.suggested_format()); }

}  // namespace

Tensor pixel_shuffle(const Tensor& input, int64_t r) {
  SymInts lead = leading(input, "pixel_shuffle");
  TENON_CHECK(r > 0 && bool(input.size(-3) % (r * r) == 0),
              "[pixel_shuffle] expected channels that {} times {} divides, got {}", r, r, input.description());
  SymInt channels = input.size(-3) / (r * r), rows = input.size(-2), columns = input.size(-1);
  Tensor parts = reshape(input, with(lead, {channels, r, r, rows, columns}));
  return in_order_of(input, reshape(permute(parts, reordered(parts.dim(), {0, 3, 1, 4, 2})),
                                    with(lead, {channels, rows * r, columns * r})));
}

Tensor pixel_unshuffle(const Tensor& input, int64_t r) {
  SymInts lead = leading(input, "pixel_unshuffle");
  TENON_CHECK(r > 0 && bool(input.size(-2) % r == 0) && bool(input.size(-1) % r == 0),
              "[pixel_unshuffle] expected rows and columns that {} divides, got {}", r, input.description());
  SymInt channels = input.size(-3), rows = input.size(-2) / r, columns = input.size(-1) / r;
  Tensor parts = reshape(input, with(lead, {channels, rows, r, columns, r}));
  return in_order_of(input, reshape(permute(parts, reordered(parts.dim(), {0, 2, 4, 1, 3})),
                                    with(lead, {channels * r * r, rows, columns})));
}

Tensor channel_shuffle(const Tensor& input, int64_t groups) {
  TENON_CHECK(input.defined() && input.dim() >= 3 && groups > 0 && bool(input.size(1) % groups == 0),
              "[channel_shuffle] expected a tensor [N, C, …] with channels that {} groups divide, got {}", groups,
              input.defined() ? input.description() : "an undefined one");
  SymInts sizes = input.sym_sizes(), parts{sizes[0], SymInt(groups), sizes[1] / groups};
  for (size_t dim = 2; dim < sizes.size(); ++dim) parts.push_back(sizes[dim]);
  return reshape(transpose(reshape(input, parts), 1, 2), sizes);
}

}  // namespace tenon

namespace tenon::nn {

Flatten::Flatten(int64_t start, int64_t end)
    : FunctionLayer("Flatten", fmt::format("start_dim={}, end_dim={}", start, end),
                    [=](const Tensor& x) { return flatten(x, start, end); }) {}
Unflatten::Unflatten(int64_t dim, const Ints& sizes)
    : FunctionLayer("Unflatten", fmt::format("dim={}, unflattened_size=({})", dim, fmt::join(sizes, ", ")),
                    [=](const Tensor& x) { return unflatten(x, dim, SymInts(sizes.span())); }) {}
PixelShuffle::PixelShuffle(int64_t factor)
    : FunctionLayer("PixelShuffle", fmt::format("upscale_factor={}", factor),
                    [=](const Tensor& x) { return pixel_shuffle(x, factor); }) {}
PixelUnshuffle::PixelUnshuffle(int64_t factor)
    : FunctionLayer("PixelUnshuffle", fmt::format("downscale_factor={}", factor),
                    [=](const Tensor& x) { return pixel_unshuffle(x, factor); }) {}
ChannelShuffle::ChannelShuffle(int64_t groups)
    : FunctionLayer("ChannelShuffle", fmt::format("groups={}", groups),
                    [=](const Tensor& x) { return channel_shuffle(x, groups); }) {}
Upsample::Upsample(const InterpolateOptions& options)
    : FunctionLayer("Upsample", fmt::format("mode='{}'", name(options.mode)),
                    [=](const Tensor& x) { return interpolate(x, options); }) {}

PadLayer::PadLayer(const char* kind, const Ints& padding, int64_t dims, const char* mode, double value)
    : FunctionLayer(kind, fmt::format("{}", fmt::join(padding, ", ")), [=](const Tensor& x) {
        SymInts all(padding.span());
        if (padding.size() == 1) all = SymInts(static_cast<size_t>(2 * dims), SymInt(padding[0]));
        TENON_CHECK(
            x.defined() && x.dim() >= dims + 1 && x.dim() <= dims + 2 && static_cast<int64_t>(all.size()) == 2 * dims,
            "[{}] expected 1 or {} numbers for a tensor of {} or {} dimensions, got {} for {}", kind, 2 * dims,
            dims + 1, dims + 2, padding.size(), x.defined() ? x.description() : "an undefined one");
        if (std::string_view(mode) == "constant") return constant_pad_nd(x, all, value);
        return pad(x, all, mode);
      }) {}

}  // namespace tenon::nn
