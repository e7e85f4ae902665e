// Views that name places in memory: compiled as eager has them, read, written, differentiated and returned.
#include <gtest/gtest.h>
#include <tenon/fake/fake.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;

// The value and the gradient of its sum of squares, eager and on each backend; sizes dynamic, every input in turn.
void expect_as_eager(const std::function<Tensor(Tensor)>& f, const std::vector<Tensor>& inputs) {
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    auto compiled = compile(f, {.dynamic = Dynamic::On, .backend = backend});
    for (int round = 0; round < 2; ++round)
      for (const Tensor& input : inputs) {
        SCOPED_TRACE(fmt::format("{} of {}", backend, input.description()));
        Tensor x = input.clone().set_requires_grad(), y = input.clone().set_requires_grad();
        Tensor expected = f(x), got = compiled(y);
        EXPECT_TRUE(same_bits(got, expected));
        EXPECT_EQ(str(got.sym_strides()), str(expected.sym_strides()));
        (expected * expected).sum().backward();
        (got * got).sum().backward();
        EXPECT_LE(difference(y.grad(), x.grad()), 1e-6);
      }
  }
}

std::vector<Tensor> lines() { return {arange(6, kFloat32), arange(9, kFloat32), arange(12, kFloat32)}; }

TEST(Strided, ReadsPlaces) {
  expect_as_eager([](Tensor x) { return x.as_strided({2, 2}, {1, 2}, 1) * 2; }, lines());
  expect_as_eager([](Tensor x) { return (x * 2).as_strided({3, 2}, {1, 1}) + 1; }, lines());
  expect_as_eager([](Tensor x) { return (x.t() * 2).as_strided({3}, {2}, 1) + 1; },
                  {arange(6, kFloat32).view({2, 3}), arange(12, kFloat32).view({4, 3})});
}

TEST(Strided, SizesStridesAndOffsetMayBeSymbols) {
  expect_as_eager(
      [](Tensor x) {
        SymInt half = x.size(0) / SymInt(2);
        return x.as_strided(SymInts{2, half - 1}, SymInts{half, 1}, x.size(0) % SymInt(2)) * 2;
      },
      lines());
  auto env = make_ref<sym::ShapeEnv>();
  SymInt size = env->create_size(5, "size"), step = env->create_number(3, "step"), first = env->create_number(2, "at");
  fake::FakeMode mode;
  Tensor base = fake::make(SymInts{size * step + first}, SymInts{1}, kFloat32, kCPU);
  Tensor view = base.as_strided(SymInts{size}, SymInts{step}, first);
  EXPECT_TRUE(view.size(0).same(size) && view.stride(0).same(step) && view.sym_storage_offset().same(first));
  EXPECT_TRUE(view.is_same_storage(base));
}

TEST(Strided, WritesShowInWhatSharesTheMemory) {
  auto f = [](Tensor x) {
    Tensor y = x * 1, v = y.as_strided({2}, {3}, 1), all = y.slice(0, 1, 5);
    v.mul_(10);
    // From a slice on, but counted in the memory of the whole.
    y.slice(0, 2, 4).as_strided({2}, {1}, 1).add_(100);
    return all * v.sum();
  };
  Tensor x = arange(6, kFloat32);
  EXPECT_TRUE(same_bits(f(x), tensor({110.f, 102.f, 3.f, 40.f}) * 150));
  expect_as_eager(f, lines());
  // Places of their own that no order of divisions finds.
  expect_as_eager(
      [](Tensor y) {
        Tensor z = y * 1;
        z.as_strided({3, 2}, {2, 3}).mul_(10);
        return z * 2;
      },
      {arange(8, kFloat32), arange(11, kFloat32)});
}

TEST(Strided, ValuesWrittenThroughAViewLieAsBefore) {
  expect_as_eager(
      [](Tensor x) {
        Tensor y = (x * 1).t();  // column-major, until the write below makes a new value of it
        y.select(0, 1).mul_(5);
        return y.as_strided({4}, {1}, 1) * 2;
      },
      {arange(6, kFloat32).view({2, 3}), arange(20, kFloat32).view({4, 5})});
}

