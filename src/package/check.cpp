#include "function.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::package {
namespace {

// Whether every number in a plan that stands for something does.
class CheckPlan {
 public:
  // `given`: how many numbers it is run with.
  CheckPlan(const runtime::Plan& plan, size_t given) : plan_(plan), given_(given) {}

  void run() const {
    require(plan_.env && !plan_.phases.empty() && plan_.input_count <= plan_.slot_count, "its parts");
    require(symbols() <= std::max(given_, plan_.symbol_count), "a symbol");
    for (const runtime::Phase& phase : plan_.phases) see_all(phase.results);
    for (const runtime::Step& step : plan_.steps) std::visit([this](const auto& each) { see(each); }, step);
    for (const runtime::PlanOutput& output : plan_.outputs)
      require(in(output.slot, plan_.slot_count) || in(output.number, plan_.expressions.size()), "an output");
  }

  void tensor_output(int32_t at) const {
    require(in(at, plan_.outputs.size()) && plan_.outputs[static_cast<size_t>(at)].slot >= 0, "an output");
  }

  static void require(bool holds, std::string_view what) {
    TENON_CHECK_VALUE(holds, "it contradicts itself: {} is not there", what);
  }
  template <typename T>
  static bool in(T at, size_t count) {
    return at >= 0 && static_cast<size_t>(at) < count;
  }
  size_t symbols() const { return static_cast<size_t>(plan_.env->pool().symbol_count()); }

 private:
  void slot(runtime::Slot at) const { require(in(at, plan_.slot_count), "a slot"); }
  void expr(runtime::ExprIndex at) const { require(in(at, plan_.expressions.size()), "an expression"); }
  void slots(const std::vector<runtime::Slot>& list) const {
    for (runtime::Slot at : list) slot(at);
  }
  void see_all(const std::vector<runtime::ExprIndex>& list) const {
    for (runtime::ExprIndex at : list) expr(at);
  }
  void geometry(const std::vector<runtime::ExprIndex>& sizes, const std::vector<runtime::ExprIndex>& strides) const {
    require(sizes.size() == strides.size(), "a stride");
    see_all(sizes);
    see_all(strides);
  }

  void see(const runtime::AllocateStep& step) const {
    slot(step.slot);
    if (step.reuse >= 0) slot(step.reuse);
    geometry(step.sizes, step.strides);
  }
  void see(const runtime::ViewStep& step) const {
    slot(step.slot);
    slot(step.base);
    geometry(step.sizes, step.strides);
    expr(step.offset);
  }
  void see(const runtime::LaunchStep& step) const {
    require(step.kernel < plan_.kernels.size(), "a kernel");
    const load::Kernel& kernel = *plan_.kernels[step.kernel];
    require(step.integers.size() == kernel.integers.size(), "a number of a kernel");
    slots(step.buffers);
    see_all(step.integers);
    for (const runtime::ScalarSource& source : step.scalars) {
      using Kind = runtime::ScalarSource::Kind;
      if (source.kind == Kind::Expr) expr(source.index);
      if (source.kind == Kind::Seed || source.kind == Kind::Offset)
        require(in(source.index, plan_.draws.size()), "a draw");
    }
  }
  void see(const runtime::CallStep& step) const {
    require(step.op && step.arguments.size() == step.op->schema().arguments.size(), "an argument of a call");
    see_call(step);
    require(step.tensors <= step.outputs.size(), "an argument of a call");
  }
  void see_call(const auto& step) const {
    slots(step.inputs);
    slots(step.outputs);
    see_all(step.numbers);
    size_t tensors = 0, numbers = 0;
    for (const runtime::CallArgument& argument : step.arguments) {
      using Kind = runtime::CallArgument::Kind;
      require(argument.count >= 0, "an argument of a call");
      const auto count = static_cast<size_t>(argument.count);
      switch (argument.kind) {
        case Kind::Constant: break;
        case Kind::Tensor: ++tensors; break;
        case Kind::Tensors: tensors += count; break;
        case Kind::OptionalTensors:
          for (bool given : argument.given) tensors += given;
          break;
        case Kind::Integers: numbers += count; break;
        case Kind::Integer:
        case Kind::Real:
        case Kind::Flag: ++numbers; break;
      }
    }
    require(tensors == step.inputs.size() && numbers == step.numbers.size(), "an argument of a call");
  }

