// Seed 000's operator cases: indices that are computed and known, so that nothing is read to find a place.
#include "operators.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "bits_as.h"

namespace tenon::operators {
namespace {

using Indices = std::vector<std::optional<Tensor>>;
using ::testing::HasSubstr;
using ::testing::Not;

// Values equal eager's, and no place is bound from data ("bind") nor checked. `dynamic_check`: with dynamic sizes a
// check may stand there.
template <typename F>
void check_direct(F function, const Tensors& inputs, bool dynamic_check = false) {
  check(function, inputs);
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    SCOPED_TRACE(dynamic == Dynamic::On ? "dynamic" : "static");
    std::string text = kernels_of(of_list(function), inputs, dynamic);
    EXPECT_THAT(text, HasSubstr("store"));
    EXPECT_THAT(text, Not(HasSubstr("bind ")));
    if (dynamic == Dynamic::Off || !dynamic_check) {
      EXPECT_THAT(text, Not(HasSubstr("check ")));
    }
  }
}

TEST(CommonTemplate, index_propagation) {
  check_direct([](Tensor x) { return index(x, Indices{arange(Scalar(x.size(0)))}); }, {randn({8})});
}
TEST(CommonTemplate, index_propagation_flip) {
  check_direct([](Tensor x) { return index(x, Indices{arange(Scalar(x.size(0) - 1), -1, -1)}); }, {randn({8})});
}
TEST(CommonTemplate, index_propagation_floordiv) {
  auto function = [](Tensor x) { return index(x, Indices{floor_divide(arange(Scalar(x.size(0) * 3)), 3)}); };
  Tensor x = randn({8, 16});
  check_direct(function, {x}, true);
  EXPECT_TRUE(same_bits(function(x), x.repeat_interleave(3, 0)));
}
TEST(CommonTemplate, index_propagation_remainder) {
  auto function = [](Tensor x) { return index(x, Indices{arange(Scalar(x.size(0) * 3)) % Scalar(x.size(0))}); };
  Tensor x = randn({8, 16});
  check_direct(function, {x}, true);
  EXPECT_TRUE(same_bits(function(x), x.repeat({3, 1})));
}
TEST(CommonTemplate, index_propagation_abs) {
  check_direct([](Tensor x) { return index(x, Indices{abs(arange(Scalar(x.size(0) + 3)) - 3)}); }, {randn({8})}, true);
}
TEST(CommonTemplate, index_propagation_device_assert_masked) {
  check(
      [](Tensor a) {
        Tensor idx = constant_pad_nd(arange(Scalar(a.size(0))), {1050, 0});
        return index(a, Indices{where(idx >= 0, idx, idx)});
      },
      {randn({1024})});
}
TEST(CommonTemplate, computed_buffer_inlining) {
  check_direct(
      [](Tensor x) {
        Tensor idx = arange(Scalar(x.size(0) - 1), -1, -1);
        return std::tuple(index(x, Indices{idx}), idx);
      },
      {randn({8})});
}
// What stands in the kernels of an indexing: a check that it is in range, a choice between an index and one from the
// end, and whether elements are computed by vectors.
struct Standing {
  bool check, wraps, vector;
  bool operator==(const Standing&) const = default;
};
std::ostream& operator<<(std::ostream& to, const Standing& s) {
  return to << (s.check ? "check " : "") << (s.wraps ? "wraps " : "") << (s.vector ? "vector" : "");
}
// Whether a kernel has an operation that a store, a check or an index needs.
bool needs_operation(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  std::set<std::string> needed;  // values
  for (size_t at = all.size(); at-- > 0;) {
    const std::string& line = all[at];
    if (line.starts_with("kernel")) needed.clear();
    const size_t equals = line.find(" = "), percent = line.find('%');
    const bool makes = percent != line.npos && equals != line.npos && percent < equals;
    if (makes && !needed.contains(line.substr(percent, equals - percent))) continue;
    const size_t begin = makes ? equals + 3 : 0;
    if (makes && line.substr(begin).starts_with(name + " ")) return true;
    for (size_t id = line.find('%', begin); id != line.npos; id = line.find('%', id + 1))
      needed.insert(line.substr(id, line.find_first_not_of("0123456789", id + 1) - id));
  }
  return false;
}
// (That the elements are computed by vectors is held where it is asked for; more may be.)
template <typename F>
void expect_standing(const char* what, F function, const Tensors& inputs, Standing fixed, Standing symbolic) {
  SCOPED_TRACE(what);
  check(function, inputs);
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    const Standing& asked = dynamic == Dynamic::On ? symbolic : fixed;
    std::string text = kernels_of(of_list(function), inputs, dynamic);
    const Standing found{text.find("check ") != text.npos, needs_operation(text, "select"),
                         !asked.vector || text.find("vector ") != text.npos};
    EXPECT_EQ(found, (Standing{asked.check, asked.wraps, true}))
        << (dynamic == Dynamic::On ? "dynamic" : "static") << "\n"
        << text;
  }
}
// A tensor whose numbers the graph knows is made by `full` here.
TEST(CommonTemplate, neg_index) {
  const Standing all{true, true, true}, none{false, false, false}, vector{false, false, true}, wraps{false, true, true},
      check_only{true, false, false};
  auto at = [](const Tensor& a, const Tensor& i) { return index(a, Indices{i}); };
  Tensor a = rand({1, 64}).view({64}), b = randint(0, 10, {64}), x = rand({2, 64});
  expect_standing("b - 1", [&](Tensor p, Tensor q) { return at(p, q - 1); }, {a, b}, all, all);
  expect_standing("last column", [](Tensor p) { return p.select(1, -1); }, {x}, none, none);
  expect_standing("b", at, {a, b}, all, all);
  expect_standing(
      "backwards", [&](Tensor p) { return at(p, arange(-1, Scalar(-p.size(0) - 1), -1)); }, {a}, vector, vector);
  expect_standing(
      "backwards from 1", [&](Tensor p) { return at(p, arange(1, Scalar(-p.size(0) - 1), -1)); }, {a}, wraps, wraps);
  expect_standing(
      "from a float", [&](Tensor p) { return at(p, (arange(8, kFloat32) * 1.0).to(kInt32)); }, {a}, none, check_only);
  expect_standing(
      "unsafe",
      [](Tensor p, Tensor q) {
        return by_name("aten::_unsafe_index.Tensor", {dispatch::Value(p), dispatch::Value(Indices{q})});
      },
      {a, b}, wraps, wraps);
  expect_standing("a known one", [&](Tensor p) { return at(p, full({1}, 2, kInt64)); }, {a}, none, check_only);
  expect_standing("a known one from the end", [&](Tensor p) { return at(p, full({1}, -2, kInt64)); }, {a}, none, none);
}
TEST(CommonTemplate, transposed_propagates) {
  Tensor a = randn({1, 4, 4, 4}).permute({0, 2, 3, 1}), b = randn({4, 4, 4}).permute({1, 2, 0});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor result = compile([](Tensor x, Tensor y) { return x + y; }, {.dynamic = dynamic})(a, b);
    EXPECT_EQ(result.strides()[2], 1);
    for (size_t dim = 1; dim < 4; ++dim) EXPECT_EQ(result.strides()[dim], a.strides()[dim]);
    EXPECT_TRUE(same_bits(result, a + b));
  }
}
TEST(CommonTemplate, output_strides) {
  check(
      [](Tensor x) {
        Tensor y = x.permute({0, 2, 3, 1}).contiguous();
        graph_break();
        return y.view({-1, 4});
      },
      {randn({4, 4, 4, 4})}, {.fullgraph = false});
  Tensor x = randn({4, 4});
  auto picked = [](Tensor t) { return t.slice(0, 0, 2, 2).T().slice(0, 3).squeeze(0); };
  Tensor result = compile(picked, {.fullgraph = true})(x);
  EXPECT_TRUE(same_bits(result, picked(x)));
  EXPECT_TRUE(result.is_same_storage(x)) << "a view of the input";
}
TEST(CommonTemplate, complex_memory_overlap) {
  // The last dimension has one element: its stride reaches nothing twice.
  Tensor apart = as_strided(zeros({8 * 1504}), {8, 1500, 1}, {1504, 1, 1});
  apart.add_(1);
  EXPECT_EQ(apart.sum().item<double>(), 8 * 1500);
  Tensor twice = as_strided(zeros({16}), {8, 4}, {1, 1});
  EXPECT_THROW(twice.add_(1), RuntimeError);
}
TEST(CommonTemplate, generate_rand_fp8) {
  // As the maker of random tensors makes one: drawn as halves, converted, then in the memory that the strides ask for.
  Tensor halves = randn({2, 3}, kFloat16);
  for (Dtype dtype : {kFloat8E4M3FN, kFloat8E5M2}) {
    auto made = [dtype](Tensor x) { return empty_strided({2, 3}, {3, 1}, TensorOptions(dtype)).copy_(x.to(dtype)); };
    Tensor result = made(halves), compiled = compile(made)(halves);
    EXPECT_EQ(result.dtype(), dtype);
    EXPECT_EQ(result.strides()[0], 3);
    EXPECT_TRUE(same_bits(testing::bits_as(compiled, kUInt8), testing::bits_as(result, kUInt8)));
    EXPECT_TRUE(result.to(kFloat32).allclose(halves.to(kFloat32), dtype == kFloat8E4M3FN ? 0.0625 : 0.125, 0x1p-10));
  }
}
TEST(CommonTemplate, pow_int) {
  for (Dtype dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    int64_t most = dtype == kUInt8 ? 255 : dtype == kInt8 ? 127 : dtype == kInt16 ? 32767 : 2147483647;
    Tensor x = randint(-128, 127, {16, 16}).to(dtype), y = randint(0, most, {16, 16}).to(dtype);
    Tensors results = check([](Tensor a, Tensor b) { return std::tuple(pow(a, 87), pow(a, b)); }, {x, y});
    // Powers modulo 2^bits, by repeated multiplication.
    Tensor product = ones_like(x);
    for (int i = 0; i < 87; ++i) product = product * x;
    EXPECT_TRUE(same_bits(results[0], product)) << name(dtype);
  }
}
TEST(CommonTemplate, bool) {
  Tensor a = tensor({true, false, true, false}), b = tensor({true, true, false, false});
  Tensors results = check(
      [](Tensor x, Tensor y) {
        return Tensors{x + y, x * y, x & y, x | y, x ^ y, logical_and(x, y), logical_or(x, y), logical_not(x), sign(y)};
      },
      {a, b});
  for (const Tensor& result : results) EXPECT_EQ(result.dtype(), kBool);
  EXPECT_TRUE(same_bits(results[0], tensor({true, true, true, false})));
  EXPECT_TRUE(same_bits(results[1], tensor({true, false, false, false})));
  EXPECT_TRUE(same_bits(results[8], b));
}

}  // namespace
}  // namespace tenon::operators
