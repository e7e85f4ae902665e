// test_aot_dispatch_static and _dynamic: a function run eagerly, against the same captured, differentiated ahead of
// time and run.
#include "checks.h"
#include "copies.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/capture/compile.h>
#include <tenon/core/random.h>
#include <tenon/generated/ops.h>
#include <tenon/ops/row.h>

#include <set>

namespace tenon::opcheck {
namespace {

constexpr int64_t kSeed = 1234;

struct Ran {
  dispatch::Results results;
  std::vector<Tensor> gradients;  // of the arguments that require grad
};

bool carries_gradient(const Tensor& tensor) { return tensor.is_floating_point() && tensor.requires_grad(); }

// Tensors are captured, everything else is part of the function.
dispatch::Results run_compiled(capture::CompiledFunction& compiled, const BoxedFunction& function,
                               std::span<const Value> args) {
  std::vector<Tensor> tensors;
  for (const Value& value : args) value.each_tensor([&](const Tensor& tensor) { tensors.push_back(tensor); });
  // An undefined tensor is no input: it stays where it is.
  std::vector<Tensor> inputs;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) inputs.push_back(tensor);
  auto body = [&](std::span<const Tensor> given, std::span<const Value>) {
    size_t next = 0;
    Values rebuilt;
    for (const Value& value : args)
      rebuilt.push_back(
          value.map_tensors([&](const Tensor& tensor) { return tensor.defined() ? given[next++] : tensor; }));
    std::vector<Value> results;
    for (Value& result : function(rebuilt)) results.push_back(std::move(result));
    return results;
  };
  dispatch::Results results;
  for (Value& result : compiled.call(inputs, {}, {}, body)) results.push_back(std::move(result));
  return results;
}

// Runs it, and backward through every result that requires grad, with gradients that are not all alike.
template <typename Run>
Ran run_with_gradients(Run run, std::span<const Value> args, bool gradients) {
  manual_seed(kSeed);
  Values copies = copy_arguments(args);
  Ran ran;
  ran.results = run(copies);
  if (!gradients) return ran;
  std::vector<Tensor> roots, weights, inputs;
  for (const Tensor& tensor : tensors_of(ran.results.span()))
    if (carries_gradient(tensor)) {
      autograd::NoGrad off;
      roots.push_back(tensor);
      weights.push_back(
          (arange(tensor.numel(), TensorOptions(kFloat32)) * 0.1 + 1).reshape(tensor.sym_sizes()).to(tensor.dtype()));
    }
  std::set<const TensorImpl*> seen;
  for (const Tensor& tensor : tensors_of(copies))
    if (carries_gradient(tensor) && seen.insert(tensor.impl()).second) inputs.push_back(tensor);
  if (!roots.empty() && !inputs.empty())
    ran.gradients = autograd::grad(roots, inputs, weights, false, false, /*allow_unused=*/true);
  return ran;
}

void compare(const Ran& eager, const Ran& compiled) {
  auto refuse = [](const std::string& what, const std::string& how) {
    throw AssertionError(
        fmt::format("[opcheck] {} differ, run eagerly and compiled ahead of time (eager-mode PyTorch vs AOTAutograd, "
                    "in the words of "
                    "those): {}. Perhaps the operator depends on something beside its arguments, or its fake or its "
                    "gradient is wrong",
                    what, how));
  };
  if (eager.results.size() != compiled.results.size())
    refuse("numbers of results", fmt::format("{} and {}", eager.results.size(), compiled.results.size()));
  for (size_t at = 0; at < eager.results.size(); ++at) {
    std::string found = difference(eager.results[at], compiled.results[at]);
    if (!found.empty()) refuse("outputs", fmt::format("result {}: {}", at, found));
    std::vector<bool> wanted, given;
    eager.results[at].each_tensor([&](const Tensor& t) { wanted.push_back(t.defined() && carries_gradient(t)); });
    compiled.results[at].each_tensor([&](const Tensor& t) { given.push_back(t.defined() && carries_gradient(t)); });
    if (wanted != given) refuse("outputs", fmt::format("result {} requires grad in one alone", at));
  }
  for (size_t at = 0; at < eager.gradients.size(); ++at) {
    // No gradient, and one of zeros, mean the same.
    const Tensor &a = eager.gradients[at], &b = compiled.gradients.at(at);
    if (!a.defined() && !b.defined()) continue;
    std::string found = difference(a.defined() ? a : zeros_like(b), b.defined() ? b : zeros_like(a));
    if (!found.empty()) refuse("gradients", fmt::format("of the tensor argument {} that requires grad: {}", at, found));
  }
}

// Lists of tensors taken apart: results of a captured function are tensors and numbers.
BoxedFunction with_flat_results(const BoxedFunction& function) {
  return [&function](std::span<const Value> args) {
    dispatch::Results flat;
    for (Value& result : function(args)) {
      bool list = result.tag() == Value::Tag::Tensors || result.tag() == Value::Tag::OptionalTensors;
      if (list)
        result.each_tensor([&](const Tensor& tensor) { flat.push_back(Value(Tensor(tensor))); });
      else if (!result.is_none())
        flat.push_back(std::move(result));
    }
    return flat;
  };
}

// Every size of two or more, twice as large; nothing where tensors are not laid out plainly.
std::optional<Values> with_other_sizes(std::span<const Value> args) {
  autograd::NoGrad off;
  std::set<const Storage*> storages;
  bool plain = true, any = false;
  for (const Tensor& tensor : tensors_of(args)) {
    plain = plain && tensor.is_contiguous() && storages.insert(tensor.impl()->storage.get()).second;
    for (int64_t size : tensor.sizes()) any = any || size > 1;
  }
  if (!plain || !any) return std::nullopt;
  Values larger;
  for (const Value& value : args)
    larger.push_back(value.map_tensors([](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      Tensor grown = tensor.detach();
      for (int64_t dim = 0; dim < tensor.dim(); ++dim)
        if (tensor.sizes()[static_cast<size_t>(dim)] > 1) grown = cat(std::vector<Tensor>{grown, grown}, dim);
      grown = grown.clone();
      if (tensor.is_floating_point() && tensor.requires_grad()) grown.set_requires_grad();
      return grown;
    }));
  return larger;
}

// A size that is a constant of the graph: "size of x at dim 0: expected 3, got 6", or a guard "s0 == 3".
bool pins_a_size(const std::string& reason) {
  return (reason.find("size of") != std::string::npos && reason.find("expected") != std::string::npos &&
          reason.find("at least") == std::string::npos) ||
         reason.find(" == ") != std::string::npos;
}

void check_other_sizes(capture::CompiledFunction& compiled, const BoxedFunction& function, std::span<const Value> args,
                       bool gradients, size_t results) {
  std::optional<Values> larger = with_other_sizes(args);
  if (!larger) return;
  Ran eager;
  try {
    eager = run_with_gradients([&](const Values& copies) { return function(copies); }, *larger, gradients);
  } catch (const Error&) {
    return;  // it does not take these sizes
  }
  // How many tensors there are is part of a graph.
  if (eager.results.size() != results) return;
  int64_t before = compiled.compile_count();
  compare(eager, run_with_gradients([&](const Values& copies) { return run_compiled(compiled, function, copies); },
                                    *larger, gradients));
  if (compiled.compile_count() == before) return;
  std::vector<std::string> reasons = compiled.explain().recompiles;
  if (reasons.empty() || !pins_a_size(reasons.back())) return;
  throw AssertionError(fmt::format(
      "[opcheck] another size needs another compile: {}. Something turned a size into a plain number: in the fake "
      "implementation use x.size(0) as a SymInt, and let the operator take SymInt",
      reasons.back()));
}

}  // namespace

