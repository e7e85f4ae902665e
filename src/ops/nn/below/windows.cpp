// Windows of images as columns.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// Two numbers, of one or two that were given.
Ints pair(const Ints& given, int64_t least, const char* what) {
  TENON_CHECK(given.size() == 1 || given.size() == 2, "[im2col] expected a {} of 1 or 2 numbers, got {}", what,
              given.size());
  constexpr int64_t kFar = int64_t{1} << 31;
  for (int64_t number : given)
    TENON_CHECK(number >= least && number < kFar, "[im2col] expected a {} of at least {} and below 2^31, got {}", what,
                least, number);
  return {given[0], given[given.size() - 1]};
}

// [N, C, H, W] to [N, C times the elements of a window, windows].
Tensor columns(const Tensor& self, const Ints& kernel_size, const Ints& dilation, const Ints& padding,
               const Ints& stride) {
  TENON_CHECK(self.defined() && (self.dim() == 3 || self.dim() == 4),
              "[im2col] expected a tensor of 3 or 4 dimensions, got {}",
              self.defined() ? self.description() : "an undefined one");
  if (self.dim() == 3) return squeeze(columns(unsqueeze(self, 0), kernel_size, dilation, padding, stride), 0);
  const Ints kernel = pair(kernel_size, 1, "kernel_size"), apart = pair(dilation, 1, "dilation"),
             border = pair(padding, 0, "padding"), step = pair(stride, 1, "stride");
  Tensor x = self;
  if (border[0] > 0 || border[1] > 0) x = constant_pad_nd(x, SymInts{border[1], border[1], border[0], border[0]});
  for (int64_t dim : {0, 1}) {
    const auto at = static_cast<size_t>(dim);
    x = unfold(x, dim + 2, (kernel[at] - 1) * apart[at] + 1, step[at]);
  }
  for (int64_t dim : {0, 1})
    if (int64_t every = apart[static_cast<size_t>(dim)]; every > 1)
      x = slice(x, dim + 4, std::nullopt, std::nullopt, every);
  const SymInt channels = x.size(1) * kernel[0] * kernel[1], windows = x.size(2) * x.size(3);
  return reshape(permute(x, {0, 1, 4, 5, 2, 3}), SymInts{x.size(0), channels, windows});
}

}  // namespace

OPS(columns) {
  op("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
      .decompose(columns);
}

}  // namespace tenon::ops
