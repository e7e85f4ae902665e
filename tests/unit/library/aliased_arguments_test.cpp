// Custom operators whose mutable arguments look into the same memory.
#include <gtest/gtest.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using library::custom_op;
using testing::same_bits;

class AliasedArguments : public ::testing::Test {
 protected:
  AliasedArguments() {
    two.register_fake([](const Tensor&, const Tensor&) {});
    onto.register_fake([](const Tensor&, const Tensor& y) { return empty_like(y); });
    list.register_fake([](const std::vector<Tensor>&, const Tensor& y) { return empty_like(y); });
  }

  static void expect_as_eager(const std::function<Tensor(Tensor)>& f) {
    for (const char* backend : {"eager", "aot_eager", "inductor"})
      for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
        auto compiled = compile(f, {.fullgraph = true, .dynamic = dynamic, .backend = backend});
        for (int64_t size : {4, 6, 4, 8}) {
          SCOPED_TRACE(fmt::format("{}, {} elements", backend, size));
          Tensor x = arange(size, kFloat32), y = arange(size, kFloat32);
          Tensor expected = f(x), got = compiled(y);
          EXPECT_TRUE(same_bits(got, expected));
          EXPECT_TRUE(same_bits(y, x)) << "the argument itself";
        }
      }
  }

  library::CustomOp<void, Tensor, Tensor> two = custom_op("aliased::two",
                                                          [](const Tensor& a, const Tensor& b) {
                                                            a.add_(1);
                                                            b.mul_(2);
                                                          },
                                                          {.mutates = {"a", "b"}, .names = "a, b"});
  library::CustomOp<Tensor, Tensor, Tensor> onto = custom_op("aliased::onto",
                                                             [](const Tensor& a, const Tensor& y) {
                                                               a.add_(1);
                                                               return y * 3;
                                                             },
                                                             {.mutates = {"a"}, .names = "a, y"});
  library::CustomOp<Tensor, std::vector<Tensor>, Tensor> list =
      custom_op("aliased::list",
                [](const std::vector<Tensor>& xs, const Tensor& y) {
                  xs[0].add_(y);
                  xs[1].mul_(3);
                  return y * 1;
                },
                {.mutates = {"xs"}, .names = "xs, y"});
};

TEST_F(AliasedArguments, OneTensorTwice) {
  expect_as_eager([&](Tensor x) {
    two(x, x);
    return x * 1;
  });
  expect_as_eager([&](Tensor x) {
    Tensor y = x * 1, whole = onto(y, y);
    return whole + y;
  });
}

TEST_F(AliasedArguments, SlicesThatOverlap) {
  auto f = [&](Tensor x) {
    Tensor y = x * 1;
    two(y.slice(0, 0, 3), y.slice(0, 1, 4));
    return y * 1;
  };
  EXPECT_TRUE(same_bits(f(arange(4, kFloat32)), tensor({1.f, 4.f, 6.f, 6.f})));
  expect_as_eager(f);
  expect_as_eager([&](Tensor x) {
    two(x.slice(0, 0, 3), x.slice(0, 1, 4));
    return x.slice(0, 1) * 2;
  });
}

TEST_F(AliasedArguments, ViewsOfOtherStrides) {
  expect_as_eager([&](Tensor x) {
    Tensor y = (x * 1).view({2, -1}).t();
    y.select(1, 0).add_(1);  // a new value, which must lie as before
    two(y, y.select(0, 1));
    return y * 1;
  });
  expect_as_eager([&](Tensor x) {
    Tensor y = x * 1, wide = y.expand({2, y.size(0)});
    Tensor read = onto(y.slice(0, 1, 3), wide);
    return read + y;
  });
}

TEST_F(AliasedArguments, InLists) {
  expect_as_eager([&](Tensor x) {
    Tensor y = x * 1;
    Tensor before = list(std::vector<Tensor>{y.slice(0, 0, 2), y}, y.slice(0, 2, 4));
    return cat({y, before});
  });
}

TEST_F(AliasedArguments, OthersAreLeftAlone) {
  expect_as_eager([&](Tensor x) {
    Tensor y = x * 1, z = x * 2;
    two(y, z);
    two(z, y.slice(0, 0, 2));
    return y + z;
  });
}

}  // namespace
}  // namespace tenon
