// A program on every backend: eager says what must come out.
#include "fuzz/grammar.h"
#include "fuzz/observe.h"
#include "fuzz/rings.h"

#include <tenon/capture/verify.h>
#include <tenon/oracle/oracle.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tenon::fuzz {
namespace {

int traits_of(const Program& program) {
  int traits = 0;
  each_statement(program.statements, [&](const Statement& statement) {
    if (statement.kind == Kind::Operation) traits |= operations()[statement.operation].traits;
    const Kind kinds[] = {Kind::Grad, Kind::Loop, Kind::Branch, Kind::While};
    if (std::find(std::begin(kinds), std::end(kinds), statement.kind) != std::end(kinds)) traits |= kInexact;
  });
  return traits;
}

// Whether it is one graph: nothing in it ends one.
bool is_whole(const Program& program) {
  bool whole = !(traits_of(program) & (kBreaks | kData | kEffect));
  each_statement(program.statements, [&](const Statement& statement) {
    whole &= statement.kind == Kind::Operation || statement.kind == Kind::Rate;
  });
  return whole;
}

struct Configuration {
  const char* backend;
  std::string dynamic;
  bool whole, from_data;  // fullgraph; numbers and sizes from data are captured

  std::string text() const {
    return fmt::format(".fullgraph = {}, .dynamic = Dynamic::{}, .backend = \"{}\"{}", whole, dynamic, backend,
                       from_data ? ", .capture_scalar_outputs = true, .capture_dynamic_output_shape_ops = true" : "");
  }
  CompileOptions options() const {
    CompileOptions result;
    result.fullgraph = whole;
    result.dynamic = dynamic == "On" ? Dynamic::On : dynamic == "Off" ? Dynamic::Off : Dynamic::Auto;
    result.backend = backend;
    result.capture_scalar_outputs = result.capture_dynamic_output_shape_ops = from_data;
    return result;
  }
};

bool has(const Program& program, Kind kind) {
  bool found = false;
  each_statement(program.statements, [&](const Statement& statement) { found |= statement.kind == kind; });
  return found;
}

bool has_pieces(const Program& program) {
  bool found = false;
  each_statement(program.statements, [&](const Statement& statement) {
    found |= statement.kind == Kind::Operation &&
             std::string_view(operations()[statement.operation].text).starts_with("piece(");
  });
  return found;
}

bool has_views(const Program& program) {
  return (traits_of(program) & kView) ||
         std::any_of(program.sources.begin(), program.sources.end(), [](const Source& source) {
           return std::any_of(source.views.begin(), source.views.end(),
                              [](const View& view) { return view.view != 0; });
         });
}

// What compiled code may do otherwise than eager, as the documents say.
//
// Sizes from data count as neither 0 nor 1, and as unlike any other: whether a reshape can be a view, or something is
// contiguous already, is decided for such sizes, and a reduction over nothing goes unnoticed. A view that was made
// before what it views came to require grad cannot be written behind a break. A hook on a result from which another one
// is computed is refused, and one on a view that is written afterwards may see the gradient of all that became of it.
// Views of what became a leaf later do not always say that they require grad, nor do pieces of a view that was made
// without grad. A second derivative is computed from the arguments, and a first one from leaves that require grad: they
// may not be changed before, nor may what loops and branches are given. Of a body that cannot be captured nothing tells
// what a loop without steps keeps.
bool is_documented(const Program& program, const Configuration& configuration, const Observation& got,
                   const Observation& expected, const std::string& difference) {
  auto says = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  if (says(got.gradient_error, "set the hook on a copy of the result")) return true;
  if (says(got.gradient_error, "[register_hook] a hook is set on a result of CompiledFunctionBackward")) return true;
  if (says(got.call_error, "a view of a leaf that requires grad is being used in an in-place operation")) return true;
  if (says(got.call_error, "[set_requires_grad]")) return true;
  if (says(got.call_error, "does not require grad") && has(program, Kind::RequiresGrad) && writes_in_place(program))
    return true;
  if (says(difference, ": requires_grad is ") && has(program, Kind::RequiresGrad) && writes_in_place(program))
    return true;
  if (says(difference, ": requires_grad is false instead of true") && has_pieces(program) &&
      (has(program, Kind::Scope) || has(program, Kind::GradMode)))
    return true;
  if (says(got.gradient_error, "before a derivative of its gradient is asked for")) return true;
  if (says(got.call_error, "for a compiled loop without steps")) return true;
  for (const char* node : {"for ScanBackward0 it is", "for WhileBackward0 it is", "for CondBackward0 it is"})
    if (says(got.gradient_error, node)) return true;
  if (says(got.gradient_error, "a leaf that requires grad and that a compiled function keeps")) return true;
  bool writes = writes_in_place(program) || !program.after.actions.empty();
  if (difference.rfind("hooks were called", 0) == 0 && writes) return true;
  if (difference.rfind("gradient ", 0) == 0 && writes && has(program, Kind::Hook) && has_views(program)) return true;
  if (!configuration.from_data) return false;
  return difference.find(" has strides [") != std::string::npos || difference.rfind("the version of base", 0) == 0 ||
         difference.find("shares its memory with") != std::string::npos ||
         (difference.rfind("base ", 0) == 0 && writes) || says(got.call_error, "cannot be viewed as") ||
         says(got.call_error, "cannot be broadcast together") ||
         says(got.call_error, "more than one element of the written-to tensor refers to a single memory location") ||
         (got.call_error.empty() && expected.call_error.find("at least one element") != std::string::npos);
}

// Eager refuses where something that a node kept has changed, also if what it would give is multiplied by zero (of what
// was overwritten, of `sign`). Compiled code has no such node. That is so if eager's gradients, without its check, are
// the same with what was kept as it was and with what became of it.
bool is_not_needed(const Program& program, size_t call, const Observation& got) {
  auto agrees_with = [&](std::function<std::any(const Tensor&)> keep) {
    autograd::SavedTensorHooksGuard unchecked(
        {.pack = std::move(keep), .unpack = [](const std::any& kept) { return std::any_cast<Tensor>(kept); }});
    return compare(program, got, run_eagerly(program)[call], false).empty();
  };
  return agrees_with([](const Tensor& tensor) -> std::any { return tensor.clone(); }) &&
         agrees_with([](const Tensor& tensor) -> std::any { return tensor.detach(); });
}

// Where large numbers cancel, what is left is their rounding, which compiled code does less often. It must come about
// as close as eager does to what float64 gives.
bool is_rounding(const Program& program, size_t call, const Observation& got, const Observation& expected) {
  Program widened = program;
  widened.widened = true;
  std::vector<Observation> exact = run_eagerly(widened);
  if (!exact[call].call_error.empty() || !exact[call].gradient_error.empty() ||
      exact[call].gradients.size() != expected.gradients.size())
    return false;
  autograd::NoGrad off;
  for (size_t at = 0; at < expected.gradients.size(); ++at) {
    const Tensor &is = got.gradients[at], &should = expected.gradients[at], &truth = exact[call].gradients[at];
    if (is.defined() != should.defined() || should.defined() != truth.defined()) return false;
    if (!truth.defined() || truth.numel().plain() == 0) continue;
    if (str(truth.sym_sizes()) != str(is.sym_sizes())) return false;
    auto error = [&](const Tensor& tensor) { return (tensor.to(kFloat64) - truth).abs().max().item<double>(); };
    double near = rounds_coarsely(program) ? 0.1 : 1e-3;
    if (error(is) > 10 * error(should) + near * truth.abs().max().item<double>()) return false;
  }
  return true;
}

Finding check(const Program& program, const Configuration& configuration, const std::vector<Observation>& expected,
              const std::vector<bool>& lenient) {
  World world;
  Machine machine(program, world, configuration.backend);
  auto compiled =
      compile(Function([&](const std::vector<Tensor>& in) { return machine(in); }), configuration.options());
  Finding finding{"", configuration.text(), 0};
  for (size_t call = 0; call < program.calls.size(); ++call) {
    ++finding.calls;
    Observation got = observe(program, world, call, compiled);
    // A size from data counts as neither 0 nor 1: a plan may refuse what eager broadcasts, but not get it wrong.
    bool refuses = configuration.from_data && (got.refuses || !enabled(Feature::Unbacked)) && !got.broken;
    if (refuses && !(got.call_error + got.gradient_error).empty()) return {};
    finding.text = compare(program, got, expected[call], lenient[call]);
    if (finding && is_documented(program, configuration, got, expected[call], finding.text)) return {};
    if (finding && finding.text.rfind("differentiates what eager refuses to", 0) == 0 &&
        is_not_needed(program, call, got))
      return {};
    if (finding && finding.text.rfind("gradient ", 0) == 0 && is_rounding(program, call, got, expected[call]))
      return {};
    if (finding && finding.text.find(": element ") != std::string::npos &&
        agree_but_for_rounding(program, call, got, expected[call]))
      return {};
    if (!finding && call == 0 && configuration.whole && compiled.compile_count() == 0 &&
        expected[call].call_error.empty())
      finding.text = "nothing was compiled";
    if (finding) {
      finding.text =
          fmt::format("{} {}, call {}: {}", configuration.backend, configuration.dynamic, call + 1, finding.text);
      return finding;
    }
    if (!expected[call].call_error.empty()) break;  // what an error leaves is another matter
  }
  return {};
}

// Eager with its backward walks captured: twice, so that the second time runs what the first one compiled.
Finding check_walks(const Program& program, const std::vector<Observation>& expected) {
  compiled_autograd::reset();
  Finding finding{"", ".backend = \"inductor\"", 0, true};
  for (int round : {1, 2}) {
    World world;
    Machine machine(program, world);
    finding.calls = 0;
    for (size_t call = 0; call < program.calls.size(); ++call) {
      ++finding.calls;
      Observation got;
      {
        compiled_autograd::Enable on;
        got = observe(program, world, call, [&](const std::vector<Tensor>& in) { return machine(in); });
      }
      // Gradients that show what the walk was given are views that were made under no_grad, as they are in PyTorch.
      if ((got.call_error + got.action_error).find("A view was created in no_grad mode") != std::string::npos)
        return {};
      finding.text = compare(program, got, expected[call], false);
      if (finding && finding.text.rfind("gradient ", 0) == 0 && is_rounding(program, call, got, expected[call]))
        finding.text.clear();
      if (finding) {
        finding.text = fmt::format("captured walks, round {}, call {}: {}", round, call + 1, finding.text);
        return finding;
      }
      if (!expected[call].call_error.empty()) break;
    }
  }
  return {};
}

}  // namespace

