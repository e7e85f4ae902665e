// Seed 000's operator cases: convolutions, pools, resampling, attention, modules with buffers.
#include "operators.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/random.h>

namespace tenon::operators {
namespace {

// From 0 downwards: padding that is taken for 0 would be the largest.
Tensor falling(int64_t size) { return -arange(size * size, kFloat32).view({1, 1, size, size}); }

TEST(CommonTemplate, convolution1) {
  nn::Conv2d layer(5, 6, 3);
  check([layer](Tensor x) { return std::tuple(relu(layer(x))); }, {randn({2, 5, 16, 16})},
        {.rtol = 1e-3, .atol = 6e-5});
}
TEST(CommonTemplate, convolution2) {
  check([](Tensor x, Tensor w, Tensor b) { return conv_transpose1d(x, w, b, {4}, {0}, {0}, 1, {1}); },
        {randn({2, 32, 90}), randn({32, 16, 8}), randn({16})}, {.rtol = 1e-4, .atol = 1e-3});
}
TEST(CommonTemplate, convolution3) {
  Tensor weight = randn({6, 5, 3, 3}), bias = randn({6});
  check([=](Tensor x) { return std::tuple(relu(conv2d(x, weight, bias, {1}, {0}, {1}))); }, {randn({2, 5, 16, 16})},
        {.rtol = 1e-3, .atol = 6e-5});
}
TEST(CommonTemplate, convolution4) {
  check([](Tensor x, Tensor w) { return conv2d(x, w, {}, {1, 1}, {0, 0}, {1, 1}, w.size(0)).sum(); },
        {randn({2, 3, 16, 20}), randn({3, 1, 5, 5})}, {.rtol = 1e-4, .atol = 1e-3});
}
TEST(CommonTemplate, alexnet_prefix) {
  check([](Tensor w, Tensor b, Tensor x) { return max_pool2d(relu(conv2d(x, w, b, {4, 4}, {2, 2})), {3, 3}, {2, 2}); },
        {randn({64, 3, 11, 11}), randn({64}), randn({16, 3, 224, 224})}, {.rtol = 2, .atol = 3e-3, .backward = false});
}
TEST(CommonTemplate, upsample_cat_conv) {
  nn::Conv2d layer(8, 5, 1);
  layer.eval();
  autograd::SetGradMode off(false);
  check(
      [layer](Tensor x, Tensor y) {
        Tensor larger = interpolate(x, {.scale_factor = std::vector<double>{2, 2}});
        return layer(cat({larger, y}, 1));
      },
      {randn({8, 2, 12, 26}), randn({8, 6, 24, 52})}, {.rtol = 1e-4, .atol = 1e-4, .backward = false});
}
TEST(CommonTemplate, conv_functional_bn_fuse) {
  nn::Conv2d layer(3, 64, 3);
  Tensor mean = randn({64}), variance = rand({64}) + 0.5, weight = randn({64}), bias = randn({64});
  autograd::SetGradMode off(false);
  check([=](Tensor x) { return batch_norm(layer(x), mean, variance, {.weight = weight, .bias = bias}); },
        {randn({1, 3, 556, 56})}, {.rtol = 1e-4, .atol = 1e-4, .backward = false});
}
TEST(CommonTemplate, conv_with_as_strided) {
  nn::Conv2d layer(256, 384, 1, {.bias = false});
  check(
      [layer](Tensor x) {
        Tensor padded = pad(layer(x), {2, 2, 2, 2});
        Tensor once = as_strided(padded, {8, 384, 2, 20, 12}, {153600, 400, 160, 1, 20});
        return as_strided(once, {8, 384, 2, 2, 12, 12}, {153600, 400, 160, 8, 20, 1}).clone(MemoryFormat::Contiguous);
      },
      {randn({8, 256, 16, 16})}, {.rtol = 1e-4, .atol = 1e-4, .backward = false});
}
TEST(CommonTemplate, adaptive_avg_pool2d1) {
  for (int64_t size : {16, 3, 6})
    check([](Tensor x) { return std::tuple(_adaptive_avg_pool2d(x, {6, 6}), _adaptive_avg_pool2d(x + 1, {2, 5})); },
          {randn({2, 4, size, size})});
}
TEST(CommonTemplate, adaptive_max_pool2d1) {
  for (int64_t size : {16, 3, 6})
    check([](Tensor x) { return adaptive_max_pool2d(x, {6, 6}); }, {randn({2, 4, size, size})});
}
TEST(CommonTemplate, adaptive_avg_pool2d_low_prec) {
  nn::AdaptiveAvgPool2d pool({1, 1});
  auto f = compile([pool](Tensor x) { return pool(x); });
  for (Dtype dtype : {kFloat16, kBFloat16}) {
    Tensor x = randn({4, 3, 7, 7}).to(dtype);
    EXPECT_TRUE(close(f(x), pool(x), {}));
  }
}
TEST(CommonTemplate, adaptive_avg_pool1d_argmax) {
  nn::AdaptiveAvgPool1d pool(2);
  Tensor result = check([pool](Tensor x) { return argmax(pool(x)); }, {rand({4, 4, 3}, kFloat64)})[0];
  EXPECT_EQ(result.dtype(), kInt64);
}
TEST(CommonTemplate, adaptive_avg_pool_with_output_size_0) {
  nn::AdaptiveAvgPool1d line(0);
  nn::AdaptiveAvgPool2d plane(nn::Pair(0));
  EXPECT_EQ(check([line](Tensor x) { return line(x); }, {randn({1, 2})})[0].description(), "float32[1, 0]");
  EXPECT_EQ(check([plane](Tensor x) { return plane(x); }, {randn({1, 2, 3})})[0].description(), "float32[1, 0, 0]");
}
TEST(CommonTemplate, max_pool2d1) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {3, 3}, {2, 2}); }, {randn({2, 4, 16, 16})});
}
TEST(CommonTemplate, max_pool2d2) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {3, 3}, {2, 2}); }, {randn({16, 64, 55, 55})},
        {.backward = false});
}
TEST(CommonTemplate, max_pool2d3) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1}); }, {falling(8)});
  Tensors results = check([](Tensor x) { return max_pool2d_with_indices(x, {3}, {2}, {1}); }, {falling(8)});
  EXPECT_LE(results[0].max().item<double>(), 0);
  EXPECT_LT(results[0].min().item<double>(), 0) << "padding never wins";
}
TEST(CommonTemplate, max_pool2d4) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {3, 3}, {2, 2}, {0, 0}, {1, 1}, true); },
        {randn({2, 8, 111, 111})}, {.backward = false});
}
TEST(CommonTemplate, max_pool2d5) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {3, 3}, {}); }, {randn({16, 64, 55, 55})},
        {.backward = false});
}
TEST(CommonTemplate, max_pool2d7) {
  check([](Tensor x) { return max_pool2d(x, {1, 1}, {2, 2}, {0, 0}, {1, 1}, true); }, {randn({1, 1, 6, 7})});
}
TEST(CommonTemplate, avg_pool2d1) {
  check([](Tensor x) { return avg_pool2d(x, {3, 3}, {2, 2}); }, {randn({2, 4, 16, 16})});
}
TEST(CommonTemplate, avg_pool2d2) {
  check([](Tensor x) { return avg_pool2d(x, {3, 3}, {2, 2}); }, {randn({16, 64, 55, 55})}, {.backward = false});
}
TEST(CommonTemplate, avg_pool2d3) {
  check([](Tensor x) { return avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}); }, {falling(8)});
  check([](Tensor x) { return avg_pool2d(x, {3}, {2}, {1}); }, {falling(8)});
}
TEST(CommonTemplate, avg_pool2d4) {
  check([](Tensor x) { return avg_pool2d(x, {3, 3}, {2, 2}, {0, 0}, true); }, {randn({2, 8, 111, 111})},
        {.backward = false});
}
TEST(CommonTemplate, avg_pool2d5) {
  check([](Tensor x) { return avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}, false, false); }, {falling(8)});
}
TEST(CommonTemplate, avg_pool2d6) {
  check([](Tensor x) { return avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}, false, true, 3); }, {falling(8)});
}
TEST(CommonTemplate, avg_pool2d8) {
  check([](Tensor x) { return avg_pool2d(x, {3}, {2}, {1}, true); }, {randn({1, 3, 6, 6})});
}
TEST(CommonTemplate, upsample_nearest2d) {
  check(
      [](Tensor a) {
        Tensors results;
        for (SymInts size : {SymInts{74, 76}, SymInts{70, 75}, SymInts{45, 74}, SymInts{36, 39}})
          results.push_back(upsample_nearest2d(a, size));
        results.push_back(upsample_nearest2d(a, std::nullopt, std::vector<double>{2.0, 2.0}));
        return results;
      },
      {randn({2, 4, 37, 38})}, {.backward = false});
}
TEST(CommonTemplate, upsample_bilinear2d_a) {
  check(
      [](Tensor a) {
        return std::tuple(upsample_bilinear2d(a, {45, 45}, false),
                          upsample_bilinear2d(a, std::nullopt, true, std::vector<double>{2.0, 2.0}));
      },
      {randn({2, 4, 37, 38})}, {.rtol = 1.3e-6, .atol = 2.5e-5});
}
TEST(CommonTemplate, upsample_bilinear2d_b) {
  check([](Tensor a) { return upsample_bilinear2d(a, std::nullopt, true, std::vector<double>{2.0, 2.0}); },
        {randn({1, 2, 40, 59})}, {.rtol = 1.3e-6, .atol = 2.5e-5});
}
TEST(CommonTemplate, scaled_dot_product_attention) {
  check(
      [](Tensor q, Tensor k, Tensor v) {
        return scaled_dot_product_attention(q.transpose(1, 2).contiguous(), k.transpose(1, 2), v.transpose(1, 2),
                                            {.scale = 0.125})
            .slice(0, {}, 2);
      },
      {randn({4, 2, 4, 2}), randn({4, 2, 4, 2}), randn({4, 2, 4, 2})}, {.rtol = 1e-2, .atol = 2e-4});
}

