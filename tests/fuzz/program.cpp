#include "fuzz/program.h"

#include "ops/row_evaluator.h"
#include "ops/samples.h"

#include <tenon/runtime/launch.h>
#include <tenon/tenon.h>

#include <fmt/format.h>

#include <random>

namespace tenon::fuzz {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

constexpr int64_t kSizes[kSizeSets][3] = {{5, 9, 3}, {6, 17, 4}, {8, 35, 7}};

enum Trait : int {
  kNone = 0,
  kInexact = 1,   // the order of additions, or a library, decides the last bits
  kUnstable = 2,  // makes small differences large: not applied to inexact values
  kBinary = 4,
  kHalf = 8,      // rounds coarsely
  kInplace = 16,  // writes to x
  kBreaks = 32,   // ends a captured graph
  kMath = 128,    // the interpreter's value may differ in the last bits
  kData = 64,     // the size of the result depends on the data: ends a graph, unless the switch for it is on
};

struct Operation {
  const char* text;
  int traits;
  Tensor (*run)(const Tensor& x, const Tensor& y, int64_t n);
};

// The expression is both the code and its text.
#define ONE(traits, ...)                                                                                               \
  {#__VA_ARGS__, traits, [](const Tensor& x, [[maybe_unused]] const Tensor& y, [[maybe_unused]] int64_t n) -> Tensor { \
     return __VA_ARGS__;                                                                                               \
   }}
#define TWO(traits, ...) ONE((traits) | kBinary, __VA_ARGS__)

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = {
      // Pointwise
      ONE(kMath, sin(x)),
      ONE(kMath, cos(x)),
      ONE(kMath, tanh(x)),
      ONE(kMath, sigmoid(x)),
      ONE(kMath, erf(x)),
      ONE(kNone, relu(x)),
      ONE(kNone, abs(x)),
      ONE(kNone, -x),
      ONE(kUnstable | kMath, exp(x)),
      ONE(kUnstable | kMath, log(abs(x))),
      ONE(kUnstable, sqrt(abs(x))),
      ONE(kUnstable | kMath, rsqrt(abs(x) + 1)),
      ONE(kUnstable, sign(x)),
      ONE(kUnstable, reciprocal(x)),
      ONE(kNone, x * 1.5 + 0.25),
      ONE(kNone, 2 - x),
      ONE(kNone, x * x),
      ONE(kUnstable, x > 0.1),
      ONE(kUnstable, logical_not(x)),
      ONE(kUnstable, isnan(x)),
      ONE(kUnstable | kMath, pow(x, 3)),
      ONE(kNone, full_like(x, 0.5)),
      ONE(kNone, clone(x)),
      ONE(kNone, x.to(kFloat64)),
      ONE(kNone, x.to(kFloat32)),
      ONE(kHalf, x.to(kFloat16)),
      ONE(kHalf, x.to(kBFloat16)),
      ONE(kUnstable, x.to(kInt32)),
      ONE(kUnstable, x.to(kInt64)),
      ONE(kUnstable, x.to(kUInt8)),
      TWO(kNone, x + y),
      TWO(kNone, x - y),
      TWO(kNone, x * y),
      TWO(kNone, add(x, y, 2)),
      TWO(kUnstable, x / y),
      TWO(kNone, maximum(x, y)),
      TWO(kNone, minimum(x, y)),
      TWO(kUnstable, where(x > y, x, y)),
      TWO(kUnstable, where(x, y, y * 2)),
      TWO(kUnstable, x <= y),
      TWO(kUnstable, x == y),
      TWO(kUnstable, logical_and(x, y)),
      // Views
      ONE(kNone, transpose(x, n, -1)),
      ONE(kNone, unsqueeze(x, n)),
      ONE(kNone, squeeze(x)),
      ONE(kNone, squeeze(x, n)),
      ONE(kNone, slice(x, n, 1)),
      ONE(kNone, slice(x, n, 0, -1)),
      ONE(kNone, slice(x, n, 1, x.size(n), 2)),
      ONE(kNone, select(x, n, 0)),
      ONE(kNone, select(x, n, -1)),
      ONE(kNone, flatten(x)),
      ONE(kNone, flatten(x, 0, 1)),
      ONE(kNone, reshape(x, SymInts{x.size(1), x.size(0)})),
      ONE(kNone, reshape(x, SymInts{-1, x.size(0)})),
      ONE(kNone, expand(unsqueeze(x, 0), SymInts{3, x.size(0), x.size(1)})),
      ONE(kNone, x.contiguous()),
      ONE(kNone, detach(x)),
      TWO(kNone, cat({x, y}, n)),
      // On values made before, and so on everything that shares their memory
      ONE(kInplace | kMath, sin_(x)),
      ONE(kInplace, relu_(x)),
      ONE(kInplace, mul_(x, 0.5)),
      ONE(kInplace, fill_(slice(x, n, 1), 0.25)),
      ONE(kInplace, zero_(select(x, n, 0))),
      TWO(kInplace, add_(x, y)),
      TWO(kInplace, mul_(x, y)),
      TWO(kInplace, copy_(x, y)),
      TWO(kNone, add_(clone(x), y)),
      // Breaks, and sizes from data
      ONE(kBreaks | kMath, (graph_break(), cos(x))),
      ONE(kBreaks, (graph_break(), x)),
      ONE(kBreaks, x * flatten(x.to(kFloat64)).slice(0, 0, 1).amax().item()),
      ONE(kBreaks | kUnstable,
          bool(flatten(x.to(kFloat64)).slice(0, 0, 1).amax().item<SymFloat>() > 0.0) ? x + 1 : x - 1),
      ONE(kData | kUnstable, masked_select(x, x > 0.1)),
      ONE(kData | kUnstable, nonzero(x)),
      ONE(kData | kUnstable, index(x, {x > 0.2})),
      // Reductions and products
      ONE(kInexact, sum(x)),
      ONE(kInexact, sum(x, n)),
      ONE(kInexact, sum(x, n, true)),
      ONE(kInexact, mean(x, n, true)),
      ONE(kInexact, mean(x)),
      ONE(kInexact, softmax(x, n)),
      ONE(kInexact, log_softmax(x, n)),
      ONE(kUnstable | kInexact, amax(x, n, true)),  // of zeros of either sign, any
      ONE(kUnstable | kInexact, amin(x, n)),
      ONE(kInexact, x - mean(x, -1, true)),
      TWO(kInexact, mm(x, y)),
      TWO(kInexact, mm(x, t(y))),
      TWO(kInexact, matmul(x, y)),
      TWO(kInexact, relu(mm(t(x), y))),
  };
  return table;
}

