// What holds for every row that the generic test's one call does not show: writes through views, sizes that are
// computed and come to 0 or 1, tensors that are not there.
#include <gtest/gtest.h>
#include <tenon/autograd/engine.h>
#include <tenon/capture/compile.h>
#include <tenon/core/random.h>
#include <tenon/generated/ops.h>

#include <set>

#include "ops/row_evaluator.h"
#include "ops/samples.h"

namespace tenon::test {
namespace {

using dispatch::Value;

std::vector<const ops::Row*> rows_of(const std::function<bool(const ops::Row&)>& wanted) {
  std::vector<const ops::Row*> rows;
  for (const dispatch::Operator* op : dispatch::all_operators()) {
    const ops::Row* row = ops::row_of(*op);
    if (row && !row->inplace() && op->brief_name() != "_local_scalar_dense" && wanted(*row)) rows.push_back(row);
  }
  return rows;
}

std::string name_of(const testing::TestParamInfo<const ops::Row*>& info) {
  return info.param->schema.name + "_" + info.param->schema.overload;
}

template <typename F>
std::string outcome(F run, Tensor& result) {
  try {
    result = run();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The arguments of a view with another tensor to look into.
dispatch::Values looking_into(const Tensor& self, std::span<const Value> args) {
  dispatch::Values values;
  values.push_back(Value(self).own());
  for (const Value& arg : args.subspan(1)) values.push_back(arg);
  return values;
}

class EveryView : public testing::TestWithParam<const ops::Row*> {};

// The view, and a part of it, are written: what they look into is afterwards what eager makes of it, and so are
// gradients. That is also what a scatter rule must be: the inverse of its view.
TEST_P(EveryView, writes_show_in_what_it_looks_into) {
  const ops::Row& row = *GetParam();
  int written = 0;
  for (int variant = 0; variant < 4; ++variant)
    for (const Ints& shape : {Ints{3, 4}, Ints{1, 5}, Ints{6}}) {
      Recipe recipe;
      recipe.shape = shape;
      recipe.variant = variant;
      std::optional<Sample> sample = make_sample(row, recipe);
      if (!sample) continue;
      Tensor self = sample->args[0].tensor();
      for (bool part : {false, true}) {
        auto write = [&](const Tensor& x) {
          Tensor whole = x * 1;
          Tensor view = dispatch::call_boxed(*row.op, looking_into(whole, sample->args))[0].take_tensor();
          for (int64_t dim = view.dim(); part && dim-- > 0;) view = select(view, dim, 0);
          view.mul_(3).add_(1);
          return whole * whole;
        };
        SCOPED_TRACE(fmt::format("{}, {}", sample->str(), part ? "its first element" : "all of it"));
        Tensor x = contiguous_copy(self).set_requires_grad(), expected;
        std::string refused = outcome([&] { return write(x); }, expected);
        for (const char* backend : {"aot_eager", "inductor"}) {
          Tensor y = contiguous_copy(self).set_requires_grad(), got;
          auto compiled = compile([&](Tensor given) { return write(given); }, {.fullgraph = true, .backend = backend});
          EXPECT_EQ(outcome([&] { return compiled(y); }, got), refused) << backend;
          if (!refused.empty()) continue;
          ++written;
          EXPECT_EQ(difference(got.detach(), expected.detach()), "") << backend;
          if (!expected.requires_grad()) continue;
          if (!x.grad().defined()) sum(expected).backward();
          sum(got).backward();
          EXPECT_EQ(difference(y.grad(), x.grad(), 1e-6), "") << backend;
        }
      }
    }
  EXPECT_GT(written, 0) << "no sample of " << row.schema.str() << " could be written";
}

INSTANTIATE_TEST_SUITE_P(Table, EveryView,
                         testing::ValuesIn(rows_of([](const ops::Row& row) { return row.kind == ops::Kind::View; })),
                         name_of);

class EveryOperator : public testing::TestWithParam<const ops::Row*> {};

// An Error that says so where a tensor is required; no crash where it is not.
TEST_P(EveryOperator, takes_no_undefined_tensor) {
  const ops::Row& row = *GetParam();
  std::optional<Sample> sample;
  for (int variant = 0; variant < 4 && !sample; ++variant) {
    Recipe recipe;
    recipe.variant = variant;
    sample = make_sample(row, recipe);
  }
  if (!sample) GTEST_SKIP() << "no sample";
  std::vector<const dispatch::Operator*> forms = {row.op};
  if (row.inplace_op) forms.push_back(row.inplace_op);
  for (const dispatch::Operator* op : forms)
    for (size_t at = 0; at < row.schema.arguments.size(); ++at) {
      const schema::Type& type = row.schema.arguments[at].type;
      if (!type.is_tensor_like()) continue;
      dispatch::Values args = sample->copy();
      bool any = false;
      args[at] =
          args[at].map_tensors([&](const Tensor& tensor) { return std::exchange(any, true) ? tensor : Tensor(); });
      if (!any) continue;
      std::string said = "no error";
      try {
        dispatch::call_boxed(*op, args);
      } catch (const Error& error) {
        said = error.what();
      }
      bool may_miss = type.is_optional() || (type.is_list() && type.element[0].is_optional());
      if (!may_miss) {
        EXPECT_EQ(said, fmt::format("[{}] expected a tensor, got an undefined one", op->brief_name()))
            << op->name() << " argument " << row.schema.arguments[at].name;
      }
    }
}

// Tensors get a size that is computed from their argument's: a dimension with three more elements, which are cut off.
// It comes to 5, 1 and 0, in both orders.
TEST_P(EveryOperator, takes_computed_sizes_that_come_to_0_and_1) {
  const ops::Row& row = *GetParam();
  if (row.element.uninitialised || row.dynamic()) GTEST_SKIP() << "not a function of its arguments";
  for (int variant = 0; variant < 2; ++variant) {
    std::vector<Sample> samples;
    for (int64_t size : {5, 1, 0}) {
      Recipe recipe;
      recipe.shape = {size, 4};
      recipe.variant = variant;
      std::optional<Sample> sample = make_sample(row, recipe);
      if (!sample) break;
      samples.push_back(std::move(*sample));
    }
    if (samples.size() < 3) continue;
    // Numbers that follow from the sizes would have to be symbols: not here.
    std::set<std::string> constants;
    for (const Sample& sample : samples) {
      std::string text;
      for (const Value& value : sample.args)
        text +=
            value.is_tensor() || value.is_tensors() || value.tag() == Value::Tag::OptionalTensors ? "?" : value.str();
      constants.insert(text);
    }
    if (constants.size() > 1 || samples[0].tensors().empty()) continue;
    const std::vector<Tensor> first = samples[0].tensors();
    auto grows = [&](size_t at) {
      for (const Sample& sample : samples)
        if (sample.tensors().size() != first.size() || sample.tensors()[at].dim() == 0 || first[at].dim() == 0)
          return false;
      return first[at].sizes()[0] == 5 && samples[1].tensors()[at].sizes()[0] == 1;
    };
    std::vector<bool> computed;
    for (size_t at = 0; at < first.size(); ++at) computed.push_back(grows(at));
    if (std::none_of(computed.begin(), computed.end(), [](bool each) { return each; })) continue;
    auto f = [&](std::vector<Tensor> given) {
      dispatch::Values args;
      size_t next = 0;
      for (const Value& value : samples[0].args)
        args.push_back(value.map_tensors([&](const Tensor&) {
          size_t at = next++;
          return computed[at] ? slice(given[at], 0, 3) : given[at];
        }));
      dispatch::Results results = dispatch::call_boxed(*row.op, args);
      std::vector<Tensor> tensors;
      for (const Value& result : results)
        result.each_tensor(
            [&](const Tensor& tensor) { tensors.push_back(tensor.detach() + zeros({}, tensor.dtype())); });
      return tensors;
    };
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2, 0}, std::vector<size_t>{2, 1, 0, 2}}) {
      auto compiled = compile(f, {.dynamic = Dynamic::On});
      for (size_t which : order) {
        std::vector<Tensor> given;
        for (size_t at = 0; at < first.size(); ++at) {
          Tensor tensor = contiguous_copy(samples[which].tensors()[at]);
          if (computed[at]) {
            SymInts more = tensor.sym_sizes();
            more[0] = 3;
            tensor = cat({zeros(more, tensor.dtype()), tensor});
          }
          given.push_back(tensor);
        }
        SCOPED_TRACE(
            fmt::format("{}{} with size {}", row.op->name(), samples[which].str(), which == 0 ? 5 : 2 - which));
        std::vector<Tensor> expected, got;
        std::string eager_says, compiled_says;
        manual_seed(7);
        try {
          expected = f(given);
        } catch (const Error& error) {
          eager_says = error.what();
        }
        manual_seed(7);
        try {
          got = compiled(given);
        } catch (const Error& error) {
          compiled_says = error.what();
        }
        EXPECT_EQ(compiled_says.empty(), eager_says.empty())
            << "eager: " << eager_says << "\ncompiled: " << compiled_says;
        if (!eager_says.empty() || !compiled_says.empty()) continue;
        ASSERT_EQ(got.size(), expected.size());
        for (size_t at = 0; at < got.size(); ++at) EXPECT_EQ(difference(got[at], expected[at], 1e-4), "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOperator, testing::ValuesIn(rows_of([](const ops::Row&) { return true; })),
                         name_of);

}  // namespace
}  // namespace tenon::test
