#include "fuzz/observe.h"

#include "fuzz/features.h"
#include "fuzz/grammar.h"
#include "ops/row_evaluator.h"

#include <tenon/sym/shape_env.h>
#include <tenon/tenon.h>

#include <cxxabi.h>

#include <cmath>

namespace tenon::fuzz {
namespace {

std::vector<Seen> look(const World& world, const std::vector<Tensor>& results) {
  std::vector<Tensor> all = world.all(results);
  std::vector<Seen> seen;
  for (size_t at = 0; at < all.size(); ++at) {
    size_t bases = world.bases.size(), sources = world.sources.size();
    Seen one;
    one.name = at < bases             ? fmt::format("base {}", at)
               : at < bases + sources ? fmt::format("source {}", at - bases)
                                      : fmt::format("result {}", at - bases - sources);
    const Tensor& tensor = all[at];
    if (!tensor.defined()) {
      one.description = "undefined";
    } else {
      autograd::NoGrad off;
      one.description = tensor.description();
      one.sizes = Ints(tensor.sizes());
      one.strides = Ints(tensor.strides());
      one.requires_grad = tensor.requires_grad();
      one.leaf = tensor.is_leaf();
      while (!all[one.shares_with].defined() || !all[one.shares_with].is_same_storage(tensor)) ++one.shares_with;
      one.distance = tensor.storage_offset() - all[one.shares_with].storage_offset();
      one.values = test::contiguous_copy(tensor);
    }
    seen.push_back(std::move(one));
  }
  return seen;
}

// How far inexact programs may be apart; the size of what is computed grows with every statement.
std::string compare(const char* when, const Program& program, const std::vector<Seen>& got,
                    const std::vector<Seen>& expected, Against against) {
  bool coarse = rounds_coarsely(program);
  double tolerance = coarse ? 0.1 : 1e-3;
  // What is left of halves that cancel is their rounding, and PyTorch rounds elsewhere.
  double of_largest = coarse && against == Against::Peer ? 0.05 : 0.01;
  // How a gradient lies in memory, and whether it is another one too, is not promised.
  bool lies_as_eager = true;
  each_statement(program.statements,
                 [&](const Statement& statement) { lies_as_eager &= statement.kind != Kind::Grad; });
  for (size_t at = 0; at < expected.size(); ++at) {
    const Seen &is = got[at], &should = expected[at];
    auto differs = [&](std::string text) { return fmt::format("{} {}: {}", should.name, when, std::move(text)); };
    if (is.description != should.description)
      return differs(fmt::format("{} instead of {}", is.description, should.description));
    if (!should.values.defined()) continue;
    int64_t elements = should.values.numel().plain();
    for (size_t dim = 0; dim < is.sizes.size(); ++dim)
      if (lies_as_eager && elements > 0 && is.sizes[dim] > 1 && is.strides[dim] != should.strides[dim])
        return differs(fmt::format("{} has strides [{}] instead of [{}]", is.description, fmt::join(is.strides, ", "),
                                   fmt::join(should.strides, ", ")));
    std::string difference = program.exact() && against == Against::Eager
                                 ? test::difference(is.values, should.values)
                                 : test::difference(is.values, should.values, tolerance, of_largest);
    if (!difference.empty()) return differs(std::move(difference));
    if (is.requires_grad != should.requires_grad)
      return differs(fmt::format("requires_grad is {} instead of {}", is.requires_grad, should.requires_grad));
    if (is.leaf != should.leaf) return differs(fmt::format("is_leaf is {} instead of {}", is.leaf, should.leaf));
    if (!enabled(Feature::Results) && against == Against::Eager) continue;
    if (!lies_as_eager) continue;
    if (elements > 0 && is.shares_with != should.shares_with)
      return differs(fmt::format("shares its memory with {} instead of {}", got[is.shares_with].name,
                                 expected[should.shares_with].name));
    // (Where an empty part of a tensor begins says nothing.)
    const Tensor& first = expected[should.shares_with].values;
    bool is_empty = elements == 0 || (first.defined() && first.numel().plain() == 0);
    if (!is_empty && is.distance != should.distance)
      return differs(fmt::format("lies {} elements behind {} instead of {}", is.distance, got[is.shares_with].name,
                                 should.distance));
  }
  return "";
}

bool all_finite(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating(tensor.dtype())) return true;
  autograd::NoGrad off;
  Tensor wide = test::contiguous_copy(tensor.to(kFloat64));
  for (int64_t at = 0; at < wide.numel().plain(); ++at)
    if (!(std::fabs(wide.data<double>()[at]) < 1e6)) return false;
  return true;
}

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    if (!all_finite(tensor)) return false;
  return true;
}

