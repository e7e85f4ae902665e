// Results of a compiled function that look into one memory: versions, views and histories are eager's.
#include "both_ways.h"

namespace tenon {
namespace {

using testing::both_ways;
using testing::error_of;
using testing::on_all_backends;
using testing::same_bits;

TEST(SharedResults, a_change_through_one_is_seen_by_the_others) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) {
      Tensor y = x * 3;
      return std::tuple(y.t(), y);
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = ones({n, 3}).set_requires_grad();
      auto [a, c] = f(x);
      EXPECT_TRUE(a.is_same_storage(c));
      c.mul_(2);
      a.sum().backward();
      return std::vector{a.detach(), x.grad()};
    });
  });
}

TEST(SharedResults, a_detached_result_guards_what_backward_needs) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) {
      Tensor y = x.exp();
      return std::tuple(y, y.detach());
    });
    for (int call = 0; call < 3; ++call) {
      Tensor x = ones({3}).set_requires_grad();
      auto [y, cut] = f(x);
      EXPECT_TRUE(y.is_same_storage(cut) && y.requires_grad() && !cut.requires_grad() && cut.is_leaf());
      cut.mul_(2);
      EXPECT_EQ(y.version(), 1);
      std::string error = error_of([&] { y.sum().backward(); });
      EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
    }
  });
}

TEST(SharedResults, one_that_was_written_through_the_other_inside) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor a) {
      Tensor s = a * a, v = s.select(0, 0);
      v.mul_(2);
      return std::tuple(s, v);
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      manual_seed(5);
      Tensor x = randn({n, 2}).set_requires_grad();
      auto [s, v] = f(x);
      EXPECT_TRUE(s.is_same_storage(v));
      v.mul_(5);
      (s * tensor({1.0f, 2.0f})).sum().backward();
      return std::vector{s.detach(), v.detach(), x.grad()};
    });
  });
}

TEST(SharedResults, views_whose_base_is_not_returned) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) {
      Tensor y = x * x;
      return std::tuple(y.slice(0, 0, 2), y.slice(0, 1, 3), y.select(0, 1), x.detach() + 1);
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = full({n, 2}, 3.0f).set_requires_grad();
      auto [a, b, c, d] = f(x);
      EXPECT_FALSE(d.requires_grad());
      c.mul_(x.select(0, 0));
      b.add_(1);
      (a * a).sum().backward();
      return std::vector{a.detach(), b.detach(), c.detach(), x.grad()};
    });
  });
}

TEST(SharedResults, overlapping_views) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) { return (x + 1).unfold(0, 2, 1); });
    for (int call = 0; call < 3; ++call) {
      Tensor x = ones({4}).set_requires_grad();
      Tensor weights = tensor({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}).view({3, 2});
      (f(x) * weights).sum().backward();
      EXPECT_TRUE(same_bits(x.grad(), tensor({1.0f, 5.0f, 9.0f, 6.0f}))) << x.grad().str();
    }
    auto spread = [](Tensor x) {
      return std::tuple((x * 2).unfold(0, 3, 2), x.sum().expand({3}), x.exp().expand({2, -1}));
    };
    both_ways(spread, compiled(spread), [](auto&& g, int64_t n) {
      Tensor x = ones({n}).set_requires_grad();
      auto [a, b, c] = g(x);
      EXPECT_EQ(b.strides()[0], 0);
      ((a * a).sum() + b.sum() * 3 + (c * c).sum()).backward();
      return std::vector{a.detach(), b.detach(), c.detach(), x.grad()};
    });
  });
}

TEST(SharedResults, what_was_computed_before_a_write_requires_grad_no_more_than_in_eager) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor p, Tensor w) {
      Tensor q = p * 2;
      p.mul_(w);
      return std::tuple(q, p * 1);
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor p = ones({n}), w = full({n}, 3.0f).set_requires_grad();
      auto [q, r] = f(p, w);
      EXPECT_FALSE(q.requires_grad());
      EXPECT_TRUE(q.is_leaf() && r.requires_grad() && p.requires_grad() && !p.is_leaf());
      (r + p).sum().backward();
      return std::vector{q, r.detach(), w.grad()};
    });
  });
}

