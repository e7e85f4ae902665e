// Writes through views that show one element several times, and to tensors that do.
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include "backends.h"
#include "unit/capture/testing.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::kBackends;
using testing::same_bits;

// Results, what became of the argument, and gradients, twice with each size.
void expect_as_eager(const std::function<Tensor(Tensor)>& f, bool grad = true) {
  for (const char* backend : kBackends) {
    auto compiled = compile(f, {.dynamic = Dynamic::On, .backend = backend});
    for (int64_t size : {6, 4, 6, 9}) {
      SCOPED_TRACE(fmt::format("{}, {} elements", backend, size));
      Tensor x = arange(size, kFloat32), y = arange(size, kFloat32);
      if (grad) x.set_requires_grad(), y.set_requires_grad();
      Tensor expected = f(x), got = compiled(y);
      EXPECT_TRUE(same_bits(got, expected));
      EXPECT_TRUE(same_bits(y.detach(), x.detach()));
      if (!grad) continue;
      (expected * expected).sum().backward();
      (got * got).sum().backward();
      EXPECT_LE(difference(y.grad(), x.grad()), 1e-6);
    }
  }
}

TEST(Overlap, WritesThroughExpand) {
  auto f = [](Tensor x) {
    Tensor wide = x.expand({3, x.size(0)});
    wide[0][0].add_(5);
    wide[1][2].mul_(2);  // the second copy, which is the first
    return wide;
  };
  Tensor x = arange(4, kFloat32);
  EXPECT_TRUE(same_bits(f(x)[2], tensor({5.f, 1.f, 4.f, 3.f})));
  EXPECT_TRUE(same_bits(x, tensor({5.f, 1.f, 4.f, 3.f})));
  expect_as_eager(f, false);
  expect_as_eager([&](Tensor y) { return f(y * 1) * y; });
}

TEST(Overlap, WritesThroughUnfold) {
  auto f = [](Tensor x) {
    Tensor y = x * 1, windows = y.unfold(0, 2, 1);
    windows.select(0, 1).mul_(5);
    windows.select(1, 0).add_(1);
    return windows + y.sum();
  };
  // 0 1 2 3 → 0 5 10 3 → 1 6 11 3
  EXPECT_TRUE(same_bits(f(arange(4, kFloat32)), tensor({22.f, 27.f, 27.f, 32.f, 32.f, 24.f}).view({3, 2})));
  expect_as_eager(f);
  // Windows that lie apart are elements of their own.
  expect_as_eager([](Tensor x) {
    Tensor y = x * 1;
    y.unfold(0, 2, 2).mul_(5);
    return y;
  });
}

TEST(Overlap, GradientsOfWritesThroughExpand) {
  Tensor x = tensor({1.f, 2.f}).set_requires_grad(), v = tensor(3.f).set_requires_grad();
  Tensor y = x * 1;
  y.expand({3, 2})[1][0].mul_(v);
  (y * tensor({10.f, 100.f})).sum().backward();
  EXPECT_TRUE(same_bits(x.grad(), tensor({30.f, 100.f})));
  EXPECT_TRUE(same_bits(v.grad(), tensor(10.f)));
}

TEST(Overlap, WhatIsOneElementTwiceCannotBeWritten) {
  auto text = [](const char* op) {
    return fmt::format(
        "[{}] unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation.",
        op);
  };
  const std::vector<std::pair<std::string, std::function<Tensor(Tensor)>>> cases = {
      {"add_", [](Tensor x) { return x.expand({3, x.size(0)}).slice(0, 0, 3).select(1, 0).add_(5); }},
      {"mul_", [](Tensor x) { return x.unfold(0, 2, 1).mul_(5); }},
      {"mul_", [](Tensor x) { return x.unfold(0, 3, 2).mul_(5); }},
      {"copy_", [](Tensor x) { return x.expand({2, x.size(0)}).copy_(ones({2, 6})); }},
      {"relu_", [](Tensor x) { return x.as_strided({2, 3}, {2, 1}).relu_(); }},
  };
  for (const auto& [op, f] : cases) {
    EXPECT_EQ(error_of([&] { return f(arange(6, kFloat32)); }), text(op.c_str()));
    for (const char* backend : kBackends)
      for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
        auto compiled = compile(f, {.dynamic = dynamic, .backend = backend});
        EXPECT_EQ(error_of([&] { return compiled(arange(6, kFloat32)); }), text(op.c_str())) << backend;
      }
  }
}

// As PyTorch allows: every element of a place gets the same number. And of no elements, or one, there are no two.
TEST(Overlap, OneNumberForAllMayBeWritten) {
  expect_as_eager([](Tensor x) {
    Tensor y = x * 1;
    y.slice(0, 1, 3).expand({2, 2}).fill_(7);
    y.slice(0, 3).unfold(0, 1, 1).zero_();
    return y;
  });
  EXPECT_EQ(zeros({0}).expand({2, 0}).add_(1).numel().plain(), 0);
  EXPECT_TRUE(same_bits(zeros({3}).expand({1, 3}).add_(1), ones({1, 3})));
}

}  // namespace
}  // namespace tenon
