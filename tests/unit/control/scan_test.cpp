// Loops over steps: eager is the plain loop; compiled is one operator, whatever its number of steps.
#include <tenon/compiled_autograd/enable.h>
#include <tenon/library/custom_op.h>

#include "unit/control/loops.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;

using namespace loops;

// h' = tanh(h·W + x); what is kept is h'·2.
struct Cell2 {
  Tensor weight;
  std::pair<Tensor, Tensor> operator()(const Tensor& h, const Tensor& x) const {
    Tensor next = tanh(h.matmul(weight) + x);
    return {next, next * 2};
  }
};

// The last carry and all that was kept, of a step that lives on.
template <typename Step>
auto looped(const Step& step) {
  return [&step](const Tensor& start, const Tensor& xs) {
    auto [last, all] = scan(step, start, xs);
    return std::vector<Tensor>{last, all};
  };
}

TEST(Scan, IsTheLoopThatOneWouldWrite) {
  Cell2 cell{leaf({3, 3}, 1)};
  Tensor h = leaf({2, 3}, 2), xs = leaf({5, 2, 3}, 3);
  auto [last, all] = scan(cell, h, xs);
  Tensor now = h;
  for (int64_t at = 0; at < 5; ++at) {
    now = tanh(now.matmul(cell.weight) + xs.select(0, at));
    EXPECT_TRUE(same_bits(all.select(0, at), now * 2));
  }
  EXPECT_TRUE(same_bits(last, now));
}

TEST(Scan, GoesFromTheLastToTheFirst) {
  auto add = [](const Tensor& sum, const Tensor& x) { return std::pair(sum + x, sum + x); };
  auto [last, all] = scan(add, zeros({}), arange(4).to(kFloat32), {.reverse = true});
  EXPECT_TRUE(same_bits(all, tensor({6.F, 6.F, 5.F, 3.F})));
  EXPECT_EQ(last.item<float>(), 6);
}

TEST(Scan, CompiledIsEagerForAnyNumberOfSteps) {
  for (const char* backend : kBackends) {
    Cell2 cell{leaf({3, 3}, 1)};
    auto run = [&](const Tensor& h, const Tensor& xs) {
      auto [last, all] = scan(cell, h, xs);
      return std::vector<Tensor>{last, all};
    };
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t steps : {5, 9, 3, 17, 2, 5}) {
      Tensor h = leaf({2, 3}, 2), xs = leaf({steps, 2, 3}, 3);
      const Tensor leaves[] = {h, xs, cell.weight};
      Made eager = with_gradients([&] { return run(h, xs); }, leaves);
      Made made = with_gradients([&] { return compiled(h, xs); }, leaves);
      for (size_t at = 0; at < 2; ++at) {
        EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend << ' ' << steps;
        EXPECT_TRUE(made.results[at].requires_grad());
      }
      for (size_t at = 0; at < 3; ++at)
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-13) << backend << ' ' << steps << ' ' << at;
    }
    EXPECT_EQ(compiled.compile_count(), 2) << backend;
    std::string graph = compiled.explain().entries.back().captured;
    EXPECT_EQ(graph.find("tenon::scan"), graph.rfind("tenon::scan")) << graph;
    EXPECT_NE(graph.find("tenon::scan"), std::string::npos) << graph;
    EXPECT_EQ(graph.find("matmul"), std::string::npos) << graph;
  }
}