TEST(SharedResults, one_tensor_returned_twice_is_one_tensor) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) {
      Tensor y = x + 1, v = x.t(), d = y.detach();
      return std::tuple(y, y, v, v, d, d, x, x);
    });
    for (int64_t n : {3, 3, 5, 4}) {
      Tensor x = ones({n, 2}).set_requires_grad();
      auto [y1, y2, v1, v2, d1, d2, x1, x2] = f(x);
      EXPECT_TRUE(y1.is(y2) && v1.is(v2) && d1.is(d2) && x1.is(x) && x2.is(x));
      EXPECT_TRUE(y1.is_same_storage(d1) && v1.is_same_storage(x));
    }
  });
}

TEST(SharedResults, copies_stay_apart) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) {
      Tensor y = x + 1;
      return std::tuple(y, y.clone(), x.clone(), x * 1, y.to(kFloat32, false, true));
    });
    for (int64_t n : {3, 3, 5}) {
      Tensor x = ones({n});
      auto [a, b, c, d, e] = f(x);
      std::vector<Tensor> all = {x, a, b, c, d, e};
      for (size_t i = 0; i < all.size(); ++i)
        for (size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i].is_same_storage(all[j])) << i << " " << j;
    }
  });
}

TEST(SharedResults, views_made_without_grad) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) {
      Tensor y = x * 2, v;
      {
        autograd::NoGrad off;
        v = y.slice(0, 0, 2);
      }
      return std::tuple(y, v);
    });
    for (int call = 0; call < 3; ++call) {
      Tensor x = ones({4}).set_requires_grad();
      auto [y, v] = f(x);
      EXPECT_TRUE(y.requires_grad() && !v.requires_grad() && v.is_same_storage(y));
      std::string error = error_of([&, &v = v] { v.mul_(2); });
      EXPECT_NE(error.find("created in no_grad mode"), std::string::npos) << error;
      auto [base, view] = f(ones({4}));
      Tensor w = full({2}, 3.0f).set_requires_grad();
      EXPECT_THAT(error_of([&, &v = view] { v.mul_(w); }), ::testing::HasSubstr("created in no_grad mode"));
      view.mul_(2);
      EXPECT_TRUE(base.is_same_storage(view));
    }
  });
}

TEST(SharedResults, detached_families_have_histories_of_their_own) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x, Tensor w) {
      Tensor y = x * 2, cut = y.detach(), part = cut.slice(0, 0, 2);
      cut.mul_(w);
      return std::tuple(y, cut, part);
    };
    both_ways(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = ones({n}).set_requires_grad(), w = full({n}, 3.0f).set_requires_grad();
      auto [y, cut, part] = f(x, w);
      EXPECT_TRUE(y.is_same_storage(cut) && part.is_same_storage(cut));
      EXPECT_TRUE(cut.requires_grad() && part.requires_grad());
      part.sum().backward({}, /*retain_graph=*/true);
      EXPECT_FALSE(x.grad().defined());
      y.sum().backward();
      return std::vector{y.detach(), cut.detach(), x.grad(), w.grad()};
    });
  });
}

TEST(SharedResults, a_result_that_eager_does_not_keep_may_be_changed_before_backward) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) {
      Tensor y = mm(x, x);
      return std::tuple(y, (y + 1).sin());
    };
    both_ways(
        function, compiled(function),
        [](auto&& f, int64_t n) {
          manual_seed(3);
          Tensor x = randn({n, n}).set_requires_grad();
          auto [y, z] = f(x);
          y.detach().mul_(2);
          z.sum().backward();
          return std::vector{z.detach(), x.grad()};
        },
        1e-5);
  });
}

TEST(SharedResults, sizes_that_change_the_overlap) {
  auto function = [](Tensor x, int64_t size, int64_t step) { return (x * 1).unfold(0, size, step); };
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto f = compile(function, {.dynamic = Dynamic::On, .backend = backend});
    for (auto [size, step] : {std::pair<int64_t, int64_t>{2, 2}, {3, 2}, {2, 3}, {4, 1}}) {
      Tensor x = ones({9}).set_requires_grad(), y = ones({9}).set_requires_grad();
      Tensor a = f(x, size, step), b = function(y, size, step);
      Tensor weights = arange(a.numel()).to(kFloat32).view(a.sym_sizes());
      (a * weights).sum().backward();
      (b * weights).sum().backward();
      EXPECT_TRUE(same_bits(x.grad(), y.grad()));
    }
  }
}

}  // namespace
}  // namespace tenon
