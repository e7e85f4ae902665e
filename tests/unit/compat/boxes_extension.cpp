// An extension for libtorch: boxes. Suppression of those that overlap, and averages of a map over a box.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <vector>

namespace {

template <typename scalar_t>
at::Tensor nms_typed(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  auto order_tensor = at::argsort(scores, /*dim=*/0, /*descending=*/true);
  auto order = order_tensor.accessor<int64_t, 1>();
  auto corners = boxes.contiguous();
  auto box = corners.accessor<scalar_t, 2>();
  const int64_t count = boxes.size(0);
  auto area = [&](int64_t i) { return (box[i][2] - box[i][0]) * (box[i][3] - box[i][1]); };
  std::vector<bool> suppressed(static_cast<size_t>(count), false);
  auto keep = at::empty({count}, boxes.options().dtype(at::kLong));
  int64_t kept = 0;
  auto* out = keep.data_ptr<int64_t>();
  for (int64_t a = 0; a < count; ++a) {
    const int64_t i = order[a];
    if (suppressed[static_cast<size_t>(i)]) continue;
    out[kept++] = i;
    for (int64_t b = a + 1; b < count; ++b) {
      const int64_t j = order[b];
      const scalar_t width = std::min(box[i][2], box[j][2]) - std::max(box[i][0], box[j][0]);
      const scalar_t height = std::min(box[i][3], box[j][3]) - std::max(box[i][1], box[j][1]);
      const scalar_t shared = std::max(width, scalar_t(0)) * std::max(height, scalar_t(0));
      if (shared / (area(i) + area(j) - shared) > threshold) suppressed[static_cast<size_t>(j)] = true;
    }
  }
  return keep.narrow(0, 0, kept).clone();
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  at::TensorArg boxes_arg{boxes, "boxes", 1}, scores_arg{scores, "scores", 2};
  at::checkDim("nms", boxes_arg, 2);
  at::checkDim("nms", scores_arg, 1);
  at::checkAllSameType("nms", {boxes_arg, scores_arg});
  TORCH_CHECK_VALUE(boxes.size(1) == 4, "boxes should have 4 columns, got ", boxes.size(1));
  if (boxes.numel() == 0) return at::empty({0}, boxes.options().dtype(at::kLong));
  at::Tensor result;
  AT_DISPATCH_FLOATING_TYPES(boxes.scalar_type(), "nms",
                             [&] { result = nms_typed<scalar_t>(boxes, scores, threshold); });
  return result;
}

// Averages over the cells of a grid that is laid over each box (batch, x0, y0, x1, y1).
at::Tensor box_average(const at::Tensor& input, const at::Tensor& rois, int64_t rows, int64_t columns) {
  auto x = input.contiguous(), r = rois.contiguous();
  const auto channels = x.size(1), height = x.size(2), width = x.size(3), count = r.size(0);
  auto output = at::zeros({count, channels, rows, columns}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "box_average", [&] {
    auto in = x.accessor<scalar_t, 4>();
    auto box = r.accessor<scalar_t, 2>();
    auto out = output.accessor<scalar_t, 4>();
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const auto batch = static_cast<int64_t>(box[n][0]);
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
              const scalar_t y0 = box[n][2] + (box[n][4] - box[n][2]) * scalar_t(i) / scalar_t(rows);
              const scalar_t y1 = box[n][2] + (box[n][4] - box[n][2]) * scalar_t(i + 1) / scalar_t(rows);
              const scalar_t x0 = box[n][1] + (box[n][3] - box[n][1]) * scalar_t(j) / scalar_t(columns);
              const scalar_t x1 = box[n][1] + (box[n][3] - box[n][1]) * scalar_t(j + 1) / scalar_t(columns);
              scalar_t sum = 0;
              int64_t elements = 0;
              for (int64_t h = std::max<int64_t>(0, int64_t(y0)); h < std::min<int64_t>(height, int64_t(y1)); ++h)
                for (int64_t w = std::max<int64_t>(0, int64_t(x0)); w < std::min<int64_t>(width, int64_t(x1)); ++w) {
                  sum += in[batch][c][h][w];
                  ++elements;
                }
              out[n][c][i][j] = elements == 0 ? scalar_t(0) : sum / scalar_t(elements);
            }
      }
    });
  });
  return output;
}
at::Tensor box_average_meta(const at::Tensor& input, const at::Tensor& rois, c10::SymInt rows, c10::SymInt columns) {
  return at::empty({rois.sym_size(0), input.sym_size(1), rows, columns}, input.options());
}

}  // namespace

TORCH_LIBRARY(ext_boxes, m) {
  m.def("nms(Tensor boxes, Tensor scores, float threshold) -> Tensor");
  m.def("box_average(Tensor input, Tensor rois, SymInt rows, SymInt columns) -> Tensor");
}
TORCH_LIBRARY_IMPL(ext_boxes, CPU, m) {
  m.impl("nms", nms);
  m.impl("box_average", box_average);
}
TORCH_LIBRARY_IMPL(ext_boxes, Meta, m) { m.impl("box_average", box_average_meta); }