// Gradients of gradients, to the third order.
TEST(Scan, CanBeDifferentiatedAgain) {
  for (const char* backend : kBackends) {
    Cell2 cell{leaf({3, 3}, 1)};
    auto run = [&](const Tensor& h, const Tensor& xs) {
      auto [last, all] = scan(cell, h, xs, {.reverse = true});
      return (last * all.sum(0)).sum();
    };
    auto orders = [&](const auto& function) {
      Tensor h = leaf({2, 3}, 2), xs = leaf({4, 2, 3}, 3);
      std::vector<Tensor> wanted{h, xs, cell.weight}, all;
      Tensor root = function(h, xs);
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
    std::vector<Tensor> eager = orders(run), made = orders(compile(run, {.backend = backend}));
    for (size_t at = 0; at < eager.size(); ++at)
      EXPECT_LT(difference(made[at], eager[at]), 1e-11) << backend << ' ' << at;
  }
}

// What a step carries: whole numbers, a value without a gradient, one that comes to have one, one that is left alone.
TEST(Scan, CarriesOfEveryKind) {
  for (const char* backend : kBackends) {
    Tensor weight = leaf({3}, 1);
    using Carry = std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>;
    auto run = [&](const Tensor& start, const Tensor& xs) {
      auto step = [&](const Carry& carry, const Tensor& x) {
        auto [count, plain, sum, others] = carry;
        Tensor next = sum * 0.5 + plain * x;
        std::vector<Tensor> moved{others[1], next * weight, others[2]};
        return std::pair(Carry{count + 1, plain + 1, next, moved}, std::vector<Tensor>{next, plain, count});
      };
      Carry first{
          zeros({}, kInt64), ones({3}, kFloat64), start, {start * 1, zeros({3}, kFloat64), ones({2}, kFloat64)}};
      auto [last, kept] = scan(step, first, xs);
      auto [count, plain, sum, others] = last;
      return std::vector<Tensor>{count, plain, sum, others[0], others[1], others[2], kept[0], kept[1], kept[2]};
    };
    auto compiled = compile(run, {.backend = backend});
    for (int64_t steps : {4, 7}) {
      Tensor start = leaf({3}, 2), xs = leaf({steps, 3}, 3);
      const Tensor leaves[] = {start, xs, weight};
      Made eager = with_gradients([&] { return run(start, xs); }, leaves);
      Made made = with_gradients([&] { return compiled(start, xs); }, leaves);
      for (size_t at = 0; at < eager.results.size(); ++at) {
        EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend << ' ' << at;
        EXPECT_EQ(made.results[at].requires_grad(), eager.results[at].requires_grad()) << backend << ' ' << at;
      }
      for (size_t at = 0; at < 3; ++at) EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-13) << at;
    }
  }
}

TEST(Scan, ABodyMayWriteToWhatItMade) {
  auto run = [](const Tensor& h, const Tensor& xs) {
    auto step = [](const Tensor& before, const Tensor& x) {
      Tensor next = before + x;
      next.select(0, 0).mul_(2);
      return std::pair(next, next.t());
    };
    auto [last, all] = scan(step, h, xs);
    return std::vector<Tensor>{last, all};
  };
  for (const char* backend : kBackends) {
    Tensor h = leaf({2, 3}, 1), xs = leaf({4, 2, 3}, 2);
    const Tensor leaves[] = {h, xs};
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    Made eager = with_gradients([&] { return run(h, xs); }, leaves);
    Made made = with_gradients([&] { return compiled(h, xs); }, leaves);
    for (size_t at = 0; at < 2; ++at) {
      EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend;
      EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-14) << backend;
    }
  }
}

TEST(Scan, LoopsInLoops) {
  Tensor weight = leaf({3}, 1);
  auto run = [&](const Tensor& start, const Tensor& rows) {
    auto row = [&](const Tensor& sum, const Tensor& x) {
      auto inner = [&](const Tensor& product, const Tensor& y) {
        Tensor next = product * weight + y;
        return std::pair(next, std::tuple<>());
      };
      Tensor next = std::get<0>(scan(inner, sum, x));
      return std::pair(next, next.sin());
    };
    auto [last, all] = scan(row, start, rows);
    return std::vector<Tensor>{last, all};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t steps : {3, 5, 6}) {
      Tensor start = leaf({3}, 2), rows = leaf({steps, steps + 1, 3}, 3);
      const Tensor leaves[] = {start, rows, weight};
      Made eager = with_gradients([&] { return run(start, rows); }, leaves);
      Made made = with_gradients([&] { return compiled(start, rows); }, leaves);
      for (size_t at = 0; at < 2; ++at) EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend;
      for (size_t at = 0; at < 3; ++at)
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-13) << backend;
    }
    EXPECT_EQ(compiled.compile_count(), 2) << backend;
  }
}