double largest(const std::vector<Tensor>& tensors) {
  autograd::NoGrad off;
  double found = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.defined() && tensor.numel().plain() > 0)
      found = std::max(found, tensor.to(kFloat64).abs().max().item<double>());
  return found;
}

bool all_zero(const Tensor& tensor) {
  autograd::NoGrad off;
  Tensor wide = test::contiguous_copy(tensor.to(kFloat64));
  for (int64_t at = 0; at < wide.numel().plain(); ++at)
    if (wide.data<double>()[at] != 0) return false;
  return true;
}

template <typename Stage>
bool attempt(Observation& observation, std::string& error, const Stage& stage) {
  try {
    stage();
    return true;
  } catch (const Error& raised) {
    error = raised.what();
    // The two ways in which a plan says that it cannot know a number that comes from data.
    observation.refuses = dynamic_cast<const DataDependentError*>(&raised) || error.rfind("[check]", 0) == 0;
  } catch (const std::exception& raised) {
    error = raised.what();
    observation.broken = true;
  } catch (...) {
    error = fmt::format("a {} was thrown, which is no std::exception", abi::__cxa_current_exception_type()->name());
    observation.broken = true;
  }
  if (error.empty()) error = "an error without words";
  return false;
}

}  // namespace

Observation observe(const Program& program, World& world, size_t call, const Function& function) {
  Observation observation;
  std::fill(world.hook_calls.begin(), world.hook_calls.end(), 0);
  if (std::string why; !attempt(observation, why, [&] { prepare(world, program, call); })) {
    observation.call_error = "[fuzz] the world of the call cannot be made: " + why;
    return observation;
  }
  std::vector<Tensor> results;
  std::vector<int64_t> versions;
  for (const Tensor& base : world.bases) versions.push_back(base.version());
  bool called = attempt(observation, observation.call_error, [&] { results = function(world.arguments(program)); });
  observation.grad_mode = autograd::grad_enabled();
  observation.seed = default_generator().seed();
  observation.offset = default_generator().offset();
  autograd::set_grad_enabled(true);
  if (capture::is_capturing()) {
    observation.broken = true;
    observation.call_error += " (the thread is still in a capture)";
  }
  if (!called) return observation;
  for (size_t at = 0; at < versions.size(); ++at)
    observation.written.push_back(world.bases[at].version() != versions[at]);
  observation.after_call = look(world, results);
  if (!program.after.actions.empty()) {
    std::vector<Tensor> all = world.all(results);
    bool acted = attempt(observation, observation.action_error, [&] {
      for (const Action& action : program.after.actions) {
        const Operation& operation = operations()[action.operation];
        const Tensor &x = all[static_cast<size_t>(action.target)], &y = all[static_cast<size_t>(action.other)];
        check_write(operation, x, y);
        operation.run(x, y, 0);
      }
    });
    if (!acted) return observation;
    observation.after_actions = look(world, results);
  }
  if (program.after.order > 0)
    attempt(observation, observation.gradient_error, [&] {
      autograd::NoGrad off;
      for (const Tensor& each :
           differentiate(world, results, program.after.order, program.after.of_bases, program.after.between))
        observation.gradients.push_back(each.defined() ? test::contiguous_copy(each) : each);
    });
  observation.hook_calls = world.hook_calls;
  return observation;
}

