// Seed 003: batch norms and convolutions, products of one input, and dtypes that stay.
#include "freeze.h"

#include <tenon/kernels/matmul.h>

namespace tenon {
namespace {

using testing::Contains;
using testing::ConvBN;
using testing::ConvFunctionalBN;
using testing::count_of;
using testing::difference;
using testing::freezing_options;
using testing::HasSubstr;
using testing::Launched;
using testing::launched_by;
using testing::only_entry;
using testing::operators_of;
using testing::same_bits;
using testing::train_a_little;

// The products of one input with two or three matrices, of which the caller says how many calls they are.
template <typename M>
void check_products(const M& module, const Tensor& input, int64_t products) {
  NoGrad off;
  std::vector<Tensor> expected = module(input);
  auto foo = compile([&](Tensor x) { return module(x); }, freezing_options());
  foo(input);
  std::vector<Tensor> found;
  Launched launched = launched_by([&] { found = foo(input); });
  EXPECT_EQ(launched.library_calls, products);
  EXPECT_EQ(launched.kernels, 0);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t at = 0; at < found.size(); ++at) {
    EXPECT_LT(difference(found[at], expected[at]), 1e-6);
    EXPECT_EQ(found[at].strides(), expected[at].strides());
  }
  EXPECT_EQ(foo.compile_count(), 1);
}

TEST(OptimizeForInferenceTemplate, mm_concat) {
  struct MM : nn::Module {
    Cell<Tensor> t1, t2, t3;
    explicit MM(int64_t first = 10, int64_t second = 10)
        : t1(parameter("t1", rand({10, first}))),
          t2(parameter("t2", rand({10, second}))),
          t3(parameter("t3", rand({10, 10}))) {}
    std::vector<Tensor> operator()(const Tensor& x) const {
      return {matmul(x, t1.get()), matmul(x, t2.get()), matmul(x, t3.get())};
    }
  };
  struct MM2 : nn::Module {
    Cell<Tensor> t1 = parameter("t1", rand({10, 10})), t2 = parameter("t2", rand({10, 10}));
    std::vector<Tensor> operator()(const Tensor& x) const { return {matmul(x, t1.get()), matmul(x, t2.get())}; }
  };
  struct AddMM : MM {
    Cell<Tensor> b1 = parameter("b1", rand({10})), b2 = parameter("b2", rand({10})), b3 = parameter("b3", rand({10}));
    std::vector<Tensor> operator()(const Tensor& x) const {
      return {addmm(b1.get(), x, t1.get()), addmm(b2.get(), x, t2.get()), addmm(b3.get(), x, t3.get())};
    }
  };
  Tensor input = rand({10, 10});
  check_products(MM(), input, 1);
  check_products(MM2(), input, 1);
  check_products(AddMM(), input, 1);
  // Of other widths: they stay as they are.
  check_products(MM(15, 20), input, 3);
}

// The dtype of the seed's input is that of the scope, which on CPUs is bfloat16.
TEST(OptimizeForInferenceTemplate, autocast) {
  nn::Linear mod(10, 10);
  mod.eval();
  Tensor input = rand({10, 10}).to(kBFloat16);
  auto foo = compile([&](Tensor x) { return mod(x); }, freezing_options());
  NoGrad off;
  Autocast guard;
  Tensor expected = mod(input);
  EXPECT_LT(difference(foo(input), expected), 1e-2);
  Tensor found;
  Launched launched = launched_by([&] { found = foo(input); });
  EXPECT_LT(difference(found, expected), 1e-2);
  EXPECT_EQ(found.dtype(), kBFloat16);
  EXPECT_EQ(operators_of(only_entry(foo)), "aten::permute aten::addmm") << "weight and bias were cast once";
  // Where the library does not know the dtype, the product is a loop.
  if (!kernels::matmul_supports(kBFloat16)) return;
  EXPECT_EQ(launched.kernels, 0);
  EXPECT_EQ(launched.library_calls, 1);
}

TEST(OptimizeForInferenceTemplate, unequal_bias_horizontal_addmm_fusion) {
  struct Model : nn::Module {
    Tensor w1 = ones({3, 3}), b1 = zeros({3});
    Tensor w2 = tensor({0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 1.0f}).view({3, 3});
    Tensor b2 = tensor({-1.0f, -1.0f, -1.0f}).view({1, 3});
    Tensor w3 = eye(3), b3 = tensor({1.0f, 2.0f, 3.0f});
    std::vector<Tensor> operator()(const Tensor& x) const {
      return {linear(x, w1, b1), linear(x, w2, b2), linear(x, w3, b3)};
    }
  };
  Model func;
  Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}).view({2, 3});
  NoGrad off;
  std::vector<Tensor> expected = func(x.clone());
  auto compiled = compile([&](Tensor rows) { return func(rows); }, freezing_options());
  std::vector<Tensor> found = compiled(x.clone());
  for (size_t at = 0; at < 3; ++at) EXPECT_TRUE(same_bits(found[at], expected[at]));
  EXPECT_EQ(operators_of(only_entry(compiled)),
            "aten::unsqueeze aten::expand aten::baddbmm aten::select.int aten::select.int aten::select.int");
}

