#include "runtime/call.h"

#include <tenon/core/draws.h>
#include <tenon/core/given_up.h>
#include <tenon/kernels/item.h>
#include <tenon/runtime/launch.h>
#include <tenon/runtime/plan.h>

#include <fmt/format.h>

#include <bit>

namespace tenon::runtime {
namespace {

// One run: the slots and the numbers.
class Run {
 public:
  Run(const Plan& plan, std::span<const Tensor> inputs, std::span<const int64_t> symbols) : plan_(plan) {
    TENON_ASSERT(inputs.size() == plan.input_count, "{} inputs given, {} expected", inputs.size(), plan.input_count);
    slots_.reserve(plan.slot_count);
    if (std::span<Tensor> ours = core::taken(inputs); !ours.empty())
      for (Tensor& input : ours) slots_.push_back(std::move(input));
    else
      for (const Tensor& input : inputs) slots_.push_back(input);
    slots_.resize(plan.slot_count);
    numbers_.resize(plan.expressions.size());
    symbols_ = symbols;
    if (plan.symbol_count > 0) {
      own_symbols_.assign(symbols.begin(), symbols.end());
      own_symbols_.resize(plan.symbol_count);
      symbols_ = own_symbols_;
    }
    run(EvaluateStep{0});
    for (int32_t draw : plan.draws) random_.push_back(draw_number(draw));
  }

  std::vector<dispatch::Value> go() {
    for (const Step& step : plan_.steps) std::visit([this](const auto& each) { run(each); }, step);
    std::vector<dispatch::Value> results;
    results.reserve(plan_.outputs.size());
    for (const PlanOutput& output : plan_.outputs) {
      if (output.slot >= 0)
        results.push_back(Tensor(slot(output.slot)));
      else
        results.push_back(number(output.number));
    }
    return results;
  }

 private:
  Tensor& slot(Slot at) { return slots_[static_cast<size_t>(at)]; }
  Ints numbers(const std::vector<ExprIndex>& which) const {
    Ints list;
    for (ExprIndex at : which) list.push_back(numbers_[static_cast<size_t>(at)]);
    return list;
  }

  void run(const AllocateStep& step) {
    Ints sizes = numbers(step.sizes), strides = numbers(step.strides);
    Tensor taken;
    if (step.reuse >= 0) taken = std::move(slot(step.reuse));
    if (!taken.defined() || !is_ours(taken)) {
      slot(step.slot) = core::allocate(sizes.span(), strides.span(), step.dtype, kCPU);
      return;
    }
    auto impl = make_ref<TensorImpl>();
    impl->storage = taken.impl()->storage;
    impl->sizes = sizes;
    impl->strides = strides;
    impl->dtype = step.dtype;
    impl->device = taken.device();
    impl->keys = taken.impl()->keys;
    impl->version = make_ref<Version>();
    slot(step.slot) = Tensor(impl);
  }

  // Whether nobody but this run holds the memory of a tensor taken out of its slot. A custom operator may have kept its
  // argument, which must not change under its hands.
  bool is_ours(const Tensor& taken) const {
    if (taken.impl()->use_count() > 1) return false;
    uint32_t others = taken.impl()->storage->use_count() - 1;
    for (size_t at = 0; others > 0 && at < slots_.size(); ++at)
      if (slots_[at].defined() && slots_[at].is_same_storage(taken)) --others;
    return others == 0;
  }

  void run(const ViewStep& step) {
    const Tensor& base = slot(step.base);
    SymInt offset = base.storage_offset() + numbers_[static_cast<size_t>(step.offset)];
    slot(step.slot) =
        core::make_view(base, SymInts(numbers(step.sizes).span()), SymInts(numbers(step.strides).span()), offset);
  }

  void run(const LaunchStep& step) {
    SmallVector<void*, 16> buffers;
    for (Slot at : step.buffers) buffers.push_back(slot(at).raw_data());
    SmallVector<int64_t, 16> integers;
    for (ExprIndex at : step.integers) integers.push_back(numbers_[static_cast<size_t>(at)]);
    SmallVector<uint64_t, 8> scalars;
    for (const ScalarSource& source : step.scalars) scalars.push_back(scalar(source));
    launch(*plan_.kernels[step.kernel], {buffers.data(), buffers.size()}, integers.span(), scalars.span());
  }

