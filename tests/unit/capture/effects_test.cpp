// What a function does besides computing happens at every call: modes, seeds, leaves, hooks, gradients.
#include "testing.h"

#include <tenon/autograd/detach.h>
#include <tenon/autograd/meta.h>
#include <tenon/core/random.h>

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

class Effects : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const { return {.backend = GetParam()}; }
  void TearDown() override { autograd::set_grad_enabled(true); }
};

INSTANTIATE_TEST_SUITE_P(Backends, Effects, ::testing::Values("inductor", "aot_eager", "eager"));

TEST_P(Effects, grad_mode_set_inside_stays_after_every_call) {
  auto f = compile(
      [](Tensor x, bool on) {
        Tensor y = x * 2;
        autograd::set_grad_enabled(on);
        return y + x;
      },
      options());
  Tensor x = randn({3}).set_requires_grad();
  for (int call = 0; call < 3; ++call) {
    autograd::set_grad_enabled(true);
    EXPECT_FALSE(f(x, false).requires_grad()) << call;
    EXPECT_FALSE(autograd::grad_enabled()) << call;
    EXPECT_TRUE(f(x, true).requires_grad()) << call;
    EXPECT_TRUE(autograd::grad_enabled()) << call;
  }
}

// Views from before the break that stands between them and the leaf: they are what they were.
TEST_P(Effects, views_from_before_a_break_and_before_their_base_is_a_leaf) {
  std::vector<std::function<Tensor(const Tensor&)>> views = {
      [](const Tensor& x) { return chunk(x, 2, 0)[1]; }, [](const Tensor& x) { return unbind(x)[1]; },
      [](const Tensor& x) { return split(x, 4, 0)[1]; }, [](const Tensor& x) { return x.narrow(0, 1, 3); },
      [](const Tensor& x) { return x.narrow(0, 1, 4).view({2, 2}).t(); }};
  for (size_t at = 0; at < views.size(); ++at) {
    SCOPED_TRACE(at);
    auto function = [view = views[at]](Tensor x) {
      Tensor made = view(x);
      SymFloat sum = x.sum().item<SymFloat>();
      x.set_requires_grad();
      return std::tuple(made, made * 2, x * sum);
    };
    auto compiled = compile(function, options());
    for (int64_t size : {9, 9, 7}) {
      Tensor x = arange(size).to(kFloat32), y = x.clone();
      auto [made, twice, scaled] = function(x);
      auto [compiled_made, compiled_twice, compiled_scaled] = compiled(y);
      EXPECT_EQ(compiled_made.is_leaf(), made.is_leaf());
      EXPECT_EQ(compiled_made.requires_grad(), made.requires_grad());
      EXPECT_EQ(compiled_twice.requires_grad(), twice.requires_grad());
      EXPECT_EQ(autograd::meta_of(compiled_made)->creation, autograd::meta_of(made)->creation);
      EXPECT_TRUE(compiled_made.is_same_storage(y));
      EXPECT_TRUE(same_bits(compiled_twice.detach(), twice.detach()));
      EXPECT_TRUE(same_bits(compiled_scaled.detach(), scaled.detach()));
    }
  }
}

TEST_P(Effects, a_scope_inside_ends_inside) {
  auto f = compile(
      [](Tensor x) {
        NoGrad off;
        return x * x.sum().item<SymFloat>();
      },
      options());
  Tensor x = randn({3}).set_requires_grad();
  for (int call = 0; call < 3; ++call) {
    EXPECT_FALSE(f(x).requires_grad());
    EXPECT_TRUE(autograd::grad_enabled());
  }
}

