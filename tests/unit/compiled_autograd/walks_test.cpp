// Captured walks do what the engine does, where it is easy not to.
#include "../capture/testing.h"

#include <tenon/autograd/function.h>
#include <tenon/capture/verify.h>

#include <gmock/gmock.h>

#include <thread>

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;
using Tensors = std::vector<Tensor>;

int64_t captures() { return counter("compiled_autograd_captures").value(); }

// What `run` gives node by node and, from the same seed, with captured walks: three times.
void expect_as_eager(const std::function<Tensors()>& run, double tolerance = 1e-6) {
  manual_seed(1);
  Tensors expected = run();
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  for (int round = 0; round < 3; ++round) {
    manual_seed(1);
    Tensors found = run();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t at = 0; at < found.size(); ++at) {
      ASSERT_EQ(found[at].defined(), expected[at].defined()) << at;
      if (!found[at].defined()) continue;
      EXPECT_LE(difference(found[at], expected[at]), tolerance) << at;
    }
  }
}

Tensor leaf(const SymInts& sizes) { return randn(sizes, kFloat64).set_requires_grad(); }

TEST(CapturedWalks, to_the_third_order) {
  expect_as_eager([] {
    Tensor x = leaf({4}), y = leaf({4});
    Tensor z = (x.sin() * y.exp() + x.pow(3)).sum();
    Tensor first = autograd::grad({z}, {x}, {}, false, true)[0];
    Tensor second = autograd::grad({(first * y).sum()}, {x}, {}, false, true)[0];
    Tensors third = autograd::grad({(second * second).sum()}, {x, y});
    return Tensors{first.detach(), second.detach(), third[0], third[1]};
  });
}

TEST(CapturedWalks, gradients_of_leaves_with_a_graph) {
  expect_as_eager([] {
    Tensor x = leaf({3}), y = x * x;
    y.sum().backward(std::nullopt, false, true);
    Tensor held = x.grad();
    (held * x).sum().backward();
    Tensors found = {held.detach(), x.grad().detach()};
    x.set_grad(Tensor());  // whose history leads to x: a ring
    return found;
  });
}

TEST(CapturedWalks, writes_through_views) {
  expect_as_eager([] {
    Tensor x = leaf({4, 4}), base = x * 2;
    base.select(0, 1).mul_(3);
    base.view({16}).narrow(0, 2, 5).sin_();
    Tensor other = leaf({4});
    base.select(1, 2).copy_(other);
    (base * base).sum().backward();
    return Tensors{x.grad(), other.grad()};
  });
}

TEST(CapturedWalks, a_number_that_changes_is_a_symbol) {
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  Tensor x = leaf({4});
  int64_t before = captures();
  for (double factor : {0.5, 0.25, 3.0, 7.0}) {
    x.set_grad(Tensor());
    (x * factor).sum().backward();
    EXPECT_TRUE(same_bits(x.grad(), full({4}, factor, kFloat64))) << factor;
  }
  EXPECT_EQ(captures() - before, 2);
}

// Numbers that happen to be equal at one capture and not at another, or the other way round (83003685 of the fuzzer).
TEST(CapturedWalks, a_walk_that_is_traced_again_chooses_as_before) {
  for (bool hooked : {false, true}) {
    compiled_autograd::reset();
    compiled_autograd::Enable on;
    struct Verifying {
      bool before = capture::set_verify_captures(true);
      ~Verifying() { capture::set_verify_captures(before); }
    } verifying;
    for (auto [rows, from] :
         {std::pair(5, 2), {7, 3}, {6, 3}, {9, 4}, {6, 4}, {8, 4}, {3, 2}, {4, 2}, {5, 1}, {4, 4}}) {
      Tensor x = leaf({rows, 3}), part = x.slice(0, from);
      if (hooked) part.register_hook([](const Tensor& gradient) { return gradient * 2; });
      (part * part).sum().backward();
      Tensor expected = zeros({rows, 3}, kFloat64);
      expected.slice(0, from).copy_(part.detach() * (hooked ? 4 : 2));
      EXPECT_TRUE(same_bits(x.grad(), expected)) << rows << " from " << from << (hooked ? ", hooked" : "");
    }
  }
}

TEST(CapturedWalks, hooks_run_in_the_order_of_the_engine) {
  auto run = [](std::vector<std::string>& log) {
    Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
    auto say = [&](const std::string& name) { return [&log, name](const Tensor&) { log.push_back(name); }; };
    autograd::register_hook(a, say("a"));
    autograd::register_hook(b, say("b"));
    Tensor c = a * 2, d = b * 3, e = c * d;
    for (const auto& [tensor, name] : {std::pair(c, "c"), {d, "d"}, {e, "e"}})
      autograd::register_hook(tensor, say(name));
    autograd::register_post_accumulate_grad_hook(
        a, [&log, b](const Tensor&) { log.push_back(b.grad().defined() ? "a after b" : "a"); });
    e.sum().backward();
  };
  std::vector<std::string> expected, found;
  run(expected);
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  for (int round = 0; round < 3; ++round) {
    found.clear();
    run(found);
    EXPECT_EQ(found, expected);
  }
}

