// What libtorch's spellings do, where they could compile and do something else.
#include <tenon/capture/compile.h>
#include <tenon/compat/torch.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "error_of.h"
#include "values_of.h"

namespace {

using tenon::testing::error_of;
using tenon::testing::values;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;

TEST(CompatMeaning, what_a_call_returned_is_written_into) {
  torch::Tensor x = torch::zeros({2, 2}), y = torch::ones({2});
  x[0] = y;
  x[1][0] = 3.0;
  EXPECT_EQ(values(x), (Doubles{1, 1, 3, 0}));
  x.slice(0, 1) = torch::full({1, 2}, 7.0);
  EXPECT_EQ(values(x), (Doubles{1, 1, 7, 7}));
  x.index({torch::indexing::Slice(), 1}) = 0;
  EXPECT_EQ(values(x), (Doubles{1, 0, 7, 0}));
  // A variable becomes another tensor.
  torch::Tensor row = x[0];
  row = y;
  EXPECT_EQ(values(x), (Doubles{1, 0, 7, 0}));
}

TEST(CompatMeaning, functions_of_its_tensors_compile) {
  auto f = [](const torch::Tensor& x, const std::vector<at::Tensor>& more, std::optional<at::Tensor> scale) {
    torch::Tensor y = torch::relu(x) + more[0];
    return std::tuple<torch::Tensor, std::vector<at::Tensor>>(scale ? y * *scale : y, {y.sum(), more[0]});
  };
  auto compiled = tenon::compile(f);
  for (int64_t n : {3, 5}) {
    torch::Tensor x = torch::arange(n).to(torch::kFloat) - 1;
    auto [a, b] = f(x, {x}, x);
    auto [c, d] = compiled(x, std::vector<at::Tensor>{x}, std::optional<at::Tensor>(x));
    EXPECT_EQ(values(c), values(a));
    EXPECT_EQ(values(d[0]), values(b[0]));
    EXPECT_TRUE(d[1].is(x));
  }
}

TEST(CompatMeaning, masks_take_as_many_dimensions_as_they_have) {
  torch::Tensor x = torch::arange(12).view({2, 2, 3});
  torch::Tensor mask = torch::tensor({{true, false}, {false, true}});
  EXPECT_EQ(values(x.index({mask, "..."})), (Doubles{0, 1, 2, 9, 10, 11}));
  EXPECT_EQ(values(x.index({torch::indexing::Ellipsis, torch::tensor({2, 0})})[0]), (Doubles{2, 0, 5, 3}));
  x.index_put_({mask, 1}, -1);
  EXPECT_EQ(values(x.view({-1})), (Doubles{0, -1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 11}));
  EXPECT_EQ(values(x[mask]), (Doubles{0, -1, 2, 9, -1, 11}));
}

TEST(CompatMeaning, limits_of_16_bits) {
  EXPECT_EQ(float(std::numeric_limits<c10::Half>::lowest()), -65504.f);
  EXPECT_EQ(float(std::numeric_limits<c10::Half>::max()), 65504.f);
  EXPECT_EQ(float(std::numeric_limits<c10::Half>::epsilon()), 0x1p-10f);
  EXPECT_EQ(float(std::numeric_limits<c10::Half>::min()), 0x1p-14f);
  EXPECT_TRUE(std::isinf(float(std::numeric_limits<c10::Half>::infinity())));
  EXPECT_TRUE(std::isnan(float(std::numeric_limits<c10::Half>::quiet_NaN())));
  EXPECT_EQ(float(std::numeric_limits<c10::BFloat16>::max()), 0x1.FEp127f);
  EXPECT_EQ(float(std::numeric_limits<c10::BFloat16>::lowest()), -0x1.FEp127f);
  EXPECT_EQ(float(std::numeric_limits<c10::BFloat16>::epsilon()), 0x1p-7f);
  EXPECT_EQ(float(std::numeric_limits<c10::BFloat16>::min()), std::numeric_limits<float>::min());
  EXPECT_EQ(float(c10::Half(0x3C00, c10::Half::from_bits())), 1.f);
}

TEST(CompatMeaning, threads_have_numbers) {
  EXPECT_FALSE(at::in_parallel_region());
  const auto threads = static_cast<size_t>(at::get_num_threads());
  std::vector<std::atomic<int>> busy(threads);
  std::vector<int64_t> sums(threads);  // of each thread its own
  at::parallel_for(3, 1003, 1, [&](int64_t begin, int64_t end) {
    const auto number = static_cast<size_t>(at::get_thread_num());
    ASSERT_LT(number, threads);
    EXPECT_TRUE(at::in_parallel_region());
    EXPECT_EQ(busy[number]++, 0) << "two ranges at once have number " << number;
    for (auto i : c10::irange(begin, end)) sums[number] += i;
    // One loop inside of another stays where it is.
    at::parallel_for(0, 10, 1, [&](int64_t, int64_t) { EXPECT_EQ(static_cast<size_t>(at::get_thread_num()), number); });
    --busy[number];
  });
  EXPECT_FALSE(at::in_parallel_region());
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), (3 + 1002) * 1000 / 2);
  EXPECT_THAT(error_of<tenon::ValueError>([] {
                at::parallel_for(0, 100, 1, [](int64_t, int64_t) { TORCH_CHECK_VALUE(false, "from the loop"); });
              }),
              HasSubstr("from the loop"));
  EXPECT_FALSE(at::in_parallel_region());
}