// A module whose forward writes to a buffer: compiled, its version grows by as much as in eager.
TEST(CommonTemplate, buffer_copied_in_graph) {
  Tensor x = ones({1}), w1 = rand({1}).set_requires_grad(), w2 = rand({1}).set_requires_grad();
  auto grown = [&](bool compiled) {
    Cell<Tensor> buffer(zeros({1}));
    auto forward = [&](Tensor in) {
      buffer.get().add_(1);
      return (w1 * in * w2).sum() + buffer.get().sum();
    };
    int64_t before = buffer.get().version();
    Tensor in = x.clone().set_requires_grad();
    Tensor result = compiled ? compile(forward)(in) : forward(in);
    result.backward();
    return std::pair(buffer.get().version() - before, result.item<double>());
  };
  EXPECT_EQ(grown(true), grown(false));
}
TEST(CommonTemplate, buffer_copied_in_graph_with_different_shapes) {
  Tensor x = rand({2, 4}), w = rand({4, 2}).set_requires_grad();
  auto grown = [&](bool compiled) {
    Cell<Tensor> buffer(ones({4, 4}));
    auto forward = [&](Tensor in) {
      buffer.get().add_(1);
      return matmul(w, in).sum() + buffer.get().sum();
    };
    int64_t before = buffer.get().version();
    Tensor in = x.clone().set_requires_grad();
    Tensor result = compiled ? compile(forward)(in) : forward(in);
    result.backward();
    return buffer.get().version() - before;
  };
  EXPECT_EQ(grown(true), grown(false));
}
TEST(CommonTemplate, dropout2) {
  constexpr int64_t n = 100000;
  Tensor weight = ones({n}).set_requires_grad(), x = ones({n});
  auto run = [&](bool train, uint64_t seed) {
    auto f = compile([train](Tensor a, Tensor w) { return dropout(a * w, 0.33, train); });
    manual_seed(seed);
    weight.set_grad(Tensor());
    Tensor result = f(x, weight);
    result.sum().backward();
    return std::pair(result.detach(), weight.grad());
  };
  auto [whole, whole_grad] = run(false, 1);
  EXPECT_TRUE(same_bits(whole, x) && same_bits(whole_grad, x));
  auto [first, first_grad] = run(true, 1234);
  EXPECT_TRUE(same_bits(first != 0, first_grad != 0)) << "what forward dropped has no gradient";
  int64_t kept = (first != 0).sum().item<int64_t>();
  EXPECT_TRUE(kept > 64000 && kept < 68000) << kept;
  EXPECT_NEAR(first.mean().item<double>(), 1, 0.01);
  EXPECT_NEAR(first_grad.mean().item<double>(), 1, 0.01);
  auto [again, again_grad] = run(true, 1234);
  EXPECT_TRUE(same_bits(again, first) && same_bits(again_grad, first_grad));
}

}  // namespace
}  // namespace tenon::operators
