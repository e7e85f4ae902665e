// Seed 003: what stands around convolutions keeps its layout, and is not copied for nothing.
#include "freeze.h"

namespace tenon {
namespace {

using testing::ConvBN;
using testing::count_of;
using testing::difference;
using testing::freezing_options;
using testing::only_entry;
using testing::operators_of;

TEST(OptimizeForInferenceTemplate, conv_with_as_strided) {
  struct Model : nn::Module {
    nn::Conv2d kv;
    explicit Model(int64_t groups) : kv(submodule("kv", nn::Conv2d(256, 384, 1, {.groups = groups, .bias = false}))) {}
    Tensor operator()(const Tensor& x) const {
      Tensor padded = constant_pad_nd(kv(x), {2, 2, 2, 2}, 0.0);
      Tensor rows = as_strided(padded, {8, 384, 2, 20, 12}, {153600, 400, 160, 1, 20});
      Tensor blocks = as_strided(rows, {8, 384, 2, 2, 12, 12}, {153600, 400, 160, 8, 20, 1});
      return clone(blocks, MemoryFormat::Contiguous);
    }
  };
  NoGrad off;
  Tensor x = randn({8, 256, 16, 16});
  for (int64_t groups : {1, 2}) {
    Model mod(groups);
    mod.eval();
    Tensor expected = mod(x);
    auto foo = compile([&](Tensor image) { return mod(image); }, freezing_options());
    Tensor found = foo(x);
    EXPECT_LT(difference(found, expected), 1e-5);
    EXPECT_TRUE(found.is_contiguous());
  }
}

TEST(OptimizeForInferenceTemplate, cpp_wrapper) {
  ConvBN mod(3, 32, false);
  mod.eval();
  Tensor x = rand({3, 3, 32, 32});
  Tensor expected = mod(x).detach();
  auto foo = compile([&](Tensor image) { return mod(image); }, freezing_options());
  NoGrad off;
  EXPECT_LT(difference(foo(x), expected), 1e-5);
  EXPECT_LT(difference(foo(x), expected), 1e-5);
  EXPECT_EQ(foo.compile_count(), 1);
}

TEST(OptimizeForInferenceTemplate, conv_layout_convert_with_view) {
  struct Model : nn::Module {
    nn::Conv2d conv = submodule("conv", nn::Conv2d(3, 128, 3, {.padding = nn::Pair(1, 1), .bias = false}));
    nn::BatchNorm2d bn = submodule("bn", nn::BatchNorm2d(3));
    Tensor operator()(const Tensor& x) const { return flatten(conv(bn(x)), 1); }
  };
  Model mod;
  mod.eval();
  NoGrad off;
  Tensor x = rand({2, 3, 5, 5});
  Tensor expected = mod(x);
  auto foo = compile([&](Tensor image) { return mod(image); }, freezing_options());
  Tensor found = foo(x);
  EXPECT_LT(difference(found, expected), 1e-5);
  EXPECT_EQ(found.strides(), expected.strides());
  std::string frozen = only_entry(foo).frozen;
  EXPECT_EQ(count_of("aten::clone(", frozen) + count_of("aten::_to_copy(", frozen), 0) << frozen;
}

TEST(OptimizeForInferenceTemplate, redundant_clone_for_layout_convert) {
  struct Model : nn::Module {
    nn::Conv2d conv = submodule("conv", nn::Conv2d(3, 128, 3, {.padding = nn::Pair(1, 1), .bias = false}));
    std::tuple<Tensor, Tensor> operator()(const Tensor& x) const {
      Tensor y = x + 1;
      return {conv(x), y};
    }
  };
  Model mod;
  mod.eval();
  Tensor input = rand({2, 3, 5, 5});
  NoGrad off;
  auto [expected, expected_sum] = mod(input);
  auto foo = compile([&](Tensor x) { return mod(x); }, freezing_options());
  auto [found, sum] = foo(input);
  EXPECT_LT(difference(found, expected), 1e-5);
  EXPECT_LT(difference(sum, expected_sum), 1e-6);
  EXPECT_TRUE(found.is_contiguous() && sum.is_contiguous());
  EXPECT_EQ(operators_of(only_entry(foo)), "aten::add.Scalar aten::convolution")
      << "nothing is brought into another order";
}

}  // namespace
}  // namespace tenon
