// A chain of springs is thrown so that its last bead lands on a target: Newton's method through a differentiable
// simulation, with conjugate gradients over Hessian-vector products.
#include <tenon/tenon.h>

using namespace tenon;

constexpr int64_t kBeads = 5, kTicks = 20;
constexpr double kTick = 0.05;

// The squared distance of the last bead from the target, and a price for speed.
Tensor miss(const Tensor& speed) {
  Tensor x = stack({arange(kBeads).to(kFloat64) * 0.2, zeros({kBeads}, kFloat64)}, 1), v = speed;
  for (int64_t tick = 0; tick < kTicks; ++tick) {
    Tensor apart = x.slice(0, 1) - x.slice(0, 0, -1), length = sqrt(square(apart).sum(1, true) + 1e-9);
    Tensor pull = apart * ((length - 0.2) / length * 20);
    Tensor force = pad(pull, {0, 0, 0, 1}) - pad(pull, {0, 0, 1, 0}) + tensor({0.0, -1.0}, kFloat64);
    v = v + force * kTick;
    x = x + v * kTick;
  }
  return square(x[-1] - tensor({1.5, 0.5}, kFloat64)).sum() + square(speed).sum() * 1e-2;
}

int main() {
  auto loss = compile(miss);
  Tensor speed = zeros({kBeads, 2}, kFloat64);
  for (int step = 0; step < 5; ++step) {
    auto [value, gradient] = autograd::vjp(loss, {speed});
    Tensor d = zeros_like(speed), r = -gradient[0], p = r;
    for (int inner = 0; inner < 10; ++inner) {
      Tensor product = autograd::hvp(loss, {speed}, {p})[0], curve = (p * product).sum();
      if (curve.item<double>() <= 0) break;
      Tensor share = square(r).sum() / curve, next = r - share * product;
      d = d + share * p;
      p = next + square(next).sum() / square(r).sum() * p;
      r = next;
    }
    speed = speed + d;
    fmt::print("loss {:.6f} slope {:.6f}\n", value[0].item<double>(), gradient[0].norm().item<double>());
  }
}
