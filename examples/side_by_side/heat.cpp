// Heat in a plate, by backward Euler: a source in the middle, cold edges, steps that are much longer than an explicit
// method bears, and half as long in the second half. Each step solves a system with conjugate gradients.
#include <tenon/tenon.h>

using namespace tenon;

int main() {
  Tensor field = zeros({64, 64}, kFloat64), source = zeros_like(field);
  source.index_put_({Slice(28, 36), Slice(28, 36)}, 1.0);
  auto backward = compile([](Tensor u, double rate) { return u - rate * numerics::laplacian(u); });
  for (int at = 0; at < 40; ++at) {
    double rate = at < 20 ? 5.0 : 2.5;
    auto map = [&](const Tensor& u) { return backward(u, rate); };
    field = numerics::cg(map, field + rate * source, {.start = field, .tolerance = 1e-8}).x;
    if (at % 10 == 9)
      fmt::print("heat {:.4f} largest {:.4f}\n", field.sum().item<double>(), field.max().item<double>());
  }
}
