// Convolutions by the library against those by matrix products, which float64 takes: values, gradients of two orders,
// layouts; eager and compiled.
#include <gtest/gtest.h>
#include <tenon/autograd/grad.h>
#include <tenon/kernels/convolution.h>
#include <tenon/tenon.h>

#include "error_of.h"
#include "ops/compare.h"

namespace tenon::test {
namespace {

using tenon::testing::error_of;
// The same elements, channels innermost in memory.
Tensor channels_last(const Tensor& images) {
  Ints there{0}, back{0, images.dim() - 1};
  for (int64_t dim = 2; dim < images.dim(); ++dim) {
    there.push_back(dim);
    back.push_back(dim - 1);
  }
  there.push_back(1);
  return images.permute(there).clone(MemoryFormat::Contiguous).permute(back);
}

struct Case {
  size_t dims;
  bool transposed;
  int64_t groups;
  bool last;
  Dtype dtype = kFloat32;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}d{}_{}_groups{}{}", c.dims, c.transposed ? "_transposed" : "", c.groups,
                     c.last ? "_channels_last" : "", c.dtype == kBFloat16 ? "_bfloat16" : "");
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (size_t dims : {1, 2, 3})
    for (bool transposed : {false, true})
      for (int64_t groups : {1, 2, 4})
        for (bool last : {false, true})
          if (!last || dims > 1) list.push_back({dims, transposed, groups, last});
  list.push_back({2, false, 1, false, kBFloat16});
  list.push_back({2, true, 2, true, kBFloat16});
  return list;
}

class ConvolutionCase : public ::testing::TestWithParam<Case> {};

TEST_P(ConvolutionCase, is_the_product_over_windows) {
  const Case& c = GetParam();
  SymInts image{2, 4}, kernel{4, 4 / c.groups}, stride, padding, dilation, extra;
  for (size_t dim = 0; dim < c.dims; ++dim) {
    image.push_back(static_cast<int64_t>(6 + dim));
    kernel.push_back(dim == 0 ? 3 : 2);
    stride.push_back(dim == 0 ? 2 : 1);
    padding.push_back(dim == 1 ? 0 : 1);
    dilation.push_back(dim == 1 ? 2 : 1);
    // Below the stride, or only below the dilation.
    extra.push_back(c.transposed && dim < 2 ? 1 : 0);
  }
  const double near = c.dtype == kBFloat16 ? 0.05 : 1e-5;
  auto convolve = [=, &c](const Tensor& x, const Tensor& w, const Tensor& b) {
    return convolution(x, w, b, stride, padding, dilation, c.transposed, extra, c.groups);
  };
  Tensors inputs{randn(image).to(c.dtype), randn(kernel).to(c.dtype), randn({4}).to(c.dtype)}, exact;
  if (c.last) inputs[0] = channels_last(inputs[0]);
  for (Tensor& input : inputs) {
    exact.push_back(input.to(kFloat64).set_requires_grad());
    input.set_requires_grad();
  }
  Tensor result = convolve(inputs[0], inputs[1], inputs[2]), expected = convolve(exact[0], exact[1], exact[2]);
  EXPECT_LT(relative_difference(result, expected), near);
  EXPECT_TRUE(expected.is_contiguous());
  EXPECT_EQ(result.is_contiguous(), !c.last);
  EXPECT_EQ(result.strides()[1] == 1, c.last);

  Tensor by = randn(result.sym_sizes()).to(c.dtype);
  Tensors once = gradients(result, inputs, by, true), once_exact = gradients(expected, exact, by.to(kFloat64), true);
  for (size_t at = 0; at < 3; ++at) EXPECT_LT(relative_difference(once[at], once_exact[at]), near) << at;
  auto energy = [](const Tensors& of) { return (of[0] * of[0]).sum() + (of[1] * of[1]).sum(); };
  Tensors twice = gradients(energy(once), {inputs[0], inputs[1]}),
          twice_exact = gradients(energy(once_exact), {exact[0], exact[1]});
  for (size_t at = 0; at < 2; ++at) EXPECT_LT(relative_difference(twice[at], twice_exact[at]), near) << at;

  auto compiled = compile([=](Tensor x, Tensor w, Tensor b) { return relu(convolve(x, w, b)); });
  Tensor faster = compiled(inputs[0], inputs[1], inputs[2]), slower = relu(convolve(inputs[0], inputs[1], inputs[2]));
  EXPECT_EQ(relative_difference(faster, slower), 0);
  EXPECT_EQ(str(faster.sym_strides()), str(slower.sym_strides()));
  Tensors from_compiled = gradients(faster, inputs, by), from_eager = gradients(slower, inputs, by);
  for (size_t at = 0; at < 3; ++at) EXPECT_LT(relative_difference(from_compiled[at], from_eager[at]), near) << at;
}

