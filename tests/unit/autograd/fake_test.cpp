// The engine on tensors without data, as aot runs it: it may look at sizes only, and not pin them.
#include "unit/autograd/helpers.h"

#include <tenon/fake/fake.h>
#include <tenon/sym/shape_env.h>

namespace tenon::testing {
namespace {

TEST(FakeAutograd, SymbolicSizesPassThrough) {
  auto env = make_ref<sym::ShapeEnv>();
  SymInt n = env->create_size(5, "size 0 of x");
  fake::FakeMode mode;
  Tensor x = fake::make(SymInts{n, 3}, SymInts{3, 1}, kFloat32).set_requires_grad();
  Tensor w = fake::make(SymInts{3}, SymInts{1}, kFloat32).set_requires_grad();
  Tensor base = x.sin().exp() * w;
  base.select(1, 0).mul_(2);
  Tensor loss = (base.t().reshape(SymInts{n * 3}).mean() + w.sum()) * 2;
  std::vector<Tensor> got = autograd::grad({loss}, {x, w, base});
  EXPECT_EQ(got[0].description(), x.description());
  EXPECT_EQ(got[1].description(), "float32[3]");
  EXPECT_EQ(got[2].description(), base.description());
  EXPECT_TRUE(got[0].is_fake());
  EXPECT_EQ(env->str(), "");
}

TEST(FakeAutograd, LeavesAccumulate) {
  fake::FakeMode mode;
  Tensor x = fake::make(SymInts{2}, SymInts{1}, kFloat64).set_requires_grad();
  (x * x).sum().backward();
  (x * x).sum().backward();
  EXPECT_EQ(x.grad().description(), "float64[2]");
  EXPECT_TRUE(x.grad().is_fake());
}

}  // namespace
}  // namespace tenon::testing
