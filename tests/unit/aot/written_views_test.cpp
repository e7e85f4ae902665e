// An argument that is a view of a tensor outside and is written to: autograd sees what eager's in-place change shows.
#include "both_ways.h"

namespace tenon {
namespace {

using testing::both_ways;
using testing::error_of;
using testing::on_all_backends;
using testing::same_bits;

TEST(WrittenViews, the_base_gets_a_new_history) {
  on_all_backends([](auto&& compiled) {
    auto triple = [](Tensor a) { return a.mul_(3); };
    both_ways(triple, compiled(triple), [](auto&& f, int64_t n) {
      Tensor x = ones({n}).set_requires_grad(), base = x * 1;
      Tensor view = base.slice(0, 0, 2), result = f(view);
      EXPECT_TRUE(result.is(view));
      base.sum().backward();
      return std::vector{base.detach(), x.grad()};
    });
  });
}

TEST(WrittenViews, gradients_of_the_issue) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor a) { return a.mul_(10); });
    for (int call = 0; call < 3; ++call) {
      Tensor x = ones({4}).set_requires_grad(), y = (x * 2).view({2, 2});
      f(y);
      y.sum().backward();
      EXPECT_TRUE(same_bits(x.grad(), full({4}, 20.0)));
    }
    auto g = compiled([](Tensor a) { a.mul_(3); });
    for (int call = 0; call < 3; ++call) {
      Tensor x = ones({4}).set_requires_grad(), base = x.clone();
      g(base.slice(0, 0, 2));
      base.sum().backward();
      EXPECT_TRUE(same_bits(x.grad(), tensor({3.0f, 3.0f, 1.0f, 1.0f})));
    }
  });
}

TEST(WrittenViews, through_the_result_of_a_convolution) {
  on_all_backends([](auto&& compiled) {
    auto scale = [](Tensor a, Tensor w) { a.mul_(w); };
    both_ways(scale, compiled(scale), [](auto&& f, int64_t n) {
      manual_seed(3);
      Tensor x = randn({1, 2, n, 5}).set_requires_grad(), weight = randn({3, 2, 3, 3}), w = randn({n - 2, 3});
      w.set_requires_grad();
      Tensor y = conv2d(x, weight);
      f(y.select(0, 0).select(0, 1), w);
      y.square().sum().backward();
      return std::vector{y.detach(), x.grad(), w.grad()};
    });
  });
}

TEST(WrittenViews, a_base_comes_to_require_grad) {
  on_all_backends([](auto&& compiled) {
    auto put = [](Tensor a, Tensor w) { a.copy_(w * 2); };
    both_ways(put, compiled(put), [](auto&& f, int64_t n) {
      Tensor base = zeros({3, n}), w = ones({n}).set_requires_grad();
      Tensor other = base.select(0, 1), row = base.select(0, 0);
      f(row, w);
      EXPECT_TRUE(base.requires_grad() && row.requires_grad() && other.requires_grad());
      base.sum().backward();
      return std::vector{base.detach(), w.grad()};
    });
  });
}

TEST(WrittenViews, a_constant_cuts_the_old_value_off) {
  on_all_backends([](auto&& compiled) {
    auto fill = [](Tensor a) { a.fill_(7); };
    both_ways(fill, compiled(fill), [](auto&& f, int64_t n) {
      Tensor x = ones({n}).set_requires_grad(), base = x * 2, whole = x * 3;
      f(base.slice(0, 1, n));
      f(whole);
      (base + whole).sum().backward();
      return std::vector{base.detach(), whole.detach(), x.grad()};
    });
  });
}

TEST(WrittenViews, what_autograd_does_not_see_leaves_histories_alone) {
  on_all_backends([](auto&& compiled) {
    auto silently = [](Tensor a, Tensor w) {
      autograd::NoGrad off;
      a.mul_(w);
    };
    auto cut = [](Tensor a, Tensor w) { a.detach().mul_(w.detach()); };
    auto run = [](auto&& f, int64_t n) {
      Tensor x = ones({n}).set_requires_grad(), base = x * 2, w = full({n - 1}, 5.0f).set_requires_grad();
      f(base.slice(0, 1, n), w);
      base.sum().backward();
      EXPECT_FALSE(w.grad().defined());
      Tensor plain = ones({n});
      f(plain.slice(0, 1, n), w);
      EXPECT_FALSE(plain.requires_grad());
      return std::vector{base.detach(), x.grad(), plain};
    };
    both_ways(silently, compiled(silently), run);
    both_ways(cut, compiled(cut), run);
  });
}

