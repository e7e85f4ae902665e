// What backward keeps of the inputs: no more than eager does, where somebody may change them before it comes.
#include "both_ways.h"

namespace tenon {
namespace {

using testing::both_ways;
using testing::error_of;
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

// What is kept for a result that nobody asks for goes with it.
TEST(KeptInputs, an_input_kept_in_vain_may_be_changed) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor h) {
      Tensor unused = mm(h, h.t());
      return h.exp();
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = full({n, 3}, 0.3f).set_requires_grad(), h = x * 2, y = f(h);
      h.add_(1);
      y.sum().backward();
      return std::vector{y.detach(), x.grad()};
    });
  });
}

// Eager keeps the input for one result alone: the gradients of another are not computed from it.
TEST(KeptInputs, an_input_kept_for_another_result_may_be_changed) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor h, Tensor w) { return std::tuple((h + 1).sigmoid() + (h * 2 + w).tanh(), h.cos()); };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.3f).set_requires_grad(), w = full({n}, 0.2f).set_requires_grad();
      Tensor h = x * 2;
      auto [y, cosine] = f(h, w);
      h.add_(5);
      EXPECT_NE(error_of([&] { cosine.sum().backward({}, true); }).find("has been modified by an inplace operation"),
                std::string::npos);
      y.sum().backward();
      return std::vector{y.detach(), x.grad(), w.grad()};
    });
  });
}

// The same of a result that another is computed from.
TEST(KeptInputs, a_result_kept_for_another_result_may_be_changed) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor h) {
      Tensor moved = h + 1;
      return std::tuple(moved, (moved * 2).sigmoid() + (moved * 3).tanh(), moved.cos());
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.3f).set_requires_grad(), h = x * 2;
      auto [moved, y, cosine] = f(h);
      moved.add_(5);
      EXPECT_NE(error_of([&] { cosine.sum().backward({}, true); }).find("has been modified by an inplace operation"),
                std::string::npos);
      y.sum().backward();
      return std::vector{y.detach(), x.grad()};
    });
  });
}

// Backward may have something else than eager (a square, a part), but what eager refuses is refused.
TEST(KeptInputs, an_input_that_eager_keeps_may_not_be_changed) {
  on_all_backends([](auto&& compiled) {
    auto cube = [](Tensor h) { return h.pow(3); };
    auto corner = [](Tensor h) { return h.slice(0, 0, 1).expand({4}).cos(); };
    auto refuses = [&](auto function) {
      auto f = compiled(function);
      for (int call = 0; call < 2; ++call) {
        Tensor x = full({3}, 0.3f).set_requires_grad(), h = x * 2, y = f(h);
        h.mul_(0.5);
        EXPECT_NE(error_of([&] { y.sum().backward(); }).find("has been modified by an inplace operation"),
                  std::string::npos);
      }
    };
    refuses(cube);
    refuses(corner);
  });
}

TEST(KeptInputs, errors_say_what_compiled_code_keeps_and_eager_does_not) {
  auto f = compile([](Tensor x) { return (x + 1).exp() * (x - 1).sigmoid(); });
  Tensor leaf = full({3}, 0.3f).set_requires_grad(), y = f(leaf);
  {
    NoGrad off;
    leaf.mul_(2);
  }
  EXPECT_NE(error_of([&] { y.sum().backward(); }).find("arg0, a leaf that requires grad"), std::string::npos);
  auto g = compile([](Tensor x) { return (x + 1).exp().sin(); });
  Tensor start = full({3}, 0.3f).set_requires_grad(), h = start * 2, z = g(h);
  h.add_(1);
  EXPECT_NE(error_of([&] {
              autograd::grad({z.sum()}, {start}, {}, true, true);
            }).find("was changed before a derivative of its gradient is asked for"),
            std::string::npos);
}

// Derivatives of `exp` and `tanh` are computed from results, of any order: what those came from may be changed.
TEST(KeptInputs, second_derivatives_from_results_leave_arguments_free) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) { return std::tuple((x + 1).exp(), x.tanh()); };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor start = full({n}, 0.3f).set_requires_grad(), x = start * 2;
      auto [y, z] = f(x);
      x.add_(1);
      Tensor first = autograd::grad({y.sum() + z.sum()}, {start}, {}, true, true)[0];
      Tensor second = autograd::grad({first.sum()}, {start}, {}, true, true)[0];
      return std::vector{first, second, autograd::grad({second.sum()}, {start})[0]};
    });
  });
}

// A gradient that no result leads to is missing, not zero: an optimizer leaves such a parameter alone.
TEST(KeptInputs, no_gradient_where_nothing_leads) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor a, Tensor b) { return std::tuple(b.cos(), a.sign()); };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor a = full({n}, 0.3f).set_requires_grad(), b = full({n}, 0.2f).set_requires_grad();
      auto [y, sign] = f(a, b);
      y.sum().backward();
      return std::vector{a.grad(), b.grad()};
    });
  });
}

// Gradients lie where eager puts them, also where some of what would be added to them is missing.
TEST(KeptInputs, strides_of_a_gradient_without_what_is_missing) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) { return std::tuple(x.sum(), mm(x.t(), x).relu()); };
    auto f = compiled(function);
    Tensor x = ones({2, 3}).set_requires_grad();
    auto [sum, rest] = f(x);
    auto [eager_sum, eager_rest] = function(x);
    EXPECT_EQ(autograd::grad({sum}, {x})[0].strides(), autograd::grad({eager_sum}, {x})[0].strides());
  });
}

}  // namespace
}  // namespace tenon