std::string compare(const Program& program, const Observation& got, const Observation& expected, bool lenient,
                    Against against) {
  if (got.broken) return "it breaks: " + got.call_error + got.action_error + got.gradient_error;
  // 1: a call that raises ends the comparison; what was written before is the business of tests/errors.
  if (got.call_error.empty() != expected.call_error.empty())
    return got.call_error.empty() ? fmt::format("compiled code runs what eager refuses: {}", expected.call_error)
                                  : fmt::format("compiled code refuses what eager runs: {}", got.call_error);
  if (!got.call_error.empty()) return "";
  if (std::string text = compare("after the call", program, got.after_call, expected.after_call, against);
      !text.empty())
    return text;
  if (got.grad_mode != expected.grad_mode)
    return fmt::format("grad mode after the call is {} instead of {}", got.grad_mode, expected.grad_mode);
  if (got.seed != expected.seed || got.offset != expected.offset)
    return fmt::format("the generator is at {}, {} instead of {}, {}", got.seed, got.offset, expected.seed,
                       expected.offset);
  for (size_t at = 0; at < expected.written.size(); ++at)
    if (got.written[at] != expected.written[at])
      return fmt::format("the version of base {} {}", at, got.written[at] ? "moved" : "did not move");
  // 2: what is done after it.
  if (got.action_error.empty() != expected.action_error.empty())
    return got.action_error.empty() ? fmt::format("a write that eager refuses is done: {}", expected.action_error)
                                    : fmt::format("a write is refused that eager does: {}", got.action_error);
  if (!got.action_error.empty()) return "";
  if (std::string text = compare("after writes", program, got.after_actions, expected.after_actions, against);
      !text.empty())
    return text;
  // 3: gradients.
  if (!expected.gradient_error.empty())
    return got.gradient_error.empty() && !lenient
               ? fmt::format("differentiates what eager refuses to: {}", expected.gradient_error)
               : "";
  if (!enabled(Feature::KeptInputs) && got.gradient_error.find("modified by an inplace") != std::string::npos)
    return "";
  if (!got.gradient_error.empty())
    return fmt::format("refuses to differentiate what eager does: {}", got.gradient_error);
  if (got.gradients.size() != expected.gradients.size()) return "nothing is there to differentiate";
  if (got.hook_calls != expected.hook_calls)
    return fmt::format("hooks were called {} times instead of {} (by factor)", fmt::join(got.hook_calls, " "),
                       fmt::join(expected.hook_calls, " "));
  if (!all_finite(expected.gradients)) return "";
  for (size_t at = 0; at < expected.gradients.size(); ++at) {
    const Tensor &is = got.gradients[at], &should = expected.gradients[at];
    if (is.defined() != should.defined()) {
      bool zero = all_zero(is.defined() ? is : should);
      if (!zero || enabled(Feature::ZeroGradients))
        return fmt::format("gradient {} is {}", at, is.defined() ? "there" : "not there");
      continue;
    }
    if (!should.defined()) continue;
    // Strides of gradients are not promised; several are added up, and may cancel: in half precision, what is left of
    // large ones is their rounding.
    bool coarse = rounds_coarsely(program);
    double tolerance = (coarse ? 0.1 : 1e-3) * (program.after.order > 1 ? 3 : 1);
    double least = coarse ? 0.3 * std::max(1.0, largest(expected.gradients)) : program.after.order > 1 ? 0.1 : 0.01;
    std::string text = test::difference(is, should, tolerance, least);
    if (!text.empty()) return fmt::format("gradient {}: {}", at, text);
  }
  return "";
}

bool rounds_coarsely(const Program& program) {
  bool half = false;
  for (const Base& base : program.bases) half |= is_half(base.dtype);
  each_statement(program.statements, [&](const Statement& statement) {
    if (statement.kind == Kind::Operation) half |= (operations()[statement.operation].traits & kHalf) != 0;
  });
  return half;
}

bool all_finite(const Observation& observation) {
  for (const std::vector<Seen>& list : {observation.after_call, observation.after_actions})
    for (const Seen& seen : list)
      if (!all_finite(seen.values)) return false;
  return true;
}

}  // namespace tenon::fuzz