TEST(OptimizeForInferenceTemplate, conv_multiple_uses) {
  struct ToyModel : nn::Module {
    nn::Conv2d conv1 = submodule("conv1", nn::Conv2d(1, 1, 1));
    nn::BatchNorm2d bn1 = submodule("bn1", nn::BatchNorm2d(1));
    ToyModel() { bn1.weight.get().detach().copy_(randn({1})); }
    Tensor operator()(const Tensor& x, const Tensor& y) const { return conv1(x) + bn1(conv1(y)); }
  };
  ToyModel model;
  model.eval();
  Tensor a = rand({64, 1, 32, 32}), b = rand({64, 1, 32, 32});
  Tensor output = model(a, b).detach();
  auto compiled = compile([&](Tensor x, Tensor y) { return model(x, y); }, freezing_options());
  NoGrad off;
  EXPECT_LT(difference(compiled(a, b), output), 1e-5);
  EXPECT_EQ(count_of("aten::convolution(", only_entry(compiled).frozen), 2);
  EXPECT_THAT(only_entry(compiled).freezing,
              Contains(HasSubstr("its weight is read 2 times, and would be kept twice")));
}

TEST(OptimizeForInferenceTemplate, unfolded_bn) {
  Tensor x = rand({3, 32, 15, 15});
  nn::BatchNorm2d mod(32, {.eps = 0.001});
  mod.eval();
  auto foo = compile([&](Tensor image) { return mod(image) + 10; }, freezing_options());
  Tensor with_grad = foo(x);
  EXPECT_TRUE(with_grad.requires_grad());
  EXPECT_THAT(only_entry(foo).freezing, Contains("not frozen: grad mode is on: parameters may be trained"));
  NoGrad off;
  EXPECT_LT(difference(foo(x), with_grad.detach()), 1e-6);
  std::string last = foo.explain().entries.back().frozen;
  EXPECT_EQ(count_of("aten::rsqrt(", last), 0) << last;
  EXPECT_THAT(last, HasSubstr("%constant0: float32[1, "));
}

TEST(OptimizeForInferenceTemplate, folded_conv_bn) {
  for (bool use_bias : {true, false})
    for (Dtype dtype : {kBFloat16, kFloat32}) {
      SCOPED_TRACE(std::string(name(dtype)) + (use_bias ? " with a bias" : ""));
      ConvBN mod(3, 32, use_bias);
      mod.eval().to(dtype);
      Tensor x = rand({3, 3, 32, 32}).to(dtype);
      auto foo = compile([&](Tensor image) { return mod(image); }, freezing_options());
      NoGrad off;
      Tensor expected = mod(x), found = foo(x);
      EXPECT_EQ(found.dtype(), dtype);
      EXPECT_LT(difference(found, expected), dtype == kFloat32 ? 1e-5 : 1e-2);
      Explanation::Entry entry = only_entry(foo);
      EXPECT_EQ(operators_of(entry), "aten::convolution");
      // The weight, and one constant behind it.
      EXPECT_THAT(
          entry.frozen,
          HasSubstr("aten::convolution(%arg0, %constant1, %constant0, [2, 2], [0, 0], [1, 1], false, [0, 0], 1)"));
      EXPECT_THAT(entry.freezing, Contains(HasSubstr("folded into convolution")));
    }
}

