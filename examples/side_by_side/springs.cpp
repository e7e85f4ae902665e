// A chain of springs is thrown so that its last bead lands on a target: Newton's method through a differentiable
// simulation, with conjugate gradients over products with the curvature.
#include <tenon/tenon.h>

using namespace tenon;

// How places and speeds [2, beads, 2] change: by the speeds, and by springs between neighbours and weight.
Tensor rate(const Tensor& state) {
  Tensor apart = state[0].slice(0, 1) - state[0].slice(0, 0, -1), length = sqrt(square(apart).sum(1, true) + 1e-9);
  Tensor pull = pad(apart * ((length - 0.2) / length * 20), {0, 0, 1, 1});
  return stack({state[1], pull.slice(0, 1) - pull.slice(0, 0, -1) + tensor({0.0, -1.0}, kFloat64)});
}

// The squared distance of the last bead from the target after a second, and a price for speed.
Tensor miss(const Tensor& speed) {
  Tensor start = stack({stack({arange(5).to(kFloat64) * 0.2, zeros({5}, kFloat64)}, 1), speed});
  Tensor end = numerics::odeint(rate, start, {0, 1}, {.method = numerics::OdeMethod::RK4, .substeps = 10})[-1];
  return square(end[0][-1] - tensor({1.5, 0.5}, kFloat64)).sum() + square(speed).sum() * 1e-2;
}

int main() {
  auto found = optim::minimize(compile(miss), zeros({5, 2}, kFloat64), {.method = optim::Method::NewtonCG});
  fmt::print("loss {:.6f}\n", found.value);
  for (const Tensor& speed : found.x.unbind())
    fmt::print("speed {:.4f} {:.4f}\n", speed[0].item<double>(), speed[1].item<double>());
}
