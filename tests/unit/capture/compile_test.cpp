#include "testing.h"

#include <thread>

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;

TEST(Compile, RunsTheFunctionOnceAndThenNeverAgain) {
  int runs = 0;
  auto f = compile([&](Tensor x, Tensor y) {
    ++runs;
    return (x.sin() + y).relu();
  });
  Tensor x = randn({5, 7}), y = randn({7});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(f(x, y), (x.sin() + y).relu()));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Compile, FusesAChainIntoOneKernel) {
  auto f = compile([](Tensor x, Tensor w, Tensor b) { return tanh(x * w + b) - x; });
  Tensor x = randn({9, 33}), w = randn({33}), b = randn({33});
  f(x, w, b);
  int64_t before = counter("kernels_launched").value();
  Tensor z = f(x, w, b);
  EXPECT_EQ(counter("kernels_launched").value() - before, 1);
  EXPECT_TRUE(same_bits(z, tanh(x * w + b) - x));
}

TEST(Compile, FusesPointwiseIntoReductionsAndAfterThem) {
  auto f = compile([](Tensor x) {
    Tensor centred = x - x.mean(1, true);
    return centred / (centred * centred).mean(1, true).add(1e-5).sqrt();
  });
  Tensor x = randn({6, 130});
  f(x);
  int64_t before = counter("kernels_launched").value();
  Tensor y = f(x);
  EXPECT_EQ(counter("kernels_launched").value() - before, 1);
  Tensor centred = x - x.mean(1, true);
  EXPECT_LT(difference(y, centred / (centred * centred).mean(1, true).add(1e-5).sqrt()), 1e-5);
}

TEST(Compile, ASizeThatChangesBecomesDynamic) {
  auto f = compile([](Tensor x) { return softmax(x, 1) * 2; });
  for (int64_t rows : {4, 6, 9, 31, 4}) {
    Tensor x = randn({rows, 5});
    EXPECT_LT(difference(f(x), softmax(x, 1) * 2), 1e-6);
  }
  EXPECT_EQ(f.compile_count(), 2);
  // 0 and 1 stay special.
  f(randn({1, 5}));
  EXPECT_EQ(f.compile_count(), 3);
  EXPECT_EQ(f(zeros({0, 5})).description(), "float32[0, 5]");
  EXPECT_EQ(f.compile_count(), 4);
  f(randn({77, 5}));
  EXPECT_EQ(f.compile_count(), 4);
}

