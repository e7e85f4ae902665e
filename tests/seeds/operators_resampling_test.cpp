// Seed 000's operator cases: images of other sizes, borders, and writes that are combined with what is there.
#include "operators.h"

#include <tenon/dispatch/packet.h>

#include <regex>

namespace tenon::operators {
namespace {

using dispatch::Value;

Tensor call(const char* name, std::initializer_list<Value> arguments) {
  return dispatch::call_by_name(name, arguments)[0].tensor();
}

// ---- Resampling -----------------------------------------------------------------------------------------------------

// The element below each position, by whole numbers.
Tensor nearest(const Tensor& x, int64_t dim, int64_t count) {
  std::vector<int64_t> at;
  for (int64_t i = 0; i < count; ++i) at.push_back(i * x.size(dim).plain() / count);
  return index_select(x, dim, tensor(at));
}

TEST(CommonTemplate, upsample_nearest1d) {
  Tensor x = randn({2, 4, 37});
  Tensors results = check(
      [](Tensor a) {
        Tensors all;
        for (int64_t size : {74, 70, 45, 36})
          all.push_back(call("aten::upsample_nearest1d", {a, SymInts{size}, Value()}));
        all.push_back(call("aten::upsample_nearest1d.vec", {a, Value(), std::vector<double>{2.0}}));
        return all;
      },
      {x});
  const int64_t sizes[] = {74, 70, 45, 36, 74};
  for (size_t at = 0; at < 5; ++at) EXPECT_TRUE(same_bits(results[at], nearest(x, 2, sizes[at])));
}
TEST(CommonTemplate, upsample_nearest3d) {
  Tensor x = randn({2, 4, 37, 38, 39});
  const SymInts sizes[] = {{74, 76, 78}, {70, 75, 80}, {45, 74, 103}, {36, 39, 40}};
  Tensors results = check(
      [&sizes](Tensor a) {
        Tensors all;
        for (const SymInts& size : sizes)
          all.push_back(call("aten::upsample_nearest3d", {a, size, Value(), Value(), Value()}));
        all.push_back(call("aten::upsample_nearest3d.vec", {a, Value(), std::vector<double>{2.0, 2.0, 2.0}}));
        return all;
      },
      {x}, {.backward = false});
  EXPECT_TRUE(same_bits(results[3], nearest(nearest(nearest(x, 2, 36), 3, 39), 4, 40)));
  EXPECT_TRUE(same_bits(results[4], results[0]));
}
TEST(CommonTemplate, upsample_nearest2d_backward) {
  Tensor grad = randn({3, 3, 6, 12});
  const SymInts sizes[] = {{3, 3, 3, 6}, {3, 3, 4, 5}, {3, 3, 2, 8}, {3, 3, 2, 8}, {3, 3, 4, 7}};
  Tensors results = check(
      [&sizes](Tensor g) {
        Tensors all;
        for (const SymInts& size : sizes)
          all.push_back(call("aten::upsample_nearest2d_backward", {g, SymInts{6, 12}, size, Value(), Value()}));
        return all;
      },
      {grad});
  for (size_t at = 0; at < 5; ++at) {
    Tensor x = zeros(sizes[at]).set_requires_grad();
    upsample_nearest2d(x, {6, 12}).backward(grad);
    EXPECT_TRUE(close(results[at], x.grad(), {})) << at;
  }
}
TEST(CommonTemplate, upsample_bicubic2d) {
  Tensor x = randn({4, 3, 64, 32});
  Tensors results = check(
      [](Tensor a) {
        return std::tuple(call("aten::upsample_bicubic2d", {a, SymInts{128, 128}, true, Value(), Value()}),
                          call("aten::upsample_bicubic2d", {a, SymInts{128, 256}, false, Value(), Value()}));
      },
      {x}, {.rtol = 1e-3, .atol = 2e-5});
  for (int64_t row : {0, 63})  // corners stay where they are aligned
    EXPECT_TRUE(close(results[0].select(2, row == 0 ? 0 : 127).select(2, 127), x.select(2, row).select(2, 31),
                      {.strides = false}));
}
TEST(CommonTemplate, float_index_expression) {
  auto function = [](Tensor a) {
    return call("aten::upsample_bicubic2d", {a, SymInts{256, 256}, false, Value(), Value()});
  };
  Tensor x = randn({1, 1, 128, 128});
  check(function, {x}, {.rtol = 1e-3, .atol = 2e-5});
  // Index expressions are of integers: no number with a point is multiplied by a loop's index.
  std::string text = kernels_of(of_list(function), {x}, Dynamic::Off);
  EXPECT_FALSE(text.empty());
  EXPECT_FALSE(std::regex_search(text, std::regex(R"(0?\.5 ?\* ?[ix]\d)"))) << text;
}
TEST(CommonTemplate, grid_sampler_2d) {
  Tensor a = randn({4, 3, 352, 352}), grid = rand({4, 352, 352, 2}) * 2 - 1;
  check(
      [](Tensor x, Tensor g) {
        return std::tuple(call("aten::grid_sampler_2d", {x, g, 0, 0, true}),
                          call("aten::grid_sampler_2d", {x, g, 0, 1, false}));
      },
      {a, grid}, {.rtol = 1.3e-6, .atol = 2e-4, .backward = false});
  // A grid of the middles of all elements gives the image back.
  Tensor line = linspace(-1, 1, 352), columns = line.expand({4, 352, 352});
  Tensor all = stack({columns, columns.transpose(1, 2)}, -1).contiguous();
  EXPECT_TRUE(close(call("aten::grid_sampler_2d", {a, all, 0, 0, true}), a, {.rtol = 0, .atol = 2e-4}));
}

// ---- Borders -------------------------------------------------------------------------------------------------------

TEST(CommonTemplate, reflection_pad2d_backward) {
  Tensor x = randn({1, 1, 8, 8});
  for (SymInts pad : {SymInts{0, 0, 0, 0}, SymInts{1, 1, 1, 1}, SymInts{1, 2, 3, 4}, SymInts{0, -1, 2, 2},
                      SymInts{-1, 0, 2, 2}, SymInts{2, 2, 0, -1}, SymInts{2, 2, -1, 0}}) {
    SCOPED_TRACE(str(pad));
    Tensor leaf = x.detach().set_requires_grad(), padded = tenon::pad(leaf, pad, "reflect");
    Tensor grad = randn_like(padded.detach());
    Tensor made = check([&pad](Tensor g, Tensor a) { return call("aten::reflection_pad2d_backward", {g, a, pad}); },
                        {grad, x})[0];
    padded.backward(grad);
    EXPECT_TRUE(close(made, leaf.grad(), {}));
  }
}

// ---- Scatter with a reduction --------------------------------------------------------------------------------------

TEST(CommonTemplate, scatter2) {
  Tensor a = zeros({64, 512}), index = zeros({64, 512}, kInt64), b = ones({64, 512});
  Tensor result = check(
      [](Tensor x, Tensor i, Tensor s) {
        return dispatch::call_by_name("aten::scatter", {x, 0, i, s}, {{"reduce", "add"}})[0].tensor();
      },
      {a, index, b})[0];
  EXPECT_TRUE(same_bits(result[0], full({512}, 64.0)));
  EXPECT_EQ(result.sum().item<double>(), 64 * 512);
}
TEST(CommonTemplate, scatter3) {
  Tensor a = randn({5, 29, 13}), index = tensor({{{3, 5, 7, 9}}});
  Tensor result = check(
      [](Tensor x, Tensor i) {
        return dispatch::call_by_name("aten::scatter", {x, 2, i, 0.8}, {{"reduce", "add"}})[0].tensor();
      },
      {a, index}, {.rtol = 1e-3, .atol = 2e-4})[0];
  Tensor expected = a.clone();
  for (int64_t at : {3, 5, 7, 9}) expected[0][0][at] += 0.8;
  EXPECT_TRUE(close(result, expected, {}));
}

// In place on a clone, and once more on what follows from it; `combine` is what one write does.
void check_twice(const char* name, const char* reduce, double (*combine)(double, double)) {
  Tensor a = ones({4, 5}), index = tensor({{1}, {2}, {3}}), b = randn({4, 5});
  Tensors results = check(
      [=](Tensor x, Tensor i, Tensor s) {
        Tensor first = x.clone();
        dispatch::call_by_name(name, {first, 0, i, s}, {{"reduce", reduce}});
        Tensor second = first + 1;
        dispatch::call_by_name(name, {second, 0, i, s}, {{"reduce", reduce}});
        return std::tuple(first, second);
      },
      {a, index, b});
  Tensor first = ones({4, 5});
  for (int64_t row = 0; row < 3; ++row) first[row + 1][0] = combine(1, b[row][0].item<double>());
  EXPECT_TRUE(close(results[0], first, {}));
  Tensor second = first + 1;
  for (int64_t row = 0; row < 3; ++row)
    second[row + 1][0] = combine(second[row + 1][0].item<double>(), b[row][0].item<double>());
  EXPECT_TRUE(close(results[1], second, {}));
}
double added(double x, double y) { return x + y; }
double multiplied(double x, double y) { return x * y; }

TEST(CommonTemplate, scatter5) {
  check_twice("aten::scatter_", "add", added);
  check_twice("aten::scatter_", "multiply", multiplied);
}
TEST(CommonTemplate, scatter_reduce1) {
  Tensor a = randn({5, 29, 13}), index = tensor({{{3, 5, 7, 9}}}), b = randn({1, 1, 10});
  Tensor result = check([](Tensor x, Tensor i, Tensor s) { return call("aten::scatter_reduce", {x, 2, i, s, "sum"}); },
                        {a, index, b})[0];
  EXPECT_TRUE(close(result, scatter_add(a, 2, index, b), {}));
}
TEST(CommonTemplate, scatter_reduce2) {
  Tensor a = randn({2, 3}), index = zeros({2, 3}, kInt64), b = randn({2, 3});
  for (const char* reduce : {"sum", "amax"}) {
    Tensor result = check(
        [reduce](Tensor x, Tensor i, Tensor s) {
          return dispatch::call_by_name("aten::scatter_reduce", {x, 0, i, s, reduce}, {{"include_self", false}})[0]
              .tensor();
        },
        {a, index, b})[0];
    EXPECT_TRUE(close(result[0], reduce == std::string("sum") ? b.sum(0) : amax(b, {0}), {}));
    EXPECT_TRUE(same_bits(result[1], a[1])) << "nothing was written there";
  }
}
TEST(CommonTemplate, scatter_reduce3) {
  check_twice("aten::scatter_reduce_", "sum", added);
  check_twice("aten::scatter_reduce_", "prod", multiplied);
}

}  // namespace
}  // namespace tenon::operators
