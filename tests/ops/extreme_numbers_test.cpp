// Every operator that takes sizes or numbers, with numbers at the ends of 64 bits in each place: a result, the same
// eager, compiled and with a symbol, or an Error. Never a crash, never a tensor over too little memory.
#include "in_child.h"
#include "ops/row_evaluator.h"
#include "ops/samples.h"

#include <gtest/gtest.h>
#include <tenon/capture/compile.h>
#include <tenon/core/random.h>
#include <tenon/fake/fake.h>

#include <fmt/format.h>

#include <limits>

namespace tenon::test {
namespace {

using dispatch::Value;

constexpr int64_t kExtremes[] = {std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 int64_t{1} << 31,
                                 int64_t{1} << 32,
                                 int64_t{1} << 62,
                                 -1};

// A number among the arguments of a call.
struct Place {
  size_t argument;
  std::optional<size_t> item;  // of a list
  bool real = false;           // a float in the schema
};

const schema::Type& inner(const schema::Type& type) { return type.is_optional() ? type.element[0] : type; }

std::vector<Place> places_of(const ops::Row& row, const Sample& sample) {
  using schema::Kind;
  std::vector<Place> places;
  for (size_t at = 0; at < sample.args.size(); ++at) {
    const schema::Type& type = inner(row.schema.arguments[at].type);
    const Kind kind = type.is_list() ? type.element[0].kind : type.kind;
    const bool whole = kind == Kind::Int || kind == Kind::SymInt || kind == Kind::Scalar;
    if (!whole && kind != Kind::Float) continue;
    if (!type.is_list()) {
      places.push_back({at, std::nullopt, kind == Kind::Float});
    } else if (whole && kind != Kind::Scalar && !sample.args[at].is_none()) {
      for (size_t item = 0; item < sample.args[at].sym_ints().size(); ++item) places.push_back({at, item});
    }
  }
  return places;
}

dispatch::Values with_number(const dispatch::Values& args, const Place& place, const SymInt& number) {
  dispatch::Values changed;
  for (size_t at = 0; at < args.size(); ++at) {
    if (at != place.argument) {
      changed.push_back(args[at]);
    } else if (place.item) {
      SymInts list = args[at].sym_ints();
      list[*place.item] = number;
      changed.push_back(Value(list).own());
    } else if (place.real) {
      changed.push_back(Value(static_cast<double>(number.plain())));
    } else {
      changed.push_back(number.is_symbolic() ? Value(number).own() : Value(number.plain()));
    }
  }
  return changed;
}

std::vector<Tensor> tensors_of(std::span<const Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) value.each_tensor([&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

std::vector<Tensor> call(const dispatch::Operator& op, std::span<const Value> args) {
  dispatch::Results results = dispatch::call_boxed(op, args);
  return tensors_of({results.data(), results.size()});
}

// The results, or nothing if it raises.
template <typename F>
std::optional<std::vector<Tensor>> attempt(F&& run) {
  manual_seed(7);
  try {
    return run();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string geometry(const Tensor& tensor) {
  return fmt::format("{} strides {}", tensor.description(), str(tensor.sym_strides()));
}

// What differs between two runs that both gave results.
std::string compare(const ops::Row& row, const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  if (got.size() != expected.size()) return fmt::format("{} results and {}", got.size(), expected.size());
  for (size_t at = 0; at < got.size(); ++at) {
    bool empty = expected[at].numel().plain() == 0;  // strides of nothing
    if (empty ? got[at].sizes() != expected[at].sizes() : geometry(got[at]) != geometry(expected[at]))
      return fmt::format("{} and {}", geometry(got[at]), geometry(expected[at]));
    if (row.element.uninitialised || expected[at].numel().plain() > 100'000) continue;
    if (std::string text = difference(got[at], expected[at], 2e-5); !text.empty()) return text;
  }
  return "";
}

class ExtremeNumbers : public testing::TestWithParam<const ops::Row*> {
 protected:
  const ops::Row& row() const { return *GetParam(); }

  void try_place(const Sample& sample, const Place& place, const std::function<void(std::string)>& say) {
    const dispatch::Operator& op = *row().op;
    auto rebuilt = [&](const std::vector<Tensor>& tensors, const SymInt& number) {
      size_t next = 0;
      dispatch::Values given;
      for (const Value& value : with_number(sample.args, place, number))
        given.push_back(value.map_tensors([&](const Tensor&) { return tensors[next++]; }));
      return given;
    };
    auto symbolic = compile(
        [&](const std::vector<Tensor>& tensors, const SymInt& number) { return call(op, rebuilt(tensors, number)); },
        {.dynamic = Dynamic::On});
    for (int64_t number : kExtremes) {
      const std::string text =
          fmt::format("{}{} with {} as '{}'{}", op.name(), sample.str(), number,
                      row().schema.arguments[place.argument].name, place.item ? fmt::format("[{}]", *place.item) : "");
      say("eager " + text);
      // Operators that write do so to tensors of their own.
      auto eager = attempt([&] { return call(op, with_number(sample.copy(), place, number)); });
      say("compiled " + text);
      auto compiled = attempt([&] {
        return compile([&](const std::vector<Tensor>& tensors) { return call(op, rebuilt(tensors, number)); },
                       {.dynamic = Dynamic::Off})(Sample{sample.copy()}.tensors());
      });
      auto same = [&](const std::optional<std::vector<Tensor>>& other) {
        std::string found = eager && other ? compare(row(), *other, *eager) : "";
        if (!found.empty()) fail("differs from eager: {}", found);
      };
      same(compiled);
      if (place.real) continue;
      say("symbolic " + text);
      same(attempt([&] { return symbolic(Sample{sample.copy()}.tensors(), SymInt(number)); }));
    }
  }
};

TEST_P(ExtremeNumbers, give_a_result_or_an_error) {
  constexpr int64_t kMemory = int64_t{4} << 30;
  size_t tried = 0;
  auto try_recipe = [&](const Recipe& recipe) {
    std::optional<Sample> sample = make_sample(row(), recipe);
    if (!sample || places_of(row(), *sample).empty()) return;
    const bool taken = attempt([&] { return call(*row().op, sample->copy()); }).has_value();
    if (!taken) return;
    ++tried;
    Ended ended = in_child(kMemory, [&](const std::function<void(std::string)>& say) {
      for (const Place& place : places_of(row(), *sample)) {
        std::string last;
        try {
          try_place(*sample, place, [&](std::string text) { say(last = std::move(text)); });
        } catch (const std::exception& error) {
          throw std::runtime_error(fmt::format("{} at {}", error.what(), last));
        }
      }
    });
    EXPECT_EQ(ended.how, "") << ended.said;
  };
  try_recipe({.shape = {3, 5}});
  try_recipe({.shape = {2, 3, 4, 5}, .variant = 1});
  // Some take other dtypes or shapes alone.
  for (const Recipe& recipe : all_recipes())
    if (tried == 0) try_recipe(recipe);
  EXPECT_GT(tried, 0u) << "no recipe is one that the operator takes";
}

std::vector<const ops::Row*> rows_with_numbers() {
  std::vector<const ops::Row*> rows;
  for (const dispatch::Operator* op : dispatch::all_operators()) {
    const ops::Row* row = ops::row_of(*op);
    if (!row || op->brief_name() == "_local_scalar_dense") continue;
    // upsample_*.vec: sizes or factors, of which samples give none; the form without an overload takes the same sizes.
    if (row->schema.overload == "vec") continue;
    for (const schema::Argument& argument : row->schema.arguments) {
      using schema::Kind;
      const schema::Type& type = inner(argument.type);
      const Kind kind = type.is_list() ? type.element[0].kind : type.kind;
      const bool whole = kind == Kind::Int || kind == Kind::SymInt || kind == Kind::Scalar;
      if (whole || (kind == Kind::Float && !type.is_list())) {
        rows.push_back(row);
        break;
      }
    }
  }
  std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->op->name() < b->op->name(); });
  return rows;
}

std::string test_name(const testing::TestParamInfo<const ops::Row*>& info) {
  std::string name = info.param->schema.name + "_" + info.param->schema.overload;
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, ExtremeNumbers, testing::ValuesIn(rows_with_numbers()), test_name);

}  // namespace
}  // namespace tenon::test
