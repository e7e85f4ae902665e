// Loops that go on while data says so: eager is the plain loop; compiled is one operator, with gradients.
#include <tenon/compiled_autograd/enable.h>

#include "unit/control/loops.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;
using namespace loops;

using Pair = std::pair<Tensor, Tensor>;

// x ← tanh(x·W) + b until its norm is small enough, or for so many steps.
struct Settles {
  Tensor weight, bias;
  Pair operator()(const Tensor& x, const Tensor& limit) const {
    auto goes_on = [&](const Pair& now) { return (now.first < limit).logical_and(now.second.square().sum() > 1e-3); };
    auto step = [&](const Pair& now) { return Pair(now.first + 1, tanh(now.second.matmul(weight)) + bias * 0.5); };
    return while_loop(goes_on, step, Pair(zeros({}, kInt64), x));
  }
};

TEST(WhileLoop, IsTheLoopThatOneWouldWrite) {
  Settles settles{leaf({3, 3}, 1), leaf({3}, 2)};
  Tensor x = leaf({2, 3}, 3), now = x;
  for (int64_t at = 0; at < 5; ++at) now = tanh(now.matmul(settles.weight)) + settles.bias * 0.5;
  auto [steps, last] = settles(x, tensor(5));
  EXPECT_TRUE(same_bits(last, now));
  EXPECT_EQ(steps.item<int64_t>(), 5);
}

TEST(WhileLoop, CompiledIsEagerForAnyNumberOfSteps) {
  for (const char* backend : kBackends) {
    Settles settles{leaf({3, 3}, 1), leaf({3}, 2)};
    auto run = [&](const Tensor& x, const Tensor& limit) {
      auto [steps, last] = settles(x, limit);
      return std::vector<Tensor>{steps, last * 2};
    };
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t limit : {4, 0, 1, 9, 30, 2}) {
      Tensor x = leaf({2, 3}, 3);
      const Tensor leaves[] = {x, settles.weight, settles.bias};
      Made eager, made;
      if (limit > 0) {
        eager = with_gradients([&] { return run(x, tensor(limit)); }, leaves);
        made = with_gradients([&] { return compiled(x, tensor(limit)); }, leaves);
      } else {  // eager has no gradients then, compiled zeros
        eager = {run(x, tensor(limit)),
                 {ones({2, 3}, kFloat64) * 8 * x, zeros({3, 3}, kFloat64), zeros({3}, kFloat64)}};
        made = with_gradients([&] { return compiled(x, tensor(limit)); }, leaves);
      }
      for (size_t at = 0; at < 2; ++at)
        EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend << ' ' << limit;
      ASSERT_EQ(made.gradients.size(), 3u);
      for (size_t at = 0; at < 3; ++at)
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-12) << backend << ' ' << limit << ' ' << at;
    }
    EXPECT_EQ(compiled.compile_count(), 1) << backend;
    std::string graph = compiled.explain().entries.back().captured;
    EXPECT_NE(graph.find("tenon::while_loop"), std::string::npos) << graph;
    EXPECT_EQ(graph.find("matmul"), std::string::npos) << graph;
  }
}

TEST(WhileLoop, OtherSizes) {
  for (const char* backend : kBackends) {
    Settles settles{leaf({3, 3}, 1), leaf({3}, 2)};
    auto run = [&](const Tensor& x) { return settles(x, tensor(6)).second; };
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t rows : {4, 2, 9, 3}) {
      Tensor x = leaf({rows, 3}, 3);
      const Tensor leaves[] = {x, settles.weight};
      Made eager = with_gradients([&] { return std::vector<Tensor>{run(x)}; }, leaves);
      Made made = with_gradients([&] { return std::vector<Tensor>{compiled(x)}; }, leaves);
      EXPECT_TRUE(same_bits(made.results[0], eager.results[0])) << backend;
      for (size_t at = 0; at < 2; ++at)
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-12) << backend << ' ' << rows << ' ' << at;
    }
    EXPECT_LE(compiled.compile_count(), 2) << backend;
  }
}

