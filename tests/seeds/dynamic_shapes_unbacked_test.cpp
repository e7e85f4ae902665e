// Seed 000: values and sizes that only the data can tell, in one graph.
#include "dynamic_shapes.h"

#include <limits>

namespace tenon {
namespace {

using namespace dynamic_shapes;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TestInductorDynamic, arange_dynamic) {
  auto function = [](Tensor a) {
    Tensor positions = arange(0, a.amax().item(), 1).to(a.dtype()).repeat({a.numel(), 1});
    return positions.lt(a.unsqueeze(1)).logical_not();
  };
  CompileOptions options = kUnbacked;
  options.dynamic = Dynamic::On;
  auto f = compile(function, options);
  for (int64_t longest : {29, 35}) {
    Tensor a = randint(10, 30, {10});
    a[0].fill_(longest);
    EXPECT_TRUE(same_bits(f(a), function(a)));
  }
  EXPECT_EQ(f.compile_count(), 1);
  // Without the switch: two graphs, the same result.
  auto broken = compile(function, kDynamic);
  Tensor a = randint(10, 30, {10});
  EXPECT_TRUE(same_bits(broken(a), function(a)));
  EXPECT_FALSE(broken.explain().breaks.empty());
}

TEST(TestInductorDynamic, bool_mask_nobreak) {
  auto function = [](Tensor x, Tensor b) { return (x.index({b}) * 2).sum(); };
  auto f = compile(function, kUnbacked);
  Tensor x = randn({5});
  for (Tensor b : {tensor({true, true, false, false, true}), tensor({false, false, false, false, true})})
    EXPECT_TRUE(same_bits(f(x, b), function(x, b)));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, unwrap_storage_didnt_work_repro) {
  auto function = [] {
    SymInt count = full({}, 11).item<SymInt>();
    check_is_size(count);
    return full({count}, 0);
  };
  auto f = compile(function, kUnbacked);
  Tensor result = f();
  EXPECT_EQ(result.dtype(), kInt64);
  EXPECT_TRUE(same_bits(result, function()));
  EXPECT_EQ(result.sizes()[0], 11);
}

TEST(TestInductorDynamic, nonzero_size_factory_nobreak) {
  auto function = [](Tensor x, Tensor b) { return x.new_zeros({b.nonzero().size(0)}); };
  auto f = compile(function, kUnbacked);
  Tensor x = randn({5});
  EXPECT_TRUE(same_bits(f(x, tensor({true, true, false, false, true})), zeros({3})));
  EXPECT_TRUE(same_bits(f(x, tensor({true, false, false, false, false})), zeros({1})));
  EXPECT_TRUE(same_bits(f(x, tensor({false, false, false, false, false})), zeros({0})));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, nonzero_no_realloc) {
  auto function = [](Tensor x, Tensor y) { return x.nonzero().split_with_sizes({y.size(0)}); };
  CompileOptions options = kUnbacked;
  options.dynamic = Dynamic::On;
  auto f = compile(function, options);
  std::vector<Tensor> parts = f(tensor({1, 0, 1, 1, 0, 1, 0}), randn({4}));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(same_bits(parts[0], tensor({0, 2, 3, 5}).view({4, 1})));
  std::string error = error_of([&] { f(tensor({1, 0, 1, 1, 0, 1, 1}), randn({4})); });
  EXPECT_NE(error.find("[check]"), std::string::npos) << "the sizes must add up: " << error;
}

TEST(TestInductorDynamic, item_nobreak) {
  auto f = compile([](Tensor x) { return empty({x.item<SymInt>()}); }, kUnbacked);
  EXPECT_EQ(f(tensor({3})).sizes()[0], 3);
  EXPECT_EQ(f(tensor({7})).sizes()[0], 7);
  EXPECT_EQ(f.compile_count(), 1);
  std::string error = error_of([&] { f(tensor({-1})); });
  EXPECT_NE(error.find("expected u0 >= 0, got u0 = -1"), std::string::npos) << "a size is at least 0: " << error;
}

TEST(TestInductorDynamic, item_bool_nobreak) {
  auto f = compile([](Tensor x) { return x.item<SymBool>(); }, kUnbacked);
  EXPECT_TRUE(bool(f(tensor({true}))));
  EXPECT_FALSE(bool(f(tensor({false}))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, noops_tensor_repropagate) {
  // A cast to the dtype that a tensor has already goes; what follows keeps its sizes.
  auto f = compile([](Tensor x) { return x.to(kInt64).nonzero() * 2; }, kUnbacked);
  EXPECT_TRUE(same_bits(f(tensor({0, 4, 2, 0, 1})), tensor({2, 4, 8}).view({3, 1})));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, item_zeros_nobreak) {
  auto f = compile(
      [](Tensor x) {
        SymInt y = x.item<SymInt>();
        empty({y});
        return x.new_zeros({y});
      },
      kUnbacked);
  EXPECT_TRUE(same_bits(f(tensor({3})), zeros({3}, kInt64)));
  EXPECT_TRUE(same_bits(f(tensor({5})), zeros({5}, kInt64)));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, item_return) {
  auto f = compile([](Tensor x) { return x.item<SymInt>() + x.item<SymInt>(); }, kUnbacked);
  EXPECT_EQ(int64_t(f(tensor({3}))), 6);
  EXPECT_EQ(int64_t(f(tensor({-4}))), -8);
  EXPECT_EQ(f.compile_count(), 1);
  EXPECT_EQ(f.explain().entries[0].captured.find("u1"), std::string::npos) << "both reads are one symbol";
}

TEST(TestInductorDynamic, float_item_inf) {
  auto f = compile([](Tensor x) { return x.item<SymFloat>() == kInfinity; }, kUnbacked);
  EXPECT_FALSE(bool(f(tensor({3.0f}))));
  EXPECT_TRUE(bool(f(tensor({std::numeric_limits<float>::infinity()}))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, float_item_neginf) {
  auto f = compile([](Tensor x) { return x.item<SymFloat>() == -kInfinity; }, kUnbacked);
  EXPECT_FALSE(bool(f(tensor({3.0f}))));
  EXPECT_TRUE(bool(f(tensor({-std::numeric_limits<float>::infinity()}))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, float_item_return) {
  auto f = compile([](Tensor x) { return x.item<SymFloat>(); }, kUnbacked);
  EXPECT_EQ(double(f(tensor({3.0f}))), 3.0);
  EXPECT_EQ(double(f(tensor({-0.5f}))), -0.5);
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, item_to_inputs_kernel_nobreak) {
  auto foo = library::custom_op("dynamic_test::foo", [](Tensor x, int64_t y) { return x.clone() + y; });
  foo.register_fake([](Tensor x, SymInt) { return empty_like(x); });
  auto f = compile([&](Tensor x, Tensor r) { return foo(r, x.item<SymInt>()); }, kUnbacked);
  Tensor r = randn({2, 3});
  EXPECT_TRUE(same_bits(f(tensor({3}), r), r + 3));
  EXPECT_TRUE(same_bits(f(tensor({9}), r), r + 9));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, unbacked_index_select) {
  auto function = [](Tensor x) { return index_select(ones({x.item<SymInt>()}), 0, tensor({0, 2, 1})); };
  auto f = compile(function, kUnbacked);
  EXPECT_TRUE(same_bits(f(tensor(5)), function(tensor(5))));
  EXPECT_TRUE(same_bits(f(tensor(3)), ones({3})));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, return_unbacked_view_split) {
  auto function = [](Tensor values, Tensor lengths) {
    std::vector<SymInt> each = lengths.tolist<SymInt>();
    check_is_size(each[0]);
    check_is_size(each[1]);
    std::vector<Tensor> parts = values.split_with_sizes({each[0], each[1]});
    return std::tuple(parts[0], parts[1]);
  };
  auto f = compile(function, kUnbacked);
  for (auto [first, second] : {std::pair{3, 5}, std::pair{6, 2}}) {
    Tensor values = randn({8}).set_requires_grad(), lengths = tensor({first, second});
    auto [a, b] = f(values, lengths);
    auto [c, d] = function(values, lengths);
    EXPECT_TRUE(same_bits(a, c));
    EXPECT_TRUE(same_bits(b, d));
    EXPECT_TRUE(a.is_same_storage(values)) << "the parts are views";
    (a.sum() * 2 + b.sum()).backward();
    EXPECT_TRUE(same_bits(values.grad(), cat({full({first}, 2.0), full({second}, 1.0)})));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, unbacked_matmul) {
  auto function = [](Tensor x) {
    SymInt y = x.item<SymInt>();
    return matmul(ones({1, y}), ones({y, 1}));
  };
  auto f = compile(function, kUnbacked);
  for (int64_t n : {5, 9}) EXPECT_TRUE(same_bits(f(tensor(n)), full({1, 1}, static_cast<double>(n))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, unbacked_save_for_backwards) {
  auto total = [](std::span<const SymInt> sizes) {
    SymInt sum = 0;
    for (const SymInt& size : sizes) sum += size;
    return sum;
  };
  auto concatenate = library::custom_op(
      "dynamic_test::cat", [total](Tensor t, SymInts sizes) { return t * t.new_ones({total(sizes.span())}); });
  concatenate.register_fake([total](Tensor t, SymInts sizes) {
    for (const SymInt& size : sizes) check_is_size(size);
    return t.new_empty({total(sizes.span())});
  });
  concatenate.register_autograd([](library::AutogradContext&, const Tensor& grad) -> std::vector<AnyValue> {
    return {AnyValue(grad.sum()), AnyValue()};
  });
  auto function = [&](Tensor t, Tensor sizes) {
    std::vector<SymInt> each = sizes.tolist<SymInt>();
    return concatenate(t, SymInts{each[0], each[1]}) * t;
  };
  CompileOptions options = kUnbacked;
  options.dynamic = Dynamic::On;
  auto f = compile(function, options);
  for (auto [a, b] : {std::pair{4, 8}, std::pair{5, 2}}) {
    Tensor t = tensor(0.75f).set_requires_grad(), sizes = tensor({a, b});
    function(t, sizes).sum().backward();
    Tensor expected = t.grad();
    t.set_grad({});
    f(t, sizes).sum().backward();
    EXPECT_TRUE(same_bits(t.grad(), expected));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, unbacked_reduction) {
  auto f = compile([](Tensor x) { return ones({x.item<SymInt>()}).sum(); }, kUnbacked);
  for (int64_t n : {5, 40, 0}) EXPECT_EQ(f(tensor(n)).item<double>(), static_cast<double>(n));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, cat_unbacked_duplicate_size) {
  auto function = [](Tensor x) {
    std::vector<SymInt> sizes = x.tolist<SymInt>();
    Tensor g = zeros({sizes[0]}), h = ones({sizes[1]});
    return cat({g, g, h});
  };
  auto f = compile(function, kUnbacked);
  for (Tensor x : {tensor({4, 6}), tensor({2, 1})}) EXPECT_TRUE(same_bits(f(x), function(x)));
  EXPECT_EQ(f.compile_count(), 1);
}

template <typename F>
void expect_same_gradient(F function) {
  auto f = compile(function, kUnbacked);
  for (Tensor x : {tensor({4, 9}), tensor({3, 2})}) {
    Tensor w = randn({1}).set_requires_grad();
    function(x, w).sum().backward();
    Tensor expected = w.grad();
    w.set_grad({});
    f(x, w).sum().backward();
    EXPECT_TRUE(same_bits(w.grad(), expected));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

Tensor weighted_ones(Tensor x, Tensor w) {
  std::vector<SymInt> sizes = x.tolist<SymInt>();
  return cat({ones({sizes[0]}) * w, ones({sizes[1]}) * w});
}

TEST(TestInductorDynamic, unbacked_cat_backwards) {
  expect_same_gradient([](Tensor x, Tensor w) { return weighted_ones(x, w).sum(); });
}

TEST(TestInductorDynamic, unbacked_cat_backwards_save_data_dependent) {
  expect_same_gradient([](Tensor x, Tensor w) { return weighted_ones(x, w); });
}

TEST(TestInductorDynamic, dynamic_stride_nobreak) {
  auto foo =
      library::custom_op("dynamic_test::strided", [](Tensor x) { return empty_strided({1}, {x.item<int64_t>()}); });
  foo.register_fake([](Tensor) { return empty_strided({1}, {fake::new_dynamic_size()}); });
  auto f = compile([&](Tensor x) { return empty({foo(x).stride(0)}); }, kUnbacked);
  EXPECT_EQ(f(tensor({3})).sizes()[0], 3);
  EXPECT_EQ(f(tensor({8})).sizes()[0], 8);
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(TestInductorDynamic, item_materialize) {
  auto function = [](Tensor x) { return x.sum({0}).view({4}).tolist<SymInt>(); };
  auto f = compile(function, kUnbacked);
  for (int64_t rows : {3, 5}) {
    std::vector<SymInt> sums = f(ones({rows, 4}, kInt64));
    ASSERT_EQ(sums.size(), 4u);
    for (const SymInt& sum : sums) EXPECT_EQ(int64_t(sum), rows);
  }
}

TEST(TestInductorDynamic, item_unbacked_stride_nobreak) {
  CompileOptions options = kUnbacked;
  options.dynamic = Dynamic::On;
  auto f = compile(
      [](Tensor x) {
        SymInt a = x.item<SymInt>();
        check_is_size(a);
        check(a >= 1);
        check(a <= 10);
        return ones({a, a});
      },
      options);
  EXPECT_TRUE(same_bits(f(tensor({5})), ones({5, 5})));
  EXPECT_TRUE(same_bits(f(tensor({10})), ones({10, 10})));
  EXPECT_NE(error_of([&] { f(tensor({11})); }).find("<= 10"), std::string::npos);
  EXPECT_TRUE(same_bits(f(tensor({1})), ones({1, 1})));
  EXPECT_EQ(f.compile_count(), 1);
}

}  // namespace
}  // namespace tenon
