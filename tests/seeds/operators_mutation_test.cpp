// Seed 000's operator cases: functions that write to tensors, and memory that is reused.
#include "operators.h"

#include <tenon/autograd/grad_mode.h>

namespace tenon::operators {
namespace {

using Indices = std::vector<std::optional<Tensor>>;

TEST(CommonTemplate, inplace_add) {
  Tensor x = randn({4, 4}), y = randn({4, 4}), expected = x + y;
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor written = x.clone();
    Tensor result = compile([](Tensor a, Tensor b) { return a.add_(b); }, {.dynamic = dynamic})(written, y);
    EXPECT_TRUE(same_bits(written, expected));
    EXPECT_TRUE(result.is(written)) << "the input itself";
  }
}
TEST(CommonTemplate, input_mutation1) {
  check(
      [](Tensor a) {
        Tensor b = a + 1;
        a.copy_(b);
        Tensor c = a + 2;
        return a * b / c;
      },
      {randn({64})}, {.then = {randn({64})}});
}
TEST(CommonTemplate, input_mutation2) {
  auto function = [](Tensor a) {
    Tensor b = a + 1;
    a.view({64}).copy_(tensor({66.0}));
    return std::tuple(b, a + 2);
  };
  check(function, {randn({1, 64})});
  Tensor leaf = randn({1, 64}).set_requires_grad();
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor eager_input = leaf * 1, input = leaf * 1;
    auto [b, c] = function(eager_input);
    auto [b2, c2] = compile(function, {.dynamic = dynamic})(input);
    EXPECT_TRUE(same_bits(b2.detach(), b.detach()) && same_bits(c2.detach(), c.detach()));
    EXPECT_TRUE(same_bits(input.detach(), eager_input.detach()));
    EXPECT_TRUE(same_bits(input.detach(), full({1, 64}, 66.0)));
  }
}
TEST(CommonTemplate, input_mutation3) {
  check(
      [](Tensor a) {
        a += 1;
        a *= 2;
        sigmoid_(a);
        Tensor flat = a.view({64});
        flat += 3;
        flat *= 4;
        relu_(flat);
        return flat;
      },
      {randn({1, 64})});
}
TEST(CommonTemplate, input_mutation4) {
  check(
      [](Tensor a) {
        relu_(a);
        return a;
      },
      {randn({1, 64})});
}
TEST(CommonTemplate, input_mutation5) {
  Tensor x = tensor(0);
  Tensor result = compile([](Tensor a) {
    Tensor before = a.ceil();
    a.add_(10);
    return before;
  })(x);
  EXPECT_EQ(result.item<int64_t>(), 0);
  EXPECT_EQ(x.item<int64_t>(), 10);
  check(
      [](Tensor a) {
        Tensor before = a.ceil();
        a.add_(10);
        return before;
      },
      {tensor(0)});
}
TEST(CommonTemplate, slice_mutation1) {
  check(
      [](Tensor a) {
        Tensor x = zeros_like(a), b = x + 1;
        x.index_put_({Slice(), 3}, 3.0);
        Tensor c = clone(x);
        x.index_put_({4, Slice()}, 4.0);
        return std::tuple(x, b, c, x + 1);
      },
      {randn({8, 8})});
}
TEST(CommonTemplate, slice_mutation2) {
  check(
      [](Tensor a) {
        a.slice(1, 20, 40).copy_(a.slice(1, 20, 40) + 1);
        a.slice(1, 2, 11).copy_(a.slice(1, 1, 10) + 2);
        return Tensors{};
      },
      {arange(1, 65, 1, kFloat32).view({1, 64})});
}
TEST(CommonTemplate, slice_mutation3) {
  check(
      [](Tensor a) {
        a.slice(0, {}, 2).slice(1, {}, 2).fill_(10);
        return Tensors{};
      },
      {randn({8, 8})});
}
TEST(CommonTemplate, inplace_activations) {
  check(
      [](Tensor x) {
        Tensor none = zeros({64}, kBool), all = ones({64}, kBool);
        return Tensors{hardswish_(x + 1),
                       hardtanh_(x + 1),
                       leaky_relu_(x + 1),
                       silu_(x + 1),
                       log1p(x + 1),
                       masked_fill_(x + 1, none, 99.0),
                       masked_fill_(x + 1, all, 99.0)};
      },
      {randn({64}) * 10});
}
TEST(CommonTemplate, fill1) {
  Tensors results = check(
      [](Tensor x) {
        Tensor t = ones_like(x);
        return std::tuple(t, fill(t, 2));
      },
      {randn({16, 16})});
  EXPECT_TRUE(same_bits(results[0], ones({16, 16})));
}
TEST(CommonTemplate, fill2) {
  Tensors results = check(
      [](Tensor x) {
        Tensor t = ones_like(x);
        return std::tuple(t, fill(t, tensor(3.0)));
      },
      {randn({16, 16})});
  EXPECT_TRUE(same_bits(results[0], ones({16, 16})));
}
TEST(CommonTemplate, cat_inplace) {
  Tensor result = check(
      [](Tensor x) {
        Tensor rt = cat({x});
        x.sin_();
        return rt;
      },
      {ones({2})})[0];
  EXPECT_TRUE(same_bits(result, ones({2})));
}
TEST(CommonTemplate, remove_noop_copy) {
  check(
      [](Tensor x, Tensor y) {
        Tensor t = x.cos();
        t.copy_(y);
        return t.sin();
      },
      {randn({8, 8}), randn({8})});
  check(
      [](Tensor a, Tensor b) {
        b[0] = abs(a).max();
        return b;
      },
      {randn({8, 8}).to(kFloat16), randn({8})});
}
TEST(CommonTemplate, remove_noop_clone) {
  Tensor x = randn({2, 4}), before = x.clone();
  auto function = [](Tensor a) {
    Tensor y = a.clone().reshape({-1, 4});
    y.index_put_({Slice(), tensor({2, 0})}, y.index({Slice(), tensor({0, 2})}));
    return y + a;
  };
  check(function, {x});
  compile(function)(x);
  EXPECT_TRUE(same_bits(x, before));
}
TEST(CommonTemplate, zero_element_mutation) {
  check([](Tensor x) { return leaky_relu_(x, 5.2955089); }, {empty({0})});
}
TEST(CommonTemplate, aliased_buffer_reuse) {
  check(
      [](Tensor x, Tensor y) {
        x = 2 * x;
        y = 2 * y;
        Tensor d = 1 + cat({x, y}, -1), m = mm(d, d);
        return m.slice(1, {}, 2) + x;
      },
      {randn({4, 2}), randn({4, 2})});
}
TEST(CommonTemplate, slice_view_with_graph_break) {
  auto function = [] {
    Tensor a = tensor({1}).slice(0, 0, 1), b = a.squeeze();
    a[0] = 0;
    if (a[0].item<int64_t>() < 100000) a[0] = 2;
    return b;
  };
  EXPECT_EQ(function().item<int64_t>(), 2);
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On})
    EXPECT_EQ(compile(function, {.dynamic = dynamic})().item<int64_t>(), 2);
}
TEST(CommonTemplate, adding_tensor_offsets) {
  autograd::SetGradMode off(false);
  Tensor base = randn({1024});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile([](Tensor x) { return x.slice(0, 16, 32); }, {.fullgraph = true, .dynamic = dynamic});
    for (int64_t start : {0, 128})
      EXPECT_TRUE(same_bits(f(base.slice(0, start)), base.slice(0, start + 16, start + 32)));
  }
}
TEST(CommonTemplate, setitem_with_int_parameter) {
  auto write = [](Tensor a, auto n) { a.select(0, n).fill_(-1); };
  auto f = compile(write);
  auto run = [&](int64_t n) {
    Tensor expected = zeros({7}), actual = zeros({7});
    write(expected, SymInt(n));
    f(actual, SymInt(n));
    EXPECT_TRUE(same_bits(actual, expected)) << n;
  };
  for (int64_t n = 2; n <= 6; ++n) run(n);
  EXPECT_LE(f.compile_count(), 2);
  int64_t before = f.compile_count();
  run(-7);
  EXPECT_EQ(f.compile_count(), before + 1) << "from the back";
}
TEST(CommonTemplate, fusing_write_into_disjoint_read) {
  check([](Tensor a) { return a.copy_(flip(a, {0})); }, {rand({20})}, {.kernels = 2});
}
TEST(CommonTemplate, strided_inputs) {
  Tensor storage = randn({8 * 32});
  check([](Tensor x, Tensor y) { return x + y; }, {as_strided(storage, {8, 16}, {32, 2}), randn({8, 16})});
  auto f = compile([](Tensor x, Tensor y) { return x + y; });
  Tensor x = as_strided(storage, {8, 16}, {32, 2}), y = randn({8, 16});
  EXPECT_TRUE(same_bits(f(x, y), x + y));
}
// A list that the compiled function takes over: both inputs are freed before the product is computed.
TEST(CommonTemplate, list_clearing) {
  static Counter& library = counter("library_calls");
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile([](Tensors in) { return mm(in[0] + in[1], in[0] + in[1]); }, {.dynamic = dynamic});
    std::vector<float> one(25, 1.5F), two(25, -0.25F);
    Tensor expected = full({5, 5}, 1.25 * 1.25 * 5);
    // The first call captures, and needs what it was given to the end.
    Tensors first = {randn({5, 5}), randn({5, 5})};
    f.consume(first);
    for (int round = 0; round < 2; ++round) {
      std::vector<int64_t> products_before_release;
      int64_t before = library.value();
      auto released = [&](void*) { products_before_release.push_back(library.value() - before); };
      Tensors given = {from_blob(one.data(), {5, 5}, {5, 1}, released),
                       from_blob(two.data(), {5, 5}, {5, 1}, released)};
      Tensor result = f.consume(given);
      EXPECT_TRUE(given.empty());
      EXPECT_TRUE(close(result, expected, {}));
      EXPECT_EQ(library.value() - before, 1) << "the product is a library's";
      EXPECT_EQ(products_before_release, (std::vector<int64_t>{0, 0}));
    }
  }
}

}  // namespace
}  // namespace tenon::operators