// What it was given may become a leaf, get a history or lose one, at some calls and at others not; what is computed
// from it afterwards follows.
TEST_P(Effects, a_disabled_function_that_changes_who_requires_grad) {
  enum { Nothing, MakesLeaf, Writes, Detaches };
  auto run = [&](auto wrap, auto wrap_whole) {
    int what = Nothing;
    Tensor weight = full({3}, 2.0).set_requires_grad();
    auto apart = wrap([&](Tensor x) {
      if (what == MakesLeaf) x.set_requires_grad();
      if (what == Writes) x.mul_(weight);
      if (what == Detaches) detach_(x);
    });
    auto f = wrap_whole([&](Tensor x) {
      Tensor before = x + 1;
      apart(x);
      return x * x + before;
    });
    std::string seen;
    for (int now : {Nothing, MakesLeaf, Writes, Nothing, Detaches, MakesLeaf, Writes, Detaches, Nothing}) {
      what = now;
      Tensor x = now == Detaches ? weight * 3 : Tensor(arange(3).to(kFloat32));
      Tensor y = f(x);
      seen += fmt::format("{}: {} {} {}", now, x.requires_grad(), x.is_leaf(), y.requires_grad());
      if (y.requires_grad()) y.sum().backward();
      seen += fmt::format(" {} {}\n", (x.is_leaf() && x.grad().defined() ? x.grad() : zeros({1})).str(),
                          (weight.grad().defined() ? weight.grad() : zeros({1})).str());
    }
    return seen;
  };
  auto as_it_is = [](auto f) { return f; };
  EXPECT_EQ(run([](auto f) { return disable(f); }, [&](auto f) { return compile(f, options()); }),
            run(as_it_is, as_it_is));
}

TEST_P(Effects, a_disabled_function_that_sets_grad_mode) {
  auto apart = disable([](Tensor x) {
    autograd::set_grad_enabled(x.sum().item<double>() > 0);
    return x * 2;
  });
  auto f = compile([&](Tensor x) { return apart(x.detach()) + x; }, options());
  for (double value : {1.0, -1.0, -2.0, 3.0}) {
    autograd::set_grad_enabled(true);
    Tensor x = full({2}, value).set_requires_grad();
    EXPECT_EQ(f(x).requires_grad(), value > 0) << value;
    EXPECT_EQ(autograd::grad_enabled(), value > 0) << value;
  }
}

TEST_P(Effects, a_hook_on_a_view_that_others_look_through) {
  auto f = compile(
      [](Tensor x) {
        Tensor flat = x.flatten(), row = flat.unsqueeze(0);
        autograd::register_hook(flat, [](const Tensor& gradient) { return gradient * 8; });
        return row * 1;
      },
      options());
  for (int call = 0; call < 3; ++call) {
    Tensor x = ones({2, 2}).set_requires_grad();
    f(x).sum().backward();
    EXPECT_TRUE(same_bits(x.grad(), full({2, 2}, 8.0)));
  }
}

TEST_P(Effects, a_view_made_before_its_base_became_a_leaf) {
  auto f = compile(
      [](Tensor x) {
        Tensor row = x.unsqueeze(0);
        x.set_requires_grad();
        return std::tuple(row, x.unsqueeze(0));
      },
      options());
  for (int call = 0; call < 3; ++call) {
    auto [before, after] = f(ones({3}));
    EXPECT_FALSE(before.requires_grad());
    EXPECT_TRUE(after.requires_grad());
  }
}

// Views of a view are views of what it looks into: they may be written, whatever becomes of it.
TEST_P(Effects, a_view_of_an_argument_that_is_a_view_and_becomes_a_leaf) {
  auto f = [](Tensor x) {
    Tensor column = x.select(1, -1);
    x.set_requires_grad();
    return column.sin_();
  };
  auto compiled = compile(f, {.backend = GetParam()});
  for (int call = 0; call < 2; ++call) {
    Tensor a = arange(8, kFloat32).view({4, 2}).clone(), b = a.clone();
    Tensor expected = f(a.slice(0, 0, 4, 2)), got = compiled(b.slice(0, 0, 4, 2));
    EXPECT_LT(testing::difference(got, expected), 1e-6);
    EXPECT_LT(testing::difference(b, a), 1e-6);
    EXPECT_EQ(got.requires_grad(), expected.requires_grad());
  }
}

