// One result of a compiled call was computed from another: gradients of the one with respect to the other.
#include "backends.h"

namespace tenon {
namespace {

using testing::both_ways;
using testing::error_of;
using testing::on_all_backends;

auto chained = [](Tensor x, Tensor w) {
  Tensor y = x * x, z = (y * w).sin();
  return std::tuple(y, z, w + 1);
};

TEST(GradientsBetweenResults, grad_of_one_with_respect_to_another) {
  on_all_backends([](auto&& compiled) {
    both_ways(chained, compiled(chained), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
      auto [y, z, v] = f(x, w);
      Tensor alone = autograd::grad({z.sum()}, {y}, {}, true)[0];
      Tensor both = autograd::grad({z.sum() + (y * 3).sum()}, {y}, {}, true)[0];
      std::vector<Tensor> mixed = autograd::grad({z.sum() + y.sum()}, {y, x, w}, {}, true);
      return std::vector{alone, both, mixed[0], mixed[1], mixed[2]};
    });
  });
}

TEST(GradientsBetweenResults, retained_gradients) {
  on_all_backends([](auto&& compiled) {
    both_ways(chained, compiled(chained), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
      auto [y, z, v] = f(x, w);
      y.retain_grad();
      z.retain_grad();
      (z.sum() + (y * y).sum() + v.sum()).backward();
      return std::vector{y.grad(), z.grad(), x.grad(), w.grad()};
    });
  });
}

TEST(GradientsBetweenResults, of_higher_order) {
  on_all_backends([](auto&& compiled) {
    both_ways(
        chained, compiled(chained),
        [](auto&& f, int64_t n) {
          Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
          auto [y, z, v] = f(x, w);
          Tensor slope = autograd::grad({z.sum()}, {y}, {}, true, true)[0];
          std::vector<Tensor> again = autograd::grad({slope.square().sum()}, {x, w});
          return std::vector{slope.detach(), again[0], again[1]};
        },
        1e-5);
  });
}

TEST(GradientsBetweenResults, results_that_do_not_depend_on_each_other_say_so) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled(chained);
    Tensor x = ones({3}).set_requires_grad(), w = ones({3}).set_requires_grad();
    auto [y, z, v] = f(x, w);
    std::string error = error_of([&, &y = y, &v = v] { autograd::grad({v.sum()}, {y}); });
    EXPECT_NE(error.find("was not used for the outputs"), std::string::npos) << error;
  });
}

TEST(GradientsBetweenResults, a_hook_would_have_to_change_what_is_behind_it) {
  for (const char* backend : {"inductor", "aot_eager"}) {
    auto f = compile(chained, {.backend = backend});
    Tensor x = ones({3}).set_requires_grad(), w = ones({3}).set_requires_grad();
    auto [y, z, v] = f(x, w);
    int calls = 0;
    autograd::register_hook(y, [&](const Tensor& gradient) {
      ++calls;
      return gradient * 2;
    });
    (y * 3).sum().backward({}, true);
    EXPECT_EQ(calls, 1) << "nothing else was differentiated";
    std::string error = error_of([&, &z = z] { z.sum().backward(); });
    EXPECT_NE(error.find("[register_hook] a hook is set on a result of CompiledFunctionBackward from which another"),
              std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace tenon