std::vector<Tensor> make_inputs(const Program& program, int sizes) {
  std::vector<Tensor> inputs;
  for (const Input& input : program.inputs) {
    Ints shape;
    for (int letter : input.shape) shape.push_back(letter < 0 ? 1 : kSizes[sizes][letter]);
    inputs.push_back(test::make_tensor(shape, input.dtype, static_cast<test::Placement>(input.placement),
                                       test::Values::Ordinary, program.seed * 1000 + inputs.size()));
  }
  return inputs;
}

// Writing where elements share memory is undefined, even through a view of one of them.
bool writes_to_shared_elements(const Statement& statement, const std::vector<Tensor>& values) {
  if (!(operations()[statement.operation].traits & kInplace)) return false;
  for (const Tensor& value : values)
    for (size_t dim = 0;
         value.is_same_storage(values[static_cast<size_t>(statement.x)]) && dim < static_cast<size_t>(value.dim());
         ++dim)
      if (value.strides()[dim] == 0 && value.sizes()[dim] > 1) return true;
  return false;
}

Tensor run_statement(const Statement& statement, const std::vector<Tensor>& values) {
  return operations()[statement.operation].run(values[static_cast<size_t>(statement.x)],
                                               values[static_cast<size_t>(statement.y)], statement.n);
}