TEST_P(Effects, grad_of_a_value_of_the_same_graph) {
  auto function = [](Tensor x) {
    Tensor y = x * x;
    Tensor z = (y * y).sum();
    y.sum().backward({}, true);
    return autograd::grad({z}, {y})[0];
  };
  auto f = compile(function, options());
  for (int64_t size : {3, 3, 5}) {
    Tensor x = rand({size}).set_requires_grad(), y = x.detach().clone().set_requires_grad();
    EXPECT_TRUE(same_bits(f(x), function(y)));
    EXPECT_TRUE(same_bits(x.grad(), y.grad()));
  }
}

TEST_P(Effects, a_seed_set_inside_is_set_at_every_call_and_in_its_place) {
  auto function = [](Tensor x) {
    Tensor before = rand_like(x);
    manual_seed(7);
    return std::tuple(before + x, rand_like(x) + x);
  };
  auto f = compile(function, options());
  for (int64_t size : {3, 3, 5, 6}) {
    Tensor x = zeros({size});
    manual_seed(static_cast<uint64_t>(size));
    auto [a, b] = function(x);
    uint64_t offset = default_generator().offset();
    manual_seed(static_cast<uint64_t>(size));
    auto [c, d] = f(x);
    EXPECT_TRUE(same_bits(a, c)) << size;
    EXPECT_TRUE(same_bits(b, d)) << size;
    EXPECT_EQ(default_generator().offset(), offset);
    EXPECT_EQ(default_generator().seed(), 7u);
  }
}

TEST_P(Effects, requires_grad_set_on_an_argument) {
  auto f = compile(
      [](Tensor x) {
        Tensor before = x * 3;
        x.set_requires_grad();
        return std::tuple(before, x * 5);
      },
      options());
  for (int64_t size : {2, 2, 4}) {
    Tensor x = ones({size});
    auto [before, after] = f(x);
    EXPECT_TRUE(x.requires_grad() && x.is_leaf());
    EXPECT_FALSE(before.requires_grad());
    ASSERT_TRUE(after.requires_grad());
    after.sum().backward();
    EXPECT_TRUE(same_bits(x.grad(), full({size}, 5.0)));
  }
}

TEST_P(Effects, a_hook_registered_on_an_argument_or_an_intermediate) {
  int calls = 0;
  auto f = compile(
      [&calls](Tensor x, bool inner) {
        Tensor y = x * 2;
        autograd::register_hook(inner ? y : x, [&calls](const Tensor& gradient) {
          ++calls;
          return gradient * 10;
        });
        return (y * 1).sum();
      },
      options());
  for (bool inner : {true, false, true, false}) {
    Tensor x = ones({3}).set_requires_grad();
    int before = calls;
    f(x, inner).backward();
    EXPECT_TRUE(same_bits(x.grad(), full({3}, 20.0))) << inner;
    EXPECT_EQ(calls, before + 1);
  }
}

TEST_P(Effects, a_hook_on_a_view) {
  auto f = compile(
      [](Tensor x) {
        Tensor half = x.slice(0, 0, 2);
        autograd::register_hook(half, [](const Tensor& gradient) { return gradient * 10; });
        return half.sum() + x.sum();
      },
      options());
  for (int call = 0; call < 3; ++call) {
    Tensor x = ones({3}).set_requires_grad();
    f(x).backward();
    EXPECT_TRUE(same_bits(x.grad(), tensor({11.f, 11.f, 1.f}))) << x.grad().str();
  }
}

TEST_P(Effects, a_hook_cannot_be_removed_inside) {
  auto f = compile(
      [](Tensor x) {
        autograd::register_hook(x, [](const Tensor&) {}).remove();
        return x * 2;
      },
      options());
  EXPECT_EQ(
      error_of([&] { f(ones({2}).set_requires_grad()); }),
      "[remove] a hook that a compiled function registered cannot be removed by it: register and remove it outside");
}

