// Branches on the value of a tensor: eager is an `if`; compiled is one operator, of which a run takes one way.
#include <tenon/compiled_autograd/enable.h>

#include "unit/control/loops.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;
using namespace loops;

using Function = std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>;

// Compiled is eager, by either way: results, and gradients of what both were computed from.
void expect_like_eager(const Function& run, const std::function<Tensor(bool)>& first, const Tensor& second,
                       double tolerance = 1e-13) {
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (bool way : {true, false, true}) {
      Tensor x = first(way);
      const Tensor leaves[] = {x, second};
      Made eager = with_gradients([&] { return run(x, second); }, leaves);
      Made made = with_gradients([&] { return compiled(x, second); }, leaves);
      ASSERT_EQ(made.results.size(), eager.results.size());
      for (size_t at = 0; at < made.results.size(); ++at) {
        EXPECT_TRUE(same_bits(made.results[at], eager.results[at])) << backend << ' ' << way << ' ' << at;
        EXPECT_EQ(made.results[at].strides(), eager.results[at].strides()) << backend << ' ' << way << ' ' << at;
      }
      for (size_t at = 0; at < made.gradients.size(); ++at)
        EXPECT_LT(difference(made.gradients[at], eager.gradients[at]), tolerance) << backend << ' ' << way << ' ' << at;
    }
    EXPECT_EQ(compiled.compile_count(), 1) << backend;
  }
}

Tensor positive(bool way) {
  manual_seed(3);
  return ((rand({4, 3}, TensorOptions(kFloat64)) + 0.1) * (way ? 1 : -1)).set_requires_grad();
}

TEST(Cond, IsTheBranchThatOneWouldWrite) {
  int taken = 0;
  auto run = [&](const Tensor& x) {
    return cond(x.sum() > 0, [&](const Tensor& a) { return ++taken, a * 2; }, [](const Tensor& a) { return a - 1; }, x);
  };
  EXPECT_TRUE(same_bits(run(ones({3})), full({3}, 2.F)));
  EXPECT_TRUE(same_bits(run(-ones({3})), full({3}, -2.F)));
  EXPECT_EQ(taken, 1);
}

TEST(Cond, CompiledTakesOneWay) {
  expect_like_eager(
      [](const Tensor& x, const Tensor& w) {
        Tensor y = cond(
            x.sum() > 0, [&](const Tensor& a) { return tanh(a.matmul(w)) * a.sum(); },
            [&](const Tensor& a) { return (a * a).matmul(w).exp(); }, x);
        return std::vector<Tensor>{y * 2};
      },
      positive, leaf({3, 3}, 1));
}

TEST(Cond, StructuresAndClosures) {
  expect_like_eager(
      [](const Tensor& x, const Tensor& w) {
        using Result = std::tuple<Tensor, std::vector<Tensor>, std::pair<Tensor, Tensor>>;
        auto [a, list, both] =
            cond((x > 0).all(), [&] { return Result{x + w, {x * w, w.sum()}, {x.sin(), x.t() * 1}}; },
                 [&] { return Result{x - w, {w * 3 + x * 0, x.sum() + w.sum()}, {x * 0.5, x.t() * 2}}; });
        return std::vector<Tensor>{a, list[0], list[1], both.first, both.second};
      },
      positive, leaf({4, 3}, 1));
}

// An operand that is given back, and the same value twice, are tensors of their own.
TEST(Cond, ResultsHaveMemoryOfTheirOwn) {
  auto run = [](const Tensor& x, const Tensor& w) {
    auto [a, b, c] = cond(
        x.sum() > 0, [](const Tensor& y) { return std::tuple(y, y, y * 2); },
        [](const Tensor& y) {
          Tensor z = y * 3;
          return std::tuple(z, z, y);
        },
        x);
    return std::vector<Tensor>{a, b, c, w * 1};
  };
  expect_like_eager(run, positive, leaf({4, 3}, 1));
  for (bool is_compiled : {false, true}) {
    Tensor x = ones({3});
    std::vector<Tensor> made = is_compiled ? compile(run)(x, x) : run(x, x);
    EXPECT_FALSE(made[0].is_same_storage(x));
    EXPECT_FALSE(made[0].is_same_storage(made[1]));
  }
}

