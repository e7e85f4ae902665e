// Every row of the operator table, as `opcheck` sees it: a test of the rows, and of the check.
#include "ops/samples.h"

#include <gtest/gtest.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/opcheck/opcheck.h>

#include <map>

namespace tenon::test {
namespace {

std::vector<const ops::Row*> rows() {
  std::vector<const ops::Row*> list;
  for (const dispatch::Operator* op : dispatch::all_operators())
    // (What gives a tensor another shape in place is no part of a graph.)
    if (const ops::Row* row = ops::row_of(*op); row && !row->moves_self) list.push_back(row);
  std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->op->name() < b->op->name(); });
  return list;
}

bool takes(const ops::Row& row, const Sample& sample) {
  try {
    dispatch::call_boxed(*row.op, sample.copy());
    return true;
  } catch (const Error&) {
    return false;
  }
}

// What `opcheck` finds in the table, and why it stands. Each must still be found.
const std::map<std::string, std::string> kKnown = {
    {"aten::ctc_loss.Tensor", "how many states the longest target has only data tells, and no result shows it"},
    {"aten::linalg_householder_product", "its gradient takes a step for each reflection, of which there are so many"},
    {"aten::ormqr", "likewise"},
};

class CheckedRow : public testing::TestWithParam<const ops::Row*> {};

TEST_P(CheckedRow, is_registered_well) {
  const ops::Row& row = *GetParam();
  // An in-place form takes what the form that it comes from takes.
  const ops::Row& from = row.inplace() && row.functional_op ? *ops::row_of(*row.functional_op) : row;
  size_t checked = 0, found = 0;
  std::vector<Recipe> recipes = {{.shape = {3, 5}, .values = Values::Positive},
                                 {.shape = {7}, .placement = Placement::Sliced, .values = Values::Near, .variant = 1},
                                 {.shape = {2, 3, 4}, .dtype = kFloat64, .values = Values::Ordinary, .variant = 2},
                                 {.shape = {4, 6}, .dtype = kInt64, .variant = 3},
                                 {.shape = {5}, .dtype = kBool, .variant = 4}};
  const size_t wanted = recipes.size();
  for (const Recipe& more : all_recipes()) recipes.push_back(more);
  for (size_t at = 0; at < recipes.size() && (at < wanted || checked == 0); ++at) {
    const Recipe& recipe = recipes[at];
    std::optional<Sample> sample = make_sample(from, recipe);
    if (!sample || !takes(row, *sample)) continue;
    ++checked;
    for (size_t arg = 0; arg < sample->args.size(); ++arg) {
      const ops::GradRule* rule = row.grad_of(row.schema.arguments[arg].name);
      if (rule && !rule->implemented) continue;
      if (row.schema.name == "unique" || row.schema.name == "linalg_ldl_factor") continue;  // functions of such rows
      sample->args[arg].each_tensor([](const Tensor& tensor) {
        if (tensor.defined() && tensor.is_floating_point()) tensor.set_requires_grad();
      });
    }
    std::vector<dispatch::Value> args;
    std::vector<dispatch::Keyword> kwargs;
    for (size_t arg = 0; arg < sample->args.size(); ++arg)
      if (row.schema.arguments[arg].keyword_only)
        kwargs.push_back({row.schema.arguments[arg].name, sample->args[arg]});
      else
        args.push_back(sample->args[arg]);
    opcheck::Report report = library::opcheck(*row.op, args, kwargs, {.raise = false});
    found += !report.ok();
    EXPECT_TRUE(report.ok() || kKnown.contains(row.op->name()))
        << row.schema.str() << sample->str() << " from " << recipe.str() << "\n"
        << report.str();
  }
  EXPECT_EQ(kKnown.contains(row.op->name()), found > 0) << row.op->name() << " is known to fail and does not";
  EXPECT_GT(checked, 0u) << "no sample for " << row.schema.str();
}

std::string test_name(const testing::TestParamInfo<const ops::Row*>& row) {
  std::string name = row.param->op->name();
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, CheckedRow, testing::ValuesIn(rows()), test_name);

}  // namespace
}  // namespace tenon::test
