// In-place changes, of tensors and through views.
#include "unit/autograd/helpers.h"

#include <tenon/capture/compile.h>

namespace tenon::testing {
namespace {

TEST(Inplace, LeavesAreProtected) {
  Tensor x = leaf({1.0, 2.0});
  EXPECT_EQ(error_of([&] { x.add_(1); }),
            "[add_] a leaf Variable that requires grad is being used in an in-place operation: use no_grad()");
  EXPECT_EQ(
      error_of([&] { x.view({2, 1}).mul_(2); }),
      "[mul_] a view of a leaf Variable that requires grad is being used in an in-place operation: use no_grad()");
  EXPECT_EQ(values(x), (std::vector<double>{1, 2})) << "nothing was changed";
  NoGrad off;
  x.add_(1);
  EXPECT_EQ(values(x), (std::vector<double>{2, 3}));
  EXPECT_TRUE(x.requires_grad());
}

TEST(Inplace, HistoryIsRewritten) {
  Tensor x = leaf({0.5, -1.0});
  Tensor y = x * 2;
  y.sin_();
  y.mul_(3);
  y.sum().backward();  // 3 sin 2x
  expect_near(x.grad(), {6 * std::cos(1.0), 6 * std::cos(-2.0)});
}

TEST(Inplace, FormulasReadWhatWasThereBefore) {
  Tensor x = leaf({0.5, -1.0}), w = leaf({3.0, 5.0});
  Tensor y = x.clone();
  y.mul_(w);  // the gradient of w needs y before the change
  y.sum().backward();
  expect_near(x.grad(), {3, 5});
  expect_near(w.grad(), {0.5, -1});
  Tensor z = leaf({3.0});
  Tensor square = z.clone();
  square.mul_(square);
  square.backward();
  expect_near(z.grad(), {6});
}

TEST(Inplace, AConstantBecomesDifferentiable) {
  Tensor buffer = real({1, 1, 1});
  Tensor x = leaf({2.0, 3.0, 4.0});
  buffer.mul_(x);
  EXPECT_TRUE(buffer.requires_grad());
  EXPECT_FALSE(buffer.is_leaf());
  buffer.sum().backward();
  expect_near(x.grad(), {1, 1, 1});
}

TEST(Inplace, OverwritingCutsTheOldHistory) {
  Tensor x = leaf({1.0, 2.0}), v = leaf({5.0, 6.0});
  Tensor y = x * 3;
  y.copy_(v);
  y.sum().backward();
  EXPECT_TRUE(!x.grad().defined() || values(x.grad()) == (std::vector<double>{0, 0}));
  expect_near(v.grad(), {1, 1});
}

TEST(Inplace, SavedTensorsRememberTheirVersion) {
  Tensor x = leaf({1.0, 2.0, 3.0});
  Tensor y = x * 2;
  Tensor z = y.sin();
  y.add_(1);
  EXPECT_EQ(error_of([&] { z.sum().backward(); }),
            "[backward] one of the variables needed for gradient computation has been modified by an inplace "
            "operation: for SinBackward0 it is "
            "float64[3] at "
            "version 1, expected version 0");
  Tensor e = x.exp();
  e.add_(1);
  EXPECT_EQ(error_of([&] { e.sum().backward(); }),
            "[backward] one of the variables needed for gradient computation has been modified by an inplace "
            "operation: for ExpBackward0 it is "
            "float64[3] at "
            "version 1, expected version 0");
}

TEST(Inplace, WhatNobodySavedMayChange) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x * 2;
  Tensor z = y + 1;  // saves nothing
  y.zero_();
  z.sum().backward();
  expect_near(x.grad(), {2, 2});
  // A product with a constant saves the constant, not the variable.
  Tensor c = real({3, 4}), a = x.clone(), b = a * c;
  a.zero_();
  x.set_grad(Tensor());
  b.sum().backward();
  expect_near(x.grad(), {3, 4});
}

TEST(Inplace, ChangesThroughAViewReachTheBase) {
  Tensor x = leaf({1.0, 2.0, 3.0, 4.0});
  Tensor base = x * 1;
  base.slice(0, 1, 3).mul_(10);
  expect_near(base, {1, 20, 30, 4});
  (base * base).sum().backward();
  expect_near(x.grad(), {2, 400, 600, 8});
}

TEST(Inplace, ThroughChainsOfViews) {
  Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor w = leaf({7.0, 8.0});
  Tensor base = x.clone();
  Tensor column = base.t().select(0, 1);  // elements 2 and 5
  column.mul_(w);
  (base * base).sum().backward();
  expect_near(x.grad(), {2, 2 * 2 * 49, 6, 8, 2 * 5 * 64, 12});
  expect_near(w.grad(), {2 * 7 * 4, 2 * 8 * 25});
}

TEST(Inplace, FiniteDifferencesThroughViews) {
  Tensor x = real({0.3, -1.2, 0.8, 1.7, -0.4, 2.1}, {2, 3}), v = real({0.9, -0.6});
  check_gradients(
      [](const std::vector<Tensor>& in) {
        Tensor base = in[0].sin();
        base.select(1, 2).mul_(in[1]).sin_();
        base.view({6}).slice(0, 0, 6, 2).add_(base.slice(1, 0, 1).sum());
        base.unsqueeze(0).permute({2, 0, 1}).select(0, 0).squeeze().copy_(in[1] * in[1]);
        return base.tanh();
      },
      {x, v});
  check_second_gradients(
      [](const std::vector<Tensor>& in) {
        Tensor base = in[0].sin();
        base.select(1, 2).mul_(in[1]).exp_();
        return base * base;
      },
      {x, v});
}

TEST(Inplace, ViewsMadeBeforeFollowTheBase) {
  Tensor x = leaf({1.0, 2.0, 3.0});
  Tensor base = x * 2;
  Tensor view = base.slice(0, 0, 2);
  base.mul_(5);
  expect_near(view, {10, 20});
  view.sum().backward();
  expect_near(x.grad(), {10, 10, 0});
}

// Found by the fuzzer against PyTorch (89001317): a question about a view without a history noted its version.
TEST(Inplace, AskingAViewForItsHistoryChangesNothing) {
  for (bool asks : {false, true}) {
    Tensor base = ones({4});
    Tensor view = base.narrow(0, 0, 2);
    base.add_(1.0);
    if (asks) {
      EXPECT_TRUE(view.is_leaf());
      EXPECT_FALSE(view.requires_grad());
    }
    base.set_requires_grad();
    EXPECT_TRUE(view.requires_grad()) << asks;
    EXPECT_FALSE(view.is_leaf()) << asks;
    view.sum().backward();
    expect_near(base.grad(), {1, 1, 0, 0});
  }
}

TEST(Inplace, SiblingsFollowEachOther) {
  Tensor x = leaf({1.0, 2.0, 3.0});
  Tensor base = x * 2;
  Tensor first = base.slice(0, 0, 2), second = base.slice(0, 1, 3);
  first.mul_(5);
  second.sum().backward();  // 10 x1 + 2 x2
  expect_near(x.grad(), {0, 10, 2});
}

TEST(Inplace, ABufferFilledPieceByPiece) {
  Tensor x = leaf({2.0, 3.0});
  Tensor buffer = real({0, 0, 0, 0}, {2, 2});
  Tensor early = buffer.select(0, 0);  // made before anything requires grad
  buffer.select(0, 0).copy_(x);
  buffer.select(0, 1).copy_(x * x);
  EXPECT_TRUE(buffer.requires_grad());
  EXPECT_TRUE(early.requires_grad());
  (buffer.sum() + early.sum()).backward();
  expect_near(x.grad(), {2 + 4, 2 + 6});
}

TEST(Inplace, DetachedTensorsShareDataAndVersion) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x.exp();
  y.detach().add_(1);
  EXPECT_EQ(y.version(), 1);
  EXPECT_EQ(error_of([&] { y.sum().backward(); }),
            "[backward] one of the variables needed for gradient computation has been modified by an inplace "
            "operation: for ExpBackward0 it is "
            "float64[2] at "
            "version 1, expected version 0");
}

