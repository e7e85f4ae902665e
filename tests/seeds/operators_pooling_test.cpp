// Seed 000's operator cases: pooling that no kernel of ours computes, its gradients by name, windows at random places.
#include "operators.h"

#include <tenon/core/random.h>
#include <tenon/dispatch/packet.h>

namespace tenon::operators {
namespace {

using dispatch::Value;

Tensors call(const char* name, std::initializer_list<Value> arguments) {
  Tensors results;
  for (const Value& result : dispatch::call_by_name(name, arguments)) results.push_back(result.tensor());
  return results;
}

// ---- Windows that are too large to write out: no kernel is generated ------------------------------------------------

TEST(CommonTemplate, adaptive_avg_pool2d2) {
  check([](Tensor x) { return _adaptive_avg_pool2d(x, {4, 4}); }, {randn({2, 4, 21, 21})}, {.kernels = 0});
}
TEST(CommonTemplate, adaptive_max_pool2d2) {
  Tensor x = randn({2, 4, 21, 21});
  Tensors results = check([](Tensor a) { return adaptive_max_pool2d(a, {4, 4}); }, {x}, {.kernels = 0});
  // Windows of 6 rows and columns, every fifth: the last one begins at 15.
  EXPECT_TRUE(same_bits(results[0].select(2, 3).select(2, 3), amax(x.slice(2, 15).slice(3, 15), {2, 3})));
}
TEST(CommonTemplate, max_pool2d6) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {13, 13}, {}); }, {randn({16, 64, 55, 55})},
        {.backward = false, .kernels = 0});
}
TEST(CommonTemplate, max_pool2d8) {
  check([](Tensor x) { return max_pool2d_with_indices(x, {3, 2}, {2, 1}, {1, 1}, {1, 2}); }, {randn({2, 2, 3, 6})},
        {.kernels = 0});
}
TEST(CommonTemplate, avg_pool2d7) {
  Tensor x = -arange(576).to(kFloat32).view({1, 1, 24, 24});
  Tensor result = check([](Tensor a) { return avg_pool2d(a, {13, 13}, {1, 1}); }, {x}, {.kernels = 0})[0];
  EXPECT_NEAR(result[0][0][0][0].item<double>(), -(6 * 24 + 6), 1e-3) << "the middle of the first window";
}

// ---- Gradients of the largest --------------------------------------------------------------------------------------

struct Pool {
  Ints kernel, stride, padding, dilation;
  bool ceil = false;
};

// The gradient by name is autograd's own; `kernels`: at most so many are launched.
void check_largest(const Tensor& x, const Pool& pool, int64_t kernels, bool backward = true) {
  Tensor leaf = x.detach().set_requires_grad();
  auto [result, indices] =
      max_pool2d_with_indices(leaf, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil);
  Tensor grad = randn_like(result.detach());
  Tensor made = check(
      [&pool](Tensor g, Tensor a, Tensor at) {
        return call("aten::max_pool2d_with_indices_backward",
                    {g, a, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil, at});
      },
      {grad, x, indices}, {.backward = backward, .kernels = kernels})[0];
  result.backward(grad);
  EXPECT_TRUE(close(made, leaf.grad(), {}));
}

