// Seed 000's operator cases: views, shapes, and what moves elements without computing.
#include "operators.h"

namespace tenon::operators {
namespace {

TEST(CommonTemplate, views1) {
  const std::pair<SymInts, SymInts> pairs[] = {{{5 * 7}, {5, 7}},
                                               {{2 * 3 * 4 * 5 * 6 * 7}, {2, 3, 4, 5, 6, 7}},
                                               {{2 * 3, 4, 5, 6 * 7}, {2, 3, 4, 5, 6, 7}},
                                               {{10 * 5, 20}, {10, 5, 20}},
                                               {{1, 10, 1}, {10}},
                                               {{10, 1, 10, 1, 10}, {10, 100}},
                                               {{2, 2, 2, 2}, {4, 4}}};
  for (const auto& [one, other] : pairs)
    for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)})
      check([to = to](Tensor x, Tensor y) { return std::tuple(x.view(to) + y, (x + 1).view(to) + y); },
            {randn(from), randn(to)});
}
TEST(CommonTemplate, views2) {
  auto of = [](SymInts to) { return [to](Tensor x) { return std::tuple(x.view(to) + 1, (x * 2).view(to) + 1); }; };
  check(of({4, -1}), {randn({2, 2, 2, 2})});
  check(of({-1, 100}), {randn({10, 1, 10, 1, 10})});
  check(of({10, -1, 20}), {randn({10 * 5, 20})});
}
TEST(CommonTemplate, views3) {
  check(
      [](Tensor a, Tensor i) {
        return index(a, std::vector<std::optional<Tensor>>{i}).view({1, 2232, 64}).view({1, 12, 62, 192});
      },
      {randn({64, 64}), randint(0, 63, {2232})});
}
TEST(CommonTemplate, views4) {
  check([](Tensor a, Tensor i) { return index_select(a, 0, i).view({2, 3, 4, 5, 5}).view({2, 3, 2, 10, -1}); },
        {randn({12, 5, 5}), randint(0, 11, {24})});
}
TEST(CommonTemplate, views5) {
  Tensor result = check([](Tensor x) { return x.slice(1, 4).view({4, -1, 4}); }, {randn({4, 4, 4, 4})})[0];
  EXPECT_EQ(result.sizes()[1], 0);
}
constexpr int64_t kEnd = 9223372036854775807;
TEST(CommonTemplate, views6) {
  Tensor result =
      check([](Tensor x) { return relu(x).slice(0, 0, kEnd).slice(1, 0, kEnd).slice(3, 0, 0).view({4, 2, -1}); },
            {randn({4, 2, 4, 4})})[0];
  EXPECT_EQ(result.description(), "float32[4, 2, 0]");
}
TEST(CommonTemplate, transpose) {
  check([](Tensor a, Tensor b) { return std::tuple(t(a) + b, transpose(b * 2, 0, 1) + 10); },
        {randn({8, 8}), randn({8, 8})});
}
TEST(CommonTemplate, permute1) {
  check(
      [](Tensor a) {
        Ints order = {2, 1, 4, 0, 3};
        return std::tuple(permute(a + 1, order) + 2, permute(a, order) + 2);
      },
      {randn({2, 2, 2, 2, 2})});
}
TEST(CommonTemplate, permute2) {
  Tensor result =
      check([](Tensor a) { return a.unfold(0, 2, 1).unsqueeze(1).permute({0, 2, 3, -3}); }, {randn({4, 4})})[0];
  EXPECT_EQ(result.description(), "float32[3, 4, 2, 1]");
}
TEST(CommonTemplate, expand) {
  check(
      [](Tensor a) {
        return std::tuple((a + 1).expand({3, 4, 2, 3, 2}) + 2,
                          std::tuple(a.expand({2, 1, 2, 3, 2}) + 2, a.expand({2, -1, 5, -1})));
      },
      {randn({2, 1, 2})});
}
TEST(CommonTemplate, squeeze1) {
  check([](Tensor a) { return std::tuple((a + 1).squeeze() + 2, a.squeeze() + 2); }, {randn({1, 2, 1, 2, 2, 1, 1})});
}
TEST(CommonTemplate, squeeze2) {
  check([](Tensor a) { return std::tuple((a + 1).squeeze(-1).squeeze(2) + 2, a.squeeze(0) + 2); },
        {randn({1, 2, 1, 2, 2, 2, 1})});
}
TEST(CommonTemplate, simplify_loops) {
  check([](Tensor a, Tensor b) { return a + b; },
        {randn({2, 3, 4, 5, 6}), randn({4, 2, 3, 5, 6}).permute({1, 2, 0, 3, 4})});
}
TEST(CommonTemplate, unsqueeze) {
  check(
      [](Tensor a) {
        return std::tuple(unsqueeze(a + 1, -1) + 2, unsqueeze(a, 2) + 2, unsqueeze(a + 1, 0) + 2, unsqueeze(a, -2) + 2);
      },
      {randn({2, 2, 2, 2})});
}
TEST(CommonTemplate, repeat) {
  check(
      [](Tensor x) {
        return std::tuple(x.repeat({0, 1, 1, 1}), x.repeat({2, 2, 3, 1}), x.repeat({8, 1, 1, 1}),
                          x.repeat({2, 1, 1, 1, 1, 1}));
      },
      {randn({1, 2, 4, 8})});
}
TEST(CommonTemplate, repeat_as_strided) {
  check(
      [](Tensor x) {
        Tensor view = x.repeat({3, 2});
        return view + as_strided(view, {3, 2}, view.sym_strides());
      },
      {randn({1, 1})});
}
TEST(CommonTemplate, repeat_interleave) {
  check(
      [](Tensor x) {
        return std::tuple(x.repeat_interleave(2), x.repeat_interleave(3, 0), x.repeat_interleave(x.size(1), 1));
      },
      {randn({1, 2, 4, 8})});
}
TEST(CommonTemplate, unbind) {
  check([](Tensor a) { return std::tuple(unbind(a), unbind(a, -1)); }, {randn({4, 4, 4})});
}
TEST(CommonTemplate, split) {
  check([](Tensor a) { return std::tuple(split(a, 3, -1), split(a + 1, 3, -1)); }, {randn({2, 2, 10})});
}
TEST(CommonTemplate, split_with_list) {
  for (SymInts sizes : {SymInts{3, 3, 4}, SymInts{4, 3, 3}, SymInts{1, 2, 3, 4}})
    check(
        [sizes](Tensor a) {
          Tensors parts = split(a * 2, sizes, -1);
          for (Tensor& part : parts) part = part + 1;
          return parts;
        },
        {randn({2, 2, 10})});
}
TEST(CommonTemplate, split_with_integer) {
  auto function = [](Tensor x, auto n) { return split(x, n, -1); };
  auto f = compile(function, {.dynamic = Dynamic::On});
  auto widths = [&](int64_t width, int64_t n) {
    std::vector<int64_t> made;
    for (const Tensor& part : f(randn({2, width}), SymInt(n))) {
      EXPECT_EQ(part.sizes()[0], 2);
      made.push_back(part.sizes()[1]);
    }
    return made;
  };
  EXPECT_EQ(widths(10, 5), (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(widths(12, 4), (std::vector<int64_t>{4, 4, 4}));
  EXPECT_EQ(widths(10, 3), (std::vector<int64_t>{3, 3, 3, 1}));
}
TEST(CommonTemplate, split_failed) {
  auto f = compile([](Tensor a) { return split(a, SymInts{2, 1, 1}, 1); });
  EXPECT_THROW(f(randn({1, 5})), RuntimeError);
}
TEST(CommonTemplate, slice1) {
  check(
      [](Tensor a) {
        auto half = [](Tensor x) { return x.slice(1, {}, 10).select(2, 0) + x.slice(1, 10).select(2, 0); };
        return std::tuple(half(a), half(a + 1), a.slice(1, -30).select(2, 0), a.slice(1, {}, -30).select(2, 0));
      },
      {randn({2, 20, 2})});
}
TEST(CommonTemplate, slice2) {
  check(
      [](Tensor a) {
        auto picked = [](Tensor x, Tensor y) {
          return x.slice(0, {}, -1).slice(1, {}, {}, 2).select(2, -1) + y.slice(0, -1).slice(1, 1, {}, 2).select(2, -2);
        };
        return std::tuple(picked(a, a), picked(a + 1, a + 2));
      },
      {randn({2, 20, 2})});
}
TEST(CommonTemplate, slice3) {
  auto function = [](Tensor a, auto b) { return slice(a, 0, 0, -b); };
  Tensor a = randn({48, 3, 512, 512});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor result = compile(function, {.dynamic = dynamic})(a, SymInt(2));
    EXPECT_EQ(result.sizes()[0], 46);
    EXPECT_TRUE(result.is_same_storage(a)) << "a view";
  }
}
TEST(CommonTemplate, slice4) {
  Tensors results = check(
      [](Tensor a) {
        SymInt n = a.size(0);
        return std::tuple(slice(a, 0, 2, 0), slice(a, 0, n, n + 10), slice(a, 0, -20, 0), slice(a, 0, -20, -16));
      },
      {randn({10})});
  for (const Tensor& result : results) EXPECT_EQ(result.numel().plain(), 0);
}
TEST(CommonTemplate, expand_as) {
  check([](Tensor a, Tensor b) { return std::tuple(expand_as(a, b), expand_as(a + 1, b + 1) + 1); },
        {randn({6, 1, 100}), randn({6, 128, 100})});
}
TEST(CommonTemplate, flip) {
  check([](Tensor x) { return std::tuple(flip(x, {-1}), flip(x, {0, 2}) - 2); }, {randn({1, 2, 6, 6})});
}
TEST(CommonTemplate, roll) {
  check([](Tensor a) { return std::tuple(roll(a, {-3, 10}, {1, 2}), roll(a, {5})); }, {randn({2, 56, 56, 16})});
}
TEST(CommonTemplate, triu) {
  check([](Tensor a) { return std::tuple(triu(a, 1), triu(a, 0), triu(a, 2)); }, {randn({2, 10, 10})});
}
TEST(CommonTemplate, stack) {
  check([](Tensor a, Tensor b) { return stack({a.expand({12, 16}), b.expand({12, 16})}, 2); },
        {randn({1, 16}), randn({12, 1})});
}
TEST(CommonTemplate, insignificant_strides) {
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto function = [](Tensor x) { return (x + 1).view({-1, 1, 2}); };
    Tensor x = arange(8, kFloat32), expected = function(x), result = compile(function, {.dynamic = dynamic})(x);
    EXPECT_TRUE(same_bits(result, expected));
    for (size_t dim = 0; dim < 3; ++dim) EXPECT_EQ(result.strides()[dim], expected.strides()[dim]);
  }
}
TEST(CommonTemplate, pad_view) {
  check(
      [](Tensor a) {
        Tensor padded = pad(a, {0, 0, 0, 1});
        return padded.view({padded.size(0), padded.size(1), padded.size(3), padded.size(2)});
      },
      {randn({48, 3, 512, 512})}, {.backward = false});
}
TEST(CommonTemplate, pad_cast) {
  for (Dtype dtype : {kInt32, kInt64})
    check([](Tensor x) { return pad(x.to(kFloat32), {0, 3, 0, 0}); }, {ones({1, 1, 13}, dtype)});
}
TEST(CommonTemplate, constant_pad_1d) {
  check([](Tensor a) { return std::tuple(constant_pad_nd(a, {0, 1}, 6.0), constant_pad_nd(a, {2, 3}, 99.0)); },
        {randn({2, 16, 31})}, {.then = {randn({3, 7, 12})}});
}
TEST(CommonTemplate, constant_pad_2d) {
  check(
      [](Tensor a) {
        return std::tuple(constant_pad_nd(a, {1, 1, 1, 1}, 6.0), constant_pad_nd(a, {1, 2, 3, 4}, 99.0));
      },
      {randn({1, 1, 8, 8})});
}
TEST(CommonTemplate, constant_pad_3d) {
  check(
      [](Tensor a) {
        return std::tuple(constant_pad_nd(a, {1, 2, 3, 4, 5, 6}, 6.0), constant_pad_nd(a, {0, 0, 3, 4, 0, 0}, 6.0));
      },
      {randn({2, 4, 4, 4})});
}
TEST(CommonTemplate, constant_pad_fill_dtype) {
  Tensors results = check(
      [](Tensor a, Tensor b) {
        return std::tuple(constant_pad_nd(a, {1, 1}, 1.0) & b, constant_pad_nd(a, {1, 1}, 0.0) & b);
      },
      {tensor({true, false, true, false}), ones({6}, kBool)});
  for (const Tensor& result : results) EXPECT_EQ(result.dtype(), kBool);
}
TEST(CommonTemplate, constant_pad_float64) {
  check([](Tensor x) { return gt(pad(x, {1, 0}), x); }, {rand({1, 2, 2, 1}, kFloat64)});
}
TEST(CommonTemplate, constant_pad_nd_inplace) {
  auto function = [](Tensor a) { return constant_pad_nd(a, {0, 0}); };
  Tensor a = randn({2});
  check(function, {a});
  EXPECT_FALSE(compile(function)(a).is_same_storage(a)) << "a tensor of its own";
}
TEST(CommonTemplate, reflection_pad2d) {
  for (SymInts pads : {SymInts{1, 1, 1, 1}, SymInts{5, 2, 3, 4}})
    check([pads](Tensor a) { return pad(a, pads, "reflect"); }, {randint(0, 999, {1, 1, 8, 8}).to(kFloat32)});
}
TEST(CommonTemplate, dtype_mismatch_issue) {
  Tensor result = check([](Tensor x) { return softmax(pad(x, {0, 1}), -1); }, {rand({128, 32, 63})})[0];
  EXPECT_EQ(result.sizes()[2], 64);
}
TEST(CommonTemplate, view_detach) {
  Tensor a = randn({4, 4}).set_requires_grad();
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor result = compile([](Tensor x) { return x[0].detach(); }, {.dynamic = dynamic})(a);
    EXPECT_TRUE(same_bits(result, a[0].detach()));
    EXPECT_FALSE(result.requires_grad());
  }
}
TEST(CommonTemplate, as_strided) {
  check(
      [](Tensor x) {
        SymInts sizes = {8, 8, 64}, strides = {8 * 64, 64, 1};
        return std::tuple(as_strided(x, sizes, strides, 0), as_strided(x + 1, sizes, strides, 0) + 2);
      },
      {randn({64, 64})});
  Tensor last = randn({8, 20, 20, 384}).permute({0, 3, 1, 2});
  check(
      [](Tensor x) {
        SymInts sizes = {8, 384, 2, 20, 12}, strides = {153600, 1, 61440, 384, 7680};
        return std::tuple(as_strided(x, sizes, strides, 0), as_strided(x + 1, sizes, strides, 0) + 2);
      },
      {last}, {.backward = false});
}
TEST(CommonTemplate, as_strided_scatter) {
  check(
      [](Tensor a, Tensor b) {
        return as_strided_scatter(a * 8 + 10, b * 2 - 4, {a.size(0), a.size(1) / 2}, {a.size(1), 2}, 0);
      },
      {randn({10, 1024}), randn({10, 512})});
}

}  // namespace
}  // namespace tenon::operators
