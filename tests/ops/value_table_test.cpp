// Every row against the values that NumPy gives, and the random ones against what they promise.
#include "ops/value_table.h"

#include <gtest/gtest.h>
#include <tenon/generated/ops.h>
#include <tenon/ops/row.h>

#include <set>

namespace tenon {
namespace {

using value_table::Case;

const std::map<std::string, std::vector<Case>>& tables() {
  static const auto loaded = value_table::load_folder(std::filesystem::path(TENON_SOURCE_DIR) / "tests" / "data");
  return loaded;
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const auto& [name, cases] : tables()) names.push_back(name);
  return names;
}

// Looked at by the tests below instead.
const std::set<std::string> kRandom = {"rand", "randn", "rand_like", "randn_like", "randint", "randint.low"};

std::string brief_name(const dispatch::Operator& op) { return op.name().substr(op.name().find("::") + 2); }

// Whether the in-place form can hold the result: of the dtype and shape of `self`.
bool fits_inplace(const Case& each) {
  auto self = each.arguments.find("self");
  if (self == each.arguments.end()) return false;
  return value_table::parse_tensor(self->second).description() ==
         value_table::parse_tensor(each.expected).description();
}

class ValueTable : public testing::TestWithParam<std::string> {};

TEST_P(ValueTable, agrees) {
  const dispatch::Operator& op = dispatch::find_operator("aten::" + GetParam());
  const ops::Row* row = ops::row_of(op);
  ASSERT_TRUE(row) << GetParam();
  for (const Case& each : tables().at(GetParam())) {
    SCOPED_TRACE(each.where);
    try {
      dispatch::Values values = value_table::arguments_of(each, op.schema());
      dispatch::Results results = dispatch::call_boxed(op, values);
      EXPECT_EQ(value_table::difference({results.data(), results.size()}, each), "");
      if (!row->inplace_op || !fits_inplace(each)) continue;
      dispatch::Values again = value_table::arguments_of(each, op.schema());
      Tensor self = again[0].tensor();
      results = dispatch::call_boxed(*row->inplace_op, again);
      EXPECT_EQ(value_table::difference(self, each), "") << "in place";
      EXPECT_TRUE(results[0].tensor().is_same_storage(self));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    } catch (...) {
      ADD_FAILURE() << "an exception of an unknown type";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(rows, ValueTable, testing::ValuesIn(operators()),
                         [](const testing::TestParamInfo<std::string>& each) {
                           std::string name = each.param;
                           for (char& letter : name)
                             if (letter == '.') letter = '_';
                           return name;
                         });

TEST(ValueTables, every_row_has_cases) {
  for (const dispatch::Operator* op : dispatch::all_operators()) {
    const ops::Row* row = ops::row_of(*op);
    if (!row || kRandom.contains(brief_name(*op))) continue;
    // An in-place form is tested with the cases of the row that it was derived from.
    auto found = tables().find(row->inplace() ? brief_name(*row->functional_op) : brief_name(*op));
    if (found == tables().end()) {
      ADD_FAILURE() << op->name() << " has no case in tests/data: add some to tools/reference";
    } else if (row->inplace()) {
      EXPECT_TRUE(std::any_of(found->second.begin(), found->second.end(), fits_inplace)) << op->name();
    }
  }
}

TEST(ValueTables, a_wrong_value_shows) {
  Case each{"add.Tensor", "here", {}, "float32[2] 1 2", "exact", {}};
  EXPECT_EQ(value_table::difference(value_table::parse_tensor("float32[2] 1 2"), each), "");
  EXPECT_EQ(value_table::difference(value_table::parse_tensor("float32[2] 1 2.0000002"), each),
            "element 1: expected 2 (exact), got 2.000000238418579");
  EXPECT_EQ(value_table::difference(value_table::parse_tensor("float64[2] 1 2"), each),
            "expected float32[2], got float64[2]");
  EXPECT_NE(value_table::difference(value_table::parse_tensor("float32[2] 1 nan"), each), "");
  each.closeness = "ulp 1";
  EXPECT_EQ(value_table::difference(value_table::parse_tensor("float32[2] 1 2.0000002"), each), "");
  EXPECT_NE(value_table::difference(value_table::parse_tensor("float32[2] 1 2.0000006"), each), "");
  each.closeness = "within 0.5 0.1";
  EXPECT_EQ(value_table::difference(value_table::parse_tensor("float32[2]{3} 1.5 2.09"), each), "");
  EXPECT_NE(value_table::difference(value_table::parse_tensor("float32[2]{3} 1.5 2.2"), each), "");
}

struct Moments {
  double mean = 0, variance = 0, least = INFINITY, most = -INFINITY;
};

Moments moments_of(const Tensor& tensor) {
  Moments m;
  const int64_t count = tensor.numel().plain();
  for (int64_t at = 0; at < count; ++at) {
    double value = value_table::read_element(tensor, value_table::place_of(at, tensor)).value;
    m.mean += value / static_cast<double>(count);
    m.variance += value * value / static_cast<double>(count);
    m.least = std::min(m.least, value);
    m.most = std::max(m.most, value);
  }
  m.variance -= m.mean * m.mean;
  return m;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  for (int64_t at = 0; at < a.numel().plain(); ++at)
    if (value_table::read_element(a, at).integer != value_table::read_element(b, at).integer) return false;
  return true;
}

class RandomRows : public testing::TestWithParam<Dtype> {};

TEST_P(RandomRows, uniform_numbers) {
  manual_seed(5);
  const Tensor draws[] = {rand({100, 1000}, GetParam()), rand_like(zeros({100000}, GetParam()))};
  for (const Tensor& x : draws) {
    EXPECT_EQ(x.dtype(), GetParam());
    Moments m = moments_of(x);
    EXPECT_GE(m.least, 0);
    // 24 random bits may round up to 1 in a half.
    EXPECT_LE(m.most, is_half(GetParam()) ? 1 : 1 - 0x1p-25);
    EXPECT_NEAR(m.mean, 0.5, 5 / std::sqrt(12 * 1e5) + (is_half(GetParam()) ? 0.002 : 0));
    EXPECT_NEAR(m.variance, 1.0 / 12, 0.003);
  }
  EXPECT_FALSE(same_elements(draws[0], draws[1]));
}

TEST_P(RandomRows, normal_numbers) {
  manual_seed(6);
  const Tensor draws[] = {randn({1000, 100}, GetParam()), randn_like(zeros({100000}, GetParam()))};
  for (const Tensor& x : draws) {
    EXPECT_EQ(x.dtype(), GetParam());
    Moments m = moments_of(x);
    EXPECT_NEAR(m.mean, 0, 5 / std::sqrt(1e5));
    EXPECT_NEAR(m.variance, 1, 0.03);
    EXPECT_LT(m.least, -3.5);
    EXPECT_GT(m.most, 3.5);
    EXPECT_TRUE(std::isfinite(m.least) && std::isfinite(m.most));
  }
  EXPECT_FALSE(same_elements(draws[0], draws[1]));
}

TEST(RandomIntegers, uniform_over_their_range) {
  manual_seed(9);
  for (Dtype dtype : {kInt64, kInt32, kUInt8, kFloat32}) {
    Tensor x = randint(3, 10, {20000}, dtype).to(kInt64);
    std::map<int64_t, int> counts;
    for (int64_t at = 0; at < 20000; ++at) ++counts[x.data<int64_t>()[at]];
    ASSERT_EQ(counts.size(), 7u);
    EXPECT_EQ(counts.begin()->first, 3);
    EXPECT_EQ(counts.rbegin()->first, 9);
    for (auto [number, count] : counts) EXPECT_NEAR(count, 20000.0 / 7, 5 * std::sqrt(20000.0 / 7)) << number;
  }
  Tensor wide = randint(int64_t{1} << 40, {1000});
  EXPECT_EQ(wide.dtype(), kInt64);
  int64_t most = 0;
  for (int64_t at = 0; at < 1000; ++at) {
    EXPECT_GE(wide.data<int64_t>()[at], 0);
    most = std::max(most, wide.data<int64_t>()[at]);
  }
  EXPECT_GT(most, int64_t{1} << 39);
  EXPECT_LT(most, int64_t{1} << 40);
  EXPECT_THROW(randint(3, 3, {2}), Error);
}

TEST_P(RandomRows, a_seed_repeats_them) {
  Tensor draws[2][3];
  for (auto& each : draws) {
    manual_seed(7);
    each[0] = rand({1001}, GetParam());
    each[1] = randn({1001}, GetParam());
    each[2] = rand({1001}, GetParam());
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_elements(draws[0][i], draws[1][i])) << i;
  EXPECT_FALSE(same_elements(draws[0][0], draws[0][2]));
  manual_seed(8);
  EXPECT_FALSE(same_elements(draws[0][0], rand({1001}, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(dtypes, RandomRows, testing::Values(kFloat32, kFloat64, kFloat16, kBFloat16),
                         [](const testing::TestParamInfo<Dtype>& each) { return std::string(name(each.param)); });

}  // namespace
}  // namespace tenon