TEST_P(Effects, a_leaf_made_inside_and_differentiated_inside) {
  auto f = compile(
      [](Tensor x) {
        Tensor leaf = ones({2}).set_requires_grad();
        (leaf * leaf * x).sum().backward();
        return leaf.grad() * 2;
      },
      options());
  for (double value : {1.0, 4.0, 7.0}) {
    Tensor x = full({2}, value);
    EXPECT_TRUE(same_bits(f(x), full({2}, 4 * value)));
  }
}

TEST_P(Effects, a_detached_argument_made_a_leaf) {
  auto function = [](Tensor x) {
    Tensor leaf = x.detach().set_requires_grad();
    Tensor y = (leaf * leaf).sum();
    y.backward();
    return std::tuple(leaf.grad(), leaf * 3);
  };
  auto f = compile(function, options());
  for (double value : {1.0, 4.0, 7.0}) {
    Tensor x = full({2}, value);
    auto [gradient, result] = f(x);
    EXPECT_TRUE(same_bits(gradient, full({2}, 2 * value)));
    EXPECT_TRUE(result.requires_grad()) << "it is computed from a leaf";
    EXPECT_FALSE(x.requires_grad());
    result.sum().backward();  // into the leaf, which the history alone still holds
  }
}

TEST_P(Effects, a_result_of_a_leaf_made_inside_requires_grad) {
  auto f = compile([](Tensor x) { return ones({2}).set_requires_grad() * x; }, options());
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(f(ones({2})).requires_grad());
}

TEST_P(Effects, backward_inside_from_a_root_with_a_history_outside) {
  auto f = compile(
      [](Tensor y) {
        Tensor twice = y * 2;
        y.sum().backward();
        return twice;
      },
      options());
  for (int64_t size : {2, 2, 3}) {
    Tensor x = ones({size}).set_requires_grad();
    f(x * 3);
    EXPECT_TRUE(same_bits(x.grad(), full({size}, 3.0)));
  }
}

TEST_P(Effects, grad_inside_with_create_graph) {
  auto function = [](Tensor x) {
    Tensor y = (x * x * x).sum();
    Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
    return (g * g).sum() + y;
  };
  auto f = compile(function, options());
  for (int64_t size : {3, 3, 4}) {
    Tensor x = rand({size}).to(kFloat64), a = x.clone().set_requires_grad(), b = x.clone().set_requires_grad();
    function(a).backward();
    f(b).backward();
    EXPECT_LT(testing::difference(b.grad(), a.grad()), 1e-12);
  }
}

// One call that cannot be captured leaves the thread as it was.
TEST_P(Effects, a_call_that_runs_eagerly_leaves_nothing_behind) {
  auto unable = compile(
      [](Tensor x) -> Tensor {
        Tensor y = x * 2;
        y.backward(ones({2}), true);
        return autograd::grad({y}, {y}, {ones({2})})[0];  // of a value of the same graph
      },
      options());
  Tensor x = ones({2}).set_requires_grad();
  unable(x);
  auto f = compile([](Tensor a) { return a + 1; }, options());
  EXPECT_TRUE(same_bits(f(ones({2})), full({2}, 2.0)));
  EXPECT_EQ(f.compile_count(), 1) << "it was captured";
  graph_break();
  EXPECT_FALSE(capture::is_capturing());
  auto apart = disable([](Tensor a) { return a * 3; });
  EXPECT_TRUE(same_bits(apart(ones({2})), full({2}, 3.0)));
}

TEST_P(Effects, a_function_that_throws_leaves_the_thread_as_it_was) {
  auto f = compile(
      [](Tensor x, bool fails) {
        NoGrad off;
        Tensor y = x * 2;
        if (fails) throw 42;
        return y;
      },
      options());
  for (int call = 0; call < 2; ++call) {
    EXPECT_THROW(f(ones({2}), true), int);
    EXPECT_TRUE(autograd::grad_enabled());
    EXPECT_FALSE(capture::is_capturing());
    EXPECT_TRUE(same_bits(f(ones({2}), false), full({2}, 2.0)));
  }
}

}  // namespace
}  // namespace tenon
