// The fields of what stands in a file, for the writer and the reader of archive.h.
#pragma once

#include "archive.h"
#include "function.h"

namespace tenon::package {

template <typename A>
void fields(A& a, core::SymbolSource& source) {
  a("kind", source.kind);
  a("input", source.input);
  a("dim", source.dim);
}

template <typename A>
void fields(A& a, core::SizeGuards::Expectation& expected) {
  a("input", expected.input);
  a("dim", expected.dim);
  a("stride", expected.stride);
  a("value", expected.value);
}

// The line of the program that asked is written as its text.
template <typename A>
void fields(A& a, sym::Guard& guard) {
  a("condition", guard.condition);
  if constexpr (A::kReads) {
    a("where", guard.where);
  } else {
    std::string where = guard.site.known() ? guard.asked_by() : guard.where;
    a("where", where);
  }
}

template <typename A>
void fields(A& a, core::SizeGuards& guards) {
  core::SizeGuards::Parts parts = guards.parts();
  a("env", parts.env);
  InPool<A> pool(a, parts.env ? &parts.env->pool() : nullptr);
  a("names", parts.names);
  a("first_symbol", parts.first_symbol);
  a("sources", parts.sources);
  a("expected", parts.expected);
  a("guards", parts.guards);
  if constexpr (A::kReads) guards = core::SizeGuards(std::move(parts));
}

template <typename A>
void fields(A& a, core::AliasClasses& classes) {
  std::vector<bool> written = classes.written();
  std::vector<int32_t> class_of = classes.class_of();
  a("written", written);
  a("class_of", class_of);
  if constexpr (A::kReads) classes = core::AliasClasses(std::move(written), std::move(class_of));
}

// ---- Plans --------------------------------------------------------------------------------------------------------

template <typename A>
void fields(A& a, runtime::ScalarSource& source) {
  a("kind", source.kind);
  a("bits", source.bits);
  a("index", source.index);
}

template <typename A>
void fields(A& a, runtime::AllocateStep& step) {
  a("slot", step.slot);
  a("dtype", step.dtype);
  a("sizes", step.sizes);
  a("strides", step.strides);
  a("reuse", step.reuse);
}

template <typename A>
void fields(A& a, runtime::ViewStep& step) {
  a("slot", step.slot);
  a("base", step.base);
  a("sizes", step.sizes);
  a("strides", step.strides);
  a("offset", step.offset);
}

template <typename A>
void fields(A& a, runtime::LaunchStep& step) {
  a("kernel", step.kernel);
  a("buffers", step.buffers);
  a("integers", step.integers);
  a("scalars", step.scalars);
}

template <typename A>
void fields(A& a, runtime::CallArgument& argument) {
  a("kind", argument.kind);
  a("constant", argument.constant);
  a("count", argument.count);
  a("given", argument.given);
}

template <typename A>
void fields(A& a, runtime::CallStep& step) {
  bool is_row = step.kernel != nullptr;
  a("op", step.op);
  a("is_row", is_row);
  a("epilogue", step.epilogue);
  a("arguments", step.arguments);
  a("inputs", step.inputs);
  a("outputs", step.outputs);
  a("numbers", step.numbers);
  a("tensors", step.tensors);
  if constexpr (A::kReads) {
    step.kernel = is_row ? dispatch::opaque_kernel_of(*step.op) : nullptr;
    if (is_row && !step.kernel) A::refuse(step.op->name() + " has no kernel of its own here");
    if (step.epilogue != dispatch::Epilogue::None && !(step.kernel && step.kernel->takes(step.epilogue)))
      A::refuse(step.op->name() + " does not take what comes behind it");
  }
}

// ---- Bodies

template <typename A>
void fields(A& a, runtime::BodyTensor& tensor) {
  a("dtype", tensor.dtype);
  a("sizes", tensor.sizes);
  a("strides", tensor.strides);
}

template <typename A>
void fields(A& a, runtime::BodyShape& shape) {
  a("env", shape.env);
  InPool<A> pool(a, &shape.env->pool());
  a("inputs", shape.inputs);
  a("results", shape.results);
}

template <typename A>
void fields(A& a, runtime::Plan& plan);

template <typename A>
void fields(A& a, runtime::BodyPlan& body) {
  a("env", body.env);
  {
    InPool<A> pool(a, &body.env->pool());
    a("conditions", body.conditions);
  }
  auto plan = A::kReads ? std::make_shared<runtime::Plan>() : std::make_shared<runtime::Plan>(*body.plan);
  a("plan", *plan);
  a("results", body.results);
  if constexpr (A::kReads) body.plan = std::move(plan);
}

// A body as it is now: what it compiles later is not in the file.
struct BodyParts {
  runtime::BodyShape shape;
  std::vector<runtime::BodyPlan> plans;
};
template <typename A>
void fields(A& a, BodyParts& body) {
  a("shape", body.shape);
  a("plans", body.plans);
}

template <typename A>
void fields(A& a, runtime::Bodies& bodies) {
  a("kind", bodies.kind);
  a("name", bodies.name);
  a("carried", bodies.carried);
  std::vector<BodyParts> parts;
  for (const runtime::BodyRef& each : bodies.bodies) {
    BodyParts& part = parts.emplace_back(each->shape());
    for (const runtime::BodyPlanRef& plan : each->plans()) part.plans.push_back(*plan);
  }
  a("bodies", parts);
  if constexpr (A::kReads)
    for (BodyParts& part : parts) {
      std::vector<runtime::BodyPlanRef> plans;
      for (runtime::BodyPlan& plan : part.plans)
        plans.push_back(std::make_shared<const runtime::BodyPlan>(std::move(plan)));
      bodies.bodies.push_back(std::make_shared<runtime::SavedBody>(std::move(part.shape), std::move(plans)));
    }
}

template <typename A>
void fields(A& a, runtime::BodyStep& step) {
  runtime::Bodies bodies = A::kReads ? runtime::Bodies{} : *step.bodies;
  a("bodies", bodies);
  if constexpr (A::kReads) step.bodies = std::make_shared<const runtime::Bodies>(std::move(bodies));
  a("arguments", step.arguments);
  a("inputs", step.inputs);
  a("outputs", step.outputs);
  a("numbers", step.numbers);
}

template <typename A>
void fields(A& a, runtime::CheckResultsStep::Expected& expected) {
  a("slot", expected.slot);
  a("dtype", expected.dtype);
  a("sizes", expected.sizes);
  a("strides", expected.strides);
}

template <typename A>
void fields(A& a, runtime::CheckResultsStep& step) {
  a("op", step.op);
  a("results", step.results);
}

template <typename A>
void fields(A& a, runtime::FreeStep& step) {
  a("slot", step.slot);
}

template <typename A>
void fields(A& a, runtime::BindStep& step) {
  a("kind", step.kind);
  a("symbol", step.symbol);
  a("slot", step.slot);
  a("dim", step.dim);
}

template <typename A>
void fields(A& a, runtime::EvaluateStep& step) {
  a("phase", step.phase);
}

template <typename A>
void fields(A& a, runtime::CheckStep& step) {
  a("condition", step.condition);
  a("check", step.check);
}

// A step is named by its position among the kinds of steps.
template <typename A, size_t... I>
void read_step(A& a, runtime::Step& step, size_t kind, std::index_sequence<I...>) {
  bool found = ((I == kind && (a("step", step.emplace<I>()), true)) || ...);
  if (!found) A::refuse("there is no such step");
}
template <typename A>
void fields(A& a, runtime::Step& step) {
  size_t kind = step.index();
  a("kind", kind);
  if constexpr (A::kReads)
    read_step(a, step, kind, std::make_index_sequence<std::variant_size_v<runtime::Step>>());
  else
    std::visit([&](auto& each) { a("step", each); }, step);
}

template <typename A>
void fields(A& a, runtime::PlanOutput& output) {
  a("slot", output.slot);
  a("number", output.number);
}

// Without its kernels, which other sections hold.
template <typename A>
void fields(A& a, runtime::Plan& plan) {
  a("env", plan.env);
  InPool<A> pool(a, &plan.env->pool());
  a("input_count", plan.input_count);
  a("slot_count", plan.slot_count);
  a("expressions", plan.expressions);
  std::vector<std::vector<runtime::ExprIndex>> phases;
  for (const runtime::Phase& phase : plan.phases) phases.push_back(phase.results);
  a("phases", phases);
  a("symbol_count", plan.symbol_count);
  a("steps", plan.steps);
  a("outputs", plan.outputs);
  a("draws", plan.draws);
  if constexpr (A::kReads) {
    for (std::vector<runtime::ExprIndex>& results : phases) {
      std::vector<sym::Expr> expressions;
      for (runtime::ExprIndex at : results) {
        if (static_cast<size_t>(at) >= plan.expressions.size()) A::refuse("a phase evaluates what is not there");
        expressions.push_back(plan.expressions[static_cast<size_t>(at)]);
      }
      plan.phases.push_back({sym::ExprProgram(expressions), std::move(results)});
    }
  }
}

// ---- Functions ----------------------------------------------------------------------------------------------------

template <typename A>
void fields(A& a, Place& place) {
  a("kind", place.kind);
  a("index", place.index);
}

template <typename A>
void fields(A& a, ArgumentRule& rule) {
  a("name", rule.name);
  a("dtype", rule.dtype);
  a("rank", rule.rank);
}

template <typename A>
void fields(A& a, ResultRule& rule) {
  a("kind", rule.kind);
  a("index", rule.index);
  a("place", rule.place);
  a("sizes", rule.sizes);
  a("strides", rule.strides);
  a("offset", rule.offset);
  a("number", rule.number);
  a("constant", rule.constant);
}

template <typename A>
void fields(A& a, WriteBack& written) {
  a("output", written.output);
  a("place", written.place);
}

template <typename A>
void fields(A& a, Variant& variant) {
  a("constants", variant.constants);
  a("same_as", variant.same_as);
  a("arguments", variant.arguments);
  a("inputs", variant.inputs);
  a("own_numbers", variant.own_numbers);
  a("sizes", variant.sizes);
  a("aliased", variant.aliased);
  a("aliases", variant.aliases);
  a("plan_inputs", variant.plan_inputs);
  a("plan", variant.plan);
  InPool<A> pool(a, &variant.plan.env->pool());
  a("seeds", variant.seeds);
  a("bound", variant.bound);
  a("written", variant.written);
  a("results", variant.results);
}

}  // namespace tenon::package