TEST(WrittenViews, the_checks_of_an_inplace_change_are_made) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor a) { a.mul_(2); });
    Tensor leaf = ones({4}).set_requires_grad();
    f(leaf * 1);  // so that something is cached that fits a leaf too
    f((leaf * 1).slice(0, 0, 4));
    std::string error = error_of([&] { f(leaf); });
    EXPECT_NE(error.find("[mul_] a leaf Variable that requires grad is being used in an in-place operation"),
              std::string::npos)
        << error;
    error = error_of([&] { f(leaf.slice(0, 0, 4)); });
    EXPECT_NE(error.find("[mul_] a view of a leaf Variable that requires grad"), std::string::npos) << error;
    Tensor base = leaf * 1, view;
    {
      autograd::NoGrad off;
      view = base.slice(0, 0, 4);
    }
    error = error_of([&] { f(view); });
    EXPECT_NE(error.find("[mul_] A view was created in no_grad mode"), std::string::npos) << error;
    EXPECT_TRUE(same_bits(base.detach(), ones({4}))) << "nothing was written";
    autograd::NoGrad off;
    f(leaf);
    EXPECT_TRUE(same_bits(leaf.detach(), full({4}, 2.0)));
  });
}

TEST(WrittenViews, grad_mode_turned_on_inside) {
  on_all_backends([](auto&& compiled) {
    auto scale = [](Tensor a, Tensor w) {
      autograd::SetGradMode on(true);
      a.mul_(w);
      return a * w;
    };
    both_ways(scale, compiled(scale), [](auto&& f, int64_t n) {
      Tensor base = ones({n}), w = full({n - 1}, 3.0f).set_requires_grad();
      Tensor view = base.slice(0, 1, n), result;
      {
        autograd::NoGrad off;
        result = f(view, w);
      }
      EXPECT_TRUE(result.requires_grad() && base.requires_grad());
      (result.sum() + base.sum()).backward();
      return std::vector{result.detach(), base.detach(), w.grad()};
    });
  });
}

struct Doubled : autograd::Function<Doubled> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * 2; }
  static std::vector<Tensor> backward(autograd::AutogradContext*, std::vector<Tensor> gradients) {
    return {gradients[0] * 2};
  }
};

// Two arguments are views of one tensor outside: what is written to one gives the other a history (fuzz 37132).
TEST(WrittenViews, other_views_come_to_require_grad) {
  std::vector<std::function<Tensor(Tensor)>> uses = {[](Tensor a) { return a * 2; },
                                                     [](Tensor a) { return Doubled::apply(a); },
                                                     [](Tensor a) { return a.requires_grad() ? a * 3 : a * 5; },
                                                     [](Tensor a) {
                                                       graph_break();
                                                       return Doubled::apply(a);
                                                     }};
  on_all_backends([&](auto&& compiled) {
    for (size_t use = 0; use < uses.size(); ++use)
      for (bool overlap : {true, false})
        for (bool inside : {true, false}) {
          SCOPED_TRACE(fmt::format("use {}, overlap {}, leaf made inside {}", use, overlap, inside));
          auto function = [&uses, use, inside](Tensor a, Tensor b, Tensor given) {
            Tensor leaf = inside ? ones_like(b).set_requires_grad() : given;
            b.mul_(leaf);
            return std::pair(uses[use](a), leaf);
          };
          auto f = compiled(function);
          auto run = [&](auto&& of, int64_t rows) {
            Tensor base = arange(rows * 2).view({rows, 2}).to(kFloat32);
            Tensor a = base.slice(0, overlap ? 1 : 3), b = base.slice(0, 0, 3);
            auto [result, leaf] = of(a, b, ones_like(b).set_requires_grad());
            EXPECT_TRUE(result.requires_grad() && a.requires_grad() && base.requires_grad());
            result.sum().backward();
            return std::pair(result.detach(), leaf.grad());
          };
          for (int64_t rows : {6, 6, 5}) {
            auto [expected, expected_gradient] = run(function, rows);
            auto [got, gradient] = run(f, rows);
            EXPECT_TRUE(same_bits(got, expected));
            EXPECT_TRUE(same_bits(gradient, expected_gradient));
          }
        }
  });
}

}  // namespace
}  // namespace tenon
