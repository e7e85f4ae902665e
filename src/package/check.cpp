#include "function.h"

#include <fmt/format.h>

namespace tenon::package {
namespace {

// Whether every number in a variant that stands for something does.
class Check {
 public:
  Check(const Variant& variant, size_t tensors) : variant_(variant), plan_(variant.plan), tensors_(tensors) {}

  void run() {
    require(plan_.env && variant_.same_as.size() == variant_.arguments.size() && !plan_.phases.empty(), "its parts");
    require(plan_.input_count == variant_.plan_inputs.size() && plan_.input_count <= plan_.slot_count, "its inputs");
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
    for (const runtime::Phase& phase : plan_.phases) see_all(phase.results);
    for (const runtime::Step& step : plan_.steps) std::visit([this](const auto& each) { see(each); }, step);
    for (const runtime::PlanOutput& output : plan_.outputs)
      require(in(output.slot, plan_.slot_count) || in(output.number, plan_.expressions.size()), "an output");
    require(variant_.bound.size() <= plan_.outputs.size(), "what it binds");
    for (int32_t symbol : variant_.bound) require(in(symbol, symbols()), "a symbol");
    for (const WriteBack& each : variant_.written) {
      tensor_output(each.output);
      see(each.place);
    }
    for (size_t at = 0; at < variant_.results.size(); ++at) see(variant_.results[at], at);
  }

 private:
  static void require(bool holds, std::string_view what) {
    TENON_CHECK_VALUE(holds, "it contradicts itself: {} is not there", what);
  }
  template <typename T>
  static bool in(T at, size_t count) {
    return at >= 0 && static_cast<size_t>(at) < count;
  }
  size_t symbols() const { return static_cast<size_t>(plan_.env->pool().symbol_count()); }

  void see(const Place& place) const {
    require(in(place.index, place.kind == Place::Kind::File ? tensors_ : variant_.arguments.size()), "a tensor");
    require(place.kind != Place::Kind::Nowhere, "a tensor");
  }
  void tensor_output(int32_t at) const {
    require(in(at, plan_.outputs.size()) && plan_.outputs[static_cast<size_t>(at)].slot >= 0, "an output");
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
    require(tensors == step.inputs.size() && numbers == step.numbers.size() && step.tensors <= step.outputs.size(),
            "an argument of a call");
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

void check(const Variant& variant, size_t tensors) { Check(variant, tensors).run(); }

}  // namespace tenon::package
