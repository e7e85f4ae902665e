// What is computed once, and what is not: graphs as they run at every call.
#include "../../seeds/freeze.h"

#include <tenon/library/custom_op.h>

namespace tenon {
namespace {

using testing::Contains;
using testing::count_of;
using testing::difference;
using testing::HasSubstr;
using testing::Not;
using testing::only_entry;
using testing::operators_of;
using testing::same_bits;

// A frozen function gives what eager gives, and computes these operators at every call.
template <typename F, typename... Args>
Explanation::Entry check_frozen(F function, const std::string& operators, const Args&... args) {
  NoGrad off;
  Tensor expected = function(args...);
  auto frozen = freeze(function);
  EXPECT_LT(difference(frozen(args...), expected), 1e-5);
  EXPECT_LT(difference(frozen(args...), expected), 1e-5);
  Explanation::Entry entry = only_entry(frozen);
  EXPECT_EQ(operators_of(entry), operators) << entry.frozen;
  return entry;
}

TEST(Fold, steps_behind_a_product) {
  nn::Linear layer(6, 4);
  Tensor k = rand({4}) + 1, one = full({1}, 3.0), x = randn({5, 6});
  const std::string alone = "aten::permute aten::addmm", folded = "aten::addmm";
  check_frozen([&](Tensor a) { return layer(a); }, alone, x);
  check_frozen([&](Tensor a) { return layer(a) * k; }, folded, x);
  check_frozen([&](Tensor a) { return k * layer(a) / k + one; }, folded, x);
  check_frozen([&](Tensor a) { return k - layer(a); }, folded, x);
  check_frozen([&](Tensor a) { return neg(layer(a)) * 2 - 1; }, folded, x);
  // A sum alone leaves the weight as it is.
  check_frozen([&](Tensor a) { return add(layer(a), k, 0.5); }, alone, x);
  check_frozen([&](Tensor a) { return sub(layer(a), k, 2); }, alone, x);
  check_frozen([&](Tensor a) { return matmul(a, layer.weight.get().t()) * k + k; }, folded, x);
  // Rows of a batch, seen as they were before.
  check_frozen([&](Tensor a) { return layer(a) * k; }, "aten::view aten::addmm aten::view", randn({2, 3, 6}));
  // A number at the product's side of a sum is no step.
  check_frozen([&](Tensor a) { return sub(k, layer(a), 2); }, "aten::permute aten::addmm aten::sub.Tensor", x);
  // One number for each row is none for each channel.
  Tensor rows = rand({5, 1});
  check_frozen([&](Tensor a) { return layer(a) * rows; }, "aten::permute aten::addmm aten::mul.Tensor", x);
}

TEST(Fold, steps_behind_a_convolution) {
  for (int64_t groups : {1, 2}) {
    nn::Conv2d conv(4, 6, 3, {.groups = groups});
    nn::BatchNorm2d norm(6);
    testing::train_a_little(norm, {4, 6, 5, 5});
    Tensor x = randn({2, 4, 7, 7}), k = rand({6, 1, 1}) + 1, all = rand({}) + 1;
    check_frozen([&](Tensor a) { return norm(conv(a)); }, "aten::convolution", x);
    check_frozen([&](Tensor a) { return norm(conv(a)) * k + all; }, "aten::convolution", x);
    check_frozen([&](Tensor a) { return relu(norm(conv(a))); }, "aten::convolution aten::relu", x);
    // Columns are no channels.
    Tensor columns = rand({5});
    check_frozen([&](Tensor a) { return conv(a) * columns; }, "aten::convolution aten::mul.Tensor", x);
  }
}

TEST(Fold, a_value_with_two_readers_stays) {
  nn::Linear layer(6, 4);
  Tensor k = rand({4}) + 1;
  Explanation::Entry entry = check_frozen(
      [&](Tensor a) {
        Tensor y = layer(a);
        Tensor scaled = y * k;
        return scaled + y.sin();
      },
      "aten::permute aten::addmm aten::mul.Tensor aten::sin aten::add.Tensor", randn({5, 6}));
  EXPECT_THAT(entry.freezing, Not(Contains(HasSubstr("folded into"))));
}

TEST(Fold, what_is_larger_than_its_operands_is_computed_on_the_way) {
  Tensor a = randn({64, 1}), b = randn({64});
  Explanation::Entry entry =
      check_frozen([&](Tensor x) { return x * (a + b); }, "aten::add.Tensor aten::mul.Tensor", randn({64, 64}));
  EXPECT_THAT(entry.freezing, Contains(HasSubstr("it has 16384 bytes and is computed from 512")));
  // A library reads it from memory.
  check_frozen([&](Tensor x) { return matmul(x, a + b); }, "aten::mm", randn({64, 64}));
}

TEST(Fold, results_are_the_callers) {
  Tensor w = randn({4, 4});
  auto frozen = freeze([&](Tensor x) { return std::tuple(x + 1, w * 2, (w * 3).select(0, 1)); });
  NoGrad off;
  for (int call = 0; call < 3; ++call) {
    auto [sum, twice, row] = frozen(ones({4}));
    EXPECT_TRUE(same_bits(twice, w * 2));
    EXPECT_TRUE(same_bits(row, w.select(0, 1) * 3));
    twice.zero_();
    row.zero_();
  }
}

TEST(Fold, stacked_results_count_their_own_writes) {
  Tensor w1 = randn({4, 4}), w2 = randn({4, 4});
  auto frozen = freeze([&](Tensor x) { return std::tuple(matmul(x, w1), matmul(x, w2)); });
  Tensor x = randn({3, 4}), scale = ones({3, 4}).set_requires_grad();
  Tensor a, b;
  {
    NoGrad off;
    std::tie(a, b) = frozen(x);
  }
  Tensor loss = (b * scale).sum();  // keeps b
  a.add_(1);
  loss.backward();
  EXPECT_TRUE(same_bits(scale.grad(), matmul(x, w2)));
}

TEST(Fold, products_that_are_not_stacked) {
  Tensor w = randn({4, 4}), wide = randn({4, 6}), narrow = randn({4, 4}), bias = randn({4}), x = randn({3, 4});
  NoGrad off;
  auto frozen = freeze([&](Tensor a) {
    Tensor first = matmul(a, w), second = matmul(a, wide), third = addmm(bias, a, narrow);
    return std::tuple(first, second, third);
  });
  auto [plain, other, biased] = frozen(x);
  EXPECT_LT(difference(plain, matmul(x, w)), 1e-6);
  EXPECT_LT(difference(biased, addmm(bias, x, narrow)), 1e-6);
  EXPECT_LT(difference(other, matmul(x, wide)), 1e-6);
  EXPECT_THAT(only_entry(frozen).freezing, Contains(HasSubstr("one has a bias, one has not")));
  EXPECT_THAT(only_entry(frozen).freezing, Contains(HasSubstr("widths 4 and 6 differ")));
}

// As an attention projects queries, keys and values.
TEST(Fold, slices_of_one_matrix_are_stacked) {
  Tensor w = randn({12, 4}), b = randn({12}), x = randn({5, 4});
  auto project = [&](Tensor a) {
    std::vector<Tensor> parts;
    for (int64_t at = 0; at < 3; ++at)
      parts.push_back(linear(a, w.slice(0, 4 * at, 4 * at + 4), b.slice(0, 4 * at, 4 * at + 4)));
    return parts;
  };
  NoGrad off;
  auto frozen = freeze(project);
  std::vector<Tensor> expected = project(x), found = frozen(x);
  for (size_t at = 0; at < 3; ++at) EXPECT_LT(difference(found[at], expected[at]), 1e-6);
  EXPECT_EQ(count_of("aten::baddbmm(", only_entry(frozen).frozen), 1);
  EXPECT_EQ(count_of("aten::addmm(", only_entry(frozen).frozen), 0);
  // Somebody else reads the matrix.
  auto other = freeze([&](Tensor a) {
    std::vector<Tensor> parts = project(a);
    return parts[0] + parts[1] + parts[2] + matmul(a.sin(), w.slice(0, 0, 4).t());
  });
  other(x);
  EXPECT_EQ(count_of("aten::baddbmm(", only_entry(other).frozen), 0);
  EXPECT_THAT(only_entry(other).freezing, Contains(HasSubstr("its weight is read 4 times, and would be kept twice")));
}

TEST(Fold, float64_and_halves) {
  for (Dtype dtype : {kFloat64, kFloat16, kBFloat16}) {
    SCOPED_TRACE(std::string(name(dtype)));
    nn::Linear layer(6, 4);
    layer.to(dtype);
    Tensor k = (rand({4}) + 1).to(dtype), x = randn({5, 6}).to(dtype);
    auto frozen = freeze([&](Tensor a) { return layer(a) * k; });
    NoGrad off;
    Tensor expected = layer(x) * k;
    EXPECT_LT(difference(frozen(x), expected), dtype == kFloat64 ? 1e-12 : 2e-2);
    EXPECT_EQ(operators_of(only_entry(frozen)), "aten::addmm");
  }
}

TEST(Fold, integers_stay_exact) {
  Tensor w = ones({2, 2}, kInt64), k = full({2}, int64_t{1} << 40, kInt64), x = full({1, 2}, 3, kInt64);
  auto frozen = freeze([&](Tensor a) { return mm(a, w) * 2 + k; });
  NoGrad off;
  EXPECT_EQ(frozen(x)[0][0].item<int64_t>(), (int64_t{1} << 40) + 12);
  EXPECT_THAT(only_entry(frozen).freezing, Contains(HasSubstr("int64 is exact as it is")));
}

TEST(Fold, only_where_gradients_are_off) {
  nn::Linear layer(3, 2);
  Tensor k = ones({2}) * 2;
  auto frozen = freeze([&](Tensor a) { return layer(a) * k; });
  Tensor x = randn({4, 3});
  frozen(x).sum().backward();
  EXPECT_TRUE(layer.weight.get().grad().defined());
  EXPECT_THAT(only_entry(frozen).freezing, Contains("not frozen: grad mode is on: parameters may be trained"));
  NoGrad off;
  frozen(x);
  EXPECT_EQ(frozen.compile_count(), 2);
  EXPECT_THAT(frozen.explain().str(), HasSubstr("folded into addmm"));
}

TEST(Fold, on_backends) {
  nn::Linear layer(3, 2);
  Tensor k = ones({2}) * 2, x = randn({4, 3});
  NoGrad off;
  Tensor expected = layer(x) * k;
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto frozen = compile([&](Tensor a) { return layer(a) * k; }, {.backend = backend, .freeze = Freeze::On});
    EXPECT_LT(difference(frozen(x), expected), 1e-6);
    EXPECT_LT(difference(frozen(x), expected), 1e-6);
    bool folds = std::string_view(backend) != "eager";
    EXPECT_THAT(
        only_entry(frozen).freezing,
        Contains(HasSubstr(folds ? "folded into addmm" : "the backend 'eager' runs the captured graph as it is")));
  }
}

TEST(Fold, across_a_break) {
  nn::Linear layer(3, 3);
  Tensor k = ones({3}) * 2, x = randn({4, 3});
  auto function = [&](Tensor a) {
    Tensor y = layer(a) * k;
    graph_break();
    return layer(y) * k;
  };
  NoGrad off;
  Tensor expected = function(x);
  for (bool discards : {false, true}) {
    auto frozen = compile(function, {.freeze = Freeze::On, .discard_parameters = discards});
    EXPECT_LT(difference(frozen(x), expected), 1e-5);
    EXPECT_LT(difference(frozen(x), expected), 1e-5);
    EXPECT_EQ(frozen.compile_count(), 2);
  }
}

TEST(Fold, nothing_is_random_or_from_outside) {
  Tensor w = rand({3}) + 1;
  auto drops = freeze([&](Tensor x) { return x + bernoulli(w * 0.25); });
  NoGrad off;
  Tensor zero = zeros({3}), sum = zeros({3});
  for (int call = 0; call < 64; ++call) sum += drops(zero);
  for (int64_t at = 0; at < 3; ++at) {
    EXPECT_GT(sum[at].item<float>(), 0);
    EXPECT_LT(sum[at].item<float>(), 64);
  }
}

}  // namespace
}  // namespace tenon