void aot_check(const BoxedFunction& given, std::span<const Value> args, const AotCheck& options) {
  BoxedFunction function = with_flat_results(given);
  bool gradients = options.check_gradients == CheckGradients::Yes ||
                   (options.check_gradients == CheckGradients::Auto && any_requires_grad(args));
  Ran eager = run_with_gradients([&](const Values& copies) { return function(copies); }, args, gradients);
  if (options.check_gradients == CheckGradients::Yes) {
    bool any = false;
    for (const Tensor& tensor : tensors_of(eager.results.span())) any = any || carries_gradient(tensor);
    TENON_CHECK(any, "[opcheck] gradients were to be compared, but no result requires grad");
  }
  CompileOptions how{.fullgraph = true,
                     .dynamic = options.dynamic ? Dynamic::On : Dynamic::Off,
                     .backend = "aot_eager",
                     .capture_scalar_outputs = true,
                     .capture_dynamic_output_shape_ops = true};
  capture::CompiledFunction compiled(how);
  Ran ahead = run_with_gradients([&](const Values& copies) { return run_compiled(compiled, function, copies); }, args,
                                 gradients);
  compare(eager, ahead);
  if (options.dynamic && options.other_sizes)
    check_other_sizes(compiled, function, args, gradients, eager.results.size());
  if (options.gradcheck && gradients) check_derivatives(function, args);
}

BoxedFunction on_clones(const Operator& op) {
  return [&op](std::span<const Value> args) {
    Values clones;
    for (const Value& value : args)
      clones.push_back(
          value.map_tensors([](const Tensor& tensor) { return tensor.defined() ? tensor.clone() : tensor; }));
    return dispatch::call_boxed(op, clones);
  };
}

void aot_test(const Operator& op, std::span<const Value> args, bool dynamic, bool gradcheck) {
  // What fresh memory holds cannot be compared.
  if (const ops::Row* row = ops::row_of(op); row && row->element.uninitialised) return;
  AotCheck options;
  options.dynamic = dynamic;
  options.other_sizes = dynamic;
  options.gradcheck = gradcheck;
  aot_check(on_clones(op), args, options);
}

}  // namespace tenon::opcheck
