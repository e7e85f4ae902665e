// Seed 000's operator cases: tensors made inside, constants, conversions, random numbers.
#include "operators.h"

#include <tenon/core/random.h>
#include <tenon/library/custom_op.h>
#include <tenon/library/define.h>

namespace tenon::operators {
namespace {

TEST(CommonTemplate, arange1) {
  check(
      [](Tensor x) {
        Tensor scaled = x * arange(64, kFloat32).view({8, 8});
        return std::tuple(scaled, scaled + arange(10, 18));
      },
      {randn({8, 8})});
}
TEST(CommonTemplate, arange2) {
  EXPECT_EQ(check([](Tensor x) { return x + arange(8); }, {randint(4, {8, 8})})[0].dtype(), kInt64);
}
TEST(CommonTemplate, arange3) {
  check([](Tensor x) { return x + arange(0, 53, 4, kInt64); }, {randn({14})});
}
TEST(CommonTemplate, arange4) {
  check([](Tensor x) { return x - arange(512, -512, -1.0); }, {randn({1024})});
}
TEST(CommonTemplate, arange5) {
  auto function = [](Tensor x, Scalar step) { return std::tuple(x, arange(512, -512, step)); };
  Tensor x = randn({1024});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile(function, {.dynamic = dynamic});
    for (Scalar step : {Scalar(-1), Scalar(-1.0)}) {
      Tensor result = std::get<1>(f(x, step));
      EXPECT_EQ(result.dtype(), step.is_real() ? kFloat32 : kInt64);
      EXPECT_TRUE(same_bits(result, arange(512, -512, step)));
    }
  }
}
TEST(CommonTemplate, arange6) {
  for (Dtype dtype : {kFloat32, kInt64}) {
    Tensor result = check([](Tensor x) { return arange(0.1, 8.0001, 1, x.dtype()); }, {zeros({1}, dtype)})[0];
    if (dtype == kInt64) {
      EXPECT_TRUE(same_bits(result, arange(0, 8, 1, kInt64))) << "bounds are cut to 0 and 8 first";
    } else {
      EXPECT_EQ(result.numel().plain(), 8);
    }
  }
}
TEST(CommonTemplate, linspace1) {
  check([](Tensor x) { return linspace(0.125, 0.875, 7) + x; }, {randn({1, 7})});
}
TEST(CommonTemplate, linspace2) {
  check([](Tensor x) { return linspace(0, 2, 1) + x; }, {randn({1, 1})});
}
TEST(CommonTemplate, linspace3) {
  Tensor result = check([](Tensor) { return linspace(0, 2, 0); }, {empty({0})})[0];
  EXPECT_EQ(result.description(), "float32[0]");
}
TEST(CommonTemplate, tensor1) {
  Tensors results = check([](Tensor x) { return std::tuple(tensor({1}) + x, tensor(5)); }, {randn({10})});
  EXPECT_EQ(results[1].dtype(), kInt64);
  EXPECT_EQ(results[1].item<int64_t>(), 5);
}
TEST(CommonTemplate, tensor2) {
  check([](Tensor x) { return tensor({2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38}) + x; },
        {randn({1})});
}
TEST(CommonTemplate, tensor3) {
  check(
      [](Tensor x) {
        return std::tuple(empty({0}), tensor({1, 2}) + 1, tensor({1, 2, 3}) + 2, tensor({1, 2, 3, 4}) + x);
      },
      {randn({4})});
}
TEST(CommonTemplate, long_tensor) {
  check([](Tensor a) { return std::tuple(tensor({294}) - a, tensor({295}) + a); }, {randint(10, {8, 8})});
}
TEST(CommonTemplate, zeros) {
  check(
      [](Tensor a) {
        return Tensors{a + 1,         zeros({1, 8, 64, 64}), zeros(SymInts{1, 8, 64, 64}),
                       zeros({2, 3}), a + ones({8}),         full({2, 3}, 3.1416)};
      },
      {randn({8})});
}
TEST(CommonTemplate, new_ones) {
  TensorOptions options(kFloat32);
  options.layout = Layout::Strided;
  options.pin_memory = false;
  check([options](Tensor a) { return std::tuple(new_ones(a, {}, options), new_zeros(a, {}, options)); }, {randn({8})});
}
TEST(CommonTemplate, full_like) {
  check([](Tensor a) { return full_like(a, 7.777) - 1; }, {randn({8})});
}
TEST(CommonTemplate, full_truncation) {
  for (Dtype dtype : {kFloat32, kFloat64, kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    Tensor a = randint(10, {8}).to(dtype);
    Tensor result = check([](Tensor x) { return x + full_like(x, 7.777); }, {a})[0];
    if (!is_floating(dtype)) {
      EXPECT_TRUE(same_bits(result, a + 7));
    }
  }
}
TEST(CommonTemplate, full_boolean) {
  auto function = [](auto n) {
    Tensor x = full({1}, n >= 1024);
    return std::tuple(x, x + 1);
  };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile(function, {.dynamic = dynamic});
    for (int64_t n : {1024, 1023}) {
      auto [x, next] = f(SymInt(n));
      EXPECT_TRUE(same_bits(x, tensor({n >= 1024})));
      EXPECT_TRUE(same_bits(next, tensor({n >= 1024 ? 2 : 1})));
    }
  }
}
TEST(CommonTemplate, to_dtype) {
  Tensors results = check(
      [](Tensor a, Tensor b) {
        return std::tuple(_to_copy(a, kFloat32), _to_copy(b + 1, kFloat32), b.to(kFloat64), b.to(kBool));
      },
      {randn({2, 2, 10}), randn({2, 2, 10}, kFloat64)});
  EXPECT_EQ(results[0].dtype(), kFloat32);
  EXPECT_EQ(results[1].dtype(), kFloat32);
  EXPECT_EQ(results[2].dtype(), kFloat64);
  EXPECT_EQ(results[3].dtype(), kBool);
}
TEST(CommonTemplate, const_int32_to_float) {
  Tensor result = check(
      [] {
        Tensor a = zeros({1, 2}, kInt32);
        return (a + a).to(kFloat32) * 0.8;
      },
      {})[0];
  EXPECT_EQ(result.dtype(), kFloat32);
}
TEST(CommonTemplate, uint) {
  Tensor result = check(
      [](Tensor) {
        Tensor x = tensor(5, kUInt8);
        return x < neg(x);
      },
      {randn({26})})[0];
  EXPECT_TRUE(result.item<bool>()) << "251";
}
TEST(CommonTemplate, cumsum_pattern_matcher_issue) {
  Tensor result = check([](Tensor x) { return cumsum(ones({x.size(0), x.size(1)}).to(kInt64), 1); }, {randn({2, 2})},
                        {.rtol = 0, .atol = 0})[0];
  EXPECT_TRUE(same_bits(result, tensor({{1, 2}, {1, 2}})));
}
TEST(CommonTemplate, shape_prop_torch_ones) {
  check([](Tensor scores) { return scores + ones({8, 1, 1, 512}); }, {randn({8, 12, 512, 512})}, {.backward = false});
}
TEST(CommonTemplate, move_arange) {
  check([](Tensor x) { return arange(Scalar(x.size(0)), TensorOptions(kCPU)) + x; }, {randn({32})}, {.kernels = 1});
}
TEST(CommonTemplate, empty1) {
  check([] { return empty({1, 128, 128}); }, {}, {.values = false});
}
TEST(CommonTemplate, empty2) {
  check([] { return empty(SymInts{1, 128, 128}, TensorOptions(kCPU)); }, {}, {.values = false});
}
TEST(CommonTemplate, new_empty) {
  check([](Tensor a) { return new_empty(a, {1, 128, 128}); }, {randn({55})}, {.values = false});
}
TEST(CommonTemplate, empty_strided) {
  check([] { return empty_strided({1, 128, 128}, {16384, 128, 1}); }, {}, {.values = false});
}
TEST(CommonTemplate, float_index_expression_type_promotion) {
  Tensor result = check([](Tensor x) { return x + 1.0 / to_float(x.size(0)); }, {arange(10)})[0];
  EXPECT_EQ(result.dtype(), kFloat32);
}

TEST(CommonTemplate, randn_with_dtype_and_device) {
  auto function = [](Tensor v) { return randn({12, v.size(-1), 1, 64}, TensorOptions(v.dtype(), v.device())) += 1; };
  Tensor v = randn({4, 12, 2, 64});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    manual_seed(7);
    Tensor expected = function(v);
    manual_seed(7);
    EXPECT_TRUE(same_bits(compile(function, {.dynamic = dynamic})(v), expected));
  }
}
TEST(CommonTemplate, like_rands) {
  auto function = [](Tensor x) { return std::tuple(rand_like(x), randn_like(x)); };
  Tensor x = zeros({20, 20});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    manual_seed(3);
    auto [uniform, normal] = function(x);
    manual_seed(3);
    auto [uniform2, normal2] = compile(function, {.dynamic = dynamic})(x);
    EXPECT_TRUE(same_bits(uniform2, uniform) && same_bits(normal2, normal));
  }
}
TEST(CommonTemplate, like_rands2) {
  auto f = compile([](Tensor x) { return rand_like(x, TensorOptions(parse_device("cpu"))); });
  Tensor x = ones({10});
  EXPECT_FALSE(f(x).equal(f(x)));
}
TEST(CommonTemplate, rand_like_deterministic) {
  Tensor x = ones({1024});
  auto f = compile([](Tensor a) { return std::tuple(rand_like(a), rand_like(a)); });
  manual_seed(1234);
  auto [a0, a1] = f(x);
  auto [b0, b1] = f(x);
  manual_seed(1234);
  auto [c0, c1] = f(x);
  auto [d0, d1] = f(x);
  EXPECT_TRUE(same_bits(a0, c0) && same_bits(a1, c1) && same_bits(b0, d0) && same_bits(b1, d1));
  EXPECT_FALSE(a0.equal(b0) || a0.equal(a1) || b0.equal(b1));
  for (const Tensor& drawn : {a0, a1, b0, b1})
    EXPECT_TRUE(((drawn >= 0).all().item<bool>() && (drawn < 1).all().item<bool>()));
}
TEST(CommonTemplate, randn_like_empty) {
  Tensor result = compile([](Tensor x) { return randn_like(std::get<0>(x.min(1))); })(randn({10, 3, 0}));
  EXPECT_EQ(result.description(), "float32[10, 0]");
}
TEST(CommonTemplate, dropout_trivial_0) {
  Tensor a = randn({55});
  Tensor result = check([](Tensor x) { return dropout(x, 0, true) + x; }, {a})[0];
  EXPECT_TRUE(same_bits(result, a * 2));
}
TEST(CommonTemplate, dropout_trivial_1) {
  Tensor a = randn({55});
  Tensor result = check([](Tensor x) { return dropout(x, 1, true) + x; }, {a})[0];
  EXPECT_TRUE(same_bits(result, a));
}
TEST(CommonTemplate, dropout) {
  Tensor x = ones({1000});
  auto looks_right = [](const Tensor& result) {
    int64_t kept = (result != 0).sum().item<int64_t>();
    double mean = result.mean().item<double>();
    EXPECT_TRUE(kept > 400 && kept < 600) << kept;
    EXPECT_TRUE(mean > 0.9 && mean < 1.1) << mean;
  };
  manual_seed(1234);
  looks_right(compile([](Tensor a) { return nn::Dropout()(a); })(x));
  looks_right(compile([](Tensor a) { return dropout(a, 0.5, true); })(x));
}
TEST(CommonTemplate, dropout_deterministic) {
  Tensor x = ones({1024});
  auto f = compile([](Tensor a) { return dropout(a, 0.55, true); });
  auto three = [&] {
    manual_seed(1234);
    return Tensors{f(x), f(x), f(x)};
  };
  Tensors first = three(), second = three();
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(first[i], second[i]));
  EXPECT_FALSE(first[0].equal(first[1]) || first[1].equal(first[2]) || first[0].equal(first[2]));
}
// PyTorch's operators that take a function, with rand in its place. A state is what the generator is at: a seed, and
// how much was drawn since.
TEST(CommonTemplate, functionalize_rng_wrappers) {
  dispatch::Library lib("_operator_cases");
  using Pair = std::tuple<Tensor, Tensor>;
  lib.def("run_and_save_rng_state(Tensor like) -> (Tensor, Tensor)");
  lib.impl(
      "run_and_save_rng_state",
      [](const Tensor& like) {
        const Generator& generator = default_generator();
        Tensor state = tensor({static_cast<int64_t>(generator.seed()), static_cast<int64_t>(generator.offset())});
        return Pair(state, rand_like(like));
      },
      dispatch::KernelKey::CPU);
  library::register_fake(
      "_operator_cases::run_and_save_rng_state",
      [](const Tensor& like) { return Pair(like.new_empty({2}, kInt64), empty_like(like)); }, &lib);
  lib.def("run_with_rng_state(Tensor state, Tensor like) -> Tensor");
  lib.impl(
      "run_with_rng_state",
      [](const Tensor& state, const Tensor& like) {
        Generator& generator = default_generator();
        const uint64_t seed = generator.seed(), offset = generator.offset();
        generator.set_state(static_cast<uint64_t>(state[0].item<int64_t>()),
                            static_cast<uint64_t>(state[1].item<int64_t>()));
        Tensor drawn = rand_like(like);
        generator.set_state(seed, offset);
        return drawn;
      },
      dispatch::KernelKey::CPU);
  library::register_fake(
      "_operator_cases::run_with_rng_state", [](const Tensor&, const Tensor& like) { return empty_like(like); }, &lib);
  auto function = [] {
    using dispatch::Value;
    Tensor like = zeros({4, 4});
    Tensors first = by_name("_operator_cases::run_and_save_rng_state", {Value(like)}),
            second = by_name("_operator_cases::run_and_save_rng_state", {Value(like)});
    return Tensors{first[1], second[1],
                   by_name("_operator_cases::run_with_rng_state", {Value(first[0]), Value(like)})[0],
                   by_name("_operator_cases::run_with_rng_state", {Value(second[0]), Value(like)})[0]};
  };
  auto hold = [](const Tensors& drawn) {
    EXPECT_TRUE(same_bits(drawn[0], drawn[2]));
    EXPECT_TRUE(same_bits(drawn[1], drawn[3]));
    EXPECT_FALSE(drawn[0].equal(drawn[1]));
  };
  hold(function());
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile(function, {.fullgraph = true, .dynamic = dynamic});
    for (int call = 0; call < 2; ++call) hold(f());
    EXPECT_EQ(f.compile_count(), 1);
  }
}
TEST(CommonTemplate, bernoulli2) {
  check([](Tensor p) { return bernoulli(p); }, {tensor({0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0})}, {.backward = false});
}
TEST(CommonTemplate, randint_int64_mod) {
  auto function = [](auto n) { return randint(-5, 5, {n}, kInt64) % 10; };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor result = compile(function, {.dynamic = dynamic})(SymInt(20));
    EXPECT_EQ(result.description(), "int64[20]");
    EXPECT_TRUE(((result >= 0).all().item<bool>() && (result < 10).all().item<bool>())) << result.str();
  }
}

}  // namespace
}  // namespace tenon::operators
