// What backward keeps of the inputs: no more than eager does, where somebody may change them before it comes.
#include "backends.h"

namespace tenon {
namespace {

using testing::both_ways;
using testing::on_all_backends;

TEST(KeptInputs, an_input_with_a_history_that_eager_does_not_keep_may_be_changed) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor h, Tensor w) { return (h + 1).sigmoid() + (h * 2 + w).tanh(); };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.3f).set_requires_grad(), w = full({n}, 0.2f).set_requires_grad();
      Tensor h = x * 2, y = f(h, w);
      h.add_(5);
      y.sum().backward();
      return std::vector{y.detach(), x.grad(), w.grad()};
    });
  });
}

TEST(KeptInputs, nor_is_one_without) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor h, Tensor w) { return (h + w).exp() * (w - h).sin(); };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor h = full({n}, 0.3f), w = full({n}, 0.2f).set_requires_grad();
      Tensor y = f(h, w);
      h.fill_(5);
      y.sum().backward();
      return std::vector{y.detach(), w.grad()};
    });
  });
}

TEST(KeptInputs, a_plan_made_for_a_leaf_serves_a_tensor_with_a_history) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor h) { return (h + 1).sigmoid() * (h - 1).cos(); };
    auto f = compiled(function);
    f(ones({4}).set_requires_grad()).sum().backward();
    both_ways(function, f, [](auto&& g, int64_t n) {
      Tensor x = full({n}, 0.3f).set_requires_grad(), h = x * 2, y = g(h);
      h.mul_(5);
      y.sum().backward();
      return std::vector{y.detach(), x.grad()};
    });
  });
}

}  // namespace
}  // namespace tenon