  // How many tensors or numbers an argument of a body's stands for, by its place.
  static size_t count_of(const runtime::BodyStep& step, size_t at, runtime::CallArgument::Kind kind) {
    require(at < step.arguments.size() && step.arguments[at].kind == kind, "an argument of a body");
    return static_cast<size_t>(step.arguments[at].count);
  }
  void see(const runtime::BodyStep& step) const {
    using Kind = runtime::CallArgument::Kind;
    require(step.bodies != nullptr, "a body");
    see_call(step);
    const runtime::Bodies& bodies = *step.bodies;
    require(bodies.kind <= runtime::Bodies::Kind::While, "a body");
    size_t carried = 0, inputs = 0, numbers = 0, own_results = step.outputs.size(), arguments = 3, count = 2;
    switch (bodies.kind) {
      case runtime::Bodies::Kind::Scan:
        carried = count_of(step, 0, Kind::Tensors);
        inputs = carried + count_of(step, 1, Kind::Tensors) + count_of(step, 2, Kind::Tensors);
        numbers = count_of(step, 3, Kind::Integers);
        require(count_of(step, 4, Kind::Integer) == 1 && step.arguments.size() == 6 &&
                    step.arguments[5].kind == Kind::Constant &&
                    step.arguments[5].constant.tag() == dispatch::Value::Tag::Bool,
                "an argument of a body");
        arguments = 6;
        count = 1;
        break;
      case runtime::Bodies::Kind::Branch:
        require(count_of(step, 0, Kind::Tensor) == 1, "a predicate");
        inputs = count_of(step, 1, Kind::Tensors);
        numbers = count_of(step, 2, Kind::Integers);
        break;
      case runtime::Bodies::Kind::While:
        carried = count_of(step, 0, Kind::Tensors);
        inputs = carried + count_of(step, 1, Kind::Tensors);
        numbers = count_of(step, 2, Kind::Integers);
        break;
    }
    require(step.arguments.size() == arguments && bodies.bodies.size() == count && bodies.carried == carried &&
                own_results >= carried,
            "an argument of a body");
    for (size_t at = 0; at < count; ++at) {
      const bool is_condition = bodies.kind == runtime::Bodies::Kind::While && at == 0;
      see_body(*bodies.bodies[at], inputs, is_condition ? 1 : own_results, numbers);
    }
  }
  static void see_body(const runtime::Body& body, size_t inputs, size_t results, size_t numbers) {
    const runtime::BodyShape& shape = body.shape();
    require(shape.env && static_cast<size_t>(shape.env->pool().symbol_count()) <= numbers, "a number of a body");
    require(shape.inputs.size() == inputs && shape.results.size() == results, "a tensor of a body");
    for (const std::vector<runtime::BodyTensor>* list : {&shape.inputs, &shape.results})
      for (const runtime::BodyTensor& each : *list) {
        require(each.sizes.size() == each.strides.size(), "a stride");
        for (const std::vector<sym::Expr>* numbers_of : {&each.sizes, &each.strides})
          for (sym::Expr number : *numbers_of) require(number.defined(), "a size");
      }
    for (const runtime::BodyPlanRef& each : body.plans()) {
      require(each->plan && each->env && static_cast<size_t>(each->env->pool().symbol_count()) <= numbers,
              "a plan of a body");
      for (sym::Expr condition : each->conditions) require(condition.defined(), "a condition");
      require(each->plan->input_count == inputs && each->results.size() == results, "a tensor of a body");
      CheckPlan inside(*each->plan, numbers);
      inside.run();
      for (int32_t at : each->results)
        if (at >= 0)
          inside.tensor_output(at);
        else
          require(in(-1 - at, inputs), "an input of a body");
    }
  }
  void see(const runtime::CheckResultsStep& step) const {
    require(step.op, "an operator");
    for (const runtime::CheckResultsStep::Expected& each : step.results) {
      slot(each.slot);
      geometry(each.sizes, each.strides);
    }
  }
  void see(const runtime::FreeStep& step) const { slot(step.slot); }
  void see(const runtime::BindStep& step) const {
    slot(step.slot);
    require(in(step.symbol, std::min(symbols(), plan_.symbol_count)), "a symbol");
  }
  void see(const runtime::EvaluateStep& step) const { require(step.phase < plan_.phases.size(), "a phase"); }
  void see(const runtime::CheckStep& step) const { expr(step.condition); }

  const runtime::Plan& plan_;
  size_t given_;
};

// The same in a variant.
class Check {
 public:
  Check(const Variant& variant, size_t tensors) : variant_(variant), plan_(variant.plan), tensors_(tensors) {}