  uint64_t scalar(const ScalarSource& source) const {
    auto at = static_cast<size_t>(source.index);
    switch (source.kind) {
      case ScalarSource::Kind::Constant: return source.bits;
      case ScalarSource::Kind::Expr: return static_cast<uint64_t>(numbers_[at]);
      case ScalarSource::Kind::Seed: return random_[at].first;
      case ScalarSource::Kind::Offset: return random_[at].second;
    }
    return 0;
  }

  void run(const CallStep& step) { call_with(step); }
  void run(const BodyStep& step) { call_with(step); }
  void call_with(const auto& step) {
    SmallVector<Tensor, 6> inputs, outputs;
    for (Slot at : step.inputs) inputs.push_back(slot(at));
    for (Slot at : step.outputs) outputs.push_back(slot(at));
    call(step, inputs.span(), {outputs.data(), outputs.size()}, numbers(step.numbers).span());
    // A call that makes its results itself has put them there.
    for (size_t at = 0; at < outputs.size(); ++at) slot(step.outputs[at]) = std::move(outputs[at]);
  }

  void run(const CheckResultsStep& step) {
    for (size_t at = 0; at < step.results.size(); ++at) {
      const CheckResultsStep::Expected& expected = step.results[at];
      check_result(*step.op, at, slot(expected.slot), expected.dtype, numbers(expected.sizes).span(),
                   numbers(expected.strides).span());
    }
  }

  void run(const FreeStep& step) { slot(step.slot) = Tensor(); }

  void run(const BindStep& step) {
    const Tensor& tensor = slot(step.slot);
    int64_t& symbol = own_symbols_[static_cast<size_t>(step.symbol)];
    switch (step.kind) {
      case BindStep::Kind::Item: {
        Scalar value = kernels::item(tensor);
        symbol = value.is_real() ? std::bit_cast<int64_t>(value.real()) : value.to_int();
        break;
      }
      case BindStep::Kind::Size: symbol = tensor.sizes()[static_cast<size_t>(step.dim)]; break;
      case BindStep::Kind::Stride: symbol = tensor.strides()[static_cast<size_t>(step.dim)]; break;
      case BindStep::Kind::Offset: symbol = tensor.storage_offset(); break;
    }
  }

  void run(const EvaluateStep& step) {
    try {
      evaluate(plan_.phases[step.phase]);
    } catch (const Error&) {
      say_with_expression(plan_.phases[step.phase]);
      throw;
    }
  }

  void evaluate(const Phase& phase) {
    // One phase alone holds all expressions, in order.
    if (plan_.phases.size() == 1) return phase.program.run(symbols_, {numbers_.data(), numbers_.size()});
    SmallVector<int64_t, 32> values(phase.results.size());
    phase.program.run(symbols_, {values.data(), values.size()});
    for (size_t at = 0; at < phase.results.size(); ++at) numbers_[static_cast<size_t>(phase.results[at])] = values[at];
  }

  // Raises what is wrong with the first expression that has no value, naming it.
  void say_with_expression(const Phase& phase) const {
    auto say = [this](size_t at) { sym::evaluate(plan_.expressions[at], symbols_); };
    if (plan_.phases.size() == 1)
      for (size_t at = 0; at < plan_.expressions.size(); ++at) say(at);
    else
      for (ExprIndex at : phase.results) say(static_cast<size_t>(at));
  }

  void run(const CheckStep& step) {
    if (numbers_[static_cast<size_t>(step.condition)] != 0) return;
    throw RuntimeError(sym::failed_check(step.check, *plan_.env, symbols_));
  }

  dispatch::Value number(ExprIndex at) const {
    sym::Expr expr = plan_.expressions[static_cast<size_t>(at)];
    int64_t bits = numbers_[static_cast<size_t>(at)];
    if (expr.is_real()) return std::bit_cast<double>(bits);
    return expr.is_boolean() ? dispatch::Value(bits != 0) : dispatch::Value(bits);
  }