// A module that is called twice, once in vain: what nobody needs goes, and the norm is folded.
template <typename M>
void check_called_twice(const M& mod, const Tensor& x) {
  auto call = [&](const Tensor& image) {
    mod(image);
    return mod(image);
  };
  NoGrad off;
  Tensor expected = call(x);
  auto foo = compile([&](Tensor image) { return call(image); }, freezing_options());
  EXPECT_LT(difference(foo(x), expected), 1e-5);
  EXPECT_EQ(operators_of(only_entry(foo)), "aten::convolution");
}

TEST(OptimizeForInferenceTemplate, folded_conv_bn_with_module_sharing) {
  ConvBN mod(32, 32, true);
  train_a_little(mod, {3, 32, 32, 32});
  check_called_twice(mod, rand({3, 32, 32, 32}));
}

TEST(OptimizeForInferenceTemplate, folded_conv_functional_bn_with_module_sharing) {
  Tensor x = rand({3, 32, 32, 32});
  ConvFunctionalBN mod(32, 32, mean(x, OptionalInts(Ints{0, 2, 3})), var(x, Ints{0, 2, 3}, 1));
  mod.eval();
  check_called_twice(mod, x);
}

// Two norms of one convolution of one input: it is computed once, and both norms follow in one kernel.
template <typename M>
void check_two_norms(const M& mod, const Tensor& x) {
  NoGrad off;
  Tensor expected = mod(x);
  auto foo = compile([&](Tensor image) { return mod(image); }, freezing_options());
  EXPECT_LT(difference(foo(x), expected), 1e-5);
  Explanation::Entry entry = only_entry(foo);
  EXPECT_EQ(count_of("aten::convolution(", entry.frozen), 1);
  EXPECT_THAT(entry.freezing, Contains(HasSubstr("shared: convolution")));
}

TEST(OptimizeForInferenceTemplate, conv_bn_with_multi_bn_share_conv) {
  struct ConvMultiBN : ConvBN {
    nn::BatchNorm2d bn2 = submodule("bn2", nn::BatchNorm2d(32, {.eps = 0.1}));
    ConvMultiBN() : ConvBN(32, 32, true) {}
    Tensor operator()(const Tensor& x) const { return bn(conv(x)) + bn2(conv(x)); }
  };
  ConvMultiBN mod;
  train_a_little(mod, {3, 32, 32, 32});
  check_two_norms(mod, rand({3, 32, 32, 32}));
}

TEST(OptimizeForInferenceTemplate, conv_functional_bn_with_multi_bn_share_conv) {
  struct ConvMultiFunctionalBN : ConvFunctionalBN {
    Cell<Tensor> mean2;
    explicit ConvMultiFunctionalBN(const Tensor& x)
        : ConvFunctionalBN(32, 32, tenon::mean(x, OptionalInts(Ints{0, 2, 3})), var(x, Ints{0, 2, 3}, 1)),
          mean2(buffer("running_mean2", tenon::mean(x, OptionalInts(Ints{0, 2, 3})))) {}
    Tensor operator()(const Tensor& x) const { return norm(conv(x), mean.get()) + norm(conv(x), mean2.get()); }
  };
  Tensor x = rand({3, 32, 32, 32});
  ConvMultiFunctionalBN mod(x);
  mod.eval();
  check_two_norms(mod, x);
}

TEST(OptimizeForInferenceTemplate, dont_change_dtype_folding) {
  nn::Conv2d mod(3, 32, 3, {.stride = nn::Pair(2, 2), .bias = false});
  mod.eval().to(kBFloat16);
  Tensor x = rand({3, 3, 32, 32}).to(kBFloat16);
  auto foo = [&](Tensor image) { return mod(image) * full({1}, 2.0); };
  NoGrad off;
  Tensor expected = foo(x);
  auto compiled = compile(foo, freezing_options());
  Tensor found = compiled(x);
  EXPECT_EQ(found.dtype(), kFloat32);
  EXPECT_LT(difference(found, expected), 1e-2);
  EXPECT_THAT(only_entry(compiled).freezing, Contains(HasSubstr("the result would be bfloat16 instead of float32")));
}

}  // namespace
}  // namespace tenon
