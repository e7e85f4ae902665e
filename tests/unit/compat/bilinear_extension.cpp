// An extension for libtorch: an image read at points between its pixels, with the gradients of image and points. The
// kernels are vectors over the channels.
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <torch/extension.h>

namespace {

template <typename T>
struct Cell {
  int64_t y, x;
  T dy, dx;
  Cell(const T* point, int64_t height, int64_t width) {
    y = std::clamp<int64_t>(static_cast<int64_t>(std::floor(point[0])), 0, height - 2);
    x = std::clamp<int64_t>(static_cast<int64_t>(std::floor(point[1])), 0, width - 2);
    dy = point[0] - T(y);
    dx = point[1] - T(x);
  }
};

// image [height, width, channels], points [n, 2] -> [n, channels]
at::Tensor sample_cpu(const at::Tensor& image, const at::Tensor& points) {
  TORCH_CHECK(image.dim() == 3, "bilinear: expected an image [height, width, channels], got ", image.sizes());
  TORCH_CHECK(points.dim() == 2 && points.size(1) == 2, "bilinear: expected points [n, 2], got ", points.sizes());
  auto pixels = image.contiguous(), places = points.contiguous();
  const int64_t height = image.size(0), width = image.size(1), channels = image.size(2), count = points.size(0);
  auto output = torch::empty({count, channels}, image.options());
  AT_DISPATCH_FLOATING_TYPES(image.scalar_type(), "bilinear", [&] {
    using Vec = at::vec::Vectorized<scalar_t>;
    const auto* in = pixels.const_data_ptr<scalar_t>();
    auto* out = output.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, count, 4, [&](int64_t begin, int64_t end) {
      for (const auto n : c10::irange(begin, end)) {
        const Cell<scalar_t> cell(places.const_data_ptr<scalar_t>() + 2 * n, height, width);
        const auto* top = in + (cell.y * width + cell.x) * channels;
        const auto* bottom = top + width * channels;
        const Vec dx(cell.dx), dy(cell.dy), one(1);
        for (int64_t c = 0; c < channels; c += Vec::size()) {
          const int64_t here = std::min<int64_t>(Vec::size(), channels - c);
          const Vec upper = Vec::loadu(top + c, here) * (one - dx) + Vec::loadu(top + channels + c, here) * dx;
          const Vec lower = Vec::loadu(bottom + c, here) * (one - dx) + Vec::loadu(bottom + channels + c, here) * dx;
          (upper * (one - dy) + lower * dy).store(out + n * channels + c, here);
        }
      }
    });
  });
  return output;
}

std::tuple<at::Tensor, at::Tensor> sample_backward_cpu(const at::Tensor& grad, const at::Tensor& image,
                                                       const at::Tensor& points) {
  auto slopes = grad.contiguous(), pixels = image.contiguous(), places = points.contiguous();
  auto grad_image = torch::zeros_like(pixels), grad_points = torch::zeros_like(places);
  const int64_t height = image.size(0), width = image.size(1), channels = image.size(2);
  AT_DISPATCH_FLOATING_TYPES(image.scalar_type(), "bilinear_backward", [&] {
    auto in = pixels.accessor<scalar_t, 3>(), to = grad_image.accessor<scalar_t, 3>();
    auto slope = slopes.accessor<scalar_t, 2>(), place = grad_points.accessor<scalar_t, 2>();
    for (const auto n : c10::irange(points.size(0))) {
      const Cell<scalar_t> at(places.const_data_ptr<scalar_t>() + 2 * n, height, width);
      for (const auto c : c10::irange(channels)) {
        const scalar_t g = slope[n][c];
        to[at.y][at.x][c] += g * (1 - at.dy) * (1 - at.dx);
        to[at.y][at.x + 1][c] += g * (1 - at.dy) * at.dx;
        to[at.y + 1][at.x][c] += g * at.dy * (1 - at.dx);
        to[at.y + 1][at.x + 1][c] += g * at.dy * at.dx;
        const scalar_t a = in[at.y][at.x][c], b = in[at.y][at.x + 1][c];
        const scalar_t d = in[at.y + 1][at.x][c], e = in[at.y + 1][at.x + 1][c];
        place[n][0] += g * ((1 - at.dx) * (d - a) + at.dx * (e - b));
        place[n][1] += g * ((1 - at.dy) * (b - a) + at.dy * (e - d));
      }
    }
  });
  return {grad_image, grad_points};
}

at::Tensor sample_meta(const at::Tensor& image, const at::Tensor& points) {
  return image.new_empty_symint({points.sym_size(0), image.sym_size(2)});
}
std::tuple<at::Tensor, at::Tensor> sample_backward_meta(const at::Tensor&, const at::Tensor& image,
                                                        const at::Tensor& points) {
  return {at::empty_like(image, at::MemoryFormat::Contiguous), at::empty_like(points, at::MemoryFormat::Contiguous)};
}

class Bilinear : public torch::autograd::Function<Bilinear> {
 public:
  static constexpr bool is_traceable = true;
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, at::Tensor image, at::Tensor points) {
    at::AutoDispatchBelowAutograd below;
    ctx->save_for_backward({image, points});
    static auto op = torch::Dispatcher::singleton()
                         .findSchemaOrThrow("ext_bilinear::sample", "")
                         .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    return op.call(image, points);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    static auto op =
        torch::Dispatcher::singleton()
            .findSchemaOrThrow("ext_bilinear::sample_backward", "")
            .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
    auto [image, points] = op.call(grads[0], saved[0], saved[1]);
    return {image, points};
  }
};
at::Tensor sample_autograd(const at::Tensor& image, const at::Tensor& points) { return Bilinear::apply(image, points); }

}  // namespace

TORCH_LIBRARY(ext_bilinear, m) {
  m.def("sample(Tensor image, Tensor points) -> Tensor");
  m.def("sample_backward(Tensor grad, Tensor image, Tensor points) -> (Tensor, Tensor)");
  m.impl("sample", c10::DispatchKey::CPU, TORCH_FN(sample_cpu));
  m.impl("sample_backward", c10::DispatchKey::CPU, TORCH_FN(sample_backward_cpu));
  m.impl("sample", c10::DispatchKey::Meta, TORCH_FN(sample_meta));
  m.impl("sample_backward", c10::DispatchKey::Meta, TORCH_FN(sample_backward_meta));
  m.impl("sample", c10::DispatchKey::Autograd, TORCH_FN(sample_autograd));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("sample", &sample_autograd, "reads an image between its pixels", py::arg("image"), py::arg("points"));
}
