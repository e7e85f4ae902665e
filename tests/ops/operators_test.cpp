// One test over the whole operator table. A new row needs nothing here: its samples follow from its schema, and what it
// must do from the row itself. A row for which no sample can be made fails.
#include "ops/row_evaluator.h"
#include "ops/samples.h"

#include <gtest/gtest.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/capture/compile.h>
#include <tenon/codegen/compile.h>
#include <tenon/core/random.h>
#include <tenon/eager/eager.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>
#include <tenon/oracle/oracle.h>
#include <tenon/schema/derive.h>

#include <fmt/format.h>

#include <set>

namespace tenon::test {
namespace {

using dispatch::Value;

// Every kernel launched by this executable is also run by the loop interpreter.
[[maybe_unused]] const bool oracle = [] {
  oracle::enable(true);
  return true;
}();

struct Checked {
  std::set<std::string> rows;
  int64_t samples = 0, compiled = 0, gradients = 0;
};
Checked& checked() {
  static Checked instance;
  return instance;
}
class Summary : public testing::Environment {
 public:
  void TearDown() override {
    if (checked().rows.empty()) return;
    fmt::print("{} rows: {} samples, {} compiled, {} gradients\n", checked().rows.size(), checked().samples,
               checked().compiled, checked().gradients);
  }
};
[[maybe_unused]] const testing::Environment* summary = testing::AddGlobalTestEnvironment(new Summary);

// The rows as written; derived in-place forms are tested beside the one they come from. (Those that give a tensor
// another shape in place are in value tables, and in tests/unit/autograd/creation_test.cpp.)
std::vector<const ops::Row*> written_rows() {
  std::vector<const ops::Row*> rows;
  for (const dispatch::Operator* op : dispatch::all_operators()) {
    const ops::Row* row = ops::row_of(*op);
    if (row && !row->inplace() && !row->moves_self && op->brief_name() != "_local_scalar_dense") rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->op->name() < b->op->name(); });
  return rows;
}

std::vector<Tensor> tensors_of(std::span<const Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) value.each_tensor([&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

std::vector<Tensor> call(const dispatch::Operator& op, std::span<const Value> args) {
  manual_seed(7);
  dispatch::Results results = dispatch::call_boxed(op, args);
  return tensors_of({results.data(), results.size()});
}

dispatch::Values on_fakes(std::span<const Value> args) {
  dispatch::Values fakes;
  for (const Value& value : args)
    fakes.push_back(value.map_tensors([](const Tensor& tensor) { return fake::like(tensor); }));
  return fakes;
}

// Whether the row takes the sample, by its shape rule. Says in the sample if only the data can tell the results' sizes.
bool takes(const ops::Row& row, Sample& sample) {
  try {
    fake::FakeMode mode;
    dispatch::call_boxed(*row.op, on_fakes(sample.args));
    return true;
  } catch (const fake::DynamicOutputShape&) {
    sample.data_dependent = true;
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string geometry(const Tensor& tensor) {
  return fmt::format("{} strides {}", tensor.description(), str(tensor.sym_strides()));
}

bool depends_on_memory(const ops::Row& row) { return row.element.uninitialised; }

class EveryRow : public testing::TestWithParam<const ops::Row*> {
 protected:
  const ops::Row& row() const { return *GetParam(); }
  bool pointwise() const { return row().kind == ops::Kind::Pointwise; }

  // Samples that the row takes.
  std::vector<std::pair<Sample, std::string>> samples(const std::vector<Recipe>& recipes) {
    std::vector<std::pair<Sample, std::string>> made;
    std::string why;
    for (const Recipe& recipe : recipes)
      if (std::optional<Sample> sample = make_sample(row(), recipe, &why)) {
        std::string text = fmt::format("{}{} from {}", row().op->name(), sample->str(), recipe.str());
        if (takes(row(), *sample))
          made.emplace_back(std::move(*sample), std::move(text));
        else
          EXPECT_THROW(call(*row().op, sample->args), Error)
              << text << ": refused on fakes, so it must be refused on data";
      }
    EXPECT_FALSE(made.empty()) << "no sample could be made for " << row().schema.str() << ": " << why
                               << " (tests/ops/samples.cpp has rules by argument name and by operator)";
    checked().rows.insert(row().op->name());
    return made;
  }

  void check_values(const Sample& sample, const std::vector<Tensor>& eager) {
    if (depends_on_memory(row())) return;
    manual_seed(7);
    Evaluated evaluated = evaluate(*row().op, sample.args);
    ASSERT_EQ(eager.size(), evaluated.results.size());
    for (size_t at = 0; at < eager.size(); ++at)
      EXPECT_EQ(difference(eager[at], evaluated.results[at], evaluated.closeness), "");
  }

  void check_fake(const Sample& sample, const std::vector<Tensor>& eager) {
    fake::FakeMode mode;
    if (sample.data_dependent) return check_dynamic_fake(sample, eager);
    dispatch::Results results = dispatch::call_boxed(*row().op, on_fakes(sample.args));
    std::vector<Tensor> fakes = tensors_of({results.data(), results.size()});
    ASSERT_EQ(eager.size(), fakes.size());
    for (size_t at = 0; at < eager.size(); ++at) EXPECT_EQ(geometry(fakes[at]), geometry(eager[at])) << "fake and real";
  }

  // Sizes that depend on data are symbols; their ranges hold the real ones, and everything else is as it is.
  void check_dynamic_fake(const Sample& sample, const std::vector<Tensor>& eager) {
    auto env = make_ref<sym::ShapeEnv>();
    fake::DynamicSizes sizes(env);
    dispatch::Results results = dispatch::call_boxed(*row().op, on_fakes(sample.args));
    std::vector<Tensor> fakes = tensors_of({results.data(), results.size()});
    ASSERT_EQ(eager.size(), fakes.size());
    for (size_t at = 0; at < eager.size(); ++at) {
      EXPECT_EQ(fakes[at].dtype(), eager[at].dtype());
      ASSERT_EQ(fakes[at].dim(), eager[at].dim());
      for (int64_t dim = 0; dim < eager[at].dim(); ++dim) {
        SymInt size = fakes[at].size(dim);
        int64_t real = eager[at].size(dim).plain();
        if (!size.is_symbolic()) {
          EXPECT_EQ(size.plain(), real);
          continue;
        }
        sym::Range range = env->pool().range(size.expr());
        EXPECT_LE(range.min, real);
        EXPECT_GE(range.max, real);
      }
    }
  }

  void check_inplace(const Sample& sample, const std::vector<Tensor>& eager) {
    if (!row().inplace_op || depends_on_memory(row())) return;
    dispatch::Values args = sample.copy();
    Tensor self = args[0].tensor();
    if (!std::equal(self.sizes().begin(), self.sizes().end(), eager[0].sizes().begin(), eager[0].sizes().end())) return;
    for (size_t dim = 0; dim < static_cast<size_t>(self.dim()); ++dim)
      if (self.strides()[dim] == 0 && self.sizes()[dim] > 1) return;  // one element written many times
    auto category = [](Dtype dtype) { return dtype == kBool ? 0 : is_floating(dtype) ? 2 : 1; };
    if (category(eager[0].dtype()) > category(self.dtype())) return;
    int64_t before = self.version();
    std::vector<Tensor> results = call(*row().inplace_op, args);
    EXPECT_TRUE(results[0].is(self)) << "the in-place form gives self";
    EXPECT_GT(self.version(), before);
    Tensor expected = eager[0];
    bool gives_bool =
        row().pointwise.promotion == ops::Promotion::Compare || row().pointwise.promotion == ops::Promotion::Logical;
    if (expected.dtype() != self.dtype() && !gives_bool) return;  // computed in another dtype
    EXPECT_EQ(difference(self, expected.to(self.dtype())), "") << "in-place and functional";
  }

  void check_out(const Sample& sample, const std::vector<Tensor>& eager) {
    if (!schema::has_out_form(row().schema)) return;
    dispatch::Operator* op = dispatch::find_operator_or_null(schema::out_form(row().schema).qualified_name());
    if (!op || depends_on_memory(row())) return;
    dispatch::Values args = sample.copy();
    std::vector<Tensor> outs;
    for (const Tensor& result : eager) {
      outs.push_back(empty_like(result));
      args.push_back(Value(outs.back()).own());
    }
    std::vector<Tensor> results = call(*op, args);
    for (size_t at = 0; at < eager.size(); ++at) {
      EXPECT_TRUE(results[at].is(outs[at])) << "the out form gives out";
      EXPECT_EQ(difference(outs[at], eager[at]), "") << "out and functional";
    }
  }

  void check_sample(const Sample& sample) {
    std::vector<Tensor> eager = call(*row().op, sample.args);
    check_fake(sample, eager);
    check_values(sample, eager);
    check_inplace(sample, eager);
    check_out(sample, eager);
    ++checked().samples;
  }

  // The row as a function of its tensors.
  auto function_of(const Sample& sample) {
    return [&op = *row().op, args = sample.args](const std::vector<Tensor>& tensors) {
      size_t next = 0;
      dispatch::Values given;
      for (const Value& value : args)
        given.push_back(value.map_tensors([&](const Tensor&) { return tensors[next++]; }));
      dispatch::Results results = dispatch::call_boxed(op, given);
      return tensors_of({results.data(), results.size()});
    };
  }

  void check_same(const std::vector<Tensor>& compiled, const std::vector<Tensor>& eager) {
    ASSERT_EQ(compiled.size(), eager.size());
    for (size_t at = 0; at < eager.size(); ++at) {
      EXPECT_EQ(geometry(compiled[at]), geometry(eager[at])) << "compiled and eager";
      if (depends_on_memory(row())) continue;
      double relative = eager[at].dtype() == kFloat64 ? 1e-11 : is_half(eager[at].dtype()) ? 2e-2 : 2e-5;
      EXPECT_EQ(pointwise() ? difference(compiled[at], eager[at]) : difference(compiled[at], eager[at], relative), "")
          << "compiled and eager";
    }
    ++checked().compiled;
  }
};

// Fails with the operator and sample instead of ending the test.
#define TRY(text, ...)                               \
  try {                                              \
    SCOPED_TRACE(text);                              \
    __VA_ARGS__;                                     \
  } catch (const std::exception& error) {            \
    ADD_FAILURE() << (text) << "\n" << error.what(); \
  }                                                  \
  if (HasFailure()) return

TEST_P(EveryRow, eager_is_what_the_row_says) {
  for (const auto& [sample, text] : samples(all_recipes())) TRY(text, check_sample(sample));
}

TEST_P(EveryRow, narrow_vectors) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "kernels are not instrumented: to the thread sanitizer those of other widths are the same";
#endif
  struct Restore {
    Restore() { eager::forget_kernels(); }  // what it needs memory for the first time, it has in the end
    ~Restore() {
      codegen::set_isa(0);
      eager::forget_kernels();
    }
  } restore;
  for (int bits : {256, 128}) {
    codegen::set_isa(bits);
    eager::forget_kernels();
    for (const auto& [sample, text] : samples(short_recipes()))
      TRY(fmt::format("{} bits: {}", bits, text), check_sample(sample));
  }
}

TEST_P(EveryRow, compiled_is_eager) {
  for (const auto& [sample, text] : samples(short_recipes()))
    TRY(text, {
      // Without `capture_dynamic_output_shape_ops` a size that depends on data breaks the graph.
      auto compiled = compile(function_of(sample), {.fullgraph = !sample.data_dependent, .dynamic = Dynamic::Off});
      std::vector<Tensor> eager = call(*row().op, sample.args);
      manual_seed(7);
      check_same(compiled(sample.tensors()), eager);
    });
}

TEST_P(EveryRow, one_compile_serves_all_sizes) {
  auto numbers = [](const Sample& sample) {
    std::string text;
    for (const Value& value : sample.args)
      if (tensors_of({&value, 1}).empty()) text += value.str() + ";";
    return text;
  };
  for (Placement placement : {Placement::Contiguous, Placement::Transposed})
    for (Pairing pairing : {Pairing::Same, Pairing::Column}) {
      std::vector<Sample> sizes;
      for (const Ints& shape : {Ints{5, 9}, Ints{6, 17}, Ints{11, 33}}) {
        Recipe recipe{.shape = shape, .placement = placement, .pairing = pairing};
        std::optional<Sample> sample = make_sample(row(), recipe);
        if (sample && takes(row(), *sample) && !sample->data_dependent) sizes.push_back(std::move(*sample));
      }
      // Numbers that follow the sizes would be constants of the function, and so would be how many tensors `unbind`
      // gives.
      bool same_count = true;
      for (const Sample& sample : sizes)
        same_count &= call(*row().op, sample.args).size() == call(*row().op, sizes[0].args).size();
      if (!same_count) continue;
      if (sizes.size() != 3 || sizes[0].tensors().empty() || numbers(sizes[0]) != numbers(sizes[1])) continue;
      auto compiled = compile(function_of(sizes[0]), {.fullgraph = true, .dynamic = Dynamic::On});
      for (const Sample& sample : sizes)
        TRY(row().op->name() + sample.str(), {
          std::vector<Tensor> eager = call(*row().op, sample.args);
          manual_seed(7);
          check_same(compiled(sample.tensors()), eager);
        });
      EXPECT_EQ(compiled.compile_count(), 1) << row().op->name() << sizes[0].str() << compiled.explain().str();
    }
}

// ---- Gradients ----------------------------------------------------------------------------------------------------

Tensor weights_like(const Tensor& tensor, uint64_t seed) {
  return make_tensor(Ints(tensor.sizes()), tensor.dtype(), Placement::Contiguous, Values::Near, seed);
}

// A weighted sum of the results that are differentiable.
template <typename F>
Tensor objective(const ops::Row& row, F& function, const std::vector<Tensor>& tensors) {
  Tensor total = zeros({}, kFloat64);
  uint64_t seed = 11;
  std::vector<Tensor> results = function(tensors);
  for (size_t at = 0; at < results.size(); ++at) {
    const std::vector<std::string>& without = row.not_differentiable;
    auto stays_without = [&](const std::string& name) {
      return std::find(without.begin(), without.end(), name) != without.end();
    };
    bool named = at < row.schema.returns.size() && stays_without(row.schema.returns[at].name);
    bool carries = !named && !stays_without(fmt::format("result{}", at));
    if (carries && results[at].dtype() == kFloat64)
      total = total + sum(results[at] * weights_like(results[at], seed++));
  }
  return total;
}

// Positions of the tensors for which gradients are promised.
std::vector<size_t> differentiable_tensors(const ops::Row& row, const Sample& sample) {
  std::vector<size_t> positions;
  size_t at = 0;
  for (size_t argument = 0; argument < sample.args.size(); ++argument)
    sample.args[argument].each_tensor([&](const Tensor& tensor) {
      const ops::GradRule* rule = row.grad_of(row.schema.arguments[argument].name);
      bool promised = row.differentiable() ? rule && rule->implemented : row.kind == ops::Kind::Composite;
      // As in PyTorch, the gradient is one among symmetric matrices, and here one triangle is moved.
      constexpr std::string_view kSymmetric[] = {"linalg_eigh",        "_linalg_eigh",    "linalg_eigvalsh",
                                                 "linalg_cholesky_ex", "linalg_cholesky", "cholesky"};
      if (std::ranges::find(kSymmetric, row.schema.name) != std::end(kSymmetric)) promised = false;
      // As in PyTorch, the weight of classes carries no gradient.
      if (row.schema.name == "cross_entropy_loss" && row.schema.arguments[argument].name == "weight") promised = false;
      // What is written to is no leaf.
      if (row.schema.arguments[argument].alias && row.schema.arguments[argument].alias->write) promised = false;
      if (promised && tensor.dtype() == kFloat64) positions.push_back(at);
      ++at;
    });
  return positions;
}

std::vector<Tensor> leaves_of(const Sample& sample, const std::vector<size_t>& positions) {
  Sample copy;
  copy.args = sample.copy();
  std::vector<Tensor> tensors = copy.tensors();
  for (size_t at : positions) tensors[at].set_requires_grad();
  return tensors;
}

std::vector<Tensor> chosen(const std::vector<Tensor>& tensors, const std::vector<size_t>& positions) {
  std::vector<Tensor> result;
  for (size_t at : positions) result.push_back(tensors[at]);
  return result;
}

// Gradients of a scalar, zeros where it does not depend on an input.
std::vector<Tensor> gradients_of(const Tensor& scalar, const std::vector<Tensor>& inputs, bool create_graph = false) {
  std::vector<Tensor> gradients(inputs.size());
  if (scalar.requires_grad()) {
    const Tensor outputs[] = {scalar};
    gradients = autograd::grad(outputs, inputs, {}, true, create_graph, true);
  }
  for (size_t at = 0; at < inputs.size(); ++at)
    if (!gradients[at].defined()) gradients[at] = zeros_like(inputs[at]);
  return gradients;
}

struct WithoutOracle {
  bool before = oracle::enabled();
  WithoutOracle() { oracle::enable(false); }
  ~WithoutOracle() { oracle::enable(before); }
};

// Central differences of a number with respect to every element of the inputs. The kernels are those that ran at the
// place itself, where the interpreter looked at them.
template <typename Number>
std::vector<Tensor> differences(const std::vector<Tensor>& inputs, Number&& number) {
  WithoutOracle quick;
  constexpr double step = 1e-5;
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    Tensor slopes = contiguous_copy(input);
    auto* data = input.data<double>();
    auto* out = slopes.data<double>();
    int64_t count = input.numel().plain();
    for (int64_t position = 0; position < count; ++position) {
      int64_t place = 0, rest = position;
      for (size_t dim = static_cast<size_t>(input.dim()); dim-- > 0;) {
        place += rest % input.sizes()[dim] * input.strides()[dim];
        rest /= input.sizes()[dim];
      }
      double before = data[place];
      data[place] = before + step;
      double above = number();
      data[place] = before - step;
      double below = number();
      data[place] = before;
      out[position] = (above - below) / (2 * step);
    }
    result.push_back(slopes);
  }
  return result;
}

std::string slopes_differ(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  for (size_t at = 0; at < got.size(); ++at) {
    if (got[at].description() != expected[at].description())
      return fmt::format("input {}: expected {}, got {}", at, expected[at].description(), got[at].description());
    Tensor flat = contiguous_copy(got[at]);
    for (int64_t i = 0; i < flat.numel().plain(); ++i) {
      double a = flat.data<double>()[i], b = expected[at].data<double>()[i];
      if (!(std::fabs(a - b) <= 1e-6 * std::max({1.0, std::fabs(a), std::fabs(b)})))
        return fmt::format("input {}, element {}: expected a slope of {:.10g}, got {:.10g}", at, i, b, a);
    }
  }
  return "";
}

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!is_floating(tensor.dtype())) continue;
    Tensor flat = contiguous_copy(tensor.to(kFloat64));
    for (int64_t i = 0; i < flat.numel().plain(); ++i)
      if (!std::isfinite(flat.data<double>()[i])) return false;
  }
  return true;
}