// By value: the last statement that reads it; past the end for outputs.
std::vector<size_t> last_uses(const Program& program) {
  std::vector<size_t> last(program.inputs.size() + program.statements.size(), 0);
  for (size_t at = 0; at < program.statements.size(); ++at) {
    last[program.inputs.size() + at] = at;
    last[static_cast<size_t>(program.statements[at].x)] = last[static_cast<size_t>(program.statements[at].y)] = at;
  }
  for (int output : program.outputs) last[static_cast<size_t>(output)] = program.statements.size();
  return last;
}

bool computes_functions(const Program& program) {
  return std::any_of(program.statements.begin(), program.statements.end(), [](const Statement& statement) {
    return (operations()[statement.operation].traits & kMath) != 0;
  });
}

// Whether a difference in the last bits of a function may become large; then the interpreter, which computes functions
// otherwise, is no oracle. Storing a real number in an integer is such a step, and may happen in place.
bool amplifies(const Program& program) {
  autograd::NoGrad off;
  std::vector<Tensor> values = make_inputs(program, 0);
  bool math = false;
  for (const Statement& statement : program.statements) {
    const Operation& operation = operations()[statement.operation];
    bool rounds = (operation.traits & kInplace) && !is_floating(values[static_cast<size_t>(statement.x)].dtype());
    if (math && (rounds || (operation.traits & kUnstable))) return true;
    math |= (operation.traits & kMath) != 0;
    values.push_back(run_statement(statement, values));
  }
  return false;
}

Function function_of(const Program& program) {
  return [program](const std::vector<Tensor>& inputs) {
    std::vector<Tensor> values = inputs, outputs;
    std::vector<size_t> last = last_uses(program);
    for (size_t at = 0; at < program.statements.size(); ++at) {
      values.push_back(run_statement(program.statements[at], values));
      // A variable goes when nobody needs it any more, as in a written program: what is alive at a break is kept.
      for (size_t value = inputs.size(); value < values.size(); ++value)
        if (last[value] <= at) values[value] = Tensor();
    }
    for (int output : program.outputs) outputs.push_back(values[static_cast<size_t>(output)]);
    return outputs;
  };
}

// What runs leave behind: results, and the inputs as they are afterwards.
struct Outcome {
  std::vector<Tensor> results, inputs;
};

template <typename F>
Outcome run(F& function, const Program& program, int sizes) {
  Outcome outcome;
  outcome.inputs = make_inputs(program, sizes);
  outcome.results = function(outcome.inputs);
  return outcome;
}

// How far inexact programs may be apart; the size of what is computed grows with every statement.
bool rounds_coarsely(const Program& program) {
  bool half = false;
  for (const Input& input : program.inputs) half |= is_half(input.dtype);
  for (const Statement& statement : program.statements) half |= (operations()[statement.operation].traits & kHalf) != 0;
  return half;
}

double tolerance(const Program& program) { return rounds_coarsely(program) ? 0.1 : 1e-3; }

// Gradients of several results are added up, and may cancel.
std::string gradient_difference(const Program& program, const Tensor& got, const Tensor& expected) {
  return test::difference(got, expected, tolerance(program), rounds_coarsely(program) ? 0.1 : 0.01);
}

std::string compare(const char* what, const Program& program, const std::vector<Tensor>& got,
                    const std::vector<Tensor>& expected, bool exact) {
  for (size_t at = 0; at < expected.size(); ++at) {
    if (got[at].description() != expected[at].description())
      return fmt::format("{} {}: {} instead of {}", what, at, got[at].description(), expected[at].description());
    for (size_t dim = 0; dim < static_cast<size_t>(got[at].dim()); ++dim)
      if (got[at].numel().plain() > 0 && got[at].sizes()[dim] > 1 &&
          got[at].strides()[dim] != expected[at].strides()[dim])
        return fmt::format("{} {}: {} has strides {} instead of {}", what, at, got[at].description(),
                           str(got[at].sym_strides()), str(expected[at].sym_strides()));
    std::string difference =
        exact ? test::difference(got[at], expected[at]) : test::difference(got[at], expected[at], tolerance(program));
    if (!difference.empty()) return fmt::format("{} {}: {}", what, at, difference);
  }
  return "";
}