TEST(Inplace, ViewsMadeWithoutGrad) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x * 2, view;
  {
    NoGrad off;
    view = y.view({2, 1});
    EXPECT_FALSE(view.requires_grad());
  }
  EXPECT_EQ(error_of([&] { view.mul_(2); }),
            "[mul_] A view was created in no_grad mode and is being modified inplace with grad mode enabled: make the "
            "view and change it both inside the no_grad block, or both outside");
  NoGrad off;
  view.mul_(2);
  expect_near(y, {4, 8});
}

TEST(Inplace, VersionsCountChanges) {
  Tensor x = real({1, 2});
  EXPECT_EQ(x.version(), 0);
  x.add_(1).mul_(2);
  x.view({2, 1}).zero_();
  EXPECT_EQ(x.version(), 3);
}

TEST(Inplace, RetainedGradientsFollowTheNewHistory) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x * 3;
  y.retain_grad();
  y.mul_(4);
  (y * 5).sum().backward();
  expect_near(y.grad(), {5, 5});
  expect_near(x.grad(), {60, 60});
}

// In-place forms that copy what a row gives into `self`: what backward needs of it is as it was, also where that is
// saved by what the row is taken apart into.
TEST(Inplace, FormsThatCopyKeepWhatBackwardNeeds) {
  using Two = std::pair<std::function<Tensor(Tensor, Tensor)>, std::function<Tensor(Tensor, Tensor)>>;
  const Two kForms[] = {
      {[](Tensor x, Tensor) { return x.arcsin_(); }, [](Tensor x, Tensor) { return x.arcsin(); }},
      {[](Tensor x, Tensor) { return x.absolute_(); }, [](Tensor x, Tensor) { return x.absolute(); }},
      {[](Tensor x, Tensor y) { return x.arctan2_(y); }, [](Tensor x, Tensor y) { return x.arctan2(y); }},
      {[](Tensor x, Tensor y) { return x.float_power_(y); }, [](Tensor x, Tensor y) { return x.float_power(y); }},
      {[](Tensor x, Tensor y) { return x.multiply_(y); }, [](Tensor x, Tensor y) { return x.multiply(y); }},
      {[](Tensor x, Tensor) { return x.cumprod_(0); }, [](Tensor x, Tensor) { return x.cumprod(0); }},
      {[](Tensor x, Tensor y) { return x.addmm_(y, y); }, [](Tensor x, Tensor y) { return x.addmm(y, y); }},
      {[](Tensor x, Tensor) { return selu_(x); }, [](Tensor x, Tensor) { return selu(x); }},
  };
  for (size_t at = 0; at < std::size(kForms); ++at)
    for (const char* backend : {"none", "aot_eager", "inductor"}) {
      auto slopes = [&](auto&& form) {
        manual_seed(7);
        Tensor x = rand({3, 3}, kFloat64).set_requires_grad(), y = rand({3, 3}, kFloat64).set_requires_grad();
        Tensor made = form(x * 1.0, y);
        return autograd::grad({(made * arange(9).view({3, 3})).sum()}, {x, y}, {}, false, false, true);
      };
      auto in_place = [&](Tensor x, Tensor y) {
        return std::string(backend) == "none" ? kForms[at].first(x, y)
                                              : compile(kForms[at].first, {.backend = backend})(x, y);
      };
      std::vector<Tensor> wanted = slopes(kForms[at].second), got = slopes(in_place);
      for (size_t of = 0; of < 2; ++of) {
        ASSERT_EQ(got[of].defined(), wanted[of].defined()) << at << ' ' << backend;
        if (!wanted[of].defined()) continue;
        EXPECT_LT((got[of] - wanted[of]).abs().max().item<double>(), 1e-12) << at << backend;
      }
    }
}

}  // namespace
}  // namespace tenon::testing