TEST(Scan, NoSteps) {
  Cell2 cell{leaf({3, 3}, 1)};
  auto run = [&](const Tensor& h, const Tensor& xs) {
    auto [last, all] = scan(cell, h, xs);
    return std::vector<Tensor>{last, all};
  };
  Tensor h = leaf({2, 3}, 2), none = zeros({0, 2, 3}, kFloat64);
  std::vector<Tensor> eager = run(h, none);
  EXPECT_TRUE(same_bits(eager[0], h));
  EXPECT_EQ(eager[1].description(), "float64[0, 2, 3]");
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.backend = backend});
    (void)compiled(h, ones({4, 2, 3}, kFloat64));
    std::vector<Tensor> made = compiled(h, none);
    for (size_t at = 0; at < 2; ++at) EXPECT_TRUE(same_bits(made[at], eager[at])) << backend;
    EXPECT_EQ(compiled(h, ones({1, 2, 3}, kFloat64))[1].size(0), 1);
  }
}

TEST(Scan, StepsWithoutAnythingToGoOver) {
  auto run = [](const Tensor& x, const SymInt& steps) {
    auto step = [](const Tensor& value, std::tuple<>) { return std::pair(value * 1.5, std::tuple<>()); };
    return std::get<0>(scan(step, x, std::tuple<>(), {.steps = steps}));
  };
  auto compiled = compile(run, {.dynamic = Dynamic::On});
  Tensor x = leaf({3}, 1);
  for (int64_t steps : {3, 8, 2}) EXPECT_TRUE(same_bits(compiled(x, SymInt(steps)), run(x, SymInt(steps))));
  EXPECT_EQ(compiled.compile_count(), 1);
}

// A body that cannot be one operator is written out: the same values, side effects too.
TEST(Scan, WhatCannotBeABodyIsWrittenOut) {
  Tensor log = zeros({3});
  auto dropped = [](const Tensor& sum, const Tensor& x) {
    Tensor next = sum + dropout(x, 0.5, true);
    return std::pair(next, next);
  };
  auto read = [](const Tensor& sum, const Tensor& x) {
    Tensor next = x.sum().item<double>() > 0 ? sum + x : sum - x;
    return std::pair(next, next);
  };
  auto written = [&](const Tensor& sum, const Tensor& x) {
    log.add_(x.detach());
    return std::pair(sum + x, sum * log);
  };
  auto check = [&](const auto& step) {
    auto run = looped(step);
    for (const char* backend : kBackends) {
      auto compiled = compile(run, {.backend = backend});
      for (int64_t steps : {3, 4, 4}) {
        Tensor start = leaf({3}, 1, kFloat32).detach(), xs = leaf({steps, 3}, 2, kFloat32).detach();
        log.zero_();
        manual_seed(5);
        std::vector<Tensor> eager = run(start, xs);
        Tensor logged = log.clone();
        log.zero_();
        manual_seed(5);
        std::vector<Tensor> made = compiled(start, xs);
        for (size_t at = 0; at < 2; ++at) EXPECT_TRUE(same_bits(made[at], eager[at])) << backend;
        EXPECT_TRUE(same_bits(log, logged)) << backend;
      }
    }
  };
  check(dropped);
  check(read);
  check(written);
}

// Grad mode that a step leaves behind holds for the next ones; hooks of a step are called at every step.
TEST(Scan, StepsThatChangeWhatIsAroundThem) {
  Tensor weight = leaf({3}, 1);
  int64_t calls = 0;
  auto turns_off = [&](const Tensor& sum, const Tensor& x) {
    Tensor next = sum + x * weight;
    autograd::set_grad_enabled(false);
    return std::pair(next, next * 2);
  };
  auto hooked = [&](const Tensor& sum, const Tensor& x) {
    Tensor next = sum + x * weight;
    next.register_hook([&calls](const Tensor& gradient) {
      if (!gradient.is_fake()) ++calls;
      return gradient * 2;
    });
    return std::pair(next, next);
  };
  auto check = [&](const auto& step) {
    auto run = looped(step);
    for (const char* backend : kBackends) {
      auto compiled = compile(run, {.backend = backend});
      for (int64_t steps : {3, 4, 4}) {
        Tensor start = leaf({3}, 1), xs = leaf({steps, 3}, 2);
        const Tensor leaves[] = {weight};
        calls = 0;
        Made eager = with_gradients([&] { return run(start, xs); }, leaves);
        const int64_t expected = std::exchange(calls, 0);
        Made made = with_gradients([&] { return compiled(start, xs); }, leaves);
        EXPECT_EQ(made.grad_mode, eager.grad_mode) << backend;
        EXPECT_EQ(calls, expected) << backend;
        for (size_t at = 0; at < 2; ++at) {
          EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend;
          EXPECT_EQ(made.results[at].requires_grad(), eager.results[at].requires_grad()) << backend;
        }
        ASSERT_EQ(made.gradients.size(), eager.gradients.size()) << backend;
        for (size_t at = 0; at < eager.gradients.size(); ++at)
          EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-13) << backend;
      }
    }
  };
  check(hooked);
  check(turns_off);
}