std::string compare(const std::string& what, const Program& program, const Outcome& got, const Outcome& expected) {
  std::string difference = compare("result", program, got.results, expected.results, program.exact());
  if (difference.empty()) difference = compare("input", program, got.inputs, expected.inputs, program.exact());
  return difference.empty() ? "" : what + ": " + difference;
}

// Gradients of a weighted sum of all results with respect to the floating point inputs; empty where autograd refuses,
// as it may where a leaf or a saved value is changed in place.
template <typename F>
std::vector<Tensor> gradients(F& function, const Program& program) {
  std::vector<Tensor> inputs = make_inputs(program, 0), leaves;
  for (const Tensor& input : inputs)
    if (is_floating(input.dtype())) leaves.push_back(input.set_requires_grad());
  if (leaves.empty()) return {};
  Tensor total = zeros({}, kFloat64);
  uint64_t seed = 5;
  for (const Tensor& result : function(inputs)) {
    if (!result.requires_grad()) continue;
    Tensor weights =
        test::make_tensor(Ints(result.sizes()), kFloat64, test::Placement::Contiguous, test::Values::Near, seed++);
    total = total + sum(result.to(kFloat64) * weights);
  }
  if (!total.requires_grad()) return {};
  const Tensor roots[] = {total};
  std::vector<Tensor> result = autograd::grad(roots, leaves, {}, false, false, true);
  for (size_t at = 0; at < result.size(); ++at)
    if (!result[at].defined()) result[at] = zeros_like(leaves[at]);
  return result;
}

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    if (is_floating(tensor.dtype())) {
      Tensor wide = test::contiguous_copy(tensor.to(kFloat64));
      for (int64_t at = 0; at < wide.numel().plain(); ++at)
        if (!(std::fabs(wide.data<double>()[at]) < 1e6)) return false;
    }
  return true;
}

bool breaks(const Program& program) {
  for (const Statement& statement : program.statements)
    if (operations()[statement.operation].traits & (kBreaks | kData)) return true;
  return false;
}

std::string options_text(bool fullgraph, const char* dynamic, const char* backend) {
  return fmt::format(".fullgraph = {}, .dynamic = Dynamic::{}, .backend = \"{}\"", fullgraph, dynamic, backend);
}

Finding check_gradients(const Program& program, const Function& function) {
  std::vector<Tensor> expected;
  try {
    expected = gradients(function, program);
  } catch (const Error&) {
    return {};  // a leaf, or a value that backward needs, was changed
  }
  if (expected.empty() || !all_finite(expected)) return {};
  // Gradients of functions are differences of their values (of tanh, 1 - t²): the interpreter is an oracle only where
  // there are none.
  if (computes_functions(program)) runtime::set_oracle(false);
  for (const char* backend : {"inductor", "aot_eager"}) {
    Finding finding{"", options_text(!breaks(program), "Off", backend), {0}, true};
    try {
      auto compiled = compile(function, {.fullgraph = !breaks(program), .dynamic = Dynamic::Off, .backend = backend});
      std::vector<Tensor> got = gradients(compiled, program);
      if (got.size() != expected.size())
        finding.text = fmt::format("gradients by {}: the results do not require any", backend);
      // Strides of gradients are not promised.
      for (size_t at = 0; at < got.size() && !finding; ++at)
        if (std::string difference = gradient_difference(program, got[at], expected[at]); !difference.empty())
          finding.text = fmt::format("gradients by {}: input {}: {}", backend, at, difference);
    } catch (const std::exception& error) {
      finding.text = fmt::format("compiled code refuses to differentiate what eager does: {}", error.what());
    }
    if (finding) return finding;
  }
  return {};
}

