// Sums of many terms stay exact, on any number of threads, eager and compiled. Errors are measured against float64 on
// data uniform in [0, 1); the bounds are those of PyTorch 2.13 at these sizes (sums and means 1e-8 to 1.7e-7, variances
// 4e-8, norms 1.5e-3, softmax 4e-4, layer norm 3.3e-7), tightened where it is bad and given two or three roundings of a
// float32 where it was lucky.
#include <gtest/gtest.h>
#include <tenon/support/parallel.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using testing::same_bits;
using Function = std::function<Tensor(Tensor)>;

constexpr double kRounding = 0x1p-24;

struct Case {
  const char* name;
  Function function;
  double bound;
  bool absolute = false;
};

double error(const Tensor& given, const Tensor& exact, bool absolute) {
  Tensor difference = (given.to(kFloat64) - exact).abs();
  return (absolute ? difference : difference / exact.abs()).amax().item().to_double();
}

std::vector<Case> cases(int64_t count) {
  const int64_t half = count / 2;
  const double luck = 2.5 * kRounding;
  return {
      {"sum", [](Tensor x) { return x.sum(); }, luck},
      {"mean", [](Tensor x) { return x.mean(); }, luck},
      {"var", [](Tensor x) { return x.var(); }, luck},
      {"norm", [](Tensor x) { return (x * x).sum().sqrt(); }, luck},
      {"logsumexp", [](Tensor x) { return logsumexp(x, Ints{0}); }, luck},
      {"softmax", [](Tensor x) { return softmax(x, 0); }, 1e-6},
      {"rows", [=](Tensor x) { return x.view({2, half}).sum(1); }, luck},
      {"variance of rows", [=](Tensor x) { return x.view({2, half}).var(Ints{1}); }, luck},
      {"columns", [=](Tensor x) { return x.view({half, 2}).sum(0); }, luck},
      {"mean of columns", [=](Tensor x) { return x.view({count / 64, 64}).mean(Ints{0}); }, luck},
      {"layer norm", [=](Tensor x) { return layer_norm(x.view({2, half}), {half}); }, 3.6e-7, true},
  };
}

class Accuracy : public ::testing::TestWithParam<int64_t> {
 protected:
  void TearDown() override { set_num_threads(0); }
};

TEST_P(Accuracy, OfLongSums) {
  const int64_t count = GetParam() / 128 * 128;
  manual_seed(7);
  Tensor x = rand({count});
  for (const Case& each : cases(count)) {
    SCOPED_TRACE(each.name);
    Tensor exact = each.function(x.to(kFloat64)), eager = each.function(x);
    EXPECT_LE(error(eager, exact, each.absolute), each.bound);
    Tensor compiled = compile([&](Tensor given) { return each.function(given); })(x);
    EXPECT_LE(error(compiled, exact, each.absolute), each.bound);
    EXPECT_TRUE(same_bits(compiled, eager));
  }
}

TEST_P(Accuracy, OfGradients) {
  const int64_t count = GetParam() / 128 * 128, half = count / 2;
  manual_seed(8);
  Tensor x = rand({2, half});
  auto gradient = [&](const Tensor& given, auto f) {
    Tensor leaf = given.clone().set_requires_grad();
    f(leaf).backward();
    return leaf.grad();
  };
  auto normed = [=](Tensor g) { return (layer_norm(g, {half}) * g).sum(); };
  auto spread = [](Tensor g) { return g.var(Ints{1}).sum(); };
  auto largest = [](Tensor g) { return logsumexp(g, Ints{1}).sum(); };
  EXPECT_LE(error(gradient(x, normed), gradient(x.to(kFloat64), normed), true), 2e-6);
  EXPECT_LE(error(gradient(x, spread), gradient(x.to(kFloat64), spread), true), 1e-7);
  EXPECT_LE(error(gradient(x, largest), gradient(x.to(kFloat64), largest), false), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Accuracy, ::testing::Values(10'000'000, 1 << 25));

TEST(Sums, OfOnesAreExact) {
  Tensor x = ones({2, 1 << 25});
  EXPECT_TRUE(same_bits(x.mean(Ints{1}), ones({2})));
  EXPECT_TRUE(same_bits(compile([](Tensor given) { return given.mean(Ints{1}); })(x), ones({2})));
}

TEST(Sums, HaveTheSameBitsOnAnyNumberOfThreads) {
  manual_seed(9);
  const std::pair<const char*, Function> functions[] = {
      {"all", [](Tensor x) { return x.sum(); }},
      {"rows", [](Tensor x) { return x.sum(-1); }},
      {"columns", [](Tensor x) { return x.sum(0); }},
      {"products", [](Tensor x) { return (x * 0.001 + 1).prod(0); }},
      {"softmax", [](Tensor x) { return softmax(x, 0); }},
      {"layer norm", [](Tensor x) { return layer_norm(x, {x.size(-1)}); }},
      {"variance", [](Tensor x) { return x.var(); }},
  };
  for (Ints shape : {Ints{3, 100003}, Ints{70001, 5}, Ints{1000, 777}}) {
    Tensor x = randn(SymInts(shape.span()));
    for (const auto& [name, function] : functions) {
      SCOPED_TRACE(name);
      auto compiled = compile([&f = function](Tensor given) { return f(given); });
      set_num_threads(1);
      Tensor expected = function(x);
      for (int threads : {1, 2, 3, 7}) {
        set_num_threads(threads);
        EXPECT_TRUE(same_bits(function(x), expected)) << threads << " threads, eager";
        EXPECT_TRUE(same_bits(compiled(x), expected)) << threads << " threads, compiled";
      }
      set_num_threads(0);
    }
  }
}

}  // namespace
}  // namespace tenon
