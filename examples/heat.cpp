// Heat in a plate, solved in place: each step adds what the neighbours say, and a source and cold edges are written
// into the field.
//
//   heat [--eager] [--steps 500]
#include "arguments.h"

using namespace tenon;

constexpr int64_t kSize = 128;

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 500);
  Tensor field = zeros({kSize, kSize});
  Cell<double> rate(0.2, "rate");
  auto step = compile([&](Tensor u) {
    Slice inner(1, -1), before(0, -2), behind(2);
    Tensor flow = u.index({before, inner}) + u.index({behind, inner}) + u.index({inner, before}) +
                  u.index({inner, behind}) - 4 * u.index({inner, inner});
    u.index({inner, inner}).add_(flow * rate.get());
    u.index_put_({Slice(60, 68), Slice(60, 68)}, 1.0);  // a hot spot
    u[0] = 0;                                           // cold edges
    u[-1] = 0;
  });
  double first = 0;
  for (int64_t at = 0; at < arguments.steps; ++at) {
    if (at == arguments.steps / 2) rate = 0.1;  // compiles nothing
    step(field);
    if (at == 0) first = field.sum().item<double>();
  }
  fmt::print("heat: first={:.6f} last={:.6f} largest={:.4f}\n", first, field.sum().item<double>(),
             field.max().item<double>());
}