  void run() {
    require(plan_.env && variant_.same_as.size() == variant_.arguments.size(), "its parts");
    require(plan_.input_count == variant_.plan_inputs.size(), "its inputs");
    for (const Place& place : variant_.inputs)
      if (place.kind != Place::Kind::Nowhere) see(place);
    for (const std::vector<Place>* places : {&variant_.aliased, &variant_.plan_inputs})
      for (const Place& place : *places) see(place);
    for (int32_t first : variant_.same_as) require(in(first, variant_.arguments.size()), "an argument");
    const core::AliasClasses& aliases = variant_.aliases;
    require(aliases.empty() ||
                (aliases.size() == variant_.aliased.size() && aliases.written().size() == variant_.aliased.size()),
            "what overlaps");
    guards();
    CheckPlan(plan_, symbols()).run();
    require(variant_.bound.size() <= plan_.outputs.size(), "what it binds");
    for (int32_t symbol : variant_.bound) require(in(symbol, symbols()), "a symbol");
    for (const WriteBack& each : variant_.written) {
      tensor_output(each.output);
      see(each.place);
    }
    for (size_t at = 0; at < variant_.results.size(); ++at) see(variant_.results[at], at);
  }

 private:
  static void require(bool holds, std::string_view what) { CheckPlan::require(holds, what); }
  template <typename T>
  static bool in(T at, size_t count) {
    return CheckPlan::in(at, count);
  }
  size_t symbols() const { return static_cast<size_t>(plan_.env->pool().symbol_count()); }
  void tensor_output(int32_t at) const { CheckPlan(plan_, symbols()).tensor_output(at); }

  void see(const Place& place) const {
    require(in(place.index, place.kind == Place::Kind::File ? tensors_ : variant_.arguments.size()), "a tensor");
    require(place.kind != Place::Kind::Nowhere, "a tensor");
  }
  void guards() const {
    const core::SizeGuards::Parts& parts = variant_.sizes.parts();
    require(parts.env && parts.names.size() >= variant_.inputs.size(), "the names of its inputs");
    auto dim_of = [&](int32_t input, int32_t dim) {
      require(in(input, variant_.inputs.size()), "an input");
      const Place& place = variant_.inputs[static_cast<size_t>(input)];
      require(place.kind != Place::Kind::Nowhere, "an input");
      if (place.kind == Place::Kind::Argument)
        require(dim == core::SizeGuards::Expectation::kOffset ||
                    in(dim, static_cast<size_t>(variant_.arguments[static_cast<size_t>(place.index)].rank)),
                "a dimension");
    };
    for (const core::SymbolSource& source : parts.sources)
      if (source.kind != core::SymbolSource::Kind::None && source.kind != core::SymbolSource::Kind::Number)
        dim_of(source.input, source.dim);
    for (const core::SizeGuards::Expectation& each : parts.expected) {
      dim_of(each.input, each.dim);
      require(each.value.defined(), "a size");
    }
    for (const sym::Guard& guard : parts.guards) require(guard.condition.defined(), "a condition");
  }

  void see(const ResultRule& rule, size_t at) const {
    auto is_view = [&] {
      require(rule.sizes.size() == rule.strides.size() && rule.offset.defined(), "a stride");
      for (const std::vector<sym::Expr>* list : {&rule.sizes, &rule.strides})
        for (sym::Expr each : *list) require(each.defined(), "a size");
    };
    if (rule.place.kind != Place::Kind::Nowhere) see(rule.place);
    switch (rule.kind) {
      case ResultRule::Kind::Constant: break;
      case ResultRule::Kind::Output: require(in(rule.index, plan_.outputs.size()), "an output"); break;
      case ResultRule::Kind::Number: require(rule.number.defined(), "a number"); break;
      case ResultRule::Kind::Tensor: see(rule.place); break;
      case ResultRule::Kind::ViewOfOutput:
        tensor_output(rule.index);
        is_view();
        break;
      case ResultRule::Kind::ViewOfTensor:
        see(rule.place);
        is_view();
        break;
      case ResultRule::Kind::SameAsAnother: require(in(rule.index, at), "a result"); break;
    }
  }

  const Variant& variant_;
  const runtime::Plan& plan_;
  size_t tensors_;
};

}  // namespace

void each_plan(const runtime::Plan& plan, const std::function<void(const runtime::Plan&)>& visit) {
  visit(plan);
  for (const runtime::Step& step : plan.steps)
    if (const auto* inside = std::get_if<runtime::BodyStep>(&step))
      for (const runtime::BodyRef& body : inside->bodies->bodies)
        for (const runtime::BodyPlanRef& each : body->plans())
          if (each->plan) each_plan(*each->plan, visit);
}

void check(const Variant& variant, size_t tensors) { Check(variant, tensors).run(); }

}  // namespace tenon::package
