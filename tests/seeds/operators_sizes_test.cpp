// Seed 000's operator cases: sizes and numbers as symbols, values that come from data.
#include "operators.h"

#include <tenon/capture/marks.h>

#include <cmath>

namespace tenon::operators {
namespace {

const CompileOptions kUnbacked = {
    .fullgraph = true, .capture_scalar_outputs = true, .capture_dynamic_output_shape_ops = true};
using Indices = std::vector<std::optional<Tensor>>;

TEST(CommonTemplate, scalar_output) {
  auto function = [](Tensor ids, Tensor table) {
    SymInt s = ids.size(1);
    return std::tuple(full({1, s}, 1, kFloat32), s, embedding(table, ids.view({-1, s})));
  };
  auto f = compile(function, {.dynamic = Dynamic::On});
  Tensor table = randn({32128, 768});
  for (int64_t n : {22, 9}) {
    Tensor ids = randint(32128, {1, n});
    auto [filled, size, rows] = f(ids, table);
    EXPECT_TRUE(same_bits(filled, ones({1, n})));
    EXPECT_EQ(int64_t(size), n);
    EXPECT_TRUE(same_bits(rows, embedding(table, ids)));
  }
  EXPECT_EQ(f.compile_count(), 1);
}
TEST(CommonTemplate, inductor_assert) {
  auto f = compile(
      [](Tensor a) {
        EXPECT_TRUE(bool(a.size(0) >= 2 && a.size(1) >= 4));
        return a.cos();
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  Tensor a = randn({2, 4, 6});
  mark_dynamic(a, 0);
  mark_dynamic(a, 1);
  EXPECT_TRUE(same_bits(f(a), a.cos()));
}
TEST(CommonTemplate, int_input_dynamic_shapes) {
  auto f = compile([](Tensor x, auto i) { return x * i; }, {.dynamic = Dynamic::On});
  Tensor x = randn({3, 1, 1, 1, 1});
  for (int64_t i : {9132, 17}) EXPECT_TRUE(same_bits(f(x, SymInt(i)), x * i));
  EXPECT_EQ(f.compile_count(), 1) << "the number is no constant";
}
TEST(CommonTemplate, sqrt_dynamic_shapes) {
  auto function = [](Tensor x) { return arange(Scalar(to_int(pow(to_float(x.size(1)), 0.5))), kInt64); };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On})
    EXPECT_TRUE(same_bits(compile(function, {.dynamic = dynamic})(randn({8, 4, 4})), tensor({0, 1})));
}
TEST(CommonTemplate, rsqrt_dynamic_shapes) {
  auto function = [](Tensor a, Tensor b) { return bmm(a, b) / (1.0 / pow(to_float(a.size(1)), 0.5)); };
  auto f = compile(function, {.dynamic = Dynamic::On});
  for (int64_t n : {4, 9}) {
    Tensor a = randn({2, n, n}), b = randn({2, n, n});
    EXPECT_TRUE(close(f(a, b), function(a, b), {.rtol = 1e-5, .atol = 1e-4}));
  }
  EXPECT_EQ(f.compile_count(), 1);
}
TEST(CommonTemplate, index_dynamic_shapes) {
  // A picture made larger, by hand: rows and columns above and below every place, blended.
  auto function = [](Tensor image) {
    Tensor x = image.unsqueeze(0).permute({0, 3, 1, 2});
    constexpr double kScale = 1.8735363;
    auto places = [&](const SymInt& size) {
      SymInt larger = floor(to_float(size) * kScale);
      Tensor at = (arange(Scalar(larger), kFloat32) + 0.5) * (to_float(size) / to_float(larger)) - 0.5;
      Tensor below = clamp_min(at, 0.0), whole = below.to(kInt64);
      Tensor next = clamp_max(whole + 1, Scalar(size - 1));
      return std::tuple(whole, next, below - whole.to(kFloat32));
    };
    auto [top, bottom, down] = places(x.size(2));
    auto [left, right, across] = places(x.size(3));
    auto pick = [&](const Tensor& rows, const Tensor& columns) {
      return index(x, Indices{std::nullopt, std::nullopt, rows.unsqueeze(-1), columns});
    };
    Tensor upper = pick(top, left) * (1 - across) + pick(top, right) * across;
    Tensor lower = pick(bottom, left) * (1 - across) + pick(bottom, right) * across;
    down = down.unsqueeze(-1);
    return (upper * (1 - down) + lower * down).select(0, 0);
  };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile(function, {.fullgraph = true, .dynamic = dynamic});
    for (auto [h, w] : {std::pair{15, 20}, std::pair{16, 21}}) {
      Tensor image = rand({h, w, 3});
      EXPECT_TRUE(close(f(image), function(image), {}));
    }
  }
}
TEST(CommonTemplate, nonzero_unbacked_refinement) {
  auto f = compile(
      [](Tensor x) {
        Tensor z = x.nonzero();
        tenon::check(z.size(0) == 4);
        return z + 3;
      },
      kUnbacked);
  Tensor x = tensor({0, 1, 3, 4, 2, 0, 0});
  EXPECT_TRUE(same_bits(f(x), x.nonzero() + 3));
  EXPECT_THROW(f(zeros({7}, kInt64)), RuntimeError);
}
TEST(CommonTemplate, unbacked_floordiv_simplify) {
  auto f = compile(
      [](Tensor x, Tensor y) {
        SymInt z = y.item<SymInt>();
        check_is_size(z);
        tenon::check(z / 2 == 3);
        return x + x.new_zeros({z});
      },
      kUnbacked);
  for (int64_t z : {6, 7}) {
    Tensor x = randn({z});
    EXPECT_TRUE(same_bits(f(x, tensor({z})), x));
  }
}
TEST(CommonTemplate, unbacked_floordiv_simplify_errors) {
  auto f = compile(
      [](Tensor x, Tensor y) {
        SymInt z = y.item<SymInt>();
        check_is_size(z);
        tenon::check(z / 2 == 3);
        return x + x.new_zeros({z});
      },
      kUnbacked);
  EXPECT_THROW(f(randn({8}), tensor(8)), RuntimeError);
}
TEST(CommonTemplate, cat_unbacked_legacy_empty) {
  auto f = compile([](Tensor x, Tensor y) { return cat({x, x.new_ones({y.item<SymInt>()})}); }, kUnbacked);
  Tensor x = randn({2, 3});
  EXPECT_TRUE(same_bits(f(x, tensor({0})), x));
}
TEST(CommonTemplate, cat_unbacked_empty_1d) {
  auto f = compile([](Tensor x, Tensor y) { return cat({x, x.new_ones({y.item<SymInt>()})}); }, kUnbacked);
  Tensor x = randn({2});
  EXPECT_TRUE(same_bits(f(x, tensor({0})), x));
  EXPECT_TRUE(same_bits(f(x, tensor({3})), cat({x, ones({3})})));
}
TEST(CommonTemplate, cat_unbacked_2d) {
  auto f = compile([](Tensor x, Tensor y) { return cat({x, x.new_ones({y.item<SymInt>(), x.size(1)})}); }, kUnbacked);
  Tensor x = randn({2, 3});
  EXPECT_TRUE(same_bits(f(x, tensor({0})), x));
  EXPECT_TRUE(same_bits(f(x, tensor({4})), cat({x, ones({4, 3})})));
}
TEST(CommonTemplate, split_with_sizes_with_unbacked_symints) {
  auto f = compile(
      [](Tensor sz, Tensor x) {
        std::vector<SymInt> sizes = sz.tolist<SymInt>();
        for (const SymInt& size : sizes) check_is_size(size);
        Tensors parts = split_with_sizes(x, SymInts{sizes[0], sizes[1]});
        return std::tuple(parts[0], std::get<0>(sort(parts[1])));
      },
      kUnbacked);
  Tensor x = randn({7312});
  auto [first, second] = f(tensor({420, 6892}), x);
  EXPECT_TRUE(same_bits(first, x.slice(0, 0, 420)));
  EXPECT_TRUE(same_bits(second, std::get<0>(sort(x.slice(0, 420)))));
  auto g = compile([](Tensor n) { return split_with_sizes(arange(n.item()), {5, 5, 10}); }, kUnbacked);
  EXPECT_EQ(g(tensor({20})).size(), 3U);
}
TEST(CommonTemplate, split_with_unbacked_symints) {
  auto f = compile([](Tensor n) { return split(arange(n.item()), SymInts{5, 5, 10}); }, kUnbacked);
  EXPECT_EQ(f(tensor({20})).size(), 3U);
}
TEST(CommonTemplate, index_propagation_nested_indirect_indexing) {
  auto function = [](Tensor x, Tensor repeats) {
    Tensor rows = arange(Scalar(repeats.numel())).repeat_interleave(repeats, 0);
    return index_select(x, 0, rows);
  };
  auto f = compile(function, kUnbacked);
  Tensor x = randn({32, 64}), repeats = tensor({5, 10, 15});
  mark_dynamic(repeats, 0);
  EXPECT_TRUE(same_bits(f(x, repeats), function(x, repeats)));
  Tensor others = tensor({1, 0, 3, 2});
  mark_dynamic(others, 0);
  EXPECT_TRUE(same_bits(f(x, others), function(x, others)));
}
TEST(CommonTemplate, dtype_sympy_expr) {
  auto f =
      compile([](Tensor a) { return a.slice(2, {}, -1).contiguous(); }, {.fullgraph = true, .dynamic = Dynamic::On});
  Tensor a = randn({1, 2, 16, 4}).set_requires_grad();
  Tensor result = f(a);
  EXPECT_TRUE(same_bits(result.detach(), a.detach().slice(2, {}, -1)));
  result.sum().backward();
  EXPECT_TRUE(same_bits(a.grad(), constant_pad_nd(ones({1, 2, 15, 4}), {0, 0, 0, 1})));
}
TEST(CommonTemplate, buffer_use_after_remove) {
  // A rotation by a vector, applied to points: much that is made, used once and gone.
  auto function = [](Tensor rotation, Tensor shift, Tensor points) {
    Tensor angle = sqrt((rotation * rotation).sum(-1, true));
    Tensor axis = rotation / angle;
    Tensor x = axis.slice(1, 0, 1), y = axis.slice(1, 1, 2), z = axis.slice(1, 2, 3), s = sin(angle), c = cos(angle);
    Tensor matrix = cat({x * x * (1 - c) + c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s, y * x * (1 - c) + z * s,
                         y * y * (1 - c) + c, y * z * (1 - c) - x * s, z * x * (1 - c) - y * s, z * y * (1 - c) + x * s,
                         z * z * (1 - c) + c},
                        1)
                        .reshape({-1, 3, 3});
    Tensor moved = matmul(matrix.unsqueeze(1), points.unsqueeze(-1)).squeeze(-1);
    return (moved + shift).sum();
  };
  check(function, {rand({2, 3}) + 0.1, rand({2, 3}), rand({2, 3})}, {.rtol = 1e-4, .atol = 1e-4});
}

}  // namespace
}  // namespace tenon::operators