TEST(Cond, CanBeDifferentiatedAgain) {
  Tensor w = leaf({3, 3}, 1);
  auto run = [&](const Tensor& x) {
    Tensor y = cond(
        x.sum() > 0, [&](const Tensor& a) { return tanh(a.matmul(w)).pow(3); },
        [&](const Tensor& a) { return (a.matmul(w) * a).exp(); }, x);
    return (y * x).sum();
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    auto orders = [&](const auto& function, bool way) {
      Tensor x = positive(way);
      std::vector<Tensor> wanted{x, w}, all;
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
    for (bool way : {true, false}) {
      std::vector<Tensor> eager = orders(run, way), made = orders(compiled, way);
      for (size_t at = 0; at < eager.size(); ++at)
        EXPECT_LT(difference(made[at], eager[at]), 1e-11 * (1 + eager[at].abs().max().item<double>()))
            << backend << ' ' << way << ' ' << at;
    }
  }
}

// What a branch writes over, or makes for nothing, is no part of what its second derivative needs.
TEST(Cond, BranchesThatWriteToWhatTheyMade) {
  auto run = [](const Tensor& x, const Tensor& w) {
    auto writes = [&] {
      Tensor unused = 2 - w, square = x * x;
      unused.add_(unused);
      return square.mul_(x).sin_().sum();
    };
    return cond(x.sum() > 0, writes, [&] { return (x * x).sum() * 3 + w.sum(); });
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.backend = backend});
    for (bool way : {true, false, true}) {
      const Tensor x = positive(way), w = leaf({3, 3}, 2);
      auto derivatives = [&](const Tensor& y) {
        std::vector<Tensor> first = autograd::grad({y}, {x, w}, {}, true, true, true);
        std::vector<Tensor> second = autograd::grad({first[0].square().sum()}, {x}, {}, true);
        return std::vector<Tensor>{first[0], second[0]};
      };
      std::vector<Tensor> eager = derivatives(run(x, w)), made = derivatives(compiled(x, w));
      for (size_t at = 0; at < made.size(); ++at)
        EXPECT_LT(difference(made[at], eager[at]), 1e-12) << backend << ' ' << way << ' ' << at;
    }
  }
}

TEST(Cond, BranchesInBranches) {
  expect_like_eager(
      [](const Tensor& x, const Tensor& w) {
        Tensor y = cond(
            x.sum() > 0,
            [&](const Tensor& a) {
              return cond(a.max() > 100, [&] { return a * 7; }, [&] { return a.matmul(w) + a; });
            },
            [&](const Tensor& a) {
              return cond(a.min() < -0.5, [&] { return a.sin().matmul(w); }, [&] { return a * w.sum(); });
            },
            x);
        return std::vector<Tensor>{y};
      },
      positive, leaf({3, 3}, 1));
}

TEST(Cond, InTheStepsOfALoop) {
  auto run = [](const Tensor& xs, const Tensor& w) {
    auto step = [&](const Tensor& h, const Tensor& x) {
      Tensor next = cond(x.sum() > h.sum(), [&] { return tanh(h.matmul(w) + x); }, [&] { return h * 0.5 + x.sin(); });
      return std::pair(next, next * 2);
    };
    auto [last, all] = scan(step, zeros({3}, kFloat64), xs);
    return std::vector<Tensor>{last, all};
  };
  auto xs = [](bool way) { return way ? leaf({6, 3}, 4) : leaf({6, 3}, 9); };
  expect_like_eager(run, xs, leaf({3, 3}, 1));
}

TEST(Cond, LoopsInBranches) {
  auto run = [](const Tensor& x, const Tensor& w) {
    Tensor y = cond(
        x.sum() > 0,
        [&] {
          return scan([&](const Tensor& h, const Tensor& row) { return std::pair(tanh(h.matmul(w) + row), row); },
                      zeros({3}, kFloat64), x)
              .first;
        },
        [&] { return x.sum(0) * w.sum(); });
    return std::vector<Tensor>{y};
  };
  expect_like_eager(run, positive, leaf({3, 3}, 1));
}

