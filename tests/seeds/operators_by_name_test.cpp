// Seed 000's operator cases: special functions one by one, and rows that have no C++ function.
#include "operators.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/random.h>

namespace tenon::operators {
namespace {

using dispatch::Value;

TEST(CommonTemplate, bitwise3) {
  Tensor x = randint(-100, 100, {5, 10, 1}, kInt8), y = randint(-100, 100, {10, 1}, kInt8);
  Tensors results = check(
      [](Tensor a, Tensor b) {
        return std::tuple(maximum(bitwise_and(a, b), b), clamp_max(bitwise_or(a, b), b),
                          clamp_min(bitwise_xor(a, b), b));
      },
      {x, y});
  for (const Tensor& result : results) EXPECT_EQ(result.description(), "int8[5, 10, 1]");
  EXPECT_TRUE(same_bits(results[1], minimum(bitwise_or(x, y), y)));
}

// A uint8 holds two numbers of four bits.
TEST(CommonTemplate, uint4x2_mixed_mm) {
  Tensor a = randn({8, 8}), b = randint(0, 256, {4, 8}, kUInt8);
  Tensor result = check(
      [](Tensor x, Tensor packed) {
        Tensor both = cat({bitwise_and(packed, 0xF), bitwise_right_shift(packed, 4)}, 1);
        return mm(x, reshape(both, {-1, 8}).to(x.dtype()) - 8);
      },
      {a, b}, {.rtol = 1e-4, .atol = 1e-4})[0];
  Tensor unpacked = zeros({8, 8});
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < 8; ++column) {
      int64_t byte = b[row][column].item<int64_t>();
      unpacked[row * 2][column] = byte % 16 - 8;
      unpacked[row * 2 + 1][column] = byte / 16 - 8;
    }
  EXPECT_TRUE(close(result, mm(a, unpacked), {.rtol = 1e-4, .atol = 1e-4}));
}

// The tensor itself gets another shape: such a function runs in pieces.
TEST(CommonTemplate, unsqueeze_inplace) {
  auto function = [](Tensor a) {
    Tensor t = a + 1;
    t.unsqueeze_(2);
    Tensor other = a + 1;
    other.unsqueeze_(0);
    return std::tuple(t, other + 2);
  };
  Tensors results = check(function, {randn({2, 2, 2, 2})}, {.fullgraph = false});
  EXPECT_EQ(results[0].description(), "float32[2, 2, 1, 2, 2]");
  EXPECT_EQ(results[1].description(), "float32[1, 2, 2, 2, 2]");
}

TEST(CommonTemplate, linear_mixed_dtype) {
  nn::Linear layer(3, 3);
  Tensor x = arange(27).view({3, 3, 3}).permute({1, 2, 0});
  auto run = [layer](Tensor a) { return layer(a); };
  const std::string eager = error_of([&] { run(x); });
  EXPECT_NE(eager.find("float32"), std::string::npos) << eager;
  EXPECT_NE(eager.find("int64"), std::string::npos) << eager;
  auto compiled = compile(run);
  EXPECT_EQ(error_of([&] { compiled(x); }), eager) << "with gradients";
  NoGrad off;
  EXPECT_EQ(error_of([&] { compiled(x); }), eager) << "without";
}

TEST(CommonTemplate, repeat_interleave_2) {
  Tensor result = check(
      [](Tensor repeats) { return by_name("aten::repeat_interleave.Tensor", {Value(repeats)}, {{"output_size", 12}}); },
      {tensor({2, 4, 6})})[0];
  EXPECT_TRUE(same_bits(result, tensor({0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2})));
}

TEST(CommonTemplate, embedding_bag) {
  Tensor w = randn({10, 4}), indices = tensor({1, 2, 4, 5, 4, 3, 2, 9}), offsets = tensor({0, 2, 6});
  Tensors results = check(
      [](Tensor a, Tensor i, Tensor o) {
        return by_name("aten::_embedding_bag", {Value(a), Value(i), Value(o), Value(false), Value(0), Value(false)});
      },
      {w, indices, offsets});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(close(results[0], stack({w[1] + w[2], w[4] + w[5] + w[4] + w[3], w[2] + w[9]}), {}));
  // As in PyTorch, which has no use for them in this mode.
  EXPECT_EQ(results[1].description(), "int64[0]");
  for (size_t at : {2, 3}) EXPECT_TRUE(same_bits(results[at], zeros({3}, kInt64)));
}

TEST(CommonTemplate, new_empty_strided) {
  Tensor result = check(
      [](Tensor a) {
        return by_name("aten::new_empty_strided", {Value(a), Value(Ints{1, 128, 128}), Value(Ints{16384, 128, 1})});
      },
      {rand({55})}, {.backward = false, .values = false})[0];
  EXPECT_EQ(result.description(), "float32[1, 128, 128]");
  EXPECT_EQ(result.strides(), (std::vector<int64_t>{16384, 128, 1}));
}

TEST(CommonTemplate, sizehint_issue1) {
  Tensor x = rand({2, 24, 56, 56});
  Tensor result = check(
      [](Tensor a) {
        return by_name("aten::im2col",
                       {Value(a), Value(Ints{4, 4}), Value(Ints{1, 1}), Value(Ints{0, 0}), Value(Ints{4, 4})});
      },
      {x})[0];
  EXPECT_EQ(result.description(), "float32[2, 384, 196]");
  EXPECT_TRUE(same_bits(result.select(0, 1).select(0, 21).select(0, 15), x[1][1][4 + 1][4 + 1]));
}

TEST(CommonTemplate, bernoulli1) {
  auto function = [](Tensor a) {
    Tensor b = empty_like(a);
    return std::tuple(by_name("aten::bernoulli_.float", {Value(b)}), b);
  };
  Tensor x = rand({100});
  auto drawn = [&](auto&& run) {
    manual_seed(42);
    return packed(run(x));
  };
  Tensors eager = drawn(function), compiled = drawn(compile(function, {.fullgraph = true}));
  for (const Tensors& results : {eager, compiled}) {
    EXPECT_TRUE(same_bits(results[0], results[1]));
    EXPECT_TRUE(same_bits(results[0], eager[0]));
  }
  EXPECT_TRUE(same_bits(eager[0] * eager[0], eager[0])) << "zeros and ones";
  double ones = eager[0].sum().item<double>();
  EXPECT_TRUE(ones > 25 && ones < 75) << ones;
}

TEST(CommonTemplate, randint) {
  auto function = [](Tensor x) {
    return std::tuple(randint(10, {1024}), randint(-4, 7, {1024}, kInt32),
                      by_name("aten::randint_like", {Value(x), Value(int64_t{1} << 50)}));
  };
  Tensor x = rand({40, 40});
  auto compiled = compile(function, {.fullgraph = true});
  auto drawn = [&] {
    manual_seed(12345);
    return packed(compiled(x));
  };
  Tensors first = drawn(), second = drawn();
  for (size_t at : {0, 1, 2}) EXPECT_TRUE(same_bits(first[at], second[at])) << "the same seed";
  EXPECT_EQ(first[0].description(), "int64[1024]");
  EXPECT_EQ(first[1].description(), "int32[1024]");
  EXPECT_EQ(first[2].description(), "float32[40, 40]");
  auto range = [](const Tensor& numbers) {
    return std::pair(numbers.min().item<double>(), numbers.max().item<double>());
  };
  EXPECT_EQ(range(first[0]), std::pair(0.0, 9.0));
  EXPECT_EQ(range(first[1]), std::pair(-4.0, 6.0));
  EXPECT_GE(range(first[2]).first, 0);
  EXPECT_GT(range(first[2]).second, 0x1p40);
  EXPECT_LT(range(first[2]).second, 0x1p50);
  EXPECT_EQ(compiled.compile_count(), 1);
}

TEST(CommonTemplate, randn_generator) {
  auto function = [](Generator* generator) {
    return [generator](Tensor a) {
      Value given = generator ? Value(*generator) : Value();
      return by_name("aten::randn.generator", {Value(Ints{20, 20})},
                     {{"generator", given}, {"device", Value(a.device())}});
    };
  };
  EXPECT_EQ(check(function(nullptr), {randn({1})}, {.values = false})[0].description(), "float32[20, 20]");
  Generator own(7);
  auto compiled = compile(function(&own));
  std::string refused = error_of([&] { compiled(randn({1})); });
  EXPECT_NE(refused.find("Generator"), std::string::npos) << refused;
}

// torch.special, function by function; gammainc is igamma, multigammaln mvlgamma and so on.
TEST(CommonTemplate, pointwise) {
  const Check how{.rtol = 1e-4, .atol = 1e-4};
  Tensor x = rand({8, 8}) + 1, y = rand({8, 8}) + 1;
  for (const char* name : {"airy_ai",
                           "bessel_j0",
                           "bessel_j1",
                           "bessel_y0",
                           "bessel_y1",
                           "digamma",
                           "entr",
                           "erf",
                           "erfc",
                           "erfcx",
                           "erfinv",
                           "exp2",
                           "expit",
                           "expm1",
                           "gammaln",
                           "i0",
                           "i0e",
                           "i1",
                           "i1e",
                           "log1p",
                           "log_ndtr",
                           "logit",
                           "modified_bessel_i0",
                           "modified_bessel_i1",
                           "modified_bessel_k0",
                           "modified_bessel_k1",
                           "ndtr",
                           "ndtri",
                           "psi",
                           "round",
                           "scaled_modified_bessel_k0",
                           "scaled_modified_bessel_k1",
                           "sinc",
                           "spherical_bessel_j0"}) {
    SCOPED_TRACE(name);
    const std::string full = std::string("aten::special_") + name;
    const Tensor given =
        name == std::string_view("ndtri") || name == std::string_view("logit") || name == std::string_view("erfinv")
            ? x - 1
            : x;
    check([&](Tensor a) { return by_name(full.c_str(), {Value(a)}); }, {given}, how);
  }
  for (const char* full :
       {"aten::igamma", "aten::igammac", "aten::special_xlogy", "aten::special_xlog1py", "aten::special_zeta"}) {
    SCOPED_TRACE(full);
    // (The derivative by the parameter of gamma's integral is not implemented, nor is it in PyTorch.)
    const bool in_part = std::string_view(full).starts_with("aten::igamma");
    Check both = how;
    both.backward = !in_part;
    check([&](Tensor a, Tensor b) { return by_name(full, {Value(a), Value(b)}); }, {x, y}, both);
    if (in_part) check([&](Tensor b) { return by_name(full, {Value(x), Value(b)}); }, {y}, how);
  }
  check([](Tensor a) { return by_name("aten::special_multigammaln", {Value(a), Value(2)}); }, {x}, how);
  check([](Tensor a) { return by_name("aten::special_polygamma", {Value(1), Value(a)}); }, {x * 4}, how);
  for (const char* name :
       {"chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
        "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
        "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
        "shifted_chebyshev_polynomial_w"}) {
    SCOPED_TRACE(name);
    const std::string full = fmt::format("aten::special_{}.n_scalar", name);
    check([&](Tensor a) { return by_name(full.c_str(), {Value(a), Value(2)}); }, {x}, how);
  }
}

// One step over many parameters.
TEST(CommonTemplate, fuse_large_params) {
  Tensors parameters, before;
  for (int at = 0; at < 194; ++at) {
    Tensor parameter = rand({10, 10}).set_requires_grad();
    parameter.set_grad(rand({10, 10}));
    before.push_back(parameter.detach().clone());
    parameters.push_back(parameter);
  }
  optim::AdamW optimizer(parameters);
  compile([&](Tensor x) {
    optimizer.step();
    return x + 1;
  })(zeros({1}));
  for (size_t at = 0; at < parameters.size(); ++at) {
    // A first step is one of the size of the learning rate, whatever the gradient, after weights have decayed.
    Tensor expected = before[at] * (1 - 1e-3 * 1e-2) - 1e-3;
    EXPECT_TRUE(close(parameters[at].detach(), expected, {.rtol = 1e-4, .atol = 1e-5})) << at;
  }
}

// A slice of zeros is written, seen in another order, and filled.
TEST(CommonTemplate, AllenaiLongformerBase_repro) {
  auto function = [](Tensor scores) {
    constexpr int64_t window = 256, heads = 12;
    const SymInt batch = 4;
    Tensor all = scores.new_zeros({scores.size(0), scores.size(1) + 1, window, window * 2 + 1});
    all.slice(1, std::nullopt, -1)
        .slice(3, window)
        .copy_(scores.slice(2, std::nullopt, window).slice(3, std::nullopt, window + 1));
    Tensor seen = all.view({batch, heads, 1024, window * 2 + 1}).transpose(2, 1);
    seen.slice(1, std::nullopt, window)
        .slice(3, std::nullopt, window + 1)
        .fill_(-std::numeric_limits<double>::infinity());
    return seen;
  };
  Tensor result = check(function, {rand({48, 3, 512, 513})}, {.backward = false})[0];
  EXPECT_EQ(result.description(), "float32[4, 1024, 12, 513]");
  // The window is a constant of the kernels, once.
  const std::string text = kernels_of(of_list(function), {rand({48, 3, 512, 513})}, Dynamic::Off);
  const size_t found = text.find("index [256]");
  ASSERT_NE(found, std::string::npos) << text;
  EXPECT_EQ(text.find("index [256]", found + 1), std::string::npos) << text;
  EXPECT_EQ(result[3][255][11][256].item<double>(), -std::numeric_limits<double>::infinity());
}

// Points in a plane counted by bins, with arguments by name: the counts, and the edges of the bins as a list.
TEST(CommonTemplate, kwargs) {
  Tensor points = randn({4, 2}), weights = rand({4});
  auto function = [](Tensor x, Tensor y) {
    const Value args[] = {Value(x)};
    const dispatch::Keyword keywords[] = {{"bins", Value(Ints{3, 3}).own()}, {"weight", Value(y)}};
    Tensors all;
    for (const Value& result : dispatch::call_by_name("aten::histogramdd", args, keywords))
      result.each_tensor([&](const Tensor& each) { all.push_back(each); });
    return all;
  };
  Tensors results = check(function, {points, weights}, {.backward = false});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].description(), "float32[3, 3]");
  EXPECT_NEAR(sum(results[0]).item<double>(), sum(weights).item<double>(), 1e-5) << "each point is in a bin";
  for (int64_t dim : {0, 1}) {
    Tensor column = select(points, 1, dim), edges = results[static_cast<size_t>(dim) + 1];
    EXPECT_EQ(edges.description(), "float32[4]");
    EXPECT_EQ(edges[0].item<float>(), min(column).item<float>());
    EXPECT_EQ(edges[3].item<float>(), max(column).item<float>());
  }
}

