// Shape rules on sizes that come from data: nothing is asked, what a valid call needs is asserted.
#include <tenon/autograd/engine.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/shape_env.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

struct UnbackedShapes : testing::Test {
  Ref<sym::ShapeEnv> env = make_ref<sym::ShapeEnv>();
  fake::FakeMode mode;
  SymInt s = env->create_size(8, "size 0 of x"), u = env->create_unbacked({0, sym::Range::kMax}),
         v = env->create_unbacked({0, sym::Range::kMax}), any = env->create_unbacked();

  Tensor make(const SymInts& sizes) { return fake::make(sizes, core::contiguous_strides(sizes.span()), kFloat32); }
  // All that was asserted, one line each.
  std::string asserted() {
    std::string text;
    for (const sym::Guard& each : env->deferred_checks()) text += each.condition.str() + "\n";
    return text;
  }
  ~UnbackedShapes() override { EXPECT_EQ(env->str(), ""); }
};

TEST_F(UnbackedShapes, BroadcastWithItselfAndOne) {
  EXPECT_EQ((make({u}) + make({u})).description(), "float32[u0]");
  EXPECT_EQ((make({u}) + make({1})).description(), "float32[u0]");
  EXPECT_EQ((make({u, 1}) * make({v})).description(), "float32[u0, u1]");
  EXPECT_EQ((make({u}) + 1).description(), "float32[u0]");
  EXPECT_EQ(asserted(), "");
}

TEST_F(UnbackedShapes, BroadcastAssertsWhatMustAgree) {
  EXPECT_EQ((make({u}) + make({s})).description(), "float32[s0]");
  EXPECT_EQ(asserted(), "s0 == u0\n");
  // From here on they are one.
  EXPECT_EQ((make({s, 2}) + make({u, 2})).sym_sizes()[0].hint(), 8);
  EXPECT_EQ((make({v}) + make({5})).description(), "float32[5]");
  EXPECT_EQ(asserted(), "s0 == u0\nu1 == 5\n");
  EXPECT_EQ(v.maybe_constant(), 5);
}

TEST_F(UnbackedShapes, Factories) {
  Tensor x = empty(SymInts{u, 4});
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(str(x.sym_strides()), "[4, 1]");
  EXPECT_EQ(asserted(), "");
  EXPECT_TRUE(empty(SymInts{3, u}).is_contiguous());
  EXPECT_FALSE(empty(SymInts{3, u}).t().is_contiguous());
  // A number of any sign becomes a size.
  EXPECT_EQ(zeros(SymInts{any}).description(), "float32[u2]");
  EXPECT_EQ(asserted(), "u2 >= 0\n");
  EXPECT_EQ(arange(Scalar(u)).description(), "int64[u0]");
}

TEST_F(UnbackedShapes, Reshape) {
  Tensor x = make({u, 4});
  EXPECT_EQ(x.view(SymInts{u * 4}).description(), "float32[4*u0]");
  EXPECT_EQ(x.reshape(SymInts{-1}).description(), "float32[4*u0]");
  EXPECT_EQ(x.view(SymInts{u, 2, 2}).description(), "float32[u0, 2, 2]");
  EXPECT_EQ(make({u * 4}).view(SymInts{-1, 4}).description(), "float32[u0, 4]");
  EXPECT_EQ(make({u * 4}).view(SymInts{u, 4}).description(), "float32[u0, 4]");
  EXPECT_EQ(make({u, v}).view(SymInts{v * u}).description(), "float32[u0*u1]");
  EXPECT_EQ(x.flatten().description(), "float32[4*u0]");
  EXPECT_EQ(x.t().reshape(SymInts{u * 4}).description(), "float32[4*u0]");
  EXPECT_EQ(asserted(), "");
  EXPECT_EQ(make({s}).view(SymInts{u, v}).description(), "float32[u0, u1]");
  EXPECT_EQ(asserted(), "s0 == u0*u1\n");
}

