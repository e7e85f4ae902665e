// Heat in a plate, in place: a source, cold edges, and a rate that changes half way.
#include <tenon/tenon.h>

using namespace tenon;

int main() {
  Tensor field = zeros({64, 64});
  auto step = compile([](Tensor u, double rate) {
    Slice inner(1, -1), before(0, -2), behind(2);
    Tensor flow = u.index({before, inner}) + u.index({behind, inner}) + u.index({inner, before}) +
                  u.index({inner, behind}) - 4 * u.index({inner, inner});
    u.index({inner, inner}).add_(flow * rate);
    u.index_put_({Slice(28, 36), Slice(28, 36)}, 1.0);
    u[0] = 0;
    u[-1] = 0;
  });
  for (int at = 0; at < 200; ++at) {
    step(field, at < 100 ? 0.2 : 0.1);
    if (at % 50 == 49)
      fmt::print("heat {:.4f} largest {:.4f}\n", field.sum().item<double>(), field.max().item<double>());
  }
}