TEST(CompatMeaning, parallel_reduce_folds_in_order) {
  auto join = [](int64_t begin, int64_t end, std::string text) {
    for (auto i : c10::irange(begin, end)) text += std::to_string(i) + ",";
    return text;
  };
  std::string expected = join(0, 50, "");
  EXPECT_EQ(at::parallel_reduce(0, 50, 1, std::string(), join, std::plus<std::string>()), expected);
  EXPECT_EQ(at::parallel_reduce(0, 50, 1000, std::string(), join, std::plus<std::string>()), expected);
  EXPECT_EQ(at::parallel_reduce(5, 5, 1, 7, [](int64_t, int64_t, int) { return 1; }, std::plus<int>()), 7);
  EXPECT_TRUE(at::parallel_reduce(
      0, 100, 1, false, [](int64_t b, int64_t e, bool) { return b <= 42 && 42 < e; }, std::logical_or<bool>()));
}

TEST(CompatMeaning, out_forms_write) {
  torch::Tensor a = torch::ones({2, 3}), b = torch::full({3, 2}, 2.0), out = torch::zeros({2, 2});
  torch::Tensor same = out;
  EXPECT_TRUE(at::mm_out(out, a, b).is_same(out));
  EXPECT_EQ(values(same), (Doubles{6, 6, 6, 6}));
  torch::Tensor grown = torch::empty({0});
  at::sum_out(grown, a, 0);
  EXPECT_EQ(values(grown), (Doubles{2, 2, 2}));
  EXPECT_THAT(error_of([&] { at::mm_out(a, a, b); }), HasSubstr("expected an output of sizes [2, 2], got [2, 3]"));
  torch::Tensor whole = torch::empty({2, 2}, torch::kLong);
  EXPECT_THAT(error_of([&] { at::mm_out(whole, a, b); }), HasSubstr("can't be cast to the desired output type Long"));
}

TEST(CompatMeaning, comparisons_say_their_values) {
  int64_t rows = 3;
  TORCH_CHECK_EQ(rows, 3);
  EXPECT_THAT(error_of<tenon::RuntimeError>([&] { TORCH_CHECK_EQ(rows, 4) << "rows of " << "x"; }),
              HasSubstr("Check failed: rows == 4 (3 vs. 4). rows of x"));
  EXPECT_THAT(error_of<tenon::RuntimeError>([&] { TORCH_CHECK_LT(rows, 2); }), HasSubstr("rows < 2 (3 vs. 2)"));
  if (rows == 3)
    TORCH_CHECK_NE(rows, 4);
  else
    FAIL() << "an else belongs to its if";
}