bool runs_eagerly(const Program& program) {
  try {
    autograd::NoGrad off;
    auto function = [&](const std::vector<Tensor>& inputs) {
      std::vector<Tensor> values = inputs;
      for (const Statement& statement : program.statements) {
        if (writes_to_shared_elements(statement, values)) fail("shared elements");
        values.push_back(run_statement(statement, values));
      }
      return values;
    };
    for (int sizes = 0; sizes < kSizeSets; ++sizes) {
      Outcome outcome = run(function, program, sizes);
      if (!program.exact() && (!all_finite(outcome.results) || !all_finite(outcome.inputs))) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Statements and inputs that no output needs are left out, unless they change something in place.
Program without(const Program& program, size_t removed) {
  Program result = program;
  int inputs = static_cast<int>(program.inputs.size()), gone = inputs + static_cast<int>(removed);
  int instead = program.statements[removed].x;
  auto renamed = [&](int value) { return value == gone ? instead : value > gone ? value - 1 : value; };
  result.statements.erase(result.statements.begin() + static_cast<ptrdiff_t>(removed));
  for (Statement& statement : result.statements) {
    statement.x = renamed(statement.x);
    statement.y = renamed(statement.y);
  }
  for (int& output : result.outputs) output = renamed(output);
  return result;
}

std::string replace_word(std::string text, char letter, const std::string& by) {
  std::string result;
  auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; };
  for (size_t at = 0; at < text.size(); ++at) {
    bool alone =
        text[at] == letter && (at == 0 || !word(text[at - 1])) && (at + 1 == text.size() || !word(text[at + 1]));
    result += alone ? by : std::string(1, text[at]);
  }
  return result;
}

}  // namespace

bool Program::exact() const {
  for (const Statement& statement : statements)
    if (operations()[statement.operation].traits & kInexact) return false;
  return true;
}

namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  return fmt::format("{}", value);
}

// An expression for the tensor, with its values and where they lie in memory.
std::string tensor_text(const Tensor& tensor) {
  int64_t count = tensor.storage_offset() + core::reach(tensor.sizes(), tensor.strides());
  Tensor memory = core::make_view(tensor, SymInts{SymInt(count)}, SymInts{SymInt(1)}, 0).to(kFloat64);
  std::vector<std::string> values;
  for (int64_t at = 0; at < count; ++at) values.push_back(number_text(memory.data<double>()[at]));
  return fmt::format(
      "core::make_view(tensor(std::vector<double>{{{}}}, kFloat64).to(*dtype_from_name(\"{}\")), SymInts{{{}}}, "
      "SymInts{{{}}}, {})",
      fmt::join(values, ", "), name(tensor.dtype()), fmt::join(tensor.sizes(), ", "), fmt::join(tensor.strides(), ", "),
      tensor.storage_offset());
}

}  // namespace