// What no gradient comes to has none, rather than zeros: a result that is not used, an input that it alone came from.
TEST(Scan, WhatIsNotReachedHasNoGradient) {
  for (const char* backend : kBackends) {
    Tensor weight = leaf({3}, 1), other = leaf({3}, 2);
    using Carry = std::pair<Tensor, Tensor>;
    auto run = [&](const Tensor& a, const Tensor& b, const Tensor& xs) {
      auto step = [&](const Carry& carry, const Tensor& x) {
        Tensor first = carry.first * weight, second = carry.second + x * other;
        return std::pair(Carry{first, second}, std::vector<Tensor>{first.sin(), second.sin(), x * 2});
      };
      auto [last, kept] = scan(step, Carry{a, b}, xs);
      return std::vector<Tensor>{last.first, last.second, kept[0], kept[1], kept[2]};
    };
    auto compiled = compile(run, {.backend = backend});
    for (size_t result = 0; result < 5; ++result) {
      Tensor a = leaf({3}, 3), b = leaf({3}, 4), xs = leaf({4, 3}, 5);
      std::vector<Tensor> wanted{a, b, xs, weight, other};
      auto gradients = [&](const auto& function) {
        std::vector<Tensor> roots{function(a, b, xs)[result].sum()};
        return autograd::grad(roots, wanted, {}, false, false, true);
      };
      std::vector<Tensor> eager = gradients(run), made = gradients(compiled);
      for (size_t at = 0; at < wanted.size(); ++at) {
        ASSERT_EQ(made[at].defined(), eager[at].defined()) << backend << ' ' << result << ' ' << at;
        if (made[at].defined()) {
          EXPECT_LT(difference(made[at], eager[at]), 1e-13) << backend;
        }
      }
    }
  }
}

// Where data say how many steps there are, there may be none.
TEST(Scan, StepsThatDataTell) {
  auto run = [](const Tensor& x, const Tensor& start) {
    auto add = [](const Tensor& sum, const Tensor& each) { return std::pair(sum + each * 2, sum * each); };
    auto [last, all] = scan(add, start, x.masked_select(x > 0));
    return std::vector<Tensor>{last, all};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.dynamic = Dynamic::On,
                                  .backend = backend,
                                  .capture_scalar_outputs = true,
                                  .capture_dynamic_output_shape_ops = true});
    for (bool requires_grad : {false, true})
      for (double shift : {0.0, 9.0, -9.0, 0.5}) {
        Tensor x = (leaf({6}, 1).detach() + shift).set_requires_grad(requires_grad), start = ones({}, kFloat64);
        std::vector<Tensor> eager = run(x, start), made = compiled(x, start);
        for (size_t at = 0; at < 2; ++at) {
          EXPECT_TRUE(same_bits(made[at], eager[at])) << backend << ' ' << shift;
          EXPECT_EQ(made[at].requires_grad(), eager[at].requires_grad()) << backend << ' ' << shift;
        }
      }
  }
}

// What is made for two bodies that differ in a constant alone is not the same.
TEST(Scan, BodiesAreToldApart) {
  auto run = [](double factor, const Tensor& xs) {
    auto step = [factor](const Tensor& sum, const Tensor& x) { return std::pair(sum * factor + x, sum); };
    return scan(step, zeros({}, kFloat64), xs).first;
  };
  Tensor xs = leaf({4}, 1).detach();
  for (double factor : {0.1, 0.1000000000000001, 0.5}) {
    auto compiled = compile([&](const Tensor& x) { return run(factor, x); }, {.fullgraph = true});
    EXPECT_TRUE(same_bits(compiled(xs), run(factor, xs)));
  }
}

