// A differentiable simulation: a chain of springs is thrown so that its last bead lands on a target. Gradients go
// through all time steps; a Hessian-vector product, through gradients, makes the search one of Newton's.
//
//   physics [--eager] [--steps 8]
#include "arguments.h"

using namespace tenon;

constexpr int64_t kBeads = 5, kTicks = 20;
constexpr double kTick = 0.05, kStiffness = 20, kGravity = -1;

// The squared distance of the last bead from the target, and a price for speed. `throw_` is [beads, 2].
Tensor miss(const Tensor& throw_, const Tensor& target) {
  Tensor x = stack({arange(kBeads).to(kFloat64) * 0.2, zeros({kBeads}, kFloat64)}, 1), v = throw_;
  for (int64_t tick = 0; tick < kTicks; ++tick) {
    Tensor apart = x.slice(0, 1) - x.slice(0, 0, -1);
    Tensor length = sqrt(square(apart).sum(1, true) + 1e-9);
    Tensor pull = apart * ((length - 0.2) / length * kStiffness);
    Tensor none = zeros({1, 2}, kFloat64);
    Tensor force = cat({pull, none}) - cat({none, pull}) + tensor({0.0, kGravity}, kFloat64);
    v = v + force * kTick;
    x = x + v * kTick;
  }
  return square(x[kBeads - 1] - target).sum() + square(throw_).sum() * 1e-2;
}

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 8);
  Tensor target = tensor({1.5, 0.5}, kFloat64), speed = zeros({kBeads, 2}, kFloat64).set_requires_grad();
  auto loss = compile(miss);
  auto slope = [&](bool again) {
    Tensor value = loss(speed, target);
    return std::pair(value, grad({value}, {speed}, {}, again, again)[0]);
  };
  double first = 0, last = 0;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    auto [value, gradient] = slope(true);
    last = value.item<double>();
    if (step == 0) first = last;
    // Conjugate gradients solve H · d = -g with products alone; H itself is never made. Where the loss curves
    // downwards, they end.
    Tensor g = gradient.detach(), d = zeros_like(g), r = -g, p = r;
    for (int inner = 0; inner < 10 && r.norm().item<double>() > 1e-10; ++inner) {
      Tensor product = grad({(gradient * p).sum()}, {speed}, {}, true)[0], curve = (p * product).sum();
      if (curve.item<double>() <= 0) break;
      Tensor share = (r * r).sum() / curve, next = r - share * product;
      d = d + share * p;
      p = next + (next * next).sum() / (r * r).sum() * p;
      r = next;
    }
    if (d.norm().item<double>() == 0) d = r;
    // Half as far, until the loss is lower.
    NoGrad off;
    Tensor before = speed.clone();
    double far = 1;
    do {
      speed.copy_(before + d * far);
      far /= 2;
    } while (loss(speed, target).item<double>() > last && far > 1e-6);
  }
  fmt::print("physics: first={:.6f} last={:.6f} slope={:.3e}\n", first, last,
             slope(false).second.norm().item<double>());
}