std::string source(const Program& program, const Finding& finding) {
  std::string text = fmt::format("// seed {}: {}\n", program.seed, finding.text.substr(0, finding.text.find('\n')));
  text += "#include <tenon/tenon.h>\n\n#include <cmath>\n\nusing namespace tenon;\n\n";
  text += "std::vector<Tensor> function(const std::vector<Tensor>& in) {\n";
  for (size_t at = 0; at < program.inputs.size(); ++at) text += fmt::format("  Tensor v{} = in[{}];\n", at, at);
  for (size_t at = 0; at < program.statements.size(); ++at) {
    const Statement& each = program.statements[at];
    std::string expression = operations()[each.operation].text;
    expression = replace_word(expression, 'n', std::to_string(each.n));
    expression = replace_word(expression, 'x', fmt::format("v{}", each.x));
    expression = replace_word(expression, 'y', fmt::format("v{}", each.y));
    text += fmt::format("  Tensor v{} = {};\n", program.inputs.size() + at, expression);
  }
  std::vector<std::string> names;
  for (int output : program.outputs) names.push_back(fmt::format("v{}", output));
  text += fmt::format("  return {{{}}};\n}}\n\nstd::vector<Tensor> inputs([[maybe_unused]] int sizes) {{\n",
                      fmt::join(names, ", "));
  for (int sizes = 0; sizes < kSizeSets; ++sizes) {
    if (std::find(finding.calls.begin(), finding.calls.end(), sizes) == finding.calls.end()) continue;
    std::vector<std::string> tensors;
    for (const Tensor& tensor : make_inputs(program, sizes)) tensors.push_back("\n      " + tensor_text(tensor));
    text += fmt::format("  if (sizes == {})\n    return {{{}}};\n", sizes, fmt::join(tensors, ","));
  }
  text += "  return {};\n}\n\n";
  if (finding.gradients)
    text +=
        "// Results, then the gradients of their sum.\n"
        "template <typename F>\n"
        "std::vector<Tensor> run(F& f, int sizes) {\n"
        "  std::vector<Tensor> in = inputs(sizes), leaves;\n"
        "  for (const Tensor& each : in)\n"
        "    if (each.is_floating_point()) leaves.push_back(each.set_requires_grad());\n"
        "  std::vector<Tensor> results = f(in);\n"
        "  Tensor total = zeros({}, kFloat64);\n"
        "  for (const Tensor& each : results)\n"
        "    if (each.requires_grad()) total = total + sum(each.to(kFloat64));\n"
        "  if (total.requires_grad()) total.backward();\n"
        "  for (const Tensor& leaf : leaves)\n"
        "    if (leaf.grad().defined()) results.push_back(leaf.grad());\n"
        "  return results;\n"
        "}\n\n";
  else
    text +=
        "// Results, then the inputs as they are afterwards.\n"
        "template <typename F>\n"
        "std::vector<Tensor> run(F& f, int sizes) {\n"
        "  autograd::NoGrad off;\n"
        "  std::vector<Tensor> in = inputs(sizes), results = f(in);\n"
        "  results.insert(results.end(), in.begin(), in.end());\n"
        "  return results;\n"
        "}\n\n";
  text += fmt::format("int main() {{\n  auto compiled = compile(function, {{{}}});\n  for (int sizes : {{{}}}) {{\n",
                      finding.options, fmt::join(finding.calls, ", "));
  text +=
      "    std::vector<Tensor> expected = run(function, sizes), got = run(compiled, sizes);\n"
      "    for (size_t at = 0; at < expected.size(); ++at)\n"
      "      fmt::print(\"sizes {}, {}: eager {}\\n  {}\\ncompiled {}\\n  {}\\n\", sizes, at, "
      "expected[at].description(), expected[at].str(),\n"
      "                 at < got.size() ? got[at].description() : \"nothing\", at < got.size() ? got[at].str() : "
      "\"\");\n"
      "  }\n}\n";
  return text;
}

Program random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (;;) {
    Program program;
    program.seed = seed;
    const std::vector<int> shapes[] = {{0, 1}, {0, 1}, {0, 1}, {0, -1}, {-1, 1}, {1}, {}, {1, 2}, {0, 1, 2}, {0}};
    const Dtype dtypes[] = {kFloat32,  kFloat32, kFloat32, kFloat32, kFloat64, kFloat16,
                            kBFloat16, kInt64,   kInt32,   kBool,    kUInt8};
    for (size_t count = 1 + below(3); count > 0; --count)
      program.inputs.push_back({shapes[below(std::size(shapes))], dtypes[below(std::size(dtypes))],
                                static_cast<int>(below(10) < 6 ? 0 : below(5))});
    bool pointwise = below(2) == 0;
    std::vector<Tensor> values = make_inputs(program, 0);
    std::vector<bool> inexact(values.size(), false);
    size_t length = 2 + below(8);
    for (size_t attempts = 0; program.statements.size() < length && attempts < 100; ++attempts) {
      Statement statement{below(operations().size()), 0, 0, static_cast<int64_t>(below(3))};
      const Operation& operation = operations()[statement.operation];
      if (pointwise && (operation.traits & kInexact)) continue;
      // Recent values more often, so that programs are deep rather than wide.
      auto pick = [&] {
        return static_cast<int>(below(2) == 0 ? values.size() - 1 - below(std::min<size_t>(2, values.size()))
                                              : below(values.size()));
      };
      statement.x = pick();
      statement.y = operation.traits & kBinary ? pick() : statement.x;
      bool from_inexact = inexact[static_cast<size_t>(statement.x)] || inexact[static_cast<size_t>(statement.y)];
      if (from_inexact && (operation.traits & kUnstable)) continue;
      Program longer = program;
      longer.statements.push_back(statement);
      try {
        autograd::NoGrad off;
        std::vector<Tensor> now = make_inputs(longer, 0);
        for (const Statement& each : longer.statements) now.push_back(run_statement(each, now));
        if (writes_to_shared_elements(statement, now)) continue;
        if (now.back().numel().plain() > 20000) continue;
        values = now;
      } catch (const Error&) {
        continue;
      }
      program = std::move(longer);
      inexact.push_back(from_inexact || (operation.traits & kInexact));
      // A change in place reaches whatever shares the memory.
      if (inexact.back())
        for (size_t at = 0; at + 1 < values.size(); ++at)
          if (values[at].is_same_storage(values.back())) inexact[at] = true;
    }
    if (program.statements.empty()) continue;
    program.outputs.push_back(static_cast<int>(values.size()) - 1);
    for (size_t extra = below(3); extra > 0; --extra) program.outputs.push_back(static_cast<int>(below(values.size())));
    if (runs_eagerly(program)) return program;
  }
}