class EveryGradient : public EveryRow {
 protected:
  // A sample inside the function's domain.
  std::optional<Sample> inside(Recipe recipe) {
    for (Values values : {Values::Near, Values::Positive, Values::AboveOne}) {
      recipe.values = values;
      std::optional<Sample> sample = make_sample(row(), recipe);
      if (sample && takes(row(), *sample) && all_finite(call(*row().op, sample->args))) return sample;
    }
    return std::nullopt;
  }

  void check_gradients(const Sample& sample) {
    std::vector<size_t> positions = differentiable_tensors(row(), sample);
    if (positions.empty()) return;
    auto function = function_of(sample);
    std::vector<Tensor> tensors = leaves_of(sample, positions), inputs = chosen(tensors, positions);
    auto value = [&] {
      autograd::NoGrad off;
      return objective(row(), function, tensors).item<double>();
    };
    Tensor scalar = objective(row(), function, tensors);
    if (!scalar.requires_grad()) {
      EXPECT_FALSE(row().differentiable()) << "a row with gradients gave a result without";
      return;
    }
    std::vector<Tensor> first;
    try {
      first = gradients_of(scalar, inputs, true);
    } catch (const NotImplementedError&) {
      // A function of rows whose gradients nobody has written.
      EXPECT_EQ(row().kind, ops::Kind::Composite);
      EXPECT_FALSE(row().differentiable());
      return;
    }
    EXPECT_EQ(slopes_differ(first, differences(inputs, value)), "") << "first derivatives";

    // The gradient's own gradient, along a fixed direction.
    auto slope = [&](const std::vector<Tensor>& gradients) {
      Tensor total = zeros({}, kFloat64);
      for (size_t at = 0; at < gradients.size(); ++at)
        total = total + sum(gradients[at] * weights_like(gradients[at], 31 + at));
      return total;
    };
    std::vector<Tensor> second = gradients_of(slope(first), inputs);
    auto slope_value = [&] {
      return slope(gradients_of(objective(row(), function, tensors), inputs)).template item<double>();
    };
    EXPECT_EQ(slopes_differ(second, differences(inputs, slope_value)), "") << "second derivatives";

    auto compiled = compile(function, {.fullgraph = !sample.data_dependent, .dynamic = Dynamic::Off});
    std::vector<Tensor> by_compiler = gradients_of(objective(row(), compiled, tensors), inputs);
    for (size_t at = 0; at < first.size(); ++at)
      EXPECT_EQ(difference(by_compiler[at], first[at], 1e-11), "") << "compiled and eager gradients of input " << at;
    ++checked().gradients;
  }
};

TEST_P(EveryGradient, agrees_with_finite_differences) {
  const Recipe recipes[] = {
      {.shape = {2, 3}, .dtype = kFloat64},
      {.shape = {3, 2}, .dtype = kFloat64, .placement = Placement::Transposed, .pairing = Pairing::Row, .variant = 1},
      {.shape = {2, 3}, .dtype = kFloat64, .placement = Placement::Sliced, .pairing = Pairing::Column, .variant = 2},
      {.shape = {2, 2, 2}, .dtype = kFloat64, .pairing = Pairing::Wider, .variant = 3},
      {.shape = {}, .dtype = kFloat64, .pairing = Pairing::Same, .variant = 0},
  };
  for (const Recipe& recipe : recipes)
    if (std::optional<Sample> sample = inside(recipe))
      TRY(fmt::format("{}{}", row().op->name(), sample->str()), check_gradients(*sample));
}

std::string test_name(const testing::TestParamInfo<const ops::Row*>& info) {
  std::string name = info.param->schema.name + "_" + info.param->schema.overload;
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryRow, testing::ValuesIn(written_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(Table, EveryGradient, testing::ValuesIn(written_rows()), test_name);

}  // namespace
}  // namespace tenon::test