TEST(Cond, OtherSizes) {
  for (const char* backend : kBackends) {
    Tensor w = leaf({3, 3}, 1);
    auto run = [&](const Tensor& x) {
      return cond(
          x.sum() > 0, [&](const Tensor& a) { return a.matmul(w).exp(); }, [](const Tensor& a) { return a * a; }, x);
    };
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (int64_t rows : {5, 3, 8, 2})
      for (double sign : {1., -1.}) {
        manual_seed(7);
        Tensor x = (rand({rows, 3}, TensorOptions(kFloat64)) * sign).set_requires_grad();
        const Tensor leaves[] = {x};
        Made eager = with_gradients([&] { return std::vector<Tensor>{run(x)}; }, leaves);
        Made made = with_gradients([&] { return std::vector<Tensor>{compiled(x)}; }, leaves);
        EXPECT_TRUE(same_bits(made.results[0], eager.results[0])) << backend << ' ' << rows;
        EXPECT_LT(difference(made.gradients[0], eager.gradients[0]), 1e-12) << backend << ' ' << rows;
      }
    EXPECT_LE(compiled.compile_count(), 2) << backend;
  }
}

// Known when a function is captured: a branch of the function, as an `if` is.
TEST(Cond, WhatIsKnownWithoutData) {
  auto run = [](const Tensor& x, bool flag) {
    Tensor y = cond(flag, [&] { return x + 1; }, [&] { return x - 1; });
    return cond(x.size(0) > 2, [&] { return y * 2; }, [&] { return y.sum(0, true); });
  };
  auto compiled = compile(run, {.fullgraph = true, .dynamic = Dynamic::On});
  for (bool flag : {true, false})
    for (int64_t rows : {2, 3, 4}) EXPECT_TRUE(same_bits(compiled(ones({rows, 2}), flag), run(ones({rows, 2}), flag)));
  EXPECT_EQ(compiled.explain().entries.back().captured.find("tenon::cond"), std::string::npos);
}

TEST(Cond, ANumberFromData) {
  auto run = [](const Tensor& x, const Tensor& limit) {
    SymInt many = (x > 0).sum().item<SymInt>();
    return cond(many > 2, [&] { return x * 2; }, [&] { return x + limit; });
  };
  auto compiled = compile(run, {.fullgraph = true, .capture_scalar_outputs = true});
  for (const Tensor& x : {tensor({1.F, 2.F, 3.F}), tensor({1.F, -2.F, 3.F})})
    EXPECT_TRUE(same_bits(compiled(x, ones({})), run(x, ones({}))));
  EXPECT_EQ(compiled.compile_count(), 1);
}

TEST(Cond, WalksThatAreCaptured) {
  Tensor w = leaf({3, 3}, 1);
  auto run = [&](const Tensor& x) {
    return cond(
        x.sum() > 0, [&](const Tensor& a) { return tanh(a.matmul(w)).sum(); },
        [&](const Tensor& a) { return (a * a).matmul(w).sum(); }, x);
  };
  for (const char* backend : kBackends) {
    auto compiled = compile(run, {.fullgraph = true, .backend = backend});
    for (bool way : {true, false, true}) {
      Tensor x = positive(way);
      const std::vector<Tensor> wanted{x, w};
      std::vector<Tensor> roots{run(x)}, eager = autograd::grad(roots, wanted);
      compiled_autograd::Enable on;
      roots = {compiled(x)};
      std::vector<Tensor> made = autograd::grad(roots, wanted);
      for (size_t at = 0; at < 2; ++at) EXPECT_LT(difference(made[at], eager[at]), 1e-13) << backend << ' ' << way;
    }
  }
}

// ---- What is no part of a graph

