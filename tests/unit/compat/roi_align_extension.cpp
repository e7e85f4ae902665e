// An extension for libtorch: averages of a map over regions, read between its elements, with the gradient of the map.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>

namespace {

// The four elements around a point and their weights.
template <typename T>
struct Around {
  int64_t low_y, low_x, high_y, high_x;
  T weights[4];
  bool outside = false;
  Around(int64_t height, int64_t width, T y, T x) {
    outside = y < T(-1) || y > T(height) || x < T(-1) || x > T(width);
    y = std::max(y, T(0));
    x = std::max(x, T(0));
    low_y = std::min(static_cast<int64_t>(y), height - 1);
    low_x = std::min(static_cast<int64_t>(x), width - 1);
    high_y = std::min(low_y + 1, height - 1);
    high_x = std::min(low_x + 1, width - 1);
    const T dy = low_y == height - 1 ? T(0) : y - T(low_y), dx = low_x == width - 1 ? T(0) : x - T(low_x);
    weights[0] = (1 - dy) * (1 - dx);
    weights[1] = (1 - dy) * dx;
    weights[2] = dy * (1 - dx);
    weights[3] = dy * dx;
  }
};

// Calls `sample(batch, row, column of the grid, y, x, samples in the cell)` for every sample of a region.
template <typename T, typename F>
void each_sample(const T* roi, double scale, int64_t rows, int64_t columns, int64_t ratio, const F& sample) {
  const auto batch = static_cast<int64_t>(roi[0]);
  const T x0 = roi[1] * T(scale), y0 = roi[2] * T(scale);
  const T width = std::max(roi[3] * T(scale) - x0, T(1)), height = std::max(roi[4] * T(scale) - y0, T(1));
  const T cell_h = height / T(rows), cell_w = width / T(columns);
  const int64_t grid_h = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(cell_h));
  const int64_t grid_w = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(cell_w));
  const T count = T(std::max<int64_t>(grid_h * grid_w, 1));
  for (const auto i : c10::irange(rows))
    for (const auto j : c10::irange(columns))
      for (const auto a : c10::irange(grid_h))
        for (const auto b : c10::irange(grid_w))
          sample(batch, i, j, y0 + T(i) * cell_h + (T(a) + T(0.5)) * cell_h / T(grid_h),
                 x0 + T(j) * cell_w + (T(b) + T(0.5)) * cell_w / T(grid_w), count);
}

at::Tensor roi_align_forward(const at::Tensor& input, const at::Tensor& rois, double scale, int64_t rows,
                             int64_t columns, int64_t ratio) {
  TORCH_CHECK(input.device().is_cpu(), "input must be a CPU tensor");
  TORCH_CHECK(rois.size(1) == 5, "rois must have shape [K, 5], got ", rois.sizes());
  at::TensorArg input_t{input, "input", 1}, rois_t{rois, "rois", 2};
  at::CheckedFrom from = "roi_align_forward";
  at::checkAllSameType(from, {input_t, rois_t});
  const auto channels = input.size(1), height = input.size(2), width = input.size(3), count = rois.size(0);
  at::Tensor output = at::zeros({count, channels, rows, columns}, input.options());
  if (output.numel() == 0) return output;
  auto input_ = input.contiguous(), rois_ = rois.contiguous();
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align_forward", [&] {
    auto in = input_.accessor<scalar_t, 4>();
    auto out = output.accessor<scalar_t, 4>();
    const scalar_t* regions = rois_.const_data_ptr<scalar_t>();
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (const auto n : c10::irange(begin, end))
        each_sample(regions + n * 5, scale, rows, columns, ratio,
                    [&](int64_t batch, int64_t i, int64_t j, scalar_t y, scalar_t x, scalar_t samples) {
                      const Around<scalar_t> at(height, width, y, x);
                      if (at.outside) return;
                      for (const auto c : c10::irange(channels)) {
                        auto plane = in[batch][c];
                        out[n][c][i][j] +=
                            (at.weights[0] * plane[at.low_y][at.low_x] + at.weights[1] * plane[at.low_y][at.high_x] +
                             at.weights[2] * plane[at.high_y][at.low_x] + at.weights[3] * plane[at.high_y][at.high_x]) /
                            samples;
                      }
                    });
    });
  });
  return output;
}

at::Tensor roi_align_backward(const at::Tensor& grad, const at::Tensor& rois, double scale, int64_t rows,
                              int64_t columns, int64_t ratio, int64_t batch_size, int64_t channels, int64_t height,
                              int64_t width) {
  at::Tensor grad_input = at::zeros({batch_size, channels, height, width}, grad.options());
  if (grad.numel() == 0) return grad_input;
  auto grad_ = grad.contiguous(), rois_ = rois.contiguous();
  AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "roi_align_backward", [&] {
    auto slope = grad_.accessor<scalar_t, 4>();
    auto to = grad_input.accessor<scalar_t, 4>();
    for (const auto n : c10::irange(rois_.size(0)))
      each_sample(rois_.const_data_ptr<scalar_t>() + n * 5, scale, rows, columns, ratio,
                  [&](int64_t batch, int64_t i, int64_t j, scalar_t y, scalar_t x, scalar_t samples) {
                    const Around<scalar_t> at(height, width, y, x);
                    if (at.outside) return;
                    for (const auto c : c10::irange(channels)) {
                      const scalar_t share = slope[n][c][i][j] / samples;
                      auto plane = to[batch][c];
                      plane[at.low_y][at.low_x] += share * at.weights[0];
                      plane[at.low_y][at.high_x] += share * at.weights[1];
                      plane[at.high_y][at.low_x] += share * at.weights[2];
                      plane[at.high_y][at.high_x] += share * at.weights[3];
                    }
                  });
  });
  return grad_input;
}