TEST(Scan, SaysWhatIsWrong) {
  auto grows = [](const Tensor& carry, const Tensor& x) { return std::pair(cat({carry, x}), x); };
  EXPECT_EQ(
      error_of([&] { (void)scan(grows, zeros({1}), zeros({3, 1})); }),
      "[scan] expected a step to keep the sizes and dtype of its carry: it was float32[1], and became float32[2]");
  EXPECT_EQ(
      error_of([&] { (void)compile([&](Tensor xs) { return scan(grows, zeros({1}), xs).first; })(zeros({3, 1})); }),
      "[scan] expected a step to keep the sizes and dtype of its carry: it was float32[1], and became float32[2]");
  auto same = [](const Tensor& carry, const Tensor& x) { return std::pair(carry, x); };
  EXPECT_EQ(error_of([&] { (void)scan(same, zeros({1}), zeros({})); }),
            "[scan] expected xs with a dimension of steps, got float32[]");
  auto pair = [](const Tensor& carry, const std::vector<Tensor>& x) { return std::pair(carry, x); };
  EXPECT_EQ(error_of([&] { (void)scan(pair, zeros({1}), std::vector<Tensor>{zeros({3}), zeros({4})}); }),
            "[scan] expected xs of 3 steps, got float32[4]");
  auto none = [](const Tensor& carry, std::tuple<>) { return std::pair(carry, std::tuple<>()); };
  EXPECT_EQ(error_of([&] { (void)scan(none, zeros({1}), std::tuple<>()); }),
            "[scan] expected xs to go over, or a number of steps in the options");
  EXPECT_EQ(error_of([&] { (void)scan(none, zeros({1}), std::tuple<>(), {.steps = -1}); }),
            "[scan] expected at least 0 steps, got -1");
}

// Cells that the body reads are read again at every call; batches of another size are no new compile.
TEST(Scan, ReadsItsCellsAtEveryCall) {
  Cell<Tensor> weight(leaf({3, 3}, 1));
  auto run = [&](const Tensor& h, const Tensor& xs) {
    auto step = [&](const Tensor& before, const Tensor& x) {
      Tensor next = tanh(before.matmul(weight.get()) + x);
      return std::pair(next, next);
    };
    auto [last, all] = scan(step, h, xs);
    return std::vector<Tensor>{last, all};
  };
  auto compiled = compile(run, {.fullgraph = true});
  for (int64_t round = 0; round < 6; ++round) {
    weight.set(leaf({3, 3}, 10 + static_cast<uint64_t>(round)));
    Tensor h = leaf({2 + round, 3}, 2), xs = leaf({5 + round, 2 + round, 3}, 3);
    const Tensor leaves[] = {h, xs, weight.get()};
    Made eager = with_gradients([&] { return run(h, xs); }, leaves);
    Made made = with_gradients([&] { return compiled(h, xs); }, leaves);
    for (size_t at = 0; at < 2; ++at) EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << round;
    for (size_t at = 0; at < 3; ++at) EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-13) << round;
  }
  EXPECT_EQ(compiled.compile_count(), 2);
}

TEST(Scan, WalksThatAreCaptured) {
  Cell2 cell{leaf({3, 3}, 1)};
  auto run = [&](const Tensor& h, const Tensor& xs) { return scan(cell, h, xs).second.square().sum(); };
  auto compiled = compile(run);
  for (int64_t steps : {4, 6, 5}) {
    Tensor h = leaf({2, 3}, 2), xs = leaf({steps, 2, 3}, 3);
    std::vector<Tensor> wanted{h, xs, cell.weight};
    std::vector<Tensor> roots{run(h, xs)}, eager = autograd::grad(roots, wanted);
    compiled_autograd::Enable on;
    roots = {compiled(h, xs)};
    std::vector<Tensor> made = autograd::grad(roots, wanted);
    for (size_t at = 0; at < 3; ++at) EXPECT_LT(difference(made[at], eager[at]), 1e-13) << steps;
  }
}