// An input grows in place to the sizes of another.
TEST(CommonTemplate, inplace_resize_as) {
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor x = randn({2, 3}), y = randn({200, 300}), before = x.clone();
    auto compiled = compile(
        [](Tensor a, Tensor b) {
          const Value args[] = {Value(a), Value(b)};
          dispatch::call_by_name("aten::resize_as_", args);
          return a;
        },
        {.dynamic = dynamic});
    Tensor result = compiled(x, y);
    EXPECT_EQ(result.description(), "float32[200, 300]");
    EXPECT_EQ(x.description(), "float32[200, 300]") << "the argument itself";
    // What was there comes first.
    EXPECT_TRUE(same_bits(x.view({-1}).slice(0, 0, 6), before.view({-1})));
  }
}

// What PyTorch marks by a setting is in every profile here: a compiled graph that runs.
TEST(CommonTemplate, profiler_mark_wrapper_call) {
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile([](Tensor a, Tensor b) { return a + b; }, {.fullgraph = true, .dynamic = dynamic});
    Tensor a = randn({100}), b = randn({100});
    f(a, b);
    Profiler profiler;
    Tensor result = f(a, b);
    profiler.stop();
    EXPECT_TRUE(same_bits(result, a + b));
    EXPECT_TRUE(std::ranges::any_of(profiler.events(), [](const Profiler::Event& event) {
      return event.name.find("compiled graph") != event.name.npos;
    })) << profiler.table();
  }
}

