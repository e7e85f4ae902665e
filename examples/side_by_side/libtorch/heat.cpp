// As ../heat.cpp.
#include <torch/torch.h>

using torch::Tensor;
using torch::indexing::Slice;

Tensor laplacian(const Tensor& u) {
  static const Tensor kernel = torch::tensor({0., 1., 0., 1., -4., 1., 0., 1., 0.}, torch::kFloat64).view({1, 1, 3, 3});
  return torch::conv2d(u.unsqueeze(0).unsqueeze(0), kernel, {}, 1, 1).view_as(u);
}

// Conjugate gradients.
template <typename F>
Tensor solve(const F& map, const Tensor& b, Tensor x) {
  Tensor r = b - map(x), p = r, size = torch::square(r).sum();
  const double enough = 1e-8 * b.norm().item<double>();
  while (std::sqrt(size.item<double>()) > enough) {
    Tensor image = map(p), share = size / (p * image).sum();
    x = x + share * p;
    r = r - share * image;
    Tensor next = torch::square(r).sum();
    p = r + next / size * p;
    size = next;
  }
  return x;
}

int main() {
  Tensor field = torch::zeros({64, 64}, torch::kFloat64), source = torch::zeros_like(field);
  source.index_put_({Slice(28, 36), Slice(28, 36)}, 1.0);
  for (int at = 0; at < 40; ++at) {
    const double rate = at < 20 ? 5.0 : 2.5;
    field = solve([&](const Tensor& u) { return u - rate * laplacian(u); }, field + rate * source, field);
    if (at % 10 == 9) std::printf("heat %.4f largest %.4f\n", field.sum().item<double>(), field.max().item<double>());
  }
}