bool writes_in_place(const Program& program) {
  bool found = false;
  each_statement(program.statements, [&](const Statement& statement) {
    found |= statement.kind == Kind::Custom;
    if (statement.kind == Kind::Operation) found |= (operations()[statement.operation].traits & kInplace) != 0;
  });
  return found;
}

// Whether a difference in the last bits of a function may become large; then the interpreter, which computes functions
// otherwise, is no oracle. Storing a real number in an integer is such a step, and may happen in place.
bool amplifies(const Program& program) {
  bool math = false, found = false, integers = false;
  for (const Base& base : program.bases) integers |= !is_floating(base.dtype);
  each_statement(program.statements, [&](const Statement& statement) {
    if (statement.kind != Kind::Operation) return;
    int traits = operations()[statement.operation].traits;
    found |= math && ((traits & kUnstable) || ((traits & kInplace) && integers));
    math |= (traits & kMath) != 0;
  });
  return found;
}

std::vector<Observation> run_eagerly(const Program& program) {
  World world;
  Machine machine(program, world);
  std::vector<Observation> seen;
  for (size_t call = 0; call < program.calls.size(); ++call)
    seen.push_back(observe(program, world, call, [&](const std::vector<Tensor>& in) { return machine(in); }));
  return seen;
}

bool agree_but_for_rounding(const Program& program, size_t call, const Observation& ours, const Observation& theirs) {
  Program off_by_one = program;
  off_by_one.nudged = true;
  std::vector<Observation> all;
  try {
    all = run_eagerly(off_by_one);
  } catch (const Error&) {
    return false;  // another program
  }
  if (call >= all.size()) return false;
  const Observation& moved = all[call];
  if (moved.call_error + moved.action_error + moved.gradient_error != "") return false;
  autograd::NoGrad off;
  auto near = [](const Tensor& mine, const Tensor& other, const Tensor& beside) {
    if (mine.defined() != other.defined() || mine.defined() != beside.defined()) return false;
    if (!mine.defined() || mine.numel().plain() == 0) return true;
    if (!std::ranges::equal(mine.sizes(), other.sizes()) || !std::ranges::equal(mine.sizes(), beside.sizes()))
      return false;
    auto distance = [&](const Tensor& from) {
      const Tensor a = mine.to(kFloat64), b = from.to(kFloat64);
      const Tensor same = (a == b).logical_or(isnan(a).logical_and(isnan(b)));
      return where(same, zeros_like(a), (a - b).abs()).max().item<double>();
    };
    return distance(other) <= 64 * distance(beside);
  };
  auto all_near = [&](const auto& mine, const auto& other, const auto& beside, auto values_of) {
    if (mine.size() != other.size() || mine.size() != beside.size()) return false;
    for (size_t at = 0; at < mine.size(); ++at)
      if (!near(values_of(mine[at]), values_of(other[at]), values_of(beside[at]))) return false;
    return true;
  };
  auto of_seen = [](const Seen& one) { return one.values; };
  auto itself = [](const Tensor& tensor) { return tensor; };
  return all_near(ours.after_call, theirs.after_call, moved.after_call, of_seen) &&
         all_near(ours.after_actions, theirs.after_actions, moved.after_actions, of_seen) &&
         all_near(ours.gradients, theirs.gradients, moved.gradients, itself);
}

