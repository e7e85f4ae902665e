// Seed 000: sizes as symbols, and what is computed from them.
#include "dynamic_shapes.h"

#include <cmath>

namespace tenon {
namespace {

using namespace dynamic_shapes;

TEST(TestInductorDynamic, shape_as_constant_reciprocal_float_exp) {
  auto function = [](Tensor x, auto a) { return std::tuple(x, -1.0 / pow(to_float(a), 1.0)); };
  auto f = compile(function, kDynamic);
  Tensor x = rand({10, 20});
  auto [same, number] = f(x, 10);
  EXPECT_TRUE(same_bits(same, x));
  EXPECT_EQ(double(number), -0.1);
  EXPECT_EQ(double(std::get<1>(f(x, 4))), -0.25);
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, floor) {
  auto function = [](Tensor x) { return x + to_int(x.size(-1) * 0.2) + 1; };
  auto f = compile(function, kDynamic);
  for (int64_t n : {5, 8, 10, 33}) {
    Tensor x = rand({n});
    EXPECT_TRUE(same_bits(f(x), function(x)));
    EXPECT_TRUE(same_bits(f(x), x + (std::trunc(static_cast<double>(n) * 0.2) + 1)));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

// What a convolution with "same" padding needs on one side.
SymInt same_padding(const SymInt& size, int64_t kernel, int64_t stride, int64_t dilation) {
  SymInt steps = ceil(true_div(size, stride)) - 1;
  return max(steps * stride + (kernel - 1) * dilation + 1 - size, 0);
}

TEST(TestInductorDynamic, pad_dynamic) {
  auto function = [](Tensor x) {
    SymInt height = same_padding(x.size(-2), 5, 2, 1), width = same_padding(x.size(-1), 5, 2, 1);
    if (bool(height > 0 || width > 0))
      x = x.constant_pad_nd({width / 2, width - width / 2, height / 2, height - height / 2}, 0);
    return x;
  };
  auto f = compile(function, kDynamic);
  for (int64_t size : {110, 57}) {
    Tensor x = randn({2, 24, size, size});
    Tensor padded = f(x);
    EXPECT_TRUE(same_bits(padded, function(x)));
    EXPECT_EQ(padded.sizes()[2], size + std::max<int64_t>((size + 1) / 2 * 2 - 2 + 4 + 1 - size, 0));
  }
  EXPECT_LE(f.compile_count(), 2);
}

TEST(TestInductorDynamic, slice_scatter) {
  auto function = [](Tensor i) {
    SymInt size = i.size(0);
    Tensor x = ones({64, size}), y = ones({64, size / 2}) * 2;
    return slice_scatter(x, y, 1, size / 2, 2 * (size / 2));
  };
  auto f = compile(function, kDynamic);
  for (int64_t n : {16, 21, 40}) EXPECT_TRUE(same_bits(f(randn({n})), function(randn({n}))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, slice_index_changing_sign) {
  auto function = [](Tensor x, Tensor y) { return x.slice(0, {}, y.size(0) - y.size(1)).clone(); };
  auto f = compile(function, kDynamic);
  Tensor x = randn({32, 32});
  for (auto [rows, columns] : {std::pair{16, 2}, std::pair{2, 16}, std::pair{16, 3}, std::pair{3, 16}}) {
    Tensor y = randn({rows, columns});
    Tensor result = f(x, y);
    EXPECT_TRUE(same_bits(result, function(x, y)));
    EXPECT_EQ(result.sizes()[0], rows > columns ? rows - columns : 32 + rows - columns);
  }
  EXPECT_EQ(f.compile_count(), 2) << "one graph for each sign";
}

TEST(TestInductorDynamic, sym_stride_lowering) {
  auto function = [](Tensor x) { return x * (x + 1).stride(0); };
  auto f = compile(function, kDynamic);
  for (int64_t n : {32, 7}) {
    Tensor x = randn({n, n});
    EXPECT_TRUE(same_bits(f(x), x * n));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, abs) {
  auto function = [](Tensor x, Tensor y) {
    SymInt distance = abs(y.size(0) - y.size(1));
    return x.slice(0, {}, distance) * distance;
  };
  auto f = compile(function, kDynamic);
  Tensor x = randn({32, 32});
  for (auto [rows, columns] : {std::pair{16, 2}, std::pair{2, 16}}) {
    Tensor y = randn({rows, columns});
    EXPECT_TRUE(same_bits(f(x, y), function(x, y)));
    EXPECT_TRUE(same_bits(f(x, y), x.slice(0, 0, 14) * 14));
  }
  EXPECT_EQ(f.compile_count(), 1) << "the sign of the difference is of no concern";
}

TEST(TestInductorDynamic, float_is_integer) {
  // In C++ a result has one type: the quotient if it is whole, else the size, both as a float.
  auto function = [](Tensor x, auto divisor) {
    SymInt size = x.size(-1);
    SymFloat quotient = true_div(size, divisor);
    if (bool(is_integer(quotient))) return quotient;
    return to_float(size);
  };
  auto f = compile(function, kDynamic);
  EXPECT_EQ(double(f(randn({3, 6, 4, 2}), 2)), 1.0);
  EXPECT_EQ(double(f(randn({3, 6, 4, 8}), 2)), 4.0);
  EXPECT_EQ(f.compile_count(), 1);
  EXPECT_EQ(double(f(randn({3, 6, 4, 7}), 2)), 7.0);
  EXPECT_EQ(f.compile_count(), 2);
}

// A number beside a tensor that changes nothing: the operator goes, the dtype stays.
template <typename F>
void expect_folded(F function) {
  auto f = compile(function, kDynamic);
  Tensor result = f(3);
  EXPECT_TRUE(same_bits(result, function(SymInt(3))));
  EXPECT_EQ(result.dtype(), kFloat32);
  EXPECT_EQ(result.sizes()[0], 3);
  EXPECT_TRUE(same_bits(f(5), function(SymInt(5))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, arithmetic_constant_folding) {
  expect_folded([](auto x) { return x + zeros({3}); });
  expect_folded([](auto x) { return x * ones({3}); });
  expect_folded([](auto x) { return x / ones({3}); });
}

TEST(TestInductorDynamic, sub_constant_folding) {
  expect_folded([](auto x) { return x - zeros({3}); });
}

TEST(TestInductorDynamic, full_symbolic_value) {
  auto function = [](auto a) { return std::tuple(full({3}, a), full({3}, to_float(a))); };
  auto f = compile(function, kDynamic);
  for (int64_t value : {5, 9}) {
    auto [integers, reals] = f(value);
    EXPECT_EQ(integers.dtype(), kInt64);
    EXPECT_EQ(reals.dtype(), kFloat32);
    EXPECT_TRUE(same_bits(integers, full({3}, value)));
    EXPECT_TRUE(same_bits(reals, full({3}, static_cast<double>(value))));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, interpolate_ceil_eq) {
  auto function = [](Tensor t) {
    auto width = [](const SymInt& size) { return ceil(true_div(2 * ((size - 1) / 8) + 2, 1)); };
    Tensor x = zeros({t.size(0), 128, width(t.size(1)), width(t.size(2))}, kBFloat16);
    return interpolate(x, {.scale_factor = std::vector<double>{2.0, 2.0}});
  };
  auto f = compile(function, kDynamic);
  for (auto [a, b] : {std::pair{16, 18}, std::pair{40, 33}}) {
    Tensor t = randn({4, a, b});
    EXPECT_TRUE(same_bits(f(t), function(t)));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, full_recompiles) {
  auto f = compile([](Tensor x) { return full({x.size(1), x.size(1)}, -65504.0); }, kDynamic);
  EXPECT_EQ(f(randint(10, 1000, {2, 3})).sizes()[0], 3);
  EXPECT_EQ(f(randint(10, 1000, {2, 4})).sizes()[0], 4);
  EXPECT_EQ(f.compile_count(), 1);
}

using Function = SymFloat (*)(const SymFloat&);
struct Named {
  const char* name;
  Function symbolic;
  double (*plain)(double);
  double at;
};

TEST(TestInductorDynamic, math_ops) {
  const Named functions[] = {
      {"sqrt", &sqrt, &std::sqrt, 12}, {"sin", &sin, &std::sin, 12},    {"cos", &cos, &std::cos, 12},
      {"cosh", &cosh, &std::cosh, 12}, {"sinh", &sinh, &std::sinh, 12}, {"tan", &tan, &std::tan, 12},
      {"tanh", &tanh, &std::tanh, 12}, {"asin", &asin, &std::asin, -1}, {"acos", &acos, &std::acos, -1},
      {"atan", &atan, &std::atan, 12}, {"exp", &exp, &std::exp, 12},    {"log", &log, &std::log, 12},
  };
  CompileOptions options = kDynamic;
  options.fullgraph = true;
  for (const Named& each : functions) {
    // The function itself is an argument: each is compiled for itself.
    auto f = compile([](Tensor x, Function fn, auto a) { return x + fn(to_float(a)); }, options);
    Tensor x = rand({10});
    EXPECT_TRUE(same_bits(f(x, each.symbolic, static_cast<int64_t>(each.at)), x + each.plain(each.at))) << each.name;
    EXPECT_TRUE(same_bits(f(x, each.symbolic, int64_t{1}), x + each.plain(1))) << each.name;
    EXPECT_EQ(f.compile_count(), 1) << each.name;
  }
}

TEST(TestInductorDynamic, wrapper_codegen_statically_known_int_or_none) {
  // What the compiler knows of the size at the end of the capture.
  auto known_after = [](auto function) {
    Tensor x = randn({5});
    maybe_mark_dynamic(x, 0);
    std::optional<int64_t> known;
    auto backend = [&known](const graph::Graph& graph) -> GraphFunction {
      known = statically_known_int(graph.meta(graph.inputs[0]).size(0));
      return [](std::span<const Tensor> inputs, std::span<const int64_t>) {
        return std::vector<dispatch::Value>{dispatch::Value(Tensor(inputs[0]))};
      };
    };
    compile(function, {.backend = backend})(x);
    return known;
  };
  EXPECT_EQ(known_after([](Tensor x) { return x + 1; }), std::nullopt);
  EXPECT_EQ(known_after([](Tensor x) {
              if (bool(x.size(0) > 5)) return x + 2;
              if (bool(x.size(0) < 5)) return x + 3;
              return x + 1;
            }),
            5);
  EXPECT_EQ(known_after([](Tensor x) { return bool(x.size(0) == 5) ? x + 1 : x + 2; }), 5);
}

TEST(TestInductorDynamic, adaptive_max_pool3d_with_indices) {
  auto function = [](Tensor y, auto size) { return adaptive_max_pool3d(y, SymInts{size, size, size}); };
  auto f = compile(function, kDynamic);
  auto expect_pooled = [&](const Tensor& y, int64_t size) {
    auto [values, indices] = f(y, size);
    auto [expected, positions] = adaptive_max_pool3d(y, {size, size, size});
    EXPECT_TRUE(same_bits(values, expected));
    EXPECT_TRUE(same_bits(indices, positions));
  };
  expect_pooled(rand({9, 10, 9, 8, 6}), 5);
  expect_pooled(rand({7, 3, 7, 11, 12}), 4);  // sizes that are equal share a symbol
  EXPECT_EQ(f.compile_count(), 1) << "neither the sizes nor the number are fixed";
}

TEST(TestInductorDynamic, sort_dynamic_shape_with_check) {
  auto function = [](Tensor a, bool descending) {
    check(a.size(-1) <= 256);
    return sort(a, -1, descending);
  };
  auto f = compile(function, kDynamic);
  Tensor x = rand({10, 128});
  x.slice(1, 10, 20).fill_(1.0);
  x.slice(1, 30, 40).fill_(1.0);
  int64_t kernels = counter("kernels_generated").value();
  for (const Tensor& each : {x, x.slice(1, 0, 120)})
    for (bool descending : {false, true}) {
      auto [values, indices] = f(each, descending);
      auto [expected, positions] = function(each, descending);
      EXPECT_TRUE(same_bits(values, expected));
      EXPECT_TRUE(same_bits(indices, positions));
    }
  EXPECT_EQ(counter("kernels_generated").value(), kernels) << "sorting is a library call";
  EXPECT_NE(error_of([&] { f(rand({10, 300}), false); }).find("<= 256"), std::string::npos);
}

}  // namespace
}  // namespace tenon
