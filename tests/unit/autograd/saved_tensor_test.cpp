#include "unit/autograd/helpers.h"

namespace tenon::testing {
namespace {

TEST(SavedTensors, ResultsSavedByTheirNodeMakeNoRing) {
  WeakRef<TensorImpl> result, changed;
  WeakRef<autograd::Node> node;
  {
    Tensor x = leaf({1.0, 2.0});
    Tensor y = x.exp();
    result = WeakRef<TensorImpl>(y.ref());
    node = WeakRef<autograd::Node>(autograd::grad_fn(y));
    Tensor z = x.clone();
    z.slice(0, 0, 1).exp_();
    changed = WeakRef<TensorImpl>(z.ref());
  }
  EXPECT_TRUE(result.expired());
  EXPECT_TRUE(node.expired());
  EXPECT_TRUE(changed.expired());
}

TEST(SavedTensors, OnlyWhatIsDeclaredIsKept) {
  Tensor x = leaf({1.0, 2.0});
  WeakRef<Storage> summand, factor;
  Tensor y;
  {
    Tensor a = x * 2, b = x * 3;
    summand = WeakRef<Storage>(a.impl()->storage);
    factor = WeakRef<Storage>(b.impl()->storage);
    y = (a + 1) * b;
  }
  EXPECT_TRUE(summand.expired());
  EXPECT_FALSE(factor.expired());
  y.sum().backward();
  EXPECT_TRUE(factor.expired()) << "freed by backward";
}

TEST(SavedTensors, AnInputIsKeptOnlyForThoseWhoNeedIt) {
  Tensor x = leaf({1.0, 2.0});
  WeakRef<TensorImpl> constant;
  Tensor y, z;
  {
    Tensor c = real({3, 4}), d = x * 2;
    constant = WeakRef<TensorImpl>(d.ref());
    y = d * c;  // the gradient of d needs c; nothing needs d
  }
  EXPECT_TRUE(constant.expired());
}

TEST(SavedTensors, ATensorThatComesToDependOnWhoSavedItMakesNoRing) {
  WeakRef<autograd::Node> square, scaled, through_view;
  {
    Tensor x = leaf({1.0, 2.0});
    Tensor y = x * 1;
    Tensor product = y * y;  // saves y
    square = WeakRef<autograd::Node>(autograd::grad_fn(product));
    y.add_(product);  // y's history leads to the square

    Tensor plain = real({3, 4}), times = plain * x;  // saves a tensor without history
    scaled = WeakRef<autograd::Node>(autograd::grad_fn(times));
    plain.add_(times);

    Tensor z = x * 1;
    z.mul_(z.view(SymInts{2}));  // saves a view of what it writes
    through_view = WeakRef<autograd::Node>(autograd::grad_fn(z));
  }
  EXPECT_TRUE(square.expired());
  EXPECT_TRUE(scaled.expired());
  EXPECT_TRUE(through_view.expired());
}

TEST(SavedTensors, HooksPackAndUnpack) {
  Tensor x = leaf({0.5, 1.5});
  int packed = 0, unpacked = 0;
  Tensor y;
  {
    autograd::SavedTensorHooksGuard hooks({[&](const Tensor& t) {
                                             ++packed;
                                             return std::any(values(t));
                                           },
                                           [&](const std::any& content) {
                                             ++unpacked;
                                             return real(std::any_cast<std::vector<double>>(content));
                                           }});
    y = x.sin().exp();
  }
  EXPECT_EQ(packed, 2);
  y.sum().backward();
  EXPECT_EQ(unpacked, 2);
  expect_near(x.grad(), {std::cos(0.5) * std::exp(std::sin(0.5)), std::cos(1.5) * std::exp(std::sin(1.5))});
}

TEST(SavedTensors, PackedTensorsKeepTheirHistory) {
  Tensor x = leaf({0.5});
  Tensor y;
  {
    autograd::SavedTensorHooksGuard hooks(
        {[](const Tensor& t) { return std::any(values(t)); },
         [](const std::any& content) { return real(std::any_cast<std::vector<double>>(content)); }});
    y = x.sin();
  }
  Tensor first = autograd::grad({y}, {x}, {}, true, true)[0];
  expect_near(autograd::grad({first}, {x})[0], {-std::sin(0.5)});
}

TEST(SavedTensors, ALoopThatRewritesItsStateFreesIt) {
  WeakRef<TensorImpl> state;
  {
    Tensor w = leaf({0.9});
    Tensor s = w * 1;
    for (int i = 0; i < 3; ++i) s = s * w + 1;
    state = WeakRef<TensorImpl>(s.ref());
    s.backward();
    // s3 = w⁴ + w² + w + 1 (s0 = w)
    expect_near(w.grad(), {4 * std::pow(0.9, 3) + 2 * 0.9 + 1});
  }
  EXPECT_TRUE(state.expired());
}

}  // namespace
}  // namespace tenon::testing