// The first elements are those of `x` in the order of its memory; the others are NaN in both runs.
const std::vector<Tensor>& resized_from() {
  static const std::vector<Tensor> tensors = {randn({2}), randn({2, 3, 4}), randn({100}), randn({2, 2}),
                                              as_strided(randn({12}), {3, 4}, {1, 3})};
  return tensors;
}
const std::vector<std::pair<Ints, MemoryFormat>>& resized_to() {
  static const std::vector<std::pair<Ints, MemoryFormat>> sizes = {{{2}, MemoryFormat::Contiguous},
                                                                   {{100}, MemoryFormat::Contiguous},
                                                                   {{2, 0, 1}, MemoryFormat::Contiguous},
                                                                   {{1, 3, 2, 3}, MemoryFormat::Contiguous},
                                                                   {{2, 2}, MemoryFormat::Contiguous},
                                                                   {{1, 3, 2, 3, 1}, MemoryFormat::Contiguous},
                                                                   {{1, 3, 2, 3}, MemoryFormat::ChannelsLast},
                                                                   {{1, 3, 2, 3, 1}, MemoryFormat::ChannelsLast3d}};
  return sizes;
}
Tensor in_memory(const Tensor& x) {
  const int64_t reach = x.numel().plain() == 0 ? 0 : core::reach(x.sizes(), x.strides());
  return as_strided(x, {reach}, {1});
}
void expect_resized(const Tensor& result, const Tensor& x, const Ints& sizes, MemoryFormat format) {
  EXPECT_TRUE(std::ranges::equal(result.sizes(), sizes));
  Tensor expected = empty(SymInts(sizes.span())).contiguous(format);
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] > 1) {
      EXPECT_EQ(result.strides()[dim], expected.strides()[dim]) << dim;
    }
  Tensor from = in_memory(x), to = in_memory(result);
  const int64_t kept = std::min(from.numel().plain(), to.numel().plain());
  EXPECT_TRUE(same_bits(to.slice(0, 0, kept), from.slice(0, 0, kept)));
  EXPECT_TRUE(isnan(to.slice(0, kept)).all().item<bool>());
  EXPECT_FALSE(result.is_same_storage(x)) << "a tensor of its own";
}
TEST(CommonTemplate, resize) {
  for (const Tensor& x : resized_from())
    for (const auto& [sizes, format] : resized_to()) {
      auto function = [sizes = sizes, format = format](Tensor a) {
        return by_name("aten::resize", {Value(a), Value(sizes)}, {{"memory_format", Value(format)}});
      };
      expect_resized(check(function, {x}, {.backward = false})[0], x, sizes, format);
    }
  // Of the same sizes, and no format asked for, it stays as it is.
  Tensor x = resized_from().back();
  Tensor same = check([](Tensor a) { return by_name("aten::resize", {Value(a), Value(Ints{3, 4})}); }, {x},
                      {.backward = false})[0];
  EXPECT_TRUE(same_bits(same, x) && same.strides()[1] == 3);
}
TEST(CommonTemplate, resize_as) {
  for (const Tensor& x : resized_from())
    for (const auto& [sizes, format] : resized_to()) {
      auto function = [](MemoryFormat asked) {
        return [asked](Tensor a, Tensor like) {
          return by_name("aten::resize_as", {Value(a), Value(like)}, {{"memory_format", Value(asked)}});
        };
      };
      Tensor y = randn(SymInts(sizes.span()));
      expect_resized(check(function(format), {x, y}, {.backward = false})[0], x, sizes, format);
      expect_resized(check(function(MemoryFormat::Preserve), {x, y.contiguous(format)}, {.backward = false})[0], x,
                     sizes, y.contiguous(format).suggested_format());
      Ints backwards, order;
      for (int64_t dim = static_cast<int64_t>(sizes.size()) - 1; dim >= 0; --dim) {
        order.push_back(dim);
        backwards.push_back(sizes[static_cast<size_t>(dim)]);
      }
      Tensor reversed = permute(randn(SymInts(backwards.span())), order);
      expect_resized(check(function(MemoryFormat::Preserve), {x, reversed}, {.backward = false})[0], x, sizes,
                     reversed.suggested_format());
    }
}

}  // namespace
}  // namespace tenon::operators