  const Plan& plan_;
  std::span<const int64_t> symbols_;  // the caller's, or ours where steps bind some
  std::vector<int64_t> own_symbols_;
  SmallVector<Tensor, 16> slots_;
  SmallVector<int64_t, 32> numbers_;
  std::vector<Draw> random_;
};

}  // namespace

std::vector<dispatch::Value> run(const Plan& plan, std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
  return Run(plan, inputs, symbols).go();
}

namespace {

struct Printer {
  const Plan& plan;
  std::string expr(ExprIndex at) const { return plan.expressions[static_cast<size_t>(at)].str(); }
  std::string list(const std::vector<ExprIndex>& which) const {
    std::vector<std::string> words;
    for (ExprIndex at : which) words.push_back(expr(at));
    return fmt::format("[{}]", fmt::join(words, ", "));
  }
  static std::string slots(const std::vector<Slot>& which) { return fmt::format("${}", fmt::join(which, ", $")); }

  std::string operator()(const AllocateStep& step) const {
    std::string text = fmt::format("${} = allocate {}{}", step.slot, name(step.dtype), list(step.sizes));
    return step.reuse < 0 ? text : text + fmt::format(" in ${}", step.reuse);
  }
  std::string operator()(const ViewStep& step) const {
    return fmt::format("${} = view ${} {} strides={} offset={}", step.slot, step.base, list(step.sizes),
                       list(step.strides), expr(step.offset));
  }
  std::string operator()(const LaunchStep& step) const {
    return fmt::format("launch {}({}; {})", plan.kernels[step.kernel]->name, slots(step.buffers), list(step.integers));
  }
  std::string operator()(const CallStep& step) const {
    std::string epilogue = step.epilogue == dispatch::Epilogue::None ? "" : fmt::format("+{}", name(step.epilogue));
    return fmt::format("{} = call {}{}({})", slots(step.outputs), step.op->name(), epilogue, slots(step.inputs));
  }
  std::string operator()(const BodyStep& step) const {
    return fmt::format("{} = run {}({})", slots(step.outputs), step.bodies->name, slots(step.inputs));
  }
  std::string operator()(const CheckResultsStep& step) const {
    std::vector<Slot> which;
    for (const CheckResultsStep::Expected& each : step.results) which.push_back(each.slot);
    return fmt::format("check that {} is like the fakes of {}", slots(which), step.op->name());
  }
  std::string operator()(const FreeStep& step) const { return fmt::format("free ${}", step.slot); }
  std::string operator()(const BindStep& step) const {
    std::string symbol = plan.env->pool().symbol(step.symbol).name();
    switch (step.kind) {
      case BindStep::Kind::Item: return fmt::format("{} = item ${}", symbol, step.slot);
      case BindStep::Kind::Size: return fmt::format("{} = size {} of ${}", symbol, step.dim, step.slot);
      case BindStep::Kind::Stride: return fmt::format("{} = stride {} of ${}", symbol, step.dim, step.slot);
      case BindStep::Kind::Offset: break;
    }
    return fmt::format("{} = offset of ${}", symbol, step.slot);
  }
  std::string operator()(const EvaluateStep& step) const {
    std::vector<ExprIndex> which = plan.phases[step.phase].results;
    return fmt::format("evaluate {}", list(which));
  }
  std::string operator()(const CheckStep& step) const { return fmt::format("check {}", expr(step.condition)); }
};

}  // namespace

std::string to_string(const Plan& plan) {
  Printer print{plan};
  std::string text = fmt::format("plan({} inputs)\n", plan.input_count);
  for (const Step& step : plan.steps) {
    // Letting go of an input is nothing to a caller who holds it.
    const auto* free = std::get_if<FreeStep>(&step);
    if (!free || free->slot >= static_cast<Slot>(plan.input_count)) text += "  " + std::visit(print, step) + "\n";
  }
  std::vector<std::string> outputs;
  for (const PlanOutput& output : plan.outputs)
    outputs.push_back(output.slot >= 0 ? fmt::format("${}", output.slot) : print.expr(output.number));
  return text + fmt::format("  return ({})\n", fmt::join(outputs, ", "));
}

}  // namespace tenon::runtime
