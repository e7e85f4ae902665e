// As ../springs.cpp.
#include <torch/torch.h>

using torch::Tensor;

// How places and speeds [2, beads, 2] change: by the speeds, and by springs between neighbours and weight.
Tensor rate(const Tensor& state) {
  Tensor apart = torch::diff(state[0], 1, 0), length = torch::sqrt(torch::square(apart).sum(1, true) + 1e-9);
  Tensor pull = torch::constant_pad_nd(apart * ((length - 0.2) / length * 20), {0, 0, 1, 1});
  return torch::stack({state[1], torch::diff(pull, 1, 0) + torch::tensor({0.0, -1.0}, torch::kFloat64)});
}

// The squared distance of the last bead from the target after a second, and a price for speed.
Tensor miss(const Tensor& speed) {
  Tensor x = torch::stack({torch::arange(5, torch::kFloat64) * 0.2, torch::zeros({5}, torch::kFloat64)}, 1);
  Tensor y = torch::stack({x, speed});
  const double h = 0.1;
  for (int tick = 0; tick < 10; ++tick) {
    Tensor a = rate(y), b = rate(y + h / 2 * a), c = rate(y + h / 2 * b), d = rate(y + h * c);
    y = y + h / 6 * (a + 2 * b + 2 * c + d);
  }
  Tensor last = y[0][-1] - torch::tensor({1.5, 0.5}, torch::kFloat64);
  return torch::square(last).sum() + torch::square(speed).sum() * 1e-2;
}

// Towards the bottom of the parabola, by conjugate gradients over products with the curvature.
Tensor newton_direction(const Tensor& gradient, const Tensor& at) {
  Tensor d = torch::zeros_like(at), r = -gradient.detach(), p = r, size = torch::square(r).sum();
  const double slope = std::sqrt(size.item<double>()), enough = std::min(0.5, std::sqrt(slope)) * slope;
  while (std::sqrt(size.item<double>()) > enough) {
    Tensor image = torch::autograd::grad({gradient}, {at}, {p}, true)[0], curve = (p * image).sum();
    if (curve.item<double>() <= 0) return d.any().item<bool>() ? d : r;
    d = d + size / curve * p;
    r = r - size / curve * image;
    Tensor next = torch::square(r).sum();
    p = r + next / size * p;
    size = next;
  }
  return d;
}

int main() {
  Tensor speed = torch::zeros({5, 2}, torch::kFloat64), value;
  for (int step = 0; step < 200; ++step) {
    Tensor at = speed.detach().requires_grad_();
    value = miss(at);
    Tensor gradient = torch::autograd::grad({value}, {at}, {}, std::nullopt, true)[0];
    if (gradient.abs().max().item<double>() <= 1e-6) break;
    Tensor direction = newton_direction(gradient, at);
    torch::NoGradGuard off;
    const double along = (gradient * direction).sum().item<double>();
    double length = 1;
    while (miss(speed + length * direction).item<double>() > value.item<double>() + 1e-4 * length * along) length /= 2;
    speed = speed + length * direction;
  }
  std::printf("loss %.6f\n", value.item<double>());
  for (const Tensor& each : speed.unbind())
    std::printf("speed %.4f %.4f\n", each[0].item<double>(), each[1].item<double>());
}