at::Tensor roi_align_forward_meta(const at::Tensor& input, const at::Tensor& rois, double, c10::SymInt rows,
                                  c10::SymInt columns, int64_t) {
  return at::empty_symint({rois.sym_size(0), input.sym_size(1), rows, columns}, input.options());
}
at::Tensor roi_align_backward_meta(const at::Tensor& grad, const at::Tensor&, double, c10::SymInt, c10::SymInt, int64_t,
                                   c10::SymInt batch_size, c10::SymInt channels, c10::SymInt height,
                                   c10::SymInt width) {
  return grad.new_empty_symint({batch_size, channels, height, width});
}

at::Tensor call_forward(const at::Tensor& input, const at::Tensor& rois, double scale, c10::SymInt rows,
                        c10::SymInt columns, int64_t ratio) {
  static auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("ext_roi::roi_align", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, double, c10::SymInt, c10::SymInt, int64_t)>();
  return op.call(input, rois, scale, rows, columns, ratio);
}
at::Tensor call_backward(const at::Tensor& grad, const at::Tensor& rois, double scale, c10::SymInt rows,
                         c10::SymInt columns, int64_t ratio, c10::SymInt batch_size, c10::SymInt channels,
                         c10::SymInt height, c10::SymInt width) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("ext_roi::roi_align_backward", "")
                       .typed<at::Tensor(const at::Tensor&, const at::Tensor&, double, c10::SymInt, c10::SymInt,
                                         int64_t, c10::SymInt, c10::SymInt, c10::SymInt, c10::SymInt)>();
  return op.call(grad, rois, scale, rows, columns, ratio, batch_size, channels, height, width);
}

class RoiAlign : public torch::autograd::Function<RoiAlign> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const torch::autograd::Variable& input,
                                                const torch::autograd::Variable& rois, double scale, c10::SymInt rows,
                                                c10::SymInt columns, int64_t ratio) {
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["rows"] = rows;
    ctx->saved_data["columns"] = columns;
    ctx->saved_data["ratio"] = ratio;
    ctx->saved_data["input_shape"] = input.sym_sizes();
    ctx->save_for_backward({rois});
    at::AutoDispatchBelowADInplaceOrView guard;
    return {call_forward(input, rois, scale, rows, columns, ratio)};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    auto rois = ctx->get_saved_variables()[0];
    auto shape = ctx->saved_data["input_shape"].toList();
    auto grad_in = call_backward(grads[0], rois, ctx->saved_data["scale"].toDouble(),
                                 ctx->saved_data["rows"].toSymInt(), ctx->saved_data["columns"].toSymInt(),
                                 ctx->saved_data["ratio"].toInt(), shape[0].get().toSymInt(), shape[1].get().toSymInt(),
                                 shape[2].get().toSymInt(), shape[3].get().toSymInt());
    return {grad_in,
            torch::autograd::Variable(),
            torch::autograd::Variable(),
            torch::autograd::Variable(),
            torch::autograd::Variable(),
            torch::autograd::Variable()};
  }
};
at::Tensor roi_align_autograd(const at::Tensor& input, const at::Tensor& rois, double scale, c10::SymInt rows,
                              c10::SymInt columns, int64_t ratio) {
  return RoiAlign::apply(input, rois, scale, rows, columns, ratio)[0];
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(ext_roi, m) {
  m.def(
      TORCH_SELECTIVE_SCHEMA("ext_roi::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
                             "SymInt pooled_width, int sampling_ratio) -> Tensor"));
  m.def(TORCH_SELECTIVE_SCHEMA(
      "ext_roi::roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt "
      "pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"));
}
TORCH_LIBRARY_IMPL(ext_roi, CPU, m) {
  m.impl(TORCH_SELECTIVE_NAME("ext_roi::roi_align"), TORCH_FN(roi_align_forward));
  m.impl(TORCH_SELECTIVE_NAME("ext_roi::roi_align_backward"), TORCH_FN(roi_align_backward));
}
TORCH_LIBRARY_IMPL(ext_roi, Meta, m) {
  m.impl(TORCH_SELECTIVE_NAME("ext_roi::roi_align"), TORCH_FN(roi_align_forward_meta));
  m.impl(TORCH_SELECTIVE_NAME("ext_roi::roi_align_backward"), TORCH_FN(roi_align_backward_meta));
}
TORCH_LIBRARY_IMPL(ext_roi, Autograd, m) {
  m.impl(TORCH_SELECTIVE_NAME("ext_roi::roi_align"), TORCH_FN(roi_align_autograd));
}