TEST(CompatMeaning, values_of_any_kind) {
  c10::IValue sizes(std::vector<int64_t>{1, 2}), list(std::vector<torch::Tensor>{torch::ones({2})}), none;
  EXPECT_EQ(sizes.toIntVector(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(sizes.toList()[1].get().toInt(), 2);
  EXPECT_EQ(list.toTensorVector()[0].sizes(), (std::vector<int64_t>{2}));
  EXPECT_FALSE(none.toOptional<int64_t>().has_value());
  EXPECT_EQ(c10::IValue(2.5).toOptional<double>(), 2.5);
  EXPECT_EQ(c10::IValue(at::Scalar(3)).toInt(), 3);
  c10::List<int64_t> numbers({1, 2, 3});
  c10::List<int64_t> shared = numbers;
  numbers[1] = 20;
  shared.push_back(4);
  EXPECT_EQ(numbers.vec(), (std::vector<int64_t>{1, 20, 3, 4}));
  int64_t sum = 0;
  for (int64_t each : numbers) sum += each;
  EXPECT_EQ(sum, 28);
  c10::Dict<std::string, torch::Tensor> named;
  named.insert("a", torch::ones({2}));
  named.insert("a", torch::zeros({3}));
  EXPECT_EQ(named.at("a").numel(), 2);
  named.insert_or_assign("a", torch::zeros({3}));
  EXPECT_EQ(named.at("a").numel(), 3);
  EXPECT_THAT(error_of([&] { named.at("b"); }), HasSubstr("there is no key"));
}

TEST(CompatMeaning, dispatch_over_a_list_of_types) {
  auto bytes = [](const torch::Tensor& x) {
    return AT_DISPATCH_V2(x.scalar_type(), "bytes", AT_WRAP([&] { return sizeof(scalar_t); }), AT_EXPAND(AT_ALL_TYPES),
                          at::kHalf);
  };
  EXPECT_EQ(bytes(torch::ones({1}, torch::kShort)), 2u);
  EXPECT_EQ(bytes(torch::ones({1}, torch::kDouble)), 8u);
  EXPECT_EQ(bytes(torch::ones({1}, torch::kHalf)), 2u);
  EXPECT_THAT(error_of<tenon::NotImplementedError>([&] { bytes(torch::ones({1}, torch::kBool)); }),
              HasSubstr("\"bytes\" not implemented for 'Bool'"));
  // Older sources give the type of the tensor.
  int64_t size = 0;
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(torch::ones({1}, torch::kInt).type(), "old", [&] { size = sizeof(scalar_t); });
  EXPECT_EQ(size, 4);
}

TEST(CompatMeaning, hooks_and_data) {
  torch::Tensor x = torch::ones({2}, torch::requires_grad());
  int seen = 0;
  x.register_hook([&](torch::Tensor grad) { seen += static_cast<int>(grad.size(0)); });
  x.register_hook([](const torch::Tensor& grad) { return grad * 3; });
  x.sum().backward();
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(values(x.grad()), (Doubles{3, 3}));
  x.set_data(torch::full({3}, 5.0));
  EXPECT_EQ(values(x), (Doubles{5, 5, 5}));
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(x.data<float>()[2], 5.f);
}

// Vectors of every type against plain numbers, for lengths that do and do not fill them.
template <typename T>
void check_vectors() {
  using Vec = at::vec::Vectorized<T>;
  std::vector<T> in, other, out(40);
  for (int at = 0; at < 40; ++at) {
    in.push_back(T(at % 7 + 1));
    other.push_back(T(at % 5 + 1));
  }
  for (int64_t count : {1, 3, 16, 17, 40}) {
    at::vec::map2<T>([](Vec a, Vec b) { return at::vec::fmadd(a, b, Vec(T(2))) - a; }, out.data(), in.data(),
                     other.data(), count);
    T sum = 0, largest = 0;
    for (size_t at = 0; at < static_cast<size_t>(count); ++at) {
      EXPECT_EQ(float(out[at]), float(in[at]) * float(other[at]) + 2 - float(in[at]));
      sum = T(sum + in[at]);
      largest = std::max(largest, in[at]);
    }
    EXPECT_EQ(float(at::vec::reduce_all<T>([](Vec& a, Vec& b) { return a + b; }, in.data(), count)), float(sum));
    EXPECT_EQ(float(at::vec::reduce_all<T>([](Vec& a, Vec& b) { return at::vec::maximum(a, b); }, in.data(), count)),
              float(largest));
  }
  const Vec a = Vec::loadu(in.data()), b = Vec::loadu(other.data());
  const Vec picked = Vec::blendv(a, b, a < b), either = at::vec::clamp(a, Vec(T(2)), Vec(T(4)));
  for (size_t at = 0; at < static_cast<size_t>(Vec::size()); ++at) {
    EXPECT_EQ(float(picked[at]), float(in[at] < other[at] ? other[at] : in[at]));
    EXPECT_EQ(float(either[at]), std::clamp(float(in[at]), 2.f, 4.f));
    EXPECT_EQ(float(a.gt(b)[at]), in[at] > other[at] ? 1.f : 0.f);
  }
}
TEST(CompatMeaning, vectors) {
  check_vectors<float>();
  check_vectors<double>();
  check_vectors<int32_t>();
  check_vectors<int64_t>();
  check_vectors<c10::Half>();
  check_vectors<c10::BFloat16>();
  using Vec = at::vec::Vectorized<float>;
  EXPECT_FLOAT_EQ(Vec(2.f).exp()[3], std::exp(2.f));
  EXPECT_FLOAT_EQ(Vec(4.f).rsqrt()[0], 0.5f);
  EXPECT_TRUE(std::isnan(at::vec::maximum(Vec(NAN), Vec(1.f))[0]) &&
              std::isnan(at::vec::maximum(Vec(1.f), Vec(NAN))[0]));
  EXPECT_EQ(Vec::arange(1, 2)[3], 7.f);
}

}  // namespace
