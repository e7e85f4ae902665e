// As ../springs.cpp.
#include <torch/torch.h>

using torch::Tensor;

constexpr int64_t kBeads = 5, kTicks = 20;
constexpr double kTick = 0.05;

// The squared distance of the last bead from the target, and a price for speed.
Tensor miss(const Tensor& speed) {
  Tensor x = torch::stack({torch::arange(kBeads, torch::kFloat64) * 0.2, torch::zeros({kBeads}, torch::kFloat64)}, 1);
  Tensor v = speed;
  for (int64_t tick = 0; tick < kTicks; ++tick) {
    Tensor apart = x.slice(0, 1) - x.slice(0, 0, -1), length = torch::sqrt(torch::square(apart).sum(1, true) + 1e-9);
    Tensor pull = apart * ((length - 0.2) / length * 20);
    Tensor force = torch::constant_pad_nd(pull, {0, 0, 0, 1}) - torch::constant_pad_nd(pull, {0, 0, 1, 0}) +
                   torch::tensor({0.0, -1.0}, torch::kFloat64);
    v = v + force * kTick;
    x = x + v * kTick;
  }
  return torch::square(x[-1] - torch::tensor({1.5, 0.5}, torch::kFloat64)).sum() + torch::square(speed).sum() * 1e-2;
}

int main() {
  Tensor speed = torch::zeros({kBeads, 2}, torch::kFloat64);
  for (int step = 0; step < 5; ++step) {
    Tensor at = speed.detach().requires_grad_(), value = miss(at);
    Tensor gradient = torch::autograd::grad({value}, {at}, {}, std::nullopt, true)[0];
    Tensor d = torch::zeros_like(speed), r = -gradient.detach(), p = r;
    for (int inner = 0; inner < 10; ++inner) {
      Tensor product = torch::autograd::grad({(gradient * p).sum()}, {at}, {}, true)[0], curve = (p * product).sum();
      if (curve.item<double>() <= 0) break;
      Tensor share = torch::square(r).sum() / curve, next = r - share * product;
      d = d + share * p;
      p = next + torch::square(next).sum() / torch::square(r).sum() * p;
      r = next;
    }
    speed = speed + d;
    std::printf("loss %.6f slope %.6f\n", value.item<double>(), gradient.norm().item<double>());
  }
}
