// Somebody looks at the gradient of a value from which the function has computed others already: the graph ends behind
// that value, as if a break had been asked for there.
#include "testing.h"

#include <tenon/autograd/meta.h>

#include <algorithm>

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

class EarlyBreaks : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const { return {.backend = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, EarlyBreaks, ::testing::Values("inductor", "aot_eager", "eager"));

TEST_P(EarlyBreaks, a_hook_on_a_value_that_was_used) {
  int calls = 0;
  auto f = [&](Tensor x) {
    Tensor y = x.sin(), z = y * y;
    autograd::register_hook(y, [&](const Tensor& gradient) {
      calls += gradient.is_fake() ? 0 : 1;
      return gradient * 10;
    });
    return z + y;
  };
  auto compiled = compile(f, options());
  for (int call = 1; call <= 3; ++call) {
    Tensor a = arange(4 + call % 2, kFloat32).set_requires_grad(), b = a.detach().clone().set_requires_grad();
    calls = 0;
    f(a).sum().backward();
    compiled(b).sum().backward();
    EXPECT_LT(testing::difference(b.grad(), a.grad()), 1e-6) << "call " << call;
    EXPECT_EQ(calls, 2) << "call " << call;
  }
}

TEST_P(EarlyBreaks, retain_grad_of_a_view_that_was_used) {
  auto f = [](Tensor x) {
    Tensor row = x.select(0, 1), y = row.exp();
    row.retain_grad();
    return std::tuple(row, y);
  };
  auto compiled = compile(f, options());
  for (int call = 0; call < 2; ++call) {
    Tensor a = randn({2, 3}).set_requires_grad(), b = a.detach().clone().set_requires_grad();
    auto [row, y] = f(a);
    auto [compiled_row, compiled_y] = compiled(b);
    y.sum().backward();
    compiled_y.sum().backward();
    ASSERT_TRUE(compiled_row.grad().defined());
    EXPECT_TRUE(same_bits(compiled_row.grad(), row.grad()));
    EXPECT_TRUE(same_bits(b.grad(), a.grad()));
  }
}

TEST_P(EarlyBreaks, the_gradient_of_a_view_of_an_argument) {
  auto f = [](Tensor state) {
    Tensor position = state.select(1, 0), speed = state.select(1, 1);
    Tensor energy = (position.square() * speed).sum();
    return autograd::grad({energy}, {position, speed});
  };
  auto compiled = compile(
      [&](Tensor state) {
        std::vector<Tensor> slopes = f(state);
        return std::tuple(slopes[0], slopes[1]);
      },
      options());
  for (int64_t size : {4, 6, 4}) {
    Tensor state = randn({size, 2}).set_requires_grad();
    std::vector<Tensor> expected = f(state);
    auto [by_position, by_speed] = compiled(state);
    EXPECT_TRUE(same_bits(by_position, expected[0]));
    EXPECT_TRUE(same_bits(by_speed, expected[1]));
  }
}

// A view that others were computed from before a break is the same tensor behind it: gradients lead through it.
TEST_P(EarlyBreaks, the_gradient_of_a_view_from_before_a_break) {
  auto f = [](Tensor x) {
    Tensor row = x.select(0, 0), y = row.exp().sum();
    graph_break();
    return autograd::grad({y}, {row})[0];
  };
  auto compiled = compile(f, options());
  for (int64_t n : {3, 3, 5}) {
    Tensor x = randn({2, n}).set_requires_grad();
    EXPECT_LT(testing::difference(compiled(x), f(x)), 1e-6);
  }
}

TEST_P(EarlyBreaks, gradients_between_results_with_a_break_between_them) {
  auto f = [](Tensor x) {
    Tensor y = x.unsqueeze(0), z = y * y;
    graph_break();
    return std::tuple(z.cos(), y);
  };
  auto run = [](auto&& function, int64_t n) {
    Tensor x = arange(n, kFloat64).set_requires_grad();
    auto [z, y] = function(x);
    std::vector<Tensor> first = autograd::grad({z.sum()}, {y, x}, {}, true, true);
    std::vector<Tensor> second = autograd::grad({first[0].square().sum()}, {y, x});
    return std::vector{first[0], first[1], second[0], second[1]};
  };
  auto compiled = compile(f, options());
  for (int64_t n : {3, 3, 5}) {
    std::vector<Tensor> got = run(compiled, n), expected = run(f, n);
    for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(testing::difference(got[at], expected[at]), 1e-9) << at;
  }
}

// It is behind the break what it was: writing to it shows in what it views, and the other way round.
TEST_P(EarlyBreaks, a_view_that_was_used_before_a_break_is_written_behind_it) {
  auto f = [](Tensor x) {
    Tensor y = x * 2, row = y.select(0, 0), z = row * 5;
    graph_break();
    row.mul_(3);
    y.add_(1);
    return std::tuple(z, y, row * 2);
  };
  auto run = [](auto&& function, int64_t n) {
    Tensor x = arange(2 * n, kFloat64).view({2, n}).clone().set_requires_grad();
    auto [z, y, row] = function(x);
    (z.sum() + y.square().sum() + row.cos().sum()).backward();
    return std::vector{z, y, row, x.grad()};
  };
  auto compiled = compile(f, options());
  for (int64_t n : {3, 3, 5}) {
    std::vector<Tensor> got = run(compiled, n), expected = run(f, n);
    for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(testing::difference(got[at], expected[at]), 1e-9) << at;
  }
}

TEST_P(EarlyBreaks, the_gradient_of_a_closure_tensor_that_nothing_reads) {
  Tensor leaf = ones({3}).set_requires_grad(), inner = leaf * 2;
  auto f = [&](Tensor x) {
    std::vector<Tensor> found = autograd::grad({(x * x).sum()}, {leaf, inner, x}, {}, false, false, true);
    EXPECT_FALSE(found[0].defined() || found[1].defined());
    return found[2];
  };
  auto compiled = compile(f, options());
  for (int64_t n : {3, 3, 5}) {
    Tensor x = randn({n}).set_requires_grad();
    EXPECT_TRUE(same_bits(compiled(x), f(x)));
  }
}

// ---- What lives on behind a break

TEST_P(EarlyBreaks, a_detached_view_that_was_written_keeps_its_history) {
  auto f = [](Tensor x) {
    Tensor y = x.detach();
    y.copy_(x * 3);
    graph_break();
    return y;
  };
  auto compiled = compile(f, options());
  for (int call = 0; call < 2; ++call) {
    Tensor a = ones({4}).set_requires_grad(), b = ones({4}).set_requires_grad();
    Tensor expected = f(a * 2), got = compiled(b * 2);
    ASSERT_EQ(got.requires_grad(), expected.requires_grad());
    expected.sum().backward();
    got.sum().backward();
    EXPECT_TRUE(same_bits(b.grad(), a.grad()));
  }
}

TEST_P(EarlyBreaks, a_view_that_took_its_sizes_from_a_tensor_that_is_gone) {
  auto f = [](Tensor x) {
    Tensor y = x.view_as(zeros({3, 2}));
    graph_break();
    return y + 1;
  };
  auto compiled = compile(f, options());
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(compiled(arange(6)), f(arange(6))));
}

