// What rows do that the generic test cannot see: distributions, in-place forms under autograd and capture, helpers over
// rows.
#include <gtest/gtest.h>
#include <tenon/autograd/engine.h>
#include <tenon/capture/compile.h>
#include <tenon/core/random.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/functional.h>

#include "ops/row_evaluator.h"

namespace tenon::test {
namespace {

using Indices = std::vector<std::optional<Tensor>>;

std::vector<double> values(const Tensor& tensor) {
  Tensor flat = contiguous_copy(tensor.detach().to(kFloat64));
  return {flat.data<double>(), flat.data<double>() + flat.numel().plain()};
}

TEST(Rows, TheOppositeOfBoolsAndBits) {
  EXPECT_EQ(values(~tensor({true, false})), (std::vector<double>{0, 1}));
  EXPECT_EQ(values(~tensor({0, 5})), (std::vector<double>{-1, -6}));
}

TEST(Rows, DropoutKeepsTheMeanAndDropsItsShare) {
  manual_seed(3);
  for (Dtype dtype : {kFloat32, kFloat64, kBFloat16}) {
    Tensor y = dropout(ones({20000}, dtype), 0.3, true).to(kFloat64);
    int64_t zeros_seen = 0;
    for (int64_t at = 0; at < 20000; ++at) {
      double value = y.data<double>()[at];
      zeros_seen += value == 0;
      EXPECT_TRUE(value == 0 || std::fabs(value - 1 / 0.7) < 0.01) << value;
    }
    EXPECT_NEAR(static_cast<double>(zeros_seen), 6000, 5 * std::sqrt(20000 * 0.3 * 0.7));
  }
  Tensor drawn = bernoulli(full({20000}, 0.25));
  EXPECT_NEAR(sum(drawn).item<double>(), 5000, 5 * std::sqrt(20000 * 0.25 * 0.75));
  EXPECT_NEAR(sum(bernoulli(drawn, 0.75)).item<double>(), 15000, 5 * std::sqrt(20000 * 0.25 * 0.75));
}

// Backward must see the elements that forward kept.
TEST(Rows, DropoutsGradientIsItsMask) {
  manual_seed(4);
  Tensor x = ones({100}).set_requires_grad();
  Tensor y = dropout(x, 0.5, true);
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), values(y));
  Tensor z = ones({100}).set_requires_grad();
  auto compiled = compile([](Tensor t) { return dropout(t, 0.5, true); });
  Tensor w = compiled(z);
  sum(w).backward();
  EXPECT_EQ(values(z.grad()), values(w));
}

TEST(Rows, WritingThroughAnIndexIsDifferentiable) {
  Tensor ends = tensor({2, 0}), middle = tensor({1, 1});
  auto f = [=](Tensor x, Tensor v) {
    Tensor y = x * 2;
    y.index_put_(Indices{ends}, v);
    y.index_put_(Indices{middle}, v, true);
    return sum(y * y);
  };
  Tensor x = tensor({1.f, 2.f, 3.f}).set_requires_grad(), v = tensor({4.f, 5.f}).set_requires_grad();
  f(x, v).backward();
  // y = {5, 4 + 4 + 5, 4}
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 2 * 13 * 2, 0}));
  EXPECT_EQ(values(v.grad()), (std::vector<double>{2 * 4 + 2 * 13, 2 * 5 + 2 * 13}));
  Tensor a = tensor({1.f, 2.f, 3.f}).set_requires_grad(), b = tensor({4.f, 5.f}).set_requires_grad();
  auto compiled = compile(f, {.fullgraph = true});
  compiled(a, b).backward();
  EXPECT_EQ(values(a.grad()), values(x.grad()));
  EXPECT_EQ(values(b.grad()), values(v.grad()));
}

TEST(Rows, ThePaddingOfAnEmbeddingGetsNoGradient) {
  Tensor weight = ones({3, 2}).set_requires_grad();
  sum(embedding(weight, tensor({0, 1, 1, 2}), 1)).backward();
  EXPECT_EQ(values(weight.grad()), (std::vector<double>{1, 1, 0, 0, 1, 1}));
}

TEST(Rows, WritingThroughAMaskIntoAView) {
  auto f = [](Tensor x) {
    Tensor y = x.clone(), row = y[1];
    row.index_put_(Indices{row > 2}, zeros({}));
    return y;
  };
  Tensor x = tensor({1.f, 5.f, 3.f, 1.f}).view({2, 2});
  EXPECT_EQ(values(f(x)), (std::vector<double>{1, 5, 0, 1}));
  // A single value needs no positions: nothing depends on data.
  auto compiled = compile(f, {.fullgraph = true});
  EXPECT_EQ(values(compiled(x)), values(f(x)));
}

TEST(Rows, MasksBreakTheGraphUnlessTheirSizesAreTaken) {
  auto f = [](Tensor x, Tensor mask) { return sum(x.index({mask}) * 2); };
  Tensor x = tensor({1.f, 2.f, 3.f}), mask = tensor({true, false, true});
  auto compiled = compile(f);
  EXPECT_EQ(compiled(x, mask).item<float>(), 8);
  EXPECT_EQ(f(x, mask).item<float>(), 8);
}

TEST(Rows, SizesThatDependOnDataAreBounded) {
  auto env = make_ref<sym::ShapeEnv>();
  fake::FakeMode mode;
  fake::DynamicSizes sizes(env);
  Tensor x = fake::make(SymInts{3, 4}, SymInts{4, 1}, kFloat32, kCPU);
  Tensor found = nonzero(x);
  ASSERT_TRUE(found.size(0).is_symbolic());
  EXPECT_EQ(found.size(1).plain(), 2);
  EXPECT_TRUE(statically_true(found.size(0) <= 12));
  EXPECT_TRUE(statically_true(found.size(0) >= 0));
  Tensor picked = masked_select(x, x > 0);
  EXPECT_EQ(picked.dim(), 1);
  EXPECT_TRUE(picked.size(0).is_symbolic());
  auto [unique_values, inverse, counts] = unique(x, true, true, true);
  EXPECT_TRUE(unique_values.size(0).same(counts.size(0)));
  EXPECT_EQ(str(inverse.sym_sizes()), "[3, 4]");
  // Pieces of such sizes: their sum is taken for granted, and checked later.
  Tensor line = fake::make(SymInts{20}, SymInts{1}, kFloat32, kCPU);
  std::vector<Tensor> pieces = split_with_sizes(line, SymInts{found.size(0), picked.size(0)});
  EXPECT_TRUE(pieces[0].size(0).same(found.size(0)));
  EXPECT_FALSE(env->deferred_checks().empty());
}

TEST(Rows, InterpolateBySizeAndScale) {
  Tensor x = arange(4).to(kFloat32).view({1, 1, 2, 2});
  EXPECT_EQ(values(interpolate(x, {.size = SymInts{2, 4}})), (std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values(interpolate(x, {.scale_factor = std::vector<double>{2}})),
            (std::vector<double>{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}));
  EXPECT_EQ(values(interpolate(x, {.size = SymInts{1, 3}, .mode = Interpolation::Bilinear, .align_corners = true})),
            (std::vector<double>{0, 0.5, 1}));
  EXPECT_THROW(interpolate(x, {.size = SymInts{2}, .align_corners = true}), Error);
  EXPECT_THROW(interpolate(x, {}), Error);
}

}  // namespace
}  // namespace tenon::test