TEST_F(UnbackedShapes, CatAndSlices) {
  EXPECT_EQ(cat({make({u, 3}), make({v, 3})}).description(), "float32[u0 + u1, 3]");
  EXPECT_EQ(asserted(), "");
  EXPECT_EQ(cat({make({2, u}), make({3, v})}).sym_sizes()[0].str(), "5");
  EXPECT_EQ(asserted(), "u0 == u1\n");
}

TEST_F(UnbackedShapes, Slice) {
  EXPECT_EQ(make({u}).slice(0, 0, u).description(), "float32[u0]");
  EXPECT_EQ(make({u}).slice(0, 2).description(), "float32[u0 - Min(2, u0)]");
  EXPECT_EQ(make({u}).slice(0, 0, 5).description(), "float32[Min(5, u0)]");
  EXPECT_EQ(make({u}).slice(0, 0, std::nullopt, 2).description(), "float32[FloorDiv(u0 + 1, 2)]");
  check(v <= s);
  EXPECT_EQ(make({s}).slice(0, 0, v).description(), "float32[u1]");
  EXPECT_EQ(make({s}).slice(0, v).description(), "float32[s0 - u1]");
  // Of either sign: an expression that is right for both.
  SymInt length = make({s}).slice(0, any).sym_sizes()[0];
  for (auto [start, expected] : {std::pair<int64_t, int64_t>{3, 5}, {-3, 3}, {-20, 8}, {20, 0}}) {
    std::vector<int64_t> values = {8, 0, 0, start};
    EXPECT_EQ(sym::evaluate(length.expr(), values), expected) << length.str();
  }
  EXPECT_EQ(asserted(), "u1 <= s0\n");
}

TEST_F(UnbackedShapes, Select) {
  EXPECT_EQ(make({s, 3}).select(0, any).description(), "float32[3]");
  EXPECT_EQ(asserted(), "s0 + u2 >= 0\nu2 < s0\n");
}

TEST_F(UnbackedShapes, Products) {
  EXPECT_EQ(matmul(make({1, u}), make({u, 1})).description(), "float32[1, 1]");
  EXPECT_EQ(matmul(make({u, 3}), make({3, v})).description(), "float32[u0, u1]");
  EXPECT_EQ(asserted(), "");
  EXPECT_EQ(matmul(make({2, u}), make({s, 4})).description(), "float32[2, 4]");
  EXPECT_EQ(asserted(), "s0 == u0\n");
}

TEST_F(UnbackedShapes, ReductionsAndExpand) {
  EXPECT_EQ(make({u, 3}).sum().description(), "float32[]");
  EXPECT_EQ(make({u, 3}).sum({0}).description(), "float32[3]");
  EXPECT_EQ(make({u, 3}).amax({0}, true).description(), "float32[1, 3]");
  EXPECT_EQ(make({u, 3}).mean().description(), "float32[]");
  EXPECT_EQ(softmax(make({u, 3}), 0).description(), "float32[u0, 3]");
  EXPECT_EQ(make({1, 3}).expand(SymInts{u, 3}).description(), "float32[u0, 3]");
  EXPECT_EQ(make({u, 1}).expand(SymInts{-1, v}).description(), "float32[u0, u1]");
  EXPECT_EQ(asserted(), "");
  EXPECT_EQ(make({u}).expand(SymInts{s}).description(), "float32[s0]");
  EXPECT_EQ(asserted(), "s0 == u0\n");
}

TEST_F(UnbackedShapes, Layouts) {
  EXPECT_EQ(str((make({3, u}).t() * 2).sym_strides()), "[1, u0]");
  EXPECT_EQ(str((make({u, v}).t() + make({u, v}).t()).sym_strides()), "[1, u1]");
  EXPECT_EQ(asserted(), "");
}

TEST_F(UnbackedShapes, Gradients) {
  Tensor x = make({u, 3}).set_requires_grad(), w = make({1, 3}).set_requires_grad();
  Tensor loss = (x.sin() * w).slice(0, 1).sum();
  std::vector<Tensor> got = autograd::grad({loss}, {x, w});
  EXPECT_EQ(got[0].description(), "float32[u0, 3]");
  EXPECT_EQ(got[1].description(), "float32[1, 3]");
  EXPECT_EQ(asserted(), "");
}

}  // namespace
}  // namespace tenon
