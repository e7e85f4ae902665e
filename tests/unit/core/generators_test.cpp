// Generators as arguments, and the mode for inference.
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "values_of.h"

namespace tenon {
namespace {

using ::testing::Each;
using testing::error_of;
using ::testing::HasSubstr;
using testing::values;

TEST(Generators, AreArguments) {
  Generator one(7), other(7);
  Tensor first = rand({2, 3}, one), second = rand({2, 3}, one);
  EXPECT_NE(values(first), values(second)) << "each use goes on";
  EXPECT_EQ(values(rand({2, 3}, other)), values(first));
  one.manual_seed(7);
  EXPECT_EQ(values(rand({2, 3}, one)), values(first));
  EXPECT_EQ(randn({3}, one, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(rand_like(ones({4}, kFloat64), one).description(), "float64[4]");
  EXPECT_EQ(randn_like(ones({4}, kFloat64), one, kFloat32).description(), "float32[4]");
  EXPECT_THAT(values(randint(3, 5, {50}, one)), Each(::testing::AnyOf(3, 4)));
  EXPECT_THAT(values(randint(1, {10}, one)), Each(0));
  EXPECT_THAT(values(bernoulli(zeros({20}), one)), Each(0));
  EXPECT_THAT(values(bernoulli(ones({20}), one)), Each(1));
}

TEST(Generators, LeaveTheDefaultOneAlone) {
  manual_seed(3);
  Tensor expected = rand({4});
  manual_seed(3);
  Generator mine(3);
  Tensor same = rand({4}, mine);
  EXPECT_EQ(values(rand({4})), values(expected));
  EXPECT_EQ(values(same), values(expected)) << "the same seed gives the same numbers";
  Generator again(9);
  Tensor x = ones({100});
  Tensor dropped = with_generator(again, [&] { return dropout(x, 0.5, true); });
  again.manual_seed(9);
  EXPECT_EQ(values(with_generator(again, [&] { return dropout(x, 0.5, true); })), values(dropped));
}

TEST(Generators, ACompiledFunctionDrawsAtEveryCall) {
  Generator generator(5), eager(5);
  auto f = compile([&](Tensor x) { return x * 2 + rand({3}, generator); });
  Tensor x = ones({3});
  for (int call = 0; call < 4; ++call) EXPECT_EQ(values(f(x)), values(x * 2 + rand({3}, eager))) << "call " << call;
  auto refused = compile([&](Tensor t) { return with_generator(generator, [&] { return dropout(t, 0.5, true); }); });
  EXPECT_THAT(error_of([&] { refused(x); }), HasSubstr("Write rand(size, generator)"));
}

TEST(InferenceMode, RecordsNothing) {
  Tensor w = ones({2}).set_requires_grad();
  EXPECT_FALSE(InferenceMode::is_enabled());
  {
    InferenceMode on;
    EXPECT_TRUE(InferenceMode::is_enabled());
    EXPECT_FALSE((w * 2).requires_grad());
    {
      InferenceMode off(false);
      EXPECT_FALSE(InferenceMode::is_enabled());
      (w * 2).sum().backward();
    }
    EXPECT_TRUE(InferenceMode::is_enabled());
    EXPECT_FALSE((w * 2).requires_grad());
  }
  EXPECT_EQ(values(w.grad()), (std::vector<double>{2, 2}));
  EXPECT_TRUE((w * 2).requires_grad());
  {
    NoGrad none;
    InferenceMode off(false);
    EXPECT_FALSE((w * 2).requires_grad()) << "there was no such mode to turn off";
  }
  auto f = compile([](Tensor x) {
    InferenceMode on;
    return x * 3;
  });
  EXPECT_FALSE(f(w).requires_grad());
  EXPECT_EQ(values(f(w)), (std::vector<double>{3, 3}));
}

}  // namespace
}  // namespace tenon