TEST_P(EarlyBreaks, a_view_that_took_its_sizes_from_a_view_of_one_that_is_gone) {
  auto f = [](Tensor x) {
    Tensor y = x.reshape_as(x.logical_and(x).view({3, 2}));
    graph_break();
    return y + 1;
  };
  auto compiled = compile(f, options());
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(compiled(arange(6)), f(arange(6))));
}

TEST_P(EarlyBreaks, a_view_that_was_made_before_its_source_required_grad) {
  auto f = [](Tensor x) {
    Tensor y = x.view({-1}), z = x * 2;
    Tensor part = z.view({-1});
    graph_break();
    x.set_requires_grad();
    z.set_requires_grad();
    return std::tuple(y, part, x, z);
  };
  auto compiled = compile(f, options());
  for (int call = 0; call < 3; ++call) {
    auto [y, part, x, z] = compiled(ones({2, 3}));
    EXPECT_FALSE(y.requires_grad());
    EXPECT_FALSE(part.requires_grad());
    EXPECT_TRUE(x.requires_grad() && z.requires_grad());
  }
}

// Each of several is cut off where it was made, in whatever order they are asked for: a graph may have to end before
// its first operator. (Such a capture once began anew for ever.)
TEST_P(EarlyBreaks, gradients_of_several_views_in_any_order) {
  std::vector<size_t> order{0, 1, 2};
  do {
    auto f = [&order](Tensor x) {
      std::vector<Tensor> views{x.unsqueeze(2), x.reshape({-1}), x.slice(1, 1, 3)};
      Tensor loss = (views[0] * 3).sum() + views[1].square().sum() + views[2].exp().sum();
      std::vector<Tensor> gradients(3);
      for (size_t at : order) gradients[at] = autograd::grad({loss}, {views[at]}, {}, true)[0];
      return std::tuple(gradients[0], gradients[1], gradients[2]);
    };
    auto compiled = compile(f, options());
    for (int64_t rows : {2, 2, 3}) {
      Tensor x = (arange(rows * 4, kFloat32) * 0.25f).reshape({rows, 4}).set_requires_grad();
      auto [a, b, c] = f(x);
      auto [d, e, g] = compiled(x);
      EXPECT_TRUE(same_bits(d, a) && same_bits(e, b)) << order[0] << order[1] << order[2];
      EXPECT_LT(testing::difference(g, c), 1e-6);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// What is only read may be one tensor at one call and two at another, also where a new branch is captured.
TEST_P(EarlyBreaks, a_cell_that_comes_to_hold_the_argument) {
  Cell<Tensor> cell(ones({3}));
  auto f = [&](Tensor x) {
    Tensor y = cell.get() + x;
    return y.sum().item<double>() > 10 ? y * 2 : y * 3;
  };
  auto compiled = compile(f, options());
  Tensor small = ones({3}), large = full({3}, 9.0f);
  EXPECT_TRUE(same_bits(compiled(small), f(small)));
  cell.set(large);
  EXPECT_TRUE(same_bits(compiled(large), f(large)));
  EXPECT_TRUE(same_bits(compiled(small), f(small)));
}

// A view from before a break is an input behind it. What is computed from it after it was written has a history that
// begins with what was written.
TEST_P(EarlyBreaks, the_gradient_of_a_view_that_was_written_behind_a_break) {
  auto f = [](Tensor x) {
    Tensor view = x.squeeze();
    Tensor used = view * 2;
    graph_break();
    view.mul_(view);
    Tensor gradient = grad({(view * 3).sum()}, {view}, {}, true, false)[0];
    view.copy_(gradient);
    return used + view;
  };
  auto compiled = compile(f, options());
  for (int64_t columns : {3, 3, 5}) {
    auto run = [&](const auto& function) {
      Tensor base = full({1, columns}, 0.5f).set_requires_grad() * 1.5f;
      Tensor result = function(base);
      return std::pair(result.detach(), base.detach());
    };
    auto [expected, written] = run(f);
    auto [found, also_written] = run(compiled);
    EXPECT_TRUE(same_bits(found, expected));
    EXPECT_TRUE(same_bits(also_written, written));
    EXPECT_EQ(also_written[0][0].item<double>(), 3);
  }
}

}  // namespace
}  // namespace tenon