TEST(Compile, DynamicOnCompilesOnce) {
  auto f = compile([](Tensor x, Tensor y) { return cat({x, y}, 0).sum(0); }, {.dynamic = Dynamic::On});
  for (int64_t rows : {3, 8, 20}) {
    Tensor x = randn({rows, 4}), y = randn({rows + 2, 4});
    EXPECT_LT(difference(f(x, y), cat({x, y}, 0).sum(0)), 1e-5);
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Compile, DynamicOffCompilesEverySize) {
  auto f = compile([](Tensor x) { return x + 1; }, {.dynamic = Dynamic::Off});
  for (int64_t size : {3, 4, 5}) f(randn({size}));
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(Compile, GradientsEqualEagers) {
  Tensor w = randn({8, 3}).set_requires_grad();
  auto loss = [&](Tensor x) { return (tanh(mm(x, w)) * x.sum()).mean(); };
  auto f = compile(loss);
  for (int64_t rows : {5, 6, 7}) {
    Tensor x = randn({rows, 8});
    f(x).backward();
    Tensor compiled = w.grad();
    w.set_grad({});
    loss(x).backward();
    EXPECT_LT(difference(compiled, w.grad()), 1e-5);
    w.set_grad({});
  }
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, GradModeIsGuarded) {
  Tensor w = randn({3}).set_requires_grad();
  auto f = compile([&](Tensor x) { return x * w; });
  Tensor x = randn({3});
  EXPECT_TRUE(f(x).requires_grad());
  {
    NoGrad off;
    EXPECT_FALSE(f(x).requires_grad());
  }
  EXPECT_TRUE(f(x).requires_grad());
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, NoGradInsideTheFunctionIsKept) {
  auto f = compile([](Tensor x) {
    NoGrad off;
    return x * 2;
  });
  EXPECT_FALSE(f(randn({3}).set_requires_grad()).requires_grad());
}

TEST(Compile, ExplainsEveryRecompile) {
  auto f = compile([](Tensor x, Tensor y) { return x + y; });
  f(randn({4}), randn({4}));
  f(randn({4}), randn({4}).set_requires_grad());
  f(randn({4}), randn({4}, kFloat64));
  Tensor x = randn({4});
  f(x, x);
  f(randn({6}), randn({6}));
  std::vector<std::string> reasons = f.explain().recompiles;
  ASSERT_EQ(reasons.size(), 4u);
  EXPECT_EQ(reasons[0], "tensor 'arg1' requires_grad mismatch. expected requires_grad=0");
  EXPECT_EQ(reasons[1], "tensor 'arg1' dtype mismatch. expected float32, actual float64");
  EXPECT_EQ(reasons[2], "expected arg0 is not arg1, got one tensor");
  EXPECT_EQ(reasons[3], "expected arg0 is arg1, got two tensors");
}

TEST(Compile, ASizeMismatchIsExplained) {
  auto f = compile([](Tensor x) { return x + 1; });
  f(randn({4, 2}));
  f(randn({6, 2}));
  EXPECT_EQ(f.explain().recompiles.at(0), "size of arg0 at dim 0: expected 4, got 6");
}

TEST(Compile, StridesAreGuardedAndKept) {
  auto f = compile([](Tensor x) { return x * 2; });
  Tensor x = randn({4, 6});
  f(x);
  Tensor y = f(x.t());
  EXPECT_TRUE(same_bits(y, x.t() * 2));
  EXPECT_TRUE(std::ranges::equal(y.strides(), (x.t() * 2).strides()));
}

TEST(Compile, CellsAreReadAtEveryCall) {
  Cell<bool> doubled(true);
  Cell<Tensor> weight(randn({3}));
  auto f = compile([&](Tensor x) { return doubled.get() ? x * weight.get() * 2 : x * weight.get(); });
  Tensor x = randn({3});
  EXPECT_TRUE(same_bits(f(x), x * weight.get() * 2));
  weight = randn({3});
  EXPECT_TRUE(same_bits(f(x), x * weight.get() * 2));
  EXPECT_EQ(f.compile_count(), 1) << "another tensor of the same kind costs no compile";
  doubled = false;
  EXPECT_TRUE(same_bits(f(x), x * weight.get()));
  EXPECT_EQ(f.compile_count(), 2);
  doubled = true;
  EXPECT_TRUE(same_bits(f(x), x * weight.get() * 2));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, AReboundClosureTensorIsFollowedWithoutACompile) {
  Tensor weight = randn({3});
  auto f = compile([&](Tensor x) { return x * weight; });
  Tensor x = randn({3});
  EXPECT_TRUE(same_bits(f(x), x * weight));
  weight = randn({3});
  EXPECT_TRUE(same_bits(f(x), x * weight));
  EXPECT_EQ(f.compile_count(), 1);
  weight = randn({1});
  EXPECT_TRUE(same_bits(f(x), x * weight));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, TrainingModeOfAModuleIsFollowed) {
  struct Noisy : nn::Module {
    Tensor operator()(const Tensor& x) const { return is_training() ? x + 1 : x; }
  } module;
  auto f = compile([&](Tensor x) { return module(x); });
  Tensor x = randn({3});
  EXPECT_TRUE(same_bits(f(x), x + 1));
  module.eval();
  EXPECT_TRUE(same_bits(f(x), x));
  module.train();
  EXPECT_TRUE(same_bits(f(x), x + 1));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, MutatedArgumentsAreWrittenBack) {
  auto f = compile([](Tensor x, Tensor y) {
    x.add_(y);
    return x * 2;
  });
  Tensor x = randn({4}), y = randn({4}), expected = x + y;
  int64_t version = x.version();
  Tensor z = f(x, y);
  EXPECT_TRUE(same_bits(x, expected));
  EXPECT_TRUE(same_bits(z, expected * 2));
  EXPECT_GT(x.version(), version);
}

TEST(Compile, WritingThroughAViewReachesTheArgument) {
  auto f = compile([](Tensor x) {
    x.slice(1, 1, 3).mul_(10);
    x.t()[0].zero_();
    return x.sum();
  });
  Tensor x = randn({3, 4}), eager = x.clone();
  eager.slice(1, 1, 3).mul_(10);
  eager.t()[0].zero_();
  f(x);
  EXPECT_TRUE(same_bits(x, eager));
}

TEST(Compile, OutputsThatAliasArgumentsAliasThem) {
  auto f = compile([](Tensor x) { return std::tuple(x, x.t(), x + 1); });
  Tensor x = randn({2, 3});
  auto [same, transposed, other] = f(x);
  EXPECT_TRUE(same.is(x));
  EXPECT_TRUE(transposed.is_same_storage(x));
  EXPECT_TRUE(same_bits(transposed, x.t()));
  EXPECT_FALSE(other.is_same_storage(x));
}

TEST(Compile, OneTensorGivenTwice) {
  auto f = compile([](Tensor x, Tensor y) {
    x.add_(1);
    return x + y;
  });
  Tensor x = randn({3}), expected = (x + 1) * 2;
  EXPECT_TRUE(same_bits(f(x, x), expected));
  Tensor a = randn({3}), b = randn({3}), sum = a + 1 + b;
  EXPECT_TRUE(same_bits(f(a, b), sum));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, APlanIsNotSharedWhereOtherThingsAreKnownOfTheSizes) {
  // Both captures are the same text; only in the first is half the width known to be 1.
  auto function = [](Tensor x) {
    Tensor half = x.slice(1, 1, x.size(1), 2) + 1;
    (void)bool(half.size(1) <= 1);
    return half;
  };
  auto f = compile(function, {.dynamic = Dynamic::On});
  for (int64_t width : {3, 4, 8, 3}) EXPECT_TRUE(same_bits(f(ones({9, width})), function(ones({9, width})))) << width;
}

TEST(Compile, TensorsThatTheFunctionMakesItselfAreKept) {
  int runs = 0;
  auto f = compile([&](Tensor x) {
    ++runs;
    return x * tensor({3.0f, 4.0f});
  });
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(same_bits(f(ones({2})), tensor({3.0f, 4.0f})));
  EXPECT_EQ(runs, 1) << "the function is not traced again";
  // One that is given back, or written to, is another at every call.
  auto given = compile([](Tensor x) { return std::tuple(tensor({1.0f}), x); });
  std::get<0>(given(ones({2}))).add_(5);
  EXPECT_TRUE(same_bits(std::get<0>(given(ones({2}))), tensor({1.0f})));
  auto written = compile([](Tensor x) { return x + tensor({1.0f}).add_(1); });
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(same_bits(written(ones({1})), tensor({3.0f})));
}

TEST(Compile, ReadingAValueEndsTheGraph) {
  auto f = compile([](Tensor x) { return x.sum().item<double>() > 0 ? x * 2 : x; });
  EXPECT_TRUE(same_bits(f(ones({3})), ones({3}) * 2));
  EXPECT_TRUE(same_bits(f(-ones({3})), -ones({3})));
  EXPECT_EQ(f.compile_count(), 2);
  ASSERT_FALSE(f.explain().breaks.empty());
  EXPECT_NE(f.explain().breaks[0].find("item() reads the value of a tensor"), std::string::npos);
}

TEST(Compile, FullgraphMakesABreakAnError) {
  auto f = compile([](Tensor x) { return x * x.sum().item<double>(); }, {.fullgraph = true});
  std::string text = error_of([&] { f(ones({3})); });
  EXPECT_EQ(text.find("[compile] the function cannot be captured as one graph (fullgraph): item() reads the value"), 0u)
      << text;
}

TEST(Compile, BackwardInsideTheFunctionRunsEagerly) {
  auto f = compile([](Tensor x) {
    Tensor y = (x * x).sum();
    y.backward();
    return y;
  });
  Tensor x = ones({3}).set_requires_grad();
  f(x);
  EXPECT_TRUE(same_bits(x.grad(), ones({3}) * 2));
  EXPECT_NE(f.explain().breaks.at(0).find("backward()"), std::string::npos);
}

TEST(Compile, AnExceptionPassesThroughAndNothingIsCached) {
  bool angry = true;
  auto f = compile([&](Tensor x) {
    if (angry) throw std::runtime_error("no");
    return x + 1;
  });
  EXPECT_THROW(f(ones({2})), std::runtime_error);
  EXPECT_EQ(f.compile_count(), 0);
  angry = false;
  EXPECT_TRUE(same_bits(f(ones({2})), ones({2}) + 1));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Compile, Backends) {
  Tensor w = randn({4, 4}).set_requires_grad(), x = randn({3, 4});
  auto loss = [&](Tensor a) { return relu(mm(a, w)).sum(); };
  loss(x).backward();
  Tensor expected = w.grad();
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    w.set_grad({});
    auto f = compile(loss, {.backend = backend});
    f(x).backward();
    EXPECT_LT(difference(w.grad(), expected), 1e-6) << backend;
    EXPECT_EQ(f.compile_count(), 1) << backend;
  }
}

TEST(Compile, ABackendOfTheUsers) {
  std::string seen;
  auto f = compile([](Tensor x) { return x.cos() + 1; }, {.backend = [&](const graph::Graph& graph) -> GraphFunction {
                     seen = graph::to_string(graph);
                     return [](std::span<const Tensor> inputs, std::span<const int64_t>) {
                       return std::vector<dispatch::Value>{dispatch::Value(inputs[0] * 100)};
                     };
                   }});
  EXPECT_TRUE(same_bits(f(ones({2})), ones({2}) * 100));
  EXPECT_NE(seen.find("aten::cos"), std::string::npos);
}

TEST(Compile, AnUnknownBackendIsRefused) {
  EXPECT_EQ(error_of([] { compile([](Tensor x) { return x; }, {.backend = "cudagraphs"}); }),
            "[compile] unknown backend 'cudagraphs': expected one of inductor, aot_eager, eager, or a function from a "
            "graph to a callable");
}

TEST(Compile, ACompiledFunctionInsideAnother) {
  auto inner = compile([](Tensor x) { return x.sin(); });
  auto outer = compile([&](Tensor x) { return inner(x) + inner(x * 2); });
  Tensor x = randn({5});
  EXPECT_TRUE(same_bits(outer(x), x.sin() + (x * 2).sin()));
  EXPECT_EQ(outer.compile_count(), 1);
  EXPECT_EQ(inner.compile_count(), 0);
}

TEST(Compile, PastTheRecompileLimitCallsRunEagerly) {
  auto f = compile([](Tensor x) { return x + 1; }, {.dynamic = Dynamic::Off, .recompile_limit = 2});
  for (int64_t size : {2, 3, 4, 5, 3}) EXPECT_TRUE(same_bits(f(ones({size})), ones({size}) + 1));
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(f.explain().breaks.size(), 2u);
}

TEST(Compile, NumbersAreGuardedConstants) {
  auto f = compile([](Tensor x, double factor, int64_t dim) { return (x * factor).sum(dim); });
  Tensor x = randn({2, 3});
  EXPECT_LT(difference(f(x, 2.0, int64_t{0}), (x * 2.0).sum(0)), 1e-6);
  EXPECT_LT(difference(f(x, 3.0, int64_t{0}), (x * 3.0).sum(0)), 1e-6);
  EXPECT_LT(difference(f(x, 2.0, int64_t{1}), (x * 2.0).sum(1)), 1e-6);
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(Compile, SizesReadByTheFunctionStaySymbolic) {
  auto f =
      compile([](Tensor x) { return x.view({x.size(0) * x.size(1)}) + Scalar(x.size(0)); }, {.dynamic = Dynamic::On});
  for (int64_t rows : {3, 5, 8}) {
    Tensor x = randn({rows, 4});
    EXPECT_TRUE(same_bits(f(x), x.view({rows * 4}) + rows));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Compile, ConvertingASizeToAPlainNumberPinsIt) {
  auto f = compile(
      [](Tensor x) {
        int64_t rows = x.size(0);
        return x * static_cast<double>(rows);
      },
      {.dynamic = Dynamic::On});
  for (int64_t rows : {3, 5, 3}) EXPECT_TRUE(same_bits(f(ones({rows})), ones({rows}) * static_cast<double>(rows)));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, VectorsInAndOut) {
  auto f = compile([](std::vector<Tensor> list, std::optional<Tensor> bias) {
    std::vector<Tensor> out;
    for (const Tensor& each : list) out.push_back(bias ? each + *bias : each.clone());
    return out;
  });
  std::vector<Tensor> list = {randn({2}), randn({2}), randn({2})};
  Tensor bias = randn({2});
  std::vector<Tensor> out = f(list, std::optional<Tensor>(bias));
  ASSERT_EQ(out.size(), 3u);
  EXPECT_TRUE(same_bits(out[2], list[2] + bias));
  EXPECT_TRUE(same_bits(f(list, std::optional<Tensor>())[1], list[1]));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Compile, RandomNumbersFollowTheGenerator) {
  auto f = compile([](Tensor x) { return x + rand({100}); });
  manual_seed(7);
  Tensor first = f(zeros({100}));
  Tensor second = f(zeros({100}));
  EXPECT_FALSE(same_bits(first, second));
  manual_seed(7);
  EXPECT_TRUE(same_bits(f(zeros({100})), first));
  manual_seed(7);
  EXPECT_TRUE(same_bits(rand({100}), first)) << "compiled and eager draw the same numbers";
}

TEST(Compile, ManyThreads) {
  auto f = compile([](Tensor x) { return (x * 2).sum(); });
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&, id] {
      for (int round = 0; round < 20; ++round) {
        Tensor x = full({7}, id + round);
        if (f(x).item<double>() != 14.0 * (id + round)) ++wrong;
      }
    });
  for (std::jthread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Compile, ManyThreadsOnManyGraphs) {
  // Sizes, dtypes, a decision on data and a backward pass: threads compile, recompile and run at the same time.
  for (bool eager_while_compiling : {false, true}) {
    auto function = [](Tensor x, Tensor w) {
      Tensor y = (x * w).sin();
      Tensor total = y.sum();
      return bool(total.detach().to(kFloat64).item<SymFloat>() > 0.0) ? total * 2 : total - 1;
    };
    auto f = compile(function, {.eager_while_compiling = eager_while_compiling});
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int id = 0; id < 4; ++id)
      threads.emplace_back([&, id] {
        for (int round = 0; round < 6; ++round) {
          Dtype dtype = id % 2 ? kFloat64 : kFloat32;
          Tensor x = full({3 + (id + round) % 3}, round % 2 ? 0.5 : -0.5).to(dtype),
                 w = ones_like(x).set_requires_grad(), v = ones_like(x).set_requires_grad();
          Tensor got = f(x, w), expected = function(x, v);
          got.backward();
          expected.backward();
          if (difference(got.detach(), expected.detach()) > 1e-6 || difference(w.grad(), v.grad()) > 1e-6) ++wrong;
        }
      });
    for (std::jthread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Compile, Reset) {
  auto f = compile([](Tensor x) { return x + 1; });
  f(ones({2}));
  f.reset();
  EXPECT_EQ(f.compile_count(), 0);
  f(ones({2}));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Compile, a_computed_size_that_is_one_stretches) {
  auto function = [](Tensor x) { return x + x.slice(1, 1, x.size(1), 2); };
  auto f = compile(function, {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t width : {3, 2, 3}) {
    Tensor x = randn({4, width});
    EXPECT_TRUE(testing::same_bits(f(x), function(x))) << width;
  }
  Tensor wide = randn({4, 6});
  EXPECT_EQ(testing::error_of([&] { function(wide); }).substr(0, 5), "[add]");
  EXPECT_EQ(testing::error_of([&] { f(wide); }).substr(0, 5), "[add]");
  auto spread = compile([](Tensor x) { return x.slice(0, 1).expand(SymInts{7, x.size(1)}); },
                        {.fullgraph = true, .dynamic = Dynamic::On});
  EXPECT_EQ(spread(randn({2, 3})).size(0).plain(), 7);
}

// A size from data counts as not 0: one that is at most 1 is 1, and stretches.
TEST(Compile, a_size_from_data_that_is_at_most_one_stretches) {
  auto function = [](Tensor x) {
    Tensor chosen = masked_select(x, x > 0);
    Tensor first = chosen.slice(0, 0, 1).expand(SymInts{(x > 0).sum().item<SymInt>()});
    return unflatten(first, 0, SymInts{-1, 3}).select(0, 0) + chosen.slice(0, 0, 1);
  };
  auto f = compile(function, {.fullgraph = true,
                              .dynamic = Dynamic::On,
                              .capture_scalar_outputs = true,
                              .capture_dynamic_output_shape_ops = true});
  for (int64_t positive : {6, 9, 3}) {
    Tensor x = arange(12).to(kFloat32) - (11.5 - static_cast<double>(positive));
    EXPECT_TRUE(testing::same_bits(f(x), function(x))) << positive;
  }
  EXPECT_EQ(f.compile_count(), 1);
}

// A size from data counts as not 1: what is 1 beside it at this call stretches, in whatever order they stand.
TEST(Compile, a_size_that_is_one_beside_one_from_data_stretches) {
  auto function = [](Tensor x, bool first) {
    Tensor row = x.reshape(SymInts{-1, 9}), places = nonzero(x);
    return first ? row - places : places - row;
  };
  auto f = compile(function, {.fullgraph = true, .dynamic = Dynamic::On, .capture_dynamic_output_shape_ops = true});
  for (bool first : {true, false})
    for (double from : {-4.5, -2.5}) {
      Tensor x = arange(9).to(kFloat64) + from;
      EXPECT_TRUE(testing::same_bits(f(x, first), function(x, first))) << first;
      Tensor chosen = relu(x);
      EXPECT_TRUE(testing::same_bits(f(chosen, first), function(chosen, first))) << first;
    }
}

// A view that changes nothing, of a value that is stored as its transposed input lies: one kernel stores and sums it.
TEST(Compile, a_view_of_what_is_written_to_a_transposed_argument) {
  auto function = [](Tensor x) {
    Tensor y = x.squeeze();
    y.mul_(y);
    return x.view(x.sym_sizes()).sum();
  };
  auto f = compile(function, {.dynamic = Dynamic::On});
  for (bool turned : {false, true}) {
    Tensor a = turned ? randn({3, 9}).t() : randn({9, 3}), b = a.clone();
    EXPECT_LT((f(a) - function(b)).abs().item<double>(), 1e-4) << turned;
    EXPECT_TRUE(testing::same_bits(a, b));
  }
}

}  // namespace
}  // namespace tenon
