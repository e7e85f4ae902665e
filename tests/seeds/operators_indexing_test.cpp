// Seed 000's operator cases: gathering, indexing, scattering.
#include "operators.h"

namespace tenon::operators {
namespace {

using Indices = std::vector<std::optional<Tensor>>;

TEST(CommonTemplate, scatter_bf16) {
  for (Dtype dtype : {kInt64, kBool, kBFloat16})
    check([](Tensor inp, Tensor index, Tensor src) { return inp.scatter_add(0, index, src); },
          {zeros({3, 5}, dtype), tensor({{0, 1, 2, 0, 0}}), ones({2, 5}, dtype)});
}
TEST(CommonTemplate, gather1) {
  for (int64_t dim : {3, -1})
    check([dim](Tensor a, Tensor b) { return gather(a.expand({4, 5, 10, 6}), dim, b + 1); },
          {randn({1, 1, 10, 6}), randint(5, {4, 5, 10, 1})});
}
TEST(CommonTemplate, gather2) {
  Tensor a = tensor(123.0), b = tensor(0);
  EXPECT_TRUE(same_bits(gather(a, 0, b) + gather(a, -1, b), a + a));
  check([](Tensor x, Tensor y) { return gather(x, 0, y) + gather(x, -1, y); }, {a, b});
}
TEST(CommonTemplate, gather3) {
  check([](Tensor a, Tensor b) { return gather(a, 1, b, true); }, {randn({4, 5, 10, 6}), randint(5, {4, 5, 10, 1})});
}
TEST(CommonTemplate, index1) {
  auto function = [](Tensor a, Tensor b, Tensor c) { return index(a, Indices{b, c}); };
  Tensor b = tensor({0, 1, 2, 7}), c = tensor({0, 5, 6, 7});
  check(function, {randn({8, 8, 12}), b, c});
  check(function, {randn({8, 8, 12}), b.view({1, 4}), c.view({4, 1})});
}
TEST(CommonTemplate, index2) {
  check([](Tensor a, Tensor b) { return std::tuple(index(a, Indices{b}), index(a, Indices{std::nullopt, b})); },
        {randn({8, 8, 8}), tensor({{0, 0, 2, 1}})});
}
TEST(CommonTemplate, index3) {
  check([](Tensor x, Tensor ia, Tensor ib) { return x.index({Slice(), ia, None, ib, 0}); },
        {randn({3, 4, 4, 4, 3}), tensor({0, 2, 1}), tensor({0, 2, 1})});
}
TEST(CommonTemplate, index_select) {
  for (Dtype dtype : {kInt32, kInt64})
    check(
        [](Tensor a, Tensor b) {
          return std::tuple(index_select(a, 0, b), index_select(a, 1, b), index_select(index_select(a, 2, b), 1, b));
        },
        {randn({8, 8, 8}), tensor({0, 0, 2, 1}, dtype)});
}
TEST(CommonTemplate, tensor_index_slice) {
  check(
      [](Tensor a) {
        Tensor x = tensor({1, 2}), y = tensor({2, 3}), xx = tensor({{1, 2}}), yy = tensor({{2}, {3}, {1}});
        Slice all;
        return Tensors{a.index({x, y}),
                       a.index({all, x, y}),
                       a.index({x, all, y}),
                       a.index({x, all, all, y}),
                       a.index({all, x, all, y, all}),
                       a.index({x, y, all}),
                       a.index({xx, yy}),
                       a.index({all, xx, yy}),
                       a.index({xx, all, yy}),
                       a.index({all, xx, all, yy})};
      },
      {randint(100, {3, 4, 5, 6, 7})});
}
TEST(CommonTemplate, tensor_index_put_slice) {
  for (int64_t choice = 0; choice < 10; ++choice)
    check(
        [choice](Tensor a) {
          Tensor x = tensor({1, 2}, kInt32), y = tensor({2, 3}, kInt32), xx = tensor({{1, 2}}),
                 yy = tensor({{2}, {3}, {1}});
          Slice all;
          Tensor w = zeros({}, kInt32);
          switch (choice) {
            case 0: a.index_put_({x, y}, w); break;
            case 1: a.index_put_({all, x, y}, w); break;
            case 2: a.index_put_({x, all, y}, w); break;
            case 3: a.index_put_({x, all, all, y}, w); break;
            case 4: a.index_put_({all, x, all, y, all}, w); break;
            case 5: a.index_put_({x, y, all}, w); break;
            case 6: a.index_put_({xx, yy}, w); break;
            case 7: a.index_put_({all, xx, yy}, w); break;
            case 8: a.index_put_({xx, all, yy}, w); break;
            default: a.index_put_({all, xx, all, yy}, w);
          }
          return a;
        },
        {randint(1, 100, {3, 4, 5, 6, 7}, kInt32)});
}
TEST(CommonTemplate, indirect_load_broadcast) {
  Tensor idx = zeros({21, 32}, kInt64).t();
  ASSERT_EQ(idx.strides()[1], 32);
  check([](Tensor idx_, Tensor w, Tensor p) { return gather(w, 0, idx_) + p; },
        {idx, randn({9521, 512}), randn({32, 1})});
}
TEST(CommonTemplate, index_put1) {
  auto function = [](Tensor a, Tensor b, Tensor c) {
    return std::tuple(index_put(a, Indices{b}, c), index_put_(a + 1, Indices{b + 1}, c + 1) + 1);
  };
  Tensor order = std::get<1>(sort(rand({601})));  // a permutation
  check(function, {randn({800, 256, 7, 7}), order, randn({601, 256, 7, 7})}, {.backward = false});
  check(function, {randn({1024, 4, 2}), arange(4), randn({4, 1, 1})});
}
TEST(CommonTemplate, index_put2) {
  check([](Tensor a, Tensor b, Tensor c) { return index_put(a, Indices{b}, c, true); },
        {randn({100, 256, 7, 7}), randint(0, 100, {600}), randn({600, 256, 7, 7})}, {.backward = false});
}
TEST(CommonTemplate, index_put3) {
  check(
      [](Tensor a, Tensor b, Tensor c) {
        index_put_(a, Indices{std::nullopt, b, std::nullopt}, c);
        Tensor a1 = a + 1;
        index_put_(a1, Indices{std::nullopt, b + 1, std::nullopt}, c + 1);
        return std::tuple(a, a1);
      },
      {randn({1024, 4, 2}), arange(3), randn({1024, 1, 2})});
}
TEST(CommonTemplate, index_put4) {
  check([](Tensor a, Tensor mask, Tensor v) { return index_put(a, Indices{mask}, v); },
        {rand({8, 2}), rand({8}) > 0.5, tensor(-1.0)});
}
TEST(CommonTemplate, index_put_as_masked_fill) {
  for (bool accumulate : {false, true})
    check(
        [accumulate](Tensor a, Tensor mask, Tensor v) {
          Tensor copy = a.clone();
          index_put_(copy, Indices{mask}, v, accumulate);
          return copy;
        },
        {rand({1024, 4, 2}), rand({1024, 4, 2}) > 0.5, tensor(3.0)}, {.fullgraph = !accumulate});
}
TEST(CommonTemplate, index_put_fallback1) {
  for (bool accumulate : {false, true})
    check(
        [accumulate](Tensor a, Tensor mask, Tensor v) {
          Tensor copy = a.clone();
          index_put_(copy, Indices{mask}, v, accumulate);
          return copy;
        },
        {rand({3}), tensor({true, true, false}), rand({2})}, {.fullgraph = false});
}
TEST(CommonTemplate, index_put_fallback2) {
  for (bool accumulate : {false, true})
    check(
        [accumulate](Tensor a, Tensor b, Tensor mask, Tensor v) {
          Tensor copy = a.clone();
          index_put_(copy, Indices{std::nullopt, b, mask}, v, accumulate);
          return copy;
        },
        {rand({1, 2, 3}), tensor({0, 1}), tensor({true, true, false}), tensor(0.5)}, {.fullgraph = false});
}
// Ours adds in the order of the source whatever the mode: there is no other.
TEST(CommonTemplate, index_put_deterministic_fallback) {
  auto function = [](Tensor a, Tensor b, Tensor c) { return index_put(a, Indices{b}, c, true); };
  Tensor a = randn({100, 32}), b = randint(0, 100, {600}), c = randn({600, 32});
  check(function, {a, b, c});
  EXPECT_TRUE(same_bits(compile(function)(a, b, c), compile(function)(a, b, c)));
}
TEST(CommonTemplate, index_put_index) {
  check([](Tensor ind, Tensor x, Tensor src) { return index(index_put(x, Indices{ind}, src), Indices{ind}); },
        {tensor({1}), randn({8, 4}), randn({4})});
}
TEST(CommonTemplate, index_put_failed_reinplace) {
  check(
      [](Tensor x, Tensor idx) {
        Tensor src = ones({idx.size(0)});
        return std::tuple(x, index_put(x, Indices{idx}, src));
      },
      {randn({1024}), arange(10)}, {.kernels = 2});
}
TEST(CommonTemplate, index_tensor) {
  check(
      [](Tensor x, Tensor y) {
        Tensor last = sum((x != 0).to(kInt64), -1) - 1;
        return index(y, Indices{arange(1), last});
      },
      {randn({1, 1024}), randn({1, 1024, 2})});
}
TEST(CommonTemplate, select_scatter) {
  check([](Tensor x, Tensor a, Tensor b) { return std::tuple(select_scatter(x, a, 1, 0), select_scatter(x, b, 0, 1)); },
        {randn({8, 197, 38}), randn({8, 38}), randn({197, 38})});
}
TEST(CommonTemplate, slice_scatter) {
  check(
      [](Tensor x, Tensor a) {
        return std::tuple(slice_scatter(x, a, 2, 10, -10), slice_scatter(x, a.slice(2, {}, 40), 2, 10, -10, 2));
      },
      {randn({4, 8, 100}), randn({4, 8, 80})});
}
constexpr int64_t kEnd = 9223372036854775807;
TEST(CommonTemplate, slice_scatter2) {
  check([](Tensor a, Tensor b) { return slice_scatter(a, b, 0, 0, kEnd); },
        {randn({8, 197, 384}), randn({8, 197, 384})});
}
TEST(CommonTemplate, slice_scatter3) {
  check([](Tensor a, Tensor b) { return slice_scatter(a, b, 1, 1, kEnd, 2); }, {randn({1, 4}), randn({1, 2})});
}
TEST(CommonTemplate, slice_scatter4) {
  check([](Tensor a, Tensor b) { return slice_scatter(a, b, 1, 2, kEnd, 3); }, {randn({1, 9}), randn({1, 3})});
}
TEST(CommonTemplate, slice_scatter5) {
  Tensor a = arange(10, kFloat32);
  Tensors results = check(
      [](Tensor x, Tensor empty) {
        SymInt n = x.size(0);
        return std::tuple(slice_scatter(x, empty, 0, 2, 0), slice_scatter(x, empty, 0, n, n + 10),
                          slice_scatter(x, empty, 0, -20, 0), slice_scatter(x, empty, 0, -20, -16));
      },
      {a, empty({0})});
  for (const Tensor& result : results) EXPECT_TRUE(same_bits(result, a));
}
TEST(CommonTemplate, scatter1) {
  auto function = [](Tensor a, auto dim, Tensor index, Tensor b) { return scatter(a, int64_t(dim), index, b); };
  Tensor a = zeros({2, 3}), index = tensor({{0}}), b = ones({2, 3});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On})
    EXPECT_TRUE(same_bits(compile(function, {.dynamic = dynamic})(a, SymInt(-1), index, b), scatter(a, -1, index, b)));
}
TEST(CommonTemplate, scatter4) {
  check([](Tensor x, Tensor ind, Tensor src) { return scatter(x, 0, ind, src); },
        {randn({196, 992}), randint(196, {1, 992}), randn({1, 992})});
}
TEST(CommonTemplate, scatter6) {
  check([](Tensor a, Tensor index) { return scatter(a, 2, index, 0.8); },
        {randn({5, 8, 13}), tensor({{{3, 5, 7, 9}}})});
}
TEST(CommonTemplate, scatter_add1) {
  check([](Tensor a, Tensor index, Tensor b) { return scatter_add(a, 0, index, b); },
        {randn({2, 3}), tensor({{0}}), randn({2, 3})});
}
TEST(CommonTemplate, scatter_add2) {
  check([](Tensor a, Tensor index, Tensor b) { return scatter_add(a, 0, index, b); },
        {randn({2, 3}), tensor({{0, 0, 0}, {1, 1, 1}}), randn({2, 3})});
}
TEST(CommonTemplate, scatter_add3) {
  check([](Tensor a, Tensor index, Tensor b) { return scatter_add(a, 2, index, b); },
        {randn({5, 29, 13}), tensor({{{3, 5, 7, 9}}}), randn({1, 1, 10})});
}
TEST(CommonTemplate, gather_scatter) {
  check(
      [](Tensor feat, Tensor edges) {
        Tensor src = index(feat, Indices{edges[0]}), dst = index(feat, Indices{edges[1]});
        Tensor values = src - dst + 1;
        return zeros_like(feat).scatter_add_(0, edges[1].unsqueeze(-1).expand({-1, values.size(1)}), values);
      },
      {randn({16, 32}), randint(16, {2, 80})});
}
TEST(CommonTemplate, masked_fill) {
  Tensor mask = zeros({1, 16}, kBool);
  check(
      [mask](Tensor v, Tensor m) {
        return std::tuple(masked_fill(v, m, -10000.0) + 2, masked_fill(v / 2, bitwise_not(m), 667));
      },
      {randn({16, 16}), mask});
}
TEST(CommonTemplate, masked_fill_promotion) {
  for (Dtype dtype : {kFloat32, kInt64}) {
    Tensor v = (randn({16, 16}) * 10).to(dtype);
    Tensor result = check([](Tensor mask, Tensor value) { return masked_fill(value, mask, tensor(3.5)); },
                          {randint(2, {1, 16}).to(kBool), v})[0];
    EXPECT_EQ(result.dtype(), dtype);
  }
}
TEST(CommonTemplate, misaligned_address_issue1) {
  check([](Tensor x, Tensor i) { return gather(x, 1, i); }, {rand({1, 1000}), zeros({1, 1}, kInt64)});
}
TEST(CommonTemplate, invalid_operand_issue1) {
  check(
      [](const Tensors& in) {
        Tensor ids = in[1];
        Tensor shifted = slice_scatter(in[2], slice_scatter(in[3], slice(ids, 1, 0, -1), 1, 1, kEnd), 0, 0, kEnd);
        Tensor first = select_scatter(slice(shifted, 0, 0, kEnd), in[4], 1, 0);
        Tensor whole = slice_scatter(shifted, first, 0, 0, kEnd).view({-1, 128});
        return std::tuple(embedding(in[5], whole, 1), in[0]);
      },
      {randint(100, {1024}), randint(50005, {8, 128}), zeros({8, 128}, kInt64), zeros({8, 128}, kInt64),
       randint(50005, {8}), randn({50005, 768})},
      {.backward = false});
}
TEST(CommonTemplate, mutations_loop_fusion) {
  check([](Tensor t, Tensor index, Tensor source) { return index_add(t, 0, index, source, 2.0) / 2; },
        {rand({1}, kFloat64), tensor({0}), rand({1}, kFloat64)});
}
TEST(CommonTemplate, inplace_where_pointwise) {
  check(
      [](Tensor a, Tensor b) {
        a[0] = 2;
        return a * b;
      },
      {rand({1}), rand({2})});
}
TEST(CommonTemplate, where_broadcast) {
  check([](Tensor condition, Tensor p1, Tensor p0) { return where(condition, p1, p0); },
        {tensor({{true}}), randn({13, 7, 3}), rand({1, 1})});
  Tensor constant = tensor(-3.4028234663852886e+38);
  check(
      [constant](Tensor mask, Tensor x) {
        Tensor opposite = bitwise_not(mask.to(kBool));
        return std::tuple(where(opposite, constant, x), opposite);
      },
      {randint(2, {1, 1, 64, 64}, kUInt8), randn({1, 4, 64, 64})});
}

}  // namespace
}  // namespace tenon::operators
