// As ../heat.cpp.
#include <torch/torch.h>

using torch::indexing::Slice;

void step(torch::Tensor& u, double rate) {
  Slice inner(1, -1), before(0, -2), behind(2);
  torch::Tensor flow = u.index({before, inner}) + u.index({behind, inner}) + u.index({inner, before}) +
                       u.index({inner, behind}) - 4 * u.index({inner, inner});
  u.index({inner, inner}).add_(flow * rate);
  u.index_put_({Slice(28, 36), Slice(28, 36)}, 1.0);
  u.index_put_({0}, 0);
  u.index_put_({-1}, 0);
}

int main() {
  torch::Tensor field = torch::zeros({64, 64});
  for (int at = 0; at < 200; ++at) {
    step(field, at < 100 ? 0.2 : 0.1);
    if (at % 50 == 49) std::printf("heat %.4f largest %.4f\n", field.sum().item<double>(), field.max().item<double>());
  }
}