namespace {

// Calls `compiled` with each of these size sets, one after the other.
template <typename F>
Finding check_calls(const char* what, const Program& program, F& compiled, std::string options,
                    const std::vector<int>& calls, const std::vector<Outcome>& eager, bool may_refuse = false) {
  Finding finding{"", std::move(options), {}, false};
  for (int sizes : calls) {
    finding.calls.push_back(sizes);
    try {
      finding.text = compare(fmt::format("{}, call {}", what, finding.calls.size()), program,
                             run(compiled, program, sizes), eager[static_cast<size_t>(sizes)]);
    } catch (const std::exception& error) {
      bool refused = may_refuse && dynamic_cast<const Error*>(&error);
      if (!refused) finding.text = fmt::format("compiled code refuses what eager runs: {}", error.what());
    }
    if (finding) return finding;
  }
  return {};
}

}  // namespace

Finding check(const Program& program) {
  Function function = function_of(program);
  runtime::set_oracle(!amplifies(program));
  bool whole = !breaks(program);
  {
    autograd::NoGrad off;
    std::vector<Outcome> eager;
    for (int sizes = 0; sizes < kSizeSets; ++sizes) eager.push_back(run(function, program, sizes));
    auto fixed = compile(function, {.fullgraph = whole, .dynamic = Dynamic::Off});
    if (Finding found = check_calls("compiled", program, fixed, options_text(whole, "Off", "inductor"), {0, 0}, eager))
      return found;
    auto dynamic = compile(function, {.fullgraph = whole, .dynamic = Dynamic::On});
    if (Finding found =
            check_calls("dynamic", program, dynamic, options_text(whole, "On", "inductor"), {0, 1, 2}, eager))
      return found;
    for (const char* backend : {"aot_eager", "eager"}) {
      auto compiled = compile(function, {.fullgraph = whole, .backend = backend});
      if (Finding found = check_calls(backend, program, compiled, options_text(whole, "Auto", backend), {0}, eager))
        return found;
    }
    if (!whole) {
      auto unbacked = compile(
          function, {.dynamic = Dynamic::On, .capture_scalar_outputs = true, .capture_dynamic_output_shape_ops = true});
      // A size from data counts as neither 0 nor 1: a plan may refuse what eager broadcasts, but not get it wrong.
      if (Finding found = check_calls(
              "unbacked", program, unbacked,
              ".dynamic = Dynamic::On, .capture_scalar_outputs = true, .capture_dynamic_output_shape_ops = true",
              {0, 1, 2}, eager, true))
        return found;
    }
  }
  return check_gradients(program, function);
}

Program reduce(Program program) {
  auto still_fails = [](const Program& candidate) {
    return !candidate.statements.empty() && runs_eagerly(candidate) && check(candidate);
  };
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (size_t at = program.outputs.size(); at-- > 0 && program.outputs.size() > 1;) {
      Program candidate = program;
      candidate.outputs.erase(candidate.outputs.begin() + static_cast<ptrdiff_t>(at));
      if (!still_fails(candidate)) continue;
      program = candidate;
      shorter = true;
    }
    for (size_t at = program.statements.size(); at-- > 0;) {
      Program candidate = without(program, at);
      if (!still_fails(candidate)) continue;
      program = candidate;
      shorter = true;
    }
  }
  return program;
}

}  // namespace tenon::fuzz