TEST(Strided, ReturnedViewsAreViewsOfTheArgument) {
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    auto f = compile([](Tensor x) { return x.as_strided({2}, {2}, 3); }, {.backend = backend});
    Tensor whole = arange(8, kFloat32);
    for (int64_t start : {0, 1, 2}) {
      Tensor part = whole.slice(0, start, 7), view = f(part);
      EXPECT_TRUE(view.is_same_storage(whole)) << backend;
      EXPECT_TRUE(same_bits(view, tensor({3.f, 5.f}))) << backend << " from " << start;
      EXPECT_EQ(view.storage_offset(), 3);
    }
  }
}

TEST(Strided, AChangedOffsetIsNamedAsTheReason) {
  auto f = compile([](Tensor x) { return x.as_strided({2}, {1}, 3) + 1; }, {.dynamic = Dynamic::Off});
  Tensor whole = arange(8, kFloat32);
  f(whole.slice(0, 0, 5));
  f(whole.slice(0, 2, 7));
  const std::vector<std::string> reasons = f.explain().recompiles;
  ASSERT_EQ(reasons.size(), 1u);
  const std::string& said = reasons[0];
  EXPECT_NE(said.find("storage offset of"), std::string::npos) << said;
  EXPECT_NE(said.find("expected 0, got 2"), std::string::npos) << said;
}

TEST(Strided, TheOffsetCountsFromTheStorageAndIsGuarded) {
  auto f = [](Tensor x) { return x.as_strided({2}, {1}, 3) * 3; };
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    auto compiled = compile(f, {.backend = backend});
    for (int64_t start : {0, 1, 3, 1}) {
      Tensor x = arange(9, kFloat32).slice(0, start, start + 5);
      EXPECT_TRUE(same_bits(compiled(x), f(x))) << backend << " from " << start;
    }
  }
}

TEST(Strided, SecondDerivatives) {
  auto f = [](Tensor x) {
    Tensor windows = (x * x * x).as_strided({3, 2}, {1, 1});
    return (windows * windows).sum();
  };
  Tensor x = arange(4, kFloat64).set_requires_grad();
  Tensor slope = autograd::grad({f(x)}, {x}, {}, true, true)[0];
  // Σ w x⁶ with w = 1, 2, 2, 1: 6 w x⁵, 30 w x⁴
  EXPECT_LE(difference(slope, tensor({0., 12., 384., 1458.}, kFloat64)), 1e-12);
  EXPECT_LE(difference(autograd::grad({slope.sum()}, {x})[0], tensor({0., 60., 960., 2430.}, kFloat64)), 1e-12);
}

TEST(Strided, TheGradientOfAnExpandedBaseIsShared) {
  Tensor x = tensor({2.f, 3.f}).set_requires_grad();
  x.expand({3, 2}).as_strided({2, 2}, {1, 0}).sum().backward();
  EXPECT_LE(difference(x.grad(), tensor({2.f, 2.f})), 1e-6);
}

TEST(Strided, WhatLiesOutsideIsRefused) {
  Tensor x = arange(6, kFloat32);
  EXPECT_EQ(error_of([&] { return x.as_strided({3}, {2}, 2); }),
            "[as_strided] sizes [3] with strides [2] from offset 2 reach element 6 of a storage that has 6");
  EXPECT_EQ(error_of([&] { return x.as_strided({3}, {2, 1}); }),
            "[as_strided] expected as many strides as sizes, got [2, 1] and [3]");
  EXPECT_EQ(error_of([&] { return x.as_strided({3}, {-1}); }),
            "[as_strided] expected sizes and strides of at least 0, got [3] and [-1]");
  auto beside = compile([](Tensor y) { return y.as_strided({2}, {1}) * 2; }, {.fullgraph = true});
  EXPECT_EQ(error_of([&] { return beside(x.slice(0, 0, 6, 2)); }),
            "[as_strided] sizes [2] with strides [1] from offset 0 look beside the elements of float32[3] with strides "
            "[2], which is all that the function was given of that memory: pass it the tensor that has all of it");
}

}  // namespace
}  // namespace tenon