INSTANTIATE_TEST_SUITE_P(Convolution, ConvolutionCase, ::testing::ValuesIn(cases()), name_of);

TEST(Convolution, without_elements) {
  EXPECT_EQ(str(conv2d(zeros({0, 3, 8, 8}), zeros({4, 3, 3, 3})).sym_sizes()), "[0, 4, 6, 6]");
  EXPECT_EQ(str(conv2d(zeros({2, 3, 8, 8}), zeros({0, 3, 3, 3})).sym_sizes()), "[2, 0, 6, 6]");
  // Of no channels, the bias is all there is.
  Tensor bias = tensor({1.0, 2.0}).to(kFloat32), result = conv2d(zeros({1, 0, 4, 4}), zeros({2, 0, 3, 3}), bias);
  EXPECT_EQ(relative_difference(result, expand(view(bias, {1, 2, 1, 1}), {1, 2, 2, 2})), 0);
}

TEST(Convolution, windows_that_lie_outside) {
  // Where a window may miss the image, products are used: the same values.
  Tensor x = randn({1, 2, 5, 5}), w = randn({3, 2, 1, 1});
  Tensor result = conv2d(x, w, std::nullopt, {1}, {2});
  EXPECT_EQ(str(result.sym_sizes()), "[1, 3, 9, 9]");
  EXPECT_LT(relative_difference(result.slice(2, 2, 7).slice(3, 2, 7), conv2d(x, w)), 1e-6);
  EXPECT_EQ(result.slice(2, 0, 2).abs().max().item<double>(), 0);
}

TEST(Convolution, one_compile_for_sizes_that_change) {
  Tensor w = randn({4, 3, 3, 3});
  auto compiled =
      compile([=](Tensor x) { return relu(conv2d(x, w, std::nullopt, {2}, {1})); }, {.dynamic = Dynamic::On});
  for (int64_t size : {8, 11, 16, 23}) {
    Tensor x = randn({2, 3, size, size + 1});
    EXPECT_EQ(relative_difference(compiled(x), relu(conv2d(x, w, std::nullopt, {2}, {1}))), 0) << size;
  }
  EXPECT_EQ(compiled.compile_count(), 1);
}

TEST(Convolution, primitives_are_kept) {
  Tensor x = randn({1, 3, 17, 19}), w = randn({5, 3, 3, 3});
  conv2d(x, w);
  int64_t made = kernels::convolution_primitives_made();
  conv2d(x, w);
  EXPECT_EQ(kernels::convolution_primitives_made(), made);
  conv2d(randn({1, 3, 18, 19}), w);
  EXPECT_EQ(kernels::convolution_primitives_made(), made + 1);
}

TEST(Convolution, errors) {
  Tensor x = zeros({1, 2, 4, 4});
  EXPECT_EQ(error_of([&] { conv2d(x, zeros({3, 2, 5, 5})); }),
            "[conv2d] a kernel of [3, 2, 5, 5] does not fit into an input of [1, 2, 4, 4] with a padding of [0, 0] and "
            "a dilation of [1, 1]");
  EXPECT_EQ(error_of([&] { conv2d(x, zeros({3, 2, 2, 2}), std::nullopt, {0}); }),
            "[conv2d] expected a stride and dilation of at least 1 and a padding of at least 0, got [0, 0], [1, 1] and "
            "[0, 0]");
  EXPECT_EQ(error_of([&] { conv2d(x, zeros({3, 2, 2, 2}), zeros({3}, kFloat64)); }),
            "[conv2d] expected a bias of float32, got float64[3]");
  EXPECT_EQ(error_of([&] { conv1d(x, zeros({3, 2, 2})); }),
            "[conv1d] expected an input of 2 or 3 dimensions and a weight of 3, got float32[1, 2, 4, 4] and float32[3, "
            "2, 2]");
  EXPECT_EQ(error_of([&] { conv_transpose2d(x, zeros({2, 3, 2, 2}), std::nullopt, {2}, {0}, {2}); }),
            "[conv_transpose2d] expected an output_padding below the stride or the dilation, got [2, 2]");
  EXPECT_EQ(error_of([&] { conv_transpose2d(x, zeros({3, 2, 2, 2})); }),
            "[conv_transpose2d] input float32[1, 2, 4, 4] and weight float32[3, 2, 2, 2] do not fit with 1 groups");
}

}  // namespace
}  // namespace tenon::test
