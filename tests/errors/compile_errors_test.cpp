// What a person reads when something they passed cannot work.
#include "../unit/capture/testing.h"

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

TEST(CompileErrors, AShapeErrorInsideTheFunction) {
  auto f = compile([](Tensor a, Tensor b) { return mm(a, b) + 1; });
  EXPECT_EQ(error_of([&] { f(randn({32, 64}), randn({32, 128})); }),
            "[mm] 32×64 and 32×128 (float32) cannot be multiplied: expected 64 rows");
  EXPECT_EQ(f.compile_count(), 0);
  // The function is still usable.
  Tensor a = randn({3, 4}), b = randn({4, 2});
  EXPECT_TRUE(same_bits(f(a, b), mm(a, b) + 1));
}

TEST(CompileErrors, AShapeErrorAfterACompile) {
  auto f = compile([](Tensor x, Tensor y) { return x + y; });
  f(randn({4}), randn({4}));
  EXPECT_EQ(error_of([&] { f(randn({4}), randn({3})); }),
            "[add] shapes [4], [s0] cannot be broadcast together: dimension 0 is 4 and s0 (with s0 = 3)");
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(CompileErrors, AnUndefinedTensor) {
  auto f = compile([](Tensor x, Tensor y) { return x + y; });
  EXPECT_EQ(error_of([&] { f(ones({2}), Tensor()); }), "[compile] argument 1 is an undefined tensor");
  EXPECT_EQ(error_of([&] { ones({2}) + Tensor(); }), "[add] expected a tensor, got an undefined one");
}

TEST(CompileErrors, AnotherDevice) {
  auto f = compile([](Tensor x) { return x + 1; });
  EXPECT_EQ(error_of([&] { f(empty({2}, TensorOptions(kMeta))); }), "[compile] arg0 is on meta: expected cpu");
}

TEST(CompileErrors, NoArguments) {
  auto f = compile([] { return ones({3}) * 2; });
  EXPECT_TRUE(same_bits(f(), ones({3}) * 2));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(CompileErrors, ATensorKeptFromAnotherCapture) {
  Tensor kept;
  auto f = compile([&](Tensor x) {
    kept = x * 2;
    return x + 1;
  });
  EXPECT_NE(error_of([&] { f(ones({2})); }).find("a result of aten::mul.Scalar is still held after the capture"),
            std::string::npos);
  auto g = compile([&](Tensor x) { return x + kept; });
  EXPECT_NE(error_of([&] { g(ones({2})); }).find("of another capture was used"), std::string::npos);
}

TEST(CompileErrors, DataOfAFake) {
  auto f = compile([](Tensor x) {
    x.data<float>();
    return x;
  });
  EXPECT_EQ(error_of([&] { f(ones({2})); }),
            "[data] Cannot access data pointer of a fake tensor float32[2]: it has no data");
}

TEST(CompileErrors, DifferentiatingTwiceWhereThatIsRefused) {
  Tensor w = ones({2}).set_requires_grad();
  auto f = compile([&](Tensor x) { return (x * w * w).sum(); }, {.double_backward = DoubleBackward::Refuse});
  Tensor slope = autograd::grad({f(ones({2}))}, {w}, {}, true, true)[0];
  EXPECT_EQ(error_of([&] { autograd::grad({slope.sum()}, {w}); }),
            "[backward] torch.compile with aot_autograd does not currently support double backward: the function was "
            "compiled with double_backward = Refuse");
}

TEST(CompileErrors, HookOnAResultThatAnotherWasComputedFrom) {
  Tensor w = ones({2}).set_requires_grad();
  auto f = compile([&](Tensor x) {
    Tensor y = x * w;
    return std::tuple(y, y.exp());
  });
  auto [y, z] = f(ones({2}));
  autograd::register_hook(y, [](const Tensor& gradient) { return gradient * 2; });
  EXPECT_EQ(error_of([&, &z = z] { z.sum().backward(); }),
            "[register_hook] a hook is set on a result of CompiledFunctionBackward from which another result of the "
            "same call "
            "was computed, and the gradient goes through both: compute the second one in a call of its own, or set the "
            "hook inside the function");
}

TEST(CompileErrors, ResultThatBackwardNeedsChangedInPlace) {
  auto f = compile([](Tensor x) { return x.exp(); });
  Tensor y = f(ones({2}).set_requires_grad());
  y.detach().mul_(2);
  EXPECT_EQ(error_of([&] { y.sum().backward(); }),
            "[backward] one of the variables needed for gradient computation has been modified by an inplace "
            "operation: for CompiledFunctionBackward "
            "a result of it is at version 1, expected version 0");
}

TEST(CompileErrors, BackwardTwiceWithoutRetaining) {
  Tensor w = ones({2}).set_requires_grad();
  auto f = compile([&](Tensor x) { return (x * w * w).sum(); });
  Tensor loss = f(ones({2}));
  loss.backward();
  EXPECT_NE(error_of([&] { loss.backward(); }).find("the graph was freed"), std::string::npos);
}

TEST(CompileErrors, ASavedArgumentChangedBeforeBackward) {
  Tensor w = ones({2}).set_requires_grad(), x = ones({2});
  auto f = compile([&](Tensor a) { return (a * w).sum(); });
  Tensor loss = f(x);
  x.add_(1);
  EXPECT_NE(error_of([&] { loss.backward(); }).find("modified by an inplace operation"), std::string::npos);
}

TEST(CompileErrors, AnIndexOutOfRangeIsFoundAtRunTime) {
  auto f = compile([](Tensor x, Tensor index) { return gather(x, 1, index) * 2; });
  Tensor x = randn({2, 3});
  f(x, tensor({0, 2}).view({2, 1}));
  EXPECT_EQ(error_of([&] { f(x, tensor({0, 3}).view({2, 1})); }), "[gather] an index is out of range");
  f(x, tensor({1, 1}).view({2, 1}));
  EXPECT_EQ(f.compile_count(), 1);
}

}  // namespace
}  // namespace tenon