TEST(CapturedWalks, a_hook_that_throws_leaves_what_had_run) {
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  for (int round = 0; round < 3; ++round) {
    Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad(), c = a * 2, loss = (c + b).sum();
    autograd::register_hook(c, [](const Tensor&) { throw std::logic_error("stop"); });
    EXPECT_THROW(loss.backward(), std::logic_error);
    EXPECT_FALSE(a.grad().defined());
  }
}

TEST(CapturedWalks, what_a_hook_changes_in_place_is_refused_where_it_is_read) {
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  for (int round = 0; round < 3; ++round) {
    Tensor x = leaf({3}), y = x * 1.0, z = y.sin(), loss = z * 2;
    autograd::register_hook(z, [y](const Tensor&) {
      NoGrad off;
      y.add_(1);
    });
    EXPECT_THAT(error_of([&] { loss.sum().backward(); }),
                HasSubstr("has been modified by an inplace operation: for SinBackward0"));
  }
}

TEST(CapturedWalks, many_calls_that_cannot_be_captured_run_node_by_node) {
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  int64_t before = captures();
  int calls = 0;
  Tensor x = leaf({3}), y = x;
  for (int at = 0; at < 40; ++at) {
    y = y * 1.0;
    autograd::register_hook(y, [&](const Tensor&) { ++calls; });
  }
  y.sum().backward();
  EXPECT_EQ(calls, 40);
  EXPECT_EQ(captures(), before);
}

TEST(CapturedWalks, compiled_functions_between_eager_ones) {
  auto inner = compile([](Tensor a, Tensor b) { return (a.sin() * b).exp(); });
  expect_as_eager([&] {
    Tensor x = leaf({2, 3}), w = leaf({3});
    Tensor y = inner(x * 2, w);
    (y.t() * 3).sum().backward();
    return Tensors{x.grad(), w.grad()};
  });
}

TEST(CapturedWalks, retained_graphs_and_kept_gradients) {
  expect_as_eager([] {
    Tensor x = leaf({3}), y = x * x, z = y.exp();
    y.retain_grad();
    z.sum().backward(std::nullopt, true);
    Tensor once = y.grad().clone();
    z.sum().backward();
    return Tensors{x.grad(), once, y.grad()};
  });
}

TEST(CapturedWalks, a_freed_graph_is_refused) {
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  for (int round = 0; round < 3; ++round) {
    Tensor x = leaf({3}), y = x.sin().sum();
    y.backward();
    EXPECT_THAT(error_of([&] { y.backward(); }), HasSubstr("the graph was freed"));
  }
}

TEST(CapturedWalks, activations_are_freed_while_the_walk_runs) {
  compiled_autograd::reset();
  compiled_autograd::Enable on;
  auto peak = [] {
    Tensor x = ones({256, 1024}).set_requires_grad(), y = x;
    for (int at = 0; at < 8; ++at) y = y.sin();
    Tensor loss = y.sum();
    y = Tensor();
    allocator::reset_peak();
    int64_t before = allocator::bytes_in_use();
    loss.backward();
    return allocator::peak_bytes_in_use() - before;
  };
  peak();
  EXPECT_LE(peak(), 2 * 1024 * 1024 + 4096);  // the gradient and one more; seven activations are given up
}

TEST(CapturedWalks, threads_share_what_was_compiled) {
  compiled_autograd::reset();
  std::atomic<int> right{0};
  std::vector<std::jthread> threads;
  for (int at = 0; at < 8; ++at)
    threads.emplace_back([&right] {
      compiled_autograd::Enable on;
      for (int round = 0; round < 10; ++round) {
        Tensor x = ones({4}).set_requires_grad();
        (x * x * 3).sum().backward();
        right += same_bits(x.grad(), full({4}, 6.0f)) ? 1 : 0;
      }
    });
  for (std::jthread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST(CapturedWalks, disable_and_environment) {
  compiled_autograd::reset();
  int64_t before = captures();
  compiled_autograd::Enable on;
  compiled_autograd::Disable off;
  Tensor x = leaf({3});
  (x * 2).sum().backward();
  EXPECT_EQ(captures(), before);
}

TEST(Engine, a_million_nodes) {
  Tensor x = ones({1}).set_requires_grad();
  {
    Tensor y = x;
    for (int at = 0; at < 1000000; ++at) y = y.view({1});
    y.sum().backward();
  }
  EXPECT_TRUE(same_bits(x.grad(), ones({1})));
}

// Of two results one is positions, which a step of backward keeps: they have no history, though the step has one.
TEST(CapturedWalks, second_derivatives_through_positions) {
  expect_as_eager([] {
    Tensor x = leaf({5});
    Tensor smallest = std::get<0>(min(x, 0));
    const Tensor roots[] = {smallest * smallest}, inputs[] = {x};
    Tensor first = autograd::grad(roots, inputs, {}, true, true)[0];
    (first.square().sum() + smallest).backward();
    return Tensors{x.grad()};
  });
}

}  // namespace
}  // namespace tenon