TEST(CommonTemplate, max_pool2d_with_indices_backward) {
  check_largest(randn({2, 4, 18, 14}), {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, -1);
}
TEST(CommonTemplate, max_pool2d_with_indices_backward2) {
  check_largest(randn({2, 4, 40, 56}), {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true}, -1);
}
TEST(CommonTemplate, max_pool2d_with_indices_backward3) {
  check_largest(randn({32, 256, 37, 38}), {{1, 1}, {2, 2}, {0, 0}, {1, 1}}, -1, false);
}
TEST(CommonTemplate, max_pool2d_with_indices_backward4) {
  check_largest(randn({2, 64, 3, 4}), {{5, 5}, {1, 1}, {2, 2}, {1, 1}}, 1);
}
TEST(CommonTemplate, max_pool2d_with_indices_backward5) {
  check_largest(randn({2, 64, 20, 20}), {{13, 13}, {1, 1}, {2, 2}, {1, 1}}, 0);
}
TEST(CommonTemplate, max_pool2d_with_indices_backward6) {
  check_largest(randn({2, 2, 3, 6}), {{3, 2}, {2, 1}, {1, 1}, {1, 2}}, 0);
}

// ---- Gradients of averages -----------------------------------------------------------------------------------------

struct Average {
  int64_t kernel, stride, padding;
  bool ceil;
};

// Averages that do not count the padding, over two or three dimensions.
Tensor check_average(const Tensor& grad, const Tensor& x, const Average& average, int64_t kernels = -1) {
  const char* name = x.dim() == 4 ? "aten::avg_pool2d_backward" : "aten::avg_pool3d_backward";
  Ints kernel(std::vector<int64_t>(static_cast<size_t>(x.dim() - 2), average.kernel)), stride = kernel,
                                                                                       padding = kernel;
  for (size_t dim = 0; dim < kernel.size(); ++dim) {
    stride[dim] = average.stride;
    padding[dim] = average.padding;
  }
  bool ceil = average.ceil;
  return check([=](Tensor g, Tensor a) { return call(name, {g, a, kernel, stride, padding, ceil, false, Value()}); },
               {grad, x}, {.backward = x.numel().plain() < 100000, .kernels = kernels})[0];
}
// A share of each gradient goes to every element of its window.
void expect_all_given_on(const Tensor& made, const Tensor& grad) {
  EXPECT_NEAR(made.sum(kFloat64).item<double>(), grad.sum(kFloat64).item<double>(), 1e-6 * grad.numel().plain());
}

TEST(CommonTemplate, avg_pool2d_backward) {
  Tensor grad = randn({2, 4, 7, 7}), made = check_average(grad, randn({2, 4, 14, 14}), {2, 2, 0, true});
  EXPECT_TRUE(close(made, repeat_interleave(repeat_interleave(grad, 2, 2), 2, 3) / 4, {}));
}
TEST(CommonTemplate, avg_pool2d_backward2) {
  Tensor grad = randn({1, 1, 20, 15}), made = check_average(grad, randn({1, 1, 20, 15}), {3, 1, 1, true});
  expect_all_given_on(made, grad);
  Tensor corner = grad[0][0][0][0] / 4 + grad[0][0][0][1] / 6 + grad[0][0][1][0] / 6 + grad[0][0][1][1] / 9;
  EXPECT_TRUE(close(made[0][0][0][0], corner, {}));
}
TEST(CommonTemplate, avg_pool2d_backward3) {
  Tensor grad = randn({1, 2016, 11, 11}), made = check_average(grad, randn({1, 2016, 21, 21}), {1, 2, 0, false}, 1);
  EXPECT_TRUE(equal(made.slice(2, 0, 21, 2).slice(3, 0, 21, 2), grad));  // a sum that begins with zero makes 0 of -0
  expect_all_given_on(made, grad);
}
TEST(CommonTemplate, avg_pool2d_backward4) {
  Tensor grad = randn({1, 16, 12, 12}), made = check_average(grad, randn({1, 16, 24, 24}), {13, 1, 0, true}, 0);
  expect_all_given_on(made, grad);
}
TEST(CommonTemplate, avg_pool3d_backward) {
  Tensor grad = randn({2, 4, 7, 7, 7}), made = check_average(grad, randn({2, 4, 14, 14, 14}), {2, 2, 0, true});
  Tensor spread = repeat_interleave(repeat_interleave(repeat_interleave(grad, 2, 2), 2, 3), 2, 4);
  EXPECT_TRUE(close(made, spread / 8, {}));
}
TEST(CommonTemplate, avg_pool3d_backward2) {
  Tensor grad = randn({1, 1, 20, 20, 15}), made = check_average(grad, randn({1, 1, 20, 20, 15}), {3, 1, 1, true});
  expect_all_given_on(made, grad);
}
TEST(CommonTemplate, avg_pool3d_backward3) {
  Tensor grad = randn({1, 2016, 11, 11, 11}),
         made = check_average(grad, randn({1, 2016, 21, 21, 21}), {1, 2, 0, false}, 1);
  EXPECT_TRUE(equal(made.slice(2, 0, 21, 2).slice(3, 0, 21, 2).slice(4, 0, 21, 2), grad));
}
TEST(CommonTemplate, avg_pool3d_backward4) {
  Tensor grad = randn({1, 16, 12, 12, 12}), made = check_average(grad, randn({1, 16, 24, 24, 24}), {13, 1, 0, true}, 0);
  expect_all_given_on(made, grad);
}

// ---- Windows at random places --------------------------------------------------------------------------------------

Tensors check_fractional(const Tensor& x, const Ints& kernel, const Ints& size, int64_t kernels = -1) {
  Tensor samples = rand({x.size(0).plain(), x.size(1).plain(), 2});
  Tensors results = check([=](Tensor a, Tensor s) { return call("aten::fractional_max_pool2d", {a, kernel, size, s}); },
                          {x, samples}, {.kernels = kernels});
  Tensor flat = x.reshape({x.size(0), x.size(1), -1}), places = results[1].reshape({x.size(0), x.size(1), -1});
  EXPECT_TRUE(same_bits(gather(flat, 2, places).reshape(results[0].sym_sizes()), results[0])) << "indices and values";
  return results;
}
TEST(CommonTemplate, fractional_max_pool2d1) {
  Tensor x = randn({1, 4, 16, 16});
  Tensors results = check_fractional(x, {3, 3}, {2, 2});
  EXPECT_TRUE(same_bits(results[0].select(2, 1).select(2, 1), amax(x.slice(2, 13).slice(3, 13), {2, 3})))
      << "the last window ends with the input";
}
TEST(CommonTemplate, fractional_max_pool2d2) { check_fractional(randn({2, 4, 36, 36}), {6, 5}, {3, 3}, 0); }
TEST(CommonTemplate, fractional_max_pool2d3) {
  Tensor x = randn({2, 4, 16, 16});
  EXPECT_TRUE(same_bits(check_fractional(x, {1, 1}, {16, 16})[0], x));
}
TEST(CommonTemplate, fractional_max_pool2d4) {
  Tensor x = randn({1, 4, 16, 16});
  auto function = [](Tensor a) {
    Tensor samples = rand({a.size(0), a.size(1), 2});
    Tensors results = call("aten::fractional_max_pool2d", {a, Ints{4, 3}, Ints{3, 2}, samples});
    return std::tuple(results[0], results[1]);
  };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto compiled = compile(function, {.fullgraph = true, .dynamic = dynamic});
    for (uint64_t seed : {3, 4}) {
      manual_seed(seed);
      auto [values, indices] = function(x);
      manual_seed(seed);
      auto [compiled_values, compiled_indices] = compiled(x);
      EXPECT_TRUE(same_bits(compiled_values, values));
      EXPECT_TRUE(same_bits(compiled_indices, indices));
    }
  }
}

}  // namespace
}  // namespace tenon::operators