bool Program::exact() const { return !(traits_of(*this) & kInexact); }

bool runs_eagerly(const Program& program, bool may_raise) {
  bool first = true;
  Rings rings(program);
  for (const Observation& seen : run_eagerly(program)) {
    bool undefined = seen.call_error.rfind("[fuzz]", 0) == 0 || seen.action_error.rfind("[fuzz]", 0) == 0;
    if (seen.broken || undefined || (!seen.call_error.empty() && (first || !may_raise))) return false;
    first = false;
    if (!program.exact() && !all_finite(seen)) return false;
  }
  return true;
}

Finding check(const Program& program) {
  Rings rings(program);
  bool verified = capture::set_verify_captures(false);
  std::vector<Observation> expected = run_eagerly(program);
  std::vector<bool> lenient(expected.size(), program.after.actions.empty());
  bool refused = false;
  for (const Observation& seen : expected) refused |= !seen.gradient_error.empty();
  if (refused && !program.after.actions.empty()) {
    // Is it what was written after the call that eager does not forgive?
    Program quiet = program;
    quiet.after.actions.clear();
    std::vector<Observation> without = run_eagerly(quiet);
    for (size_t at = 0; at < without.size(); ++at) lenient[at] = !without[at].gradient_error.empty();
  }
  // Gradients of functions are differences of their values (of tanh, 1 - t²).
  bool functions = traits_of(program) & kMath, sums = program.after.order > 0 || !program.exact();
  const char* oracle = std::getenv("TENON_ORACLE");  // on unless it is refused
  bool refuses_oracle = oracle && std::strcmp(oracle, "0") == 0;
  oracle::enable(!refuses_oracle && !amplifies(program) && !(functions && sums));
  capture::set_verify_captures(program.verify);
  bool whole = is_whole(program), data = traits_of(program) & (kData | kBreaks);
  std::vector<Configuration> configurations;
  const char* backends[] = {"inductor", "aot_eager", "eager"};
  const char* chosen = std::getenv("TENON_FUZZ_BACKENDS");  // a list of names: these alone
  for (size_t at = 0; at < 3; ++at)
    if (!chosen || fmt::format(",{},", chosen).find(fmt::format(",{},", backends[at])) != std::string::npos)
      configurations.push_back({backends[at], program.dynamic[at], whole, false});
  if (data && !chosen) configurations.push_back({backends[program.seed % 5 % 3], "On", false, true});
  Finding found;
  for (size_t at = 0; at < configurations.size() && !found; ++at)
    found = check(program, configurations[at], expected, lenient);
  bool walks = program.after.order > 0 || has(program, Kind::Grad) || has(program, Kind::Backward);
  if (!found && walks && !chosen && enabled(Feature::Walks)) found = check_walks(program, expected);
  capture::set_verify_captures(verified);
  return found;
}

}  // namespace tenon::fuzz