TEST(WhileLoop, CanBeDifferentiatedAgain) {
  for (const char* backend : kBackends) {
    Settles settles{leaf({3, 3}, 1), leaf({3}, 2)};
    auto run = [&](const Tensor& x) { return settles(x, tensor(4)).second.pow(3).sum(); };
    auto orders = [&](const auto& function) {
      Tensor x = leaf({2, 3}, 3);
      std::vector<Tensor> wanted{x, settles.weight, settles.bias}, all;
      Tensor root = function(x);
      for (int order = 0; order < 3; ++order) {
        std::vector<Tensor> roots{root}, gradients = autograd::grad(roots, wanted, {}, true, true);
        root = zeros({}, kFloat64);
        for (const Tensor& gradient : gradients) {
          all.push_back(gradient.detach());
          root = root + gradient.square().sum();
        }
      }
      return all;
    };
    std::vector<Tensor> eager = orders(run), made = orders(compile(run, {.fullgraph = true, .backend = backend}));
    for (size_t at = 0; at < eager.size(); ++at)
      EXPECT_LT(difference(made[at], eager[at]), 1e-11) << backend << ' ' << at;
  }
}

// Newton's method: the steps that it takes depend on where it begins.
TEST(WhileLoop, GradientsOfARoot) {
  auto root = [](const Tensor& a) {
    return while_loop([&](const Tensor& x) { return (x * x - a).abs().max() > 1e-12; },
                      [&](const Tensor& x) { return (x + a / x) * 0.5; }, a);
  };
  auto compiled = compile(root, {.fullgraph = true});
  for (double value : {2., 3., 1e6, 0.25}) {
    Tensor a = full({2}, value, kFloat64).set_requires_grad();
    Tensor made = compiled(a);
    EXPECT_TRUE(same_bits(made, root(a)));
    std::vector<Tensor> roots{made.sum()}, wanted{a};
    EXPECT_LT(difference(autograd::grad(roots, wanted)[0], 0.5 / a.sqrt()), 1e-6) << value;
  }
  EXPECT_EQ(compiled.compile_count(), 1);
}

TEST(WhileLoop, WhatIsCarriedKeepsItsOrder) {
  auto run = [](const Tensor& x, const Tensor& limit) {
    auto [count, last] = while_loop([&](const Pair& now) { return now.first < limit; },
                                    [](const Pair& now) { return Pair(now.first + 1, (now.second * 2).contiguous()); },
                                    Pair(zeros({}, kInt64), x));
    return std::vector<Tensor>{count, last};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t limit : {3, 0}) {
      Tensor x = leaf({3, 2}, 1).detach().t();
      std::vector<Tensor> eager = run(x, tensor(limit)), made = compiled(x, tensor(limit));
      EXPECT_TRUE(same_bits(made[1], eager[1])) << backend;
      EXPECT_EQ(made[1].strides(), eager[1].strides()) << backend;
      EXPECT_EQ(eager[1].strides(), x.strides());
      EXPECT_FALSE(made[1].is_same_storage(x));
      EXPECT_FALSE(eager[1].is_same_storage(x));
    }
  }
}

// What is left alone is carried as it was given; two that are one tensor end as two.
TEST(WhileLoop, CarriesOfEveryKind) {
  using Carry = std::tuple<Tensor, std::vector<Tensor>, Tensor>;
  Tensor weight = leaf({3}, 1);
  auto run = [&](const Tensor& x, const Tensor& limit) {
    auto [count, list, flag] =
        while_loop([&](const Carry& now) { return std::get<0>(now) < limit; },
                   [&](const Carry& now) {
                     auto [at, three, even] = now;
                     return Carry{at + 1, {three[1], three[0] * weight, three[2]}, even.logical_not()};
                   },
                   Carry{zeros({}, kInt64), {x, x, x}, zeros({2}, kBool)});
    return std::vector<Tensor>{count, list[0], list[1], list[2], flag};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t limit : {3, 1, 4}) {
      Tensor x = leaf({3}, 2);
      const Tensor leaves[] = {x, weight};
      Made eager = with_gradients([&] { return run(x, tensor(limit)); }, leaves);
      Made made = with_gradients([&] { return compiled(x, tensor(limit)); }, leaves);
      for (size_t at = 0; at < eager.results.size(); ++at)
        EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend << ' ' << at;
      for (size_t at = 0; at < 2; ++at)
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-13) << backend << ' ' << at;
      for (size_t at = 2; at < 4; ++at) EXPECT_FALSE(made.results[at].is_same_storage(made.results[at - 1])) << backend;
    }
  }
}