// Without steps a body is asked for sizes alone: what it writes to outside keeps its values, and its version.
TEST(Scan, WithoutStepsNothingOutsideIsWritten) {
  Tensor outside = ones({3});
  auto run = [&](const Tensor& xs) {
    return scan(
               [&](const Tensor& carry, const Tensor& x) {
                 outside.add_(1);
                 return std::pair(carry + x, outside * 2);
               },
               zeros({}), xs)
        .second;
  };
  const uint32_t version = outside.version();
  EXPECT_EQ(run(zeros({0})).sizes()[0], 0);
  EXPECT_EQ(outside.version(), version);
  EXPECT_TRUE(same_bits(outside, ones({3})));
  EXPECT_EQ(run(zeros({2})).sizes()[0], 2);
  EXPECT_TRUE(same_bits(outside, full({3}, 3.0)));
}

// What eager would refuse only if a gradient came there (a value that backward needs was written to, an operator has no
// backward) does not keep a loop from being captured with what stands around it.
TEST(Scan, WhatCannotBeDifferentiatedIsWrittenOut) {
  auto op = custom_op("scan_test::no_formula", [](const Tensor& x) { return x * 2; });
  op.register_fake([](const Tensor& x) { return empty_like(x); });
  auto inner = [&](const Tensor& carry, const Tensor& shared) {
    return scan([&](const Tensor& now, const Tensor&) { return std::pair(now + relu_(shared).sum(), now); }, carry,
                zeros({2}))
        .first;
  };
  auto writes = [&](const Tensor& x) {
    return scan([&](const Tensor& carry,
                    const Tensor& each) { return std::pair(carry + inner(each.sum(), each * carry).sum(), each * 3); },
                x.sum(), x)
        .second;
  };
  auto calls = [&](const Tensor& x) {
    return scan([&](const Tensor& carry, const Tensor& each) { return std::pair(carry + op(each).sum(), each * 3); },
                x.sum(), x)
        .second;
  };
  for (const char* backend : kBackends) {
    auto check = [&](const auto& function) {
      const Tensor x = leaf({3, 2}, 4), leaves[] = {x};
      auto compiled = compile(function, {.backend = backend});
      Made eager = with_gradients([&] { return std::vector<Tensor>{function(x)}; }, leaves);
      for (int call = 0; call < 2; ++call) {
        Made made = with_gradients([&] { return std::vector<Tensor>{compiled(x)}; }, leaves);
        EXPECT_TRUE(same_bits(made.results[0], eager.results[0])) << backend;
        EXPECT_LT(difference(made.gradients[0], eager.gradients[0]), 1e-12) << backend;
      }
    };
    check(writes);
    check(calls);
  }
}

// A result that shows another value of the body, in a loop whose gradients are wanted.
TEST(Scan, ResultsThatAreViewsOfWhatABodyMade) {
  auto run = [](const Tensor& start, const Tensor& xs) {
    auto step = [](const Tensor& carry, const Tensor& x) {
      Tensor next = (carry * x).sin();
      return std::pair(next, next.unsqueeze(0).expand({3, next.size(0)}));
    };
    auto [last, all] = scan(step, start, xs);
    return std::vector<Tensor>{last, all};
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.backend = backend});
    for (int64_t steps : {2, 4, 3}) {
      const Tensor start = leaf({5}, 1), xs = leaf({steps, 5}, 2), leaves[] = {start, xs};
      Made eager = with_gradients([&] { return run(start, xs); }, leaves);
      Made made = with_gradients([&] { return compiled(start, xs); }, leaves);
      for (size_t at = 0; at < 2; ++at) {
        EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend << ' ' << steps;
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), 1e-12) << backend << ' ' << steps;
      }
    }
  }
}

// A carry that the result behind a break does not come from has no gradient, and what it was computed from is not
// multiplied by zero: that would be no number here.
TEST(Scan, GradientsOfOneOfItsResultsLeaveTheOthersAlone) {
  auto run = [](const Tensor& x) {
    auto step = [](const Tensor& carry, const Tensor& each) { return std::pair(carry * 0.5 + each.sum(), each * 3); };
    auto [last, all] = scan(step, x.abs().log(), x);
    graph_break();
    Tensor unused = last * 2;
    return all.sin();
  };
  const Tensor zero = zeros({3, 3}, kFloat64);
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      const Tensor x = zero.clone().set_requires_grad();
      EXPECT_TRUE(same_bits(autograd::grad({compiled(x).sum()}, {x})[0], full({3, 3}, 3.0, kFloat64))) << backend;
    }
  }
}

}  // namespace
}  // namespace tenon