// Compiled without `fullgraph` it is eager nevertheless; with it, the Error says why.
void expect_written_out(const std::function<Tensor(const Tensor&)>& run, const std::string& why) {
  auto compiled = compile(run);
  for (double sign : {1., -1., 1.}) {
    Tensor x = ones({2, 3}) * sign;
    manual_seed(1);
    Tensor expected = run(x);
    manual_seed(1);
    EXPECT_TRUE(same_bits(compiled(x), expected)) << why;
  }
  EXPECT_EQ(error_of([&] { compile(run, {.fullgraph = true})(ones({2, 3})); }),
            "[compile] the function cannot be captured as one graph (fullgraph): a cond is no part of a graph: " + why);
}

TEST(Cond, BranchesThatDiffer) {
  expect_written_out([](const Tensor& x) { return cond(x.sum() > 0, [&] { return x + 1; }, [&] { return x.sum(0); }); },
                     "result 0 has other sizes by one branch than by the other: float32[2, 3] with strides [3, 1], and "
                     "float32[3] with strides [1]");
  expect_written_out(
      [](const Tensor& x) {
        return cond(x.sum() > 0, [&] { return x * 2; }, [&] { return (x * 2).to(kFloat64); }).to(kFloat32);
      },
      "result 0 has other dtypes by one branch than by the other: float32[2, 3] with strides [3, 1], and float64[2, 3] "
      "with strides [3, 1]");
  expect_written_out(
      [](const Tensor& x) {
        return cond(x.sum() > 0, [&] { return x * 2; }, [&] { return (x.t() * 2).contiguous().t(); });
      },
      "result 0 has other strides by one branch than by the other: float32[2, 3] with strides [3, 1], and float32[2, "
      "3] with strides [1, 2]");
  expect_written_out(
      [](const Tensor& x) {
        using List = std::vector<Tensor>;
        return cond(x.sum() > 0, [&] { return List{x * 2}; }, [&] { return List{x * 3, x * 4}; }).back();
      },
      "its branches give 1 and 2 tensors, or structures of other sizes");
}

TEST(Cond, WhatCannotBeABranch) {
  expect_written_out(
      [](const Tensor& x) { return cond(x.sum() > 0, [&] { return x + rand_like(x); }, [&] { return x * 1; }); },
      "the body draws random numbers");
  expect_written_out(
      [](const Tensor& x) {
        return cond(x.sum() > 0, [&] { return x * x.max().item<double>(); }, [&] { return x * 1; });
      },
      "item() reads the value of a tensor (float32[]); with capture_scalar_outputs it would be a symbol");
  expect_written_out(
      [](const Tensor& x) {
        Tensor outside = x * 2;
        Tensor y = cond(x.sum() > 0, [&] { return outside.add_(1) * 1; }, [&] { return x * 1; });
        return y + outside;
      },
      "it writes to a tensor from outside, float32[2, 3]");
}

// Eager never takes the way that raises.
TEST(Cond, ABranchThatRaises) {
  auto run = [](const Tensor& x) { return cond(x.sum() > 100, [&] { return x.matmul(x); }, [&] { return x * 2; }); };
  EXPECT_TRUE(same_bits(compile(run)(ones({2, 3})), full({2, 3}, 2.F)));
  EXPECT_EQ(error_of([&] { compile(run, {.fullgraph = true})(ones({2, 3})); }),
            "[compile] the function cannot be captured as one graph (fullgraph): a cond is no part of a graph: a "
            "branch raises: [mm] 2×3 and 2×3 (float32) cannot be multiplied: expected 3 rows");
}

TEST(Cond, PredicatesAreOneBool) {
  auto with = [](const Tensor& predicate) {
    return cond(predicate, [] { return ones({2}); }, [] { return zeros({2}); });
  };
  EXPECT_EQ(error_of([&] { with(ones({2}) > 0); }), "[cond] expected a predicate of one bool, got bool[2]");
  EXPECT_EQ(error_of([&] { compile(with)(ones({})); }), "[cond] expected a predicate of one bool, got float32[]");
  EXPECT_EQ(error_of([&] { with(Tensor()); }), "[cond] expected a predicate of one bool, got an undefined tensor");
}

}  // namespace
}  // namespace tenon