TEST(WhileLoop, InLoopsAndBranchesWithoutGradients) {
  auto run = [](const Tensor& xs) {
    auto halve = [](const Tensor& x) {
      return while_loop([](const Tensor& now) { return now.sum() > 1; }, [](const Tensor& now) { return now * 0.5; },
                        x);
    };
    auto step = [&](const Tensor& sum, const Tensor& x) {
      Tensor next = sum + halve(x);
      return std::pair(next, next);
    };
    auto nested = [&](const Tensor& x) {
      return while_loop([](const Tensor& now) { return now.max() > 0.1; },
                        [&](const Tensor& now) { return halve(now + 3) - 0.7; }, x);
    };
    Tensor chosen = cond(xs.sum() > 3, [&] { return halve(xs); }, [&] { return nested(xs); });
    return std::vector<Tensor>{scan(step, zeros({3}), xs).second, chosen};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (double scale : {1., 5., 0.1}) {
      manual_seed(2);
      Tensor xs = rand({4, 3}) * scale;
      std::vector<Tensor> eager = run(xs), made = compiled(xs);
      for (size_t at = 0; at < 2; ++at) EXPECT_TRUE(same_bits(made[at], eager[at])) << backend << ' ' << scale;
    }
    EXPECT_EQ(compiled.compile_count(), 1) << backend;
  }
}

// Each step of the outer loop would keep another number of steps: it is written out, and says so.
TEST(WhileLoop, InLoopsWithGradients) {
  auto run = [](const Tensor& xs) {
    auto step = [](const Tensor& sum, const Tensor& x) {
      Tensor next = sum + while_loop([](const Tensor& now) { return now.sum() > 1; },
                                     [](const Tensor& now) { return now * now * 0.5; }, x);
      return std::pair(next, next);
    };
    return std::vector<Tensor>{scan(step, zeros({3}, kFloat64), xs).second};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.backend = backend});
    for (int64_t steps : {3, 4}) {
      manual_seed(4);
      Tensor xs = (rand({steps, 3}, TensorOptions(kFloat64)) * 1.5).set_requires_grad();
      const Tensor leaves[] = {xs};
      Made eager = with_gradients([&] { return run(xs); }, leaves);
      Made made = with_gradients([&] { return compiled(xs); }, leaves);
      EXPECT_TRUE(same_bits(made.results[0], eager.results[0])) << backend;
      EXPECT_LT(difference(made.gradients[0], eager.gradients[0]), 1e-13) << backend;
    }
  }
}

TEST(WhileLoop, WalksThatAreCaptured) {
  Settles settles{leaf({3, 3}, 1), leaf({3}, 2)};
  auto run = [&](const Tensor& x, const Tensor& limit) { return settles(x, limit).second.square().sum(); };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t limit : {4, 7, 2}) {
      Tensor x = leaf({2, 3}, 3);
      std::vector<Tensor> wanted{x, settles.weight, settles.bias};
      std::vector<Tensor> roots{run(x, tensor(limit))}, eager = autograd::grad(roots, wanted);
      compiled_autograd::Enable on;
      roots = {compiled(x, tensor(limit))};
      std::vector<Tensor> made = autograd::grad(roots, wanted);
      for (size_t at = 0; at < 3; ++at)
        EXPECT_LT(difference(made[at], eager[at]), 1e-13) << backend << ' ' << limit << ' ' << at;
    }
  }
}

TEST(WhileLoop, WhatCannotBeABodyIsRunStepByStep) {
  Tensor log = zeros({3});
  auto drawn = [](const Tensor& x) { return x + rand({3}) * 0.1; };
  auto read = [](const Tensor& x) { return x * (x.max().item<double>() > 0 ? 0.5 : 0.25); };
  auto written = [&](const Tensor& x) {
    log.add_(1);
    return x + 0.5;
  };
  auto check = [&](const auto& step, const std::string& why) {
    auto run = [&](const Tensor& x) {
      return while_loop([](const Tensor& now) { return (now.sum() < 2).logical_and(now.sum() > 0.1); }, step, x) * 2;
    };
    for (const char* backend : kBackends) {
      auto compiled = compile(run, {.backend = backend});
      for (double begin : {0.2, 0.4, 9.}) {
        Tensor x = full({3}, begin);
        log.zero_();
        manual_seed(5);
        Tensor eager = run(x), logged = log.clone();
        log.zero_();
        manual_seed(5);
        EXPECT_TRUE(same_bits(compiled(x), eager)) << backend;
        EXPECT_TRUE(same_bits(log, logged)) << backend;
      }
    }
    EXPECT_EQ(
        error_of([&] { compile(run, {.fullgraph = true})(full({3}, 0.2)); }),
        "[compile] the function cannot be captured as one graph (fullgraph): a while_loop is run step by step: " + why);
  };
  check(drawn, "the body draws random numbers");
  check(read, "item() reads the value of a tensor (float32[]); with capture_scalar_outputs it would be a symbol");
  check(written, "it writes to a tensor from outside, float32[3]");
}

// Compiling the loop inside, for its gradients, makes a symbol: calls that go another way behind it count as the first
// one did.
TEST(WhileLoop, InLoopsWrittenOutThatTakeOtherNumbersOfSteps) {
  auto run = [](const Tensor& x, const Tensor& limit) {
    auto inside = [](const Tensor& from) {
      return while_loop([](const Tensor& now) { return now.sum() < 3; }, [](const Tensor& now) { return now * 2; },
                        from);
    };
    auto step = [&](const Pair& now) { return Pair(now.first + 1, inside(now.second) * 0.4); };
    auto goes_on = [&](const Pair& now) { return now.first < limit; };
    return std::vector<Tensor>{while_loop(goes_on, step, Pair(zeros({}, kInt64), x)).second};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.backend = backend});
    for (int64_t limit : {1, 2, 4, 1, 3}) {
      const Tensor x = leaf({2}, 3), leaves[] = {x};
      Made eager = with_gradients([&] { return run(x, tensor(limit)); }, leaves);
      Made made = with_gradients([&] { return compiled(x, tensor(limit)); }, leaves);
      EXPECT_TRUE(same_bits(made.results[0], eager.results[0])) << backend << ' ' << limit;
      EXPECT_LT(difference(made.gradients[0], eager.gradients[0]), 1e-12) << backend << ' ' << limit;
    }
  }
}

// Compiling the first segment learns something of the size that data tells; who follows it knows that too, and finds
// the same loop behind it (fuzz 948002333).
TEST(WhileLoop, BehindABreakIsTheSameLoopInACallThatGoesAnotherWay) {
  auto run = [](const Tensor& x, const Tensor& from) {
    graph_break();
    const Tensor part = x.slice(0, 0, (x > 0.1).sum().item<SymInt>());
    auto goes_on = [](const Tensor& now) { return now.sum() < 30; };
    auto written_out = [&](const Tensor& now) {
      const Tensor positions = nonzero(part > 0.1).squeeze(1);
      return now + 2 + cat({part.index_select(0, positions), part}).sum() * 0;
    };
    auto step = [&](const Tensor& now) { return now + 2 + part.sum() * 0; };
    const Tensor last = while_loop(goes_on, step, while_loop(goes_on, written_out, from.cos()) - 30);
    graph_break();
    return last.sum().item<double>() > 30 ? last * 2 : last;
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.dynamic = Dynamic::On,
                                  .backend = backend,
                                  .capture_scalar_outputs = true,
                                  .capture_dynamic_output_shape_ops = true});
    const Tensor x = tensor(std::vector<double>{2, 3, 4, 1, 2, -1, -2, 4, -3});
    for (double scale : {1.0, -100.0, 1.0, -3.0}) {
      const Tensor from = full({9}, scale);
      EXPECT_TRUE(same_bits(compiled(x, from), run(x, from))) << backend << ' ' << scale;
    }
  }
}

TEST(WhileLoop, SaysWhatIsWrong) {
  Tensor x = ones({2});
  auto always = [](const Tensor& now) { return now.sum() > -1; };
  auto grows = [](const Tensor& now) { return cat({now, now}); };
  auto same = [](const Tensor& now) { return now * 1; };
  const char* sizes =
      "[while_loop] expected a step to keep the sizes and dtype of its carry: it was float32[2], and became float32[4]";
  EXPECT_EQ(error_of([&] { while_loop(always, grows, x); }), sizes);
  EXPECT_EQ(error_of([&] { compile([&](Tensor a) { return while_loop(always, grows, a); })(x); }), sizes);
  EXPECT_EQ(error_of([&] { while_loop([](const Tensor& now) { return now; }, same, x); }),
            "[while_loop] expected a condition of one bool, got float32[2]");
  auto fewer = [](const std::vector<Tensor>& now) { return std::vector<Tensor>{now[0]}; };
  EXPECT_EQ(error_of([&] {
              while_loop([](const std::vector<Tensor>&) { return ones({}, kBool); }, fewer, std::vector<Tensor>{x, x});
            }),
            "[while_loop] expected a carry of 2 tensors, as it was given, got 1");
}

}  // namespace
}  // namespace tenon
