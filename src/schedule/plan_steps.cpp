// Steps of a plan from the groups of a schedule: allocation, launches, calls, and memory taken over from values that
// have died.
#include "plan_steps.h"

#include "in_place.h"
#include "plan_memory.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::schedule {
namespace {

class Planner {
 public:
  Planner(const Schedule& schedule, const std::vector<GroupLoops>& groups, const std::vector<EmittedGroup>& emitted,
          std::vector<codegen::CompiledKernelRef> kernels, const Lifetimes& lifetimes)
      : schedule_(schedule),
        graph_(schedule.graph),
        groups_(groups),
        emitted_(emitted),
        last_use_(lifetimes.last),
        dying_(groups.size()),
        plan_(std::make_shared<runtime::Plan>()) {
    plan_->kernels.assign(kernels.begin(), kernels.end());
    for (size_t id = 0; id < last_use_.size(); ++id)
      if (last_use_[id] >= 0 && last_use_[id] != Lifetimes::kForever)
        dying_[static_cast<size_t>(last_use_[id])].push_back(static_cast<ValueId>(id));
  }

  std::shared_ptr<const runtime::Plan> run() {
    plan_->input_count = graph_.inputs.size();
    slot_of_.assign(graph_.values.size(), -1);
    for (size_t at = 0; at < graph_.inputs.size(); ++at)
      slot_of_[static_cast<size_t>(graph_.inputs[at])] = static_cast<runtime::Slot>(at);
    next_slot_ = static_cast<runtime::Slot>(graph_.inputs.size());
    for (const Update& update : schedule_.updates) plan_updated(update);
    // Draws are taken in the order of the program, not in that of the kernels.
    for (const Node& node : graph_.nodes)
      if (const ops::Row& row = row_for(*node.op); row.kind == ops::Kind::Element && row.element.random)
        (void)random_use(&node);
    // What nothing reads is given up at once, where the caller has (core/given_up.h).
    for (ValueId input : graph_.inputs)
      if (last_use_[static_cast<size_t>(input)] == Lifetimes::kNever)
        plan_->steps.push_back(runtime::FreeStep{slot_of_[static_cast<size_t>(input)]});
    for (size_t at = 0; at < schedule_.groups.size(); ++at) plan_group(at);
    plan_outputs();
    plan_->slot_count = static_cast<size_t>(next_slot_);
    plan_->env = graph_.env;
    plan_phases();
    return plan_;
  }

 private:
  runtime::ExprIndex expr(Expr expression) { return exact_expr(graph_.env->pool().simplify(expression)); }
  runtime::ExprIndex exact_expr(Expr expression) {
    auto [found, added] =
        expr_index_.try_emplace(expression, static_cast<runtime::ExprIndex>(plan_->expressions.size()));
    if (added) plan_->expressions.push_back(expression);
    return found->second;
  }
  runtime::ExprIndex expr(const SymInt& number) { return expr(to_expr(graph_, number)); }
  std::vector<runtime::ExprIndex> exprs(const SymInts& numbers) {
    std::vector<runtime::ExprIndex> list;
    for (const SymInt& number : numbers) list.push_back(expr(number));
    return list;
  }

  runtime::Slot slot(ValueId id) {
    runtime::Slot& at = slot_of_[static_cast<size_t>(id)];
    if (at >= 0) return at;
    ValueId base = schedule_.state(id).base;
    TENON_ASSERT(base != id, "%{} has no memory", graph_.values[static_cast<size_t>(id)].name);
    const Tensor& meta = graph_.meta(id);
    SymInt offset = meta.sym_storage_offset() - graph_.meta(base).sym_storage_offset();
    at = next_slot_++;
    plan_->steps.push_back(
        runtime::ViewStep{at, slot(base), exprs(meta.sym_sizes()), exprs(meta.sym_strides()), expr(offset)});
    views_of_[base].push_back(id);
    return at;
  }

  // What an input becomes lies where the input lies.
  void plan_updated(const Update& update) {
    if (update.result == graph::kNoValue) return;
    const Tensor &meta = graph_.meta(update.result), &input = graph_.meta(update.input);
    runtime::Slot &at = slot_of_[static_cast<size_t>(update.result)],
                  base = slot_of_[static_cast<size_t>(update.input)];
    at = base;
    if (has_geometry(meta, input)) return;
    at = next_slot_++;
    plan_->steps.push_back(runtime::ViewStep{at, base, exprs(meta.sym_sizes()), exprs(meta.sym_strides()),
                                             expr(graph_.env->pool().constant(0))});
  }

  // Memory for these values, and the end of all that died and does not serve one of them.
  void allocate(const std::vector<ValueId>& ids) {
    std::vector<runtime::Slot> reuse;
    for (ValueId id : ids) reuse.push_back(take_freed(id));
    for (const Freed& each : freed_) plan_->steps.push_back(runtime::FreeStep{each.slot});
    freed_.clear();
    for (size_t at = 0; at < ids.size(); ++at) {
      const Tensor& meta = graph_.meta(ids[at]);
      slot_of_[static_cast<size_t>(ids[at])] = next_slot_;
      plan_->steps.push_back(runtime::AllocateStep{next_slot_++, exprs(meta.sym_sizes()), exprs(meta.sym_strides()),
                                                   meta.dtype(), reuse[at]});
    }
  }

  // A block that died, as large as the value or a little larger; the caller gets none that is larger. -1: there is
  // none.
  runtime::Slot take_freed(ValueId id) {
    const Expr wanted = bytes_of(graph_, id);
    auto found = std::find_if(freed_.begin(), freed_.end(), [&](const Freed& each) { return each.bytes == wanted; });
    if (found == freed_.end() && last_use_[static_cast<size_t>(id)] != Lifetimes::kForever)
      found = std::find_if(freed_.begin(), freed_.end(), [&](const Freed& each) {
        sym::ExprPool& pool = graph_.env->pool();
        return pool.range(pool.simplify(each.bytes - wanted)).min >= 0 &&
               pool.range(pool.simplify(wanted * 2 - each.bytes)).min >= 0;
      });
    if (found == freed_.end()) return -1;
    const runtime::Slot slot = found->slot;
    freed_.erase(found);
    return slot;
  }

  // Values that no later step reads: the next step's results get their memory, or else it goes back.
  void release(size_t at) {
    for (ValueId value : dying_[at]) {
      const auto id = static_cast<size_t>(value);
      if (slot_of_[id] < 0) continue;
      for (ValueId view : views_of_[value])
        plan_->steps.push_back(runtime::FreeStep{slot_of_[static_cast<size_t>(view)]});
      const ValueState& state = schedule_.state(value);
      if (state.memory != graph::kNoValue || taken_over_.contains(value)) continue;
      // An input, which the caller may have given up (core/given_up.h). And what a custom operator gave is not ours to
      // write to: it may have kept it.
      if (!state.node || !ops::row_of(*state.node->op))
        plan_->steps.push_back(runtime::FreeStep{slot_of_[id]});
      else
        freed_.push_back({bytes_of(graph_, value), slot_of_[id]});
    }
  }

  void plan_group(size_t at) {
    const Group& group = schedule_.groups[at];
    if (group.call) {
      plan_call(group);
    } else if (!emitted_[at].kernels.empty()) {
      take_over(groups_[at].takes_over);
      std::vector<ValueId> made;
      for (const EmittedKernel& kernel : emitted_[at].kernels)
        for (ValueId id : kernel.buffers)
          if (!is_partial(id) && slot_of_[static_cast<size_t>(id)] < 0 &&
              std::find(made.begin(), made.end(), id) == made.end())
            made.push_back(id);
      allocate(made);
      std::vector<runtime::Slot> partials;
      for (const Partial& partial : emitted_[at].partials) {
        partials.push_back(next_slot_++);
        plan_->steps.push_back(runtime::AllocateStep{
            partials.back(), {expr(partial.count)}, {expr(graph_.env->pool().constant(1))}, partial.dtype});
      }
      for (const EmittedKernel& kernel : emitted_[at].kernels) plan_launch(kernel, partials);
      for (runtime::Slot partial : partials) plan_->steps.push_back(runtime::FreeStep{partial});
    }
    release(at);
  }

  // The kernel then finds what dies and what is made at one place.
  void take_over(const std::vector<TakeOver>& pairs) {
    for (const auto& [result, dying] : pairs) {
      const Tensor& meta = graph_.meta(result);
      runtime::Slot &to = slot_of_[static_cast<size_t>(result)], &from = slot_of_[static_cast<size_t>(dying)];
      to = next_slot_++;
      plan_->steps.push_back(
          runtime::AllocateStep{to, exprs(meta.sym_sizes()), exprs(meta.sym_strides()), meta.dtype(), from});
      from = to;
      taken_over_.insert(dying);
    }
  }

  void plan_launch(const EmittedKernel& kernel, const std::vector<runtime::Slot>& partials) {
    runtime::LaunchStep step;
    step.kernel = launched_++;
    for (ValueId id : kernel.buffers) step.buffers.push_back(is_partial(id) ? partials[partial_place(id)] : slot(id));
    for (Expr each : kernel.integers) step.integers.push_back(expr(each));
    for (Expr each : kernel.numbers) expr(each);
    for (runtime::ScalarSource source : kernel.scalars) {
      if (source.kind == runtime::ScalarSource::Kind::Expr)
        source.index = expr(kernel.scalar_exprs[static_cast<size_t>(source.index)]);
      if (source.kind == runtime::ScalarSource::Kind::Seed || source.kind == runtime::ScalarSource::Kind::Offset)
        source.index = random_use(kernel.random_nodes[static_cast<size_t>(source.index)]);
      step.scalars.push_back(source);
    }
    plan_->steps.push_back(std::move(step));
  }

  // What the node has found out of its data is known from here on. `numbers`: slots of the numbers among its results.
  void plan_bindings(const Node& node, const std::map<int32_t, runtime::Slot>& numbers = {}) {
    if (node.binds.empty()) return;
    int phase = ++phases_;
    for (const graph::Binding& binding : node.binds) {
      using Kind = runtime::BindStep::Kind;
      bound_in_[binding.symbol] = phase;
      auto output = [&] { return slot(node.outputs[static_cast<size_t>(binding.output)]); };
      switch (binding.kind) {
        case graph::Binding::Kind::Item:
          plan_->steps.push_back(
              runtime::BindStep{Kind::Item, binding.symbol,
                                is_item(node) ? slot(std::get<ValueId>(node.args[0])) : numbers.at(binding.dim), 0});
          break;
        case graph::Binding::Kind::Size:
          plan_->steps.push_back(runtime::BindStep{Kind::Size, binding.symbol, output(), binding.dim});
          break;
        case graph::Binding::Kind::Stride:
          plan_->steps.push_back(runtime::BindStep{Kind::Stride, binding.symbol, output(), binding.dim});
          break;
        case graph::Binding::Kind::Offset:
          plan_->steps.push_back(runtime::BindStep{Kind::Offset, binding.symbol, output(), 0});
          break;
        case graph::Binding::Kind::Hidden: break;
      }
    }
    plan_->steps.push_back(runtime::EvaluateStep{static_cast<size_t>(phase)});
    const std::vector<sym::Guard>& checks = graph_.env->deferred_checks();
    checked_.resize(checks.size());
    // (What the graph binds may count as backed, too: it may have run before.)
    if (!checks.empty() && awaited_.empty())
      for (const Node& each : graph_.nodes)
        for (const graph::Binding& binding : each.binds) awaited_.insert(binding.symbol);
    auto is_known = [&](int32_t id) {
      return bound_in_.contains(id) || (graph_.env->is_backed(id) && !awaited_.contains(id));
    };
    for (size_t at = 0; at < checks.size(); ++at) {
      if (checked_[at]) continue;
      std::vector<int32_t> symbols = sym::symbols_of(checks[at].condition);
      if (!std::all_of(symbols.begin(), symbols.end(), is_known)) continue;
      checked_[at] = true;
      // As it was asked: what was learnt from it must not answer it.
      plan_->steps.push_back(runtime::CheckStep{exact_expr(checks[at].condition), checks[at]});
    }
  }

  // Each expression is evaluated as soon as its symbols are known.
  void plan_phases() {
    plan_->phases.resize(static_cast<size_t>(phases_) + 1);
    if (phases_ > 0) plan_->symbol_count = static_cast<size_t>(graph_.env->pool().symbol_count());
    std::vector<std::vector<Expr>> expressions(plan_->phases.size());
    for (size_t at = 0; at < plan_->expressions.size(); ++at) {
      int phase = 0;
      for (int32_t symbol : sym::symbols_of(plan_->expressions[at]))
        if (auto found = bound_in_.find(symbol); found != bound_in_.end()) phase = std::max(phase, found->second);
      expressions[static_cast<size_t>(phase)].push_back(plan_->expressions[at]);
      plan_->phases[static_cast<size_t>(phase)].results.push_back(static_cast<runtime::ExprIndex>(at));
    }
    for (size_t at = 0; at < expressions.size(); ++at) plan_->phases[at].program = sym::ExprProgram(expressions[at]);
  }

  // A random operator draws once per run, wherever it was inlined.
  int32_t random_use(const Node* node) {
    auto [found, added] = random_uses_.try_emplace(node, static_cast<int32_t>(plan_->draws.size()));
    if (added) plan_->draws.push_back(node->draw);
    return found->second;
  }

  // Those that do not take the memory of an input.
  std::vector<ValueId> without_memory(std::vector<ValueId> ids) const {
    std::erase_if(ids, [&](ValueId id) { return slot_of_[static_cast<size_t>(id)] >= 0; });
    return ids;
  }

  void plan_call(const Group& group) {
    const Node& node = *group.call;
    if (is_item(node)) return plan_bindings(node);
    const ops::Row* row = ops::row_of(*node.op);
    runtime::CallStep step;
    step.op = node.op;
    step.kernel = dispatch::opaque_kernel_of(*node.op);
    step.epilogue = group.epilogue;
    graph::each_reference(node, [&](ValueId id) { step.inputs.push_back(slot(id)); });
    if (row && !row->dynamic())
      allocate(without_memory(group.roots));
    else
      for (ValueId id : group.roots) slot_of_[static_cast<size_t>(id)] = next_slot_++;  // the operator makes it
    for (ValueId id : group.roots) step.outputs.push_back(slot(id));
    step.tensors = step.outputs.size();
    for (const graph::Argument& argument : node.args) step.arguments.push_back(call_argument(argument, step.numbers));
    std::map<int32_t, runtime::Slot> numbers;
    if (!row)
      for (size_t at = 0; at < node.op->schema().returns.size(); ++at)
        if (!node.op->schema().returns[at].type.is_tensor_like())
          step.outputs.push_back(numbers[static_cast<int32_t>(at)] = next_slot_++);
    runtime::BodiesRef bodies = row ? nullptr : runtime::bodies_of(*node.op);
    if (bodies)
      plan_->steps.push_back(runtime::BodyStep{bodies, std::move(step.arguments), std::move(step.inputs),
                                               std::move(step.outputs), std::move(step.numbers)});
    else
      plan_->steps.push_back(std::move(step));
    plan_bindings(node, numbers);
    for (const auto& [result, slot] : numbers) plan_->steps.push_back(runtime::FreeStep{slot});
    if (!row && !bodies) check_results(node);
  }

  // Numbers, plain ones too, are evaluated with everything else and passed in order.
  runtime::CallArgument call_argument(const graph::Argument& argument, std::vector<runtime::ExprIndex>& numbers) {
    using Kind = runtime::CallArgument::Kind;
    using Tag = dispatch::Value::Tag;
    if (const auto* id = std::get_if<ValueId>(&argument))
      return *id == graph::kNoValue ? runtime::CallArgument{} : runtime::CallArgument{Kind::Tensor, {}};
    if (const auto* list = std::get_if<graph::ValueList>(&argument)) {
      if (!list->optional) return {Kind::Tensors, {}, static_cast<int64_t>(list->ids.size())};
      runtime::CallArgument tensors{Kind::OptionalTensors, {}};
      for (ValueId each : list->ids) tensors.given.push_back(each != graph::kNoValue);
      return tensors;
    }
    const auto& constant = std::get<dispatch::Value>(argument);
    switch (constant.tag()) {
      case Tag::Int: numbers.push_back(expr(constant.sym_int())); return {Kind::Integer, {}};
      case Tag::Ints:
      case Tag::SymInts: {
        SymInts list = constant.sym_ints();
        for (const SymInt& number : list) numbers.push_back(expr(number));
        return {Kind::Integers, {}, static_cast<int64_t>(list.size())};
      }
      case Tag::Real:
        if (!constant.sym_float().is_symbolic()) break;
        numbers.push_back(expr(constant.sym_float().expr()));
        return {Kind::Real, {}};
      case Tag::Bool:
        if (!constant.sym_bool().is_symbolic()) break;
        numbers.push_back(expr(constant.sym_bool().expr()));
        return {Kind::Flag, {}};
      default: break;
    }
    return {Kind::Constant, constant.own()};
  }

  // Whether it reads an element as a number of whatever dtype the tensor has.
  static bool is_item(const Node& node) {
    const std::vector<schema::Argument>& returns = node.op->schema().returns;
    return returns.size() == 1 && returns[0].type.kind == schema::Kind::Scalar;
  }
  // The look comes after the symbols that the operator binds are known.
  void check_results(const Node& node) {
    runtime::CheckResultsStep step{node.op, {}};
    for (ValueId id : node.outputs) {
      const Tensor& meta = graph_.meta(id);
      step.results.push_back({slot(id), meta.dtype(), exprs(meta.sym_sizes()), exprs(meta.sym_strides())});
    }
    plan_->steps.push_back(std::move(step));
  }

  void plan_outputs() {
    for (const graph::Argument& output : graph_.outputs) {
      runtime::PlanOutput result;
      if (const auto* id = std::get_if<ValueId>(&output)) {
        result.slot = slot(*id);
      } else if (const auto* constant = std::get_if<dispatch::Value>(&output)) {
        result.number = expr(number_expr(*constant));
      } else {
        TENON_ASSERT(false, "a list among the outputs of a plan");
      }
      plan_->outputs.push_back(result);
    }
  }

  Expr number_expr(const dispatch::Value& value) {
    if (value.tag() == dispatch::Value::Tag::Real) return value.sym_float().to_expr(*graph_.env);
    if (value.tag() == dispatch::Value::Tag::Bool) {
      SymBool flag = value.sym_bool();
      return flag.is_symbolic() ? flag.expr() : graph_.env->pool().constant(bool(flag) ? 1 : 0);
    }
    return to_expr(graph_, value.sym_int());
  }

  const Schedule& schedule_;
  const Graph& graph_;
  const std::vector<GroupLoops>& groups_;     // by group
  const std::vector<EmittedGroup>& emitted_;  // by group
  const std::vector<int>& last_use_;          // by value
  std::vector<std::vector<ValueId>> dying_;   // by group: the values whose last use it is
  std::shared_ptr<runtime::Plan> plan_;
  std::unordered_map<Expr, runtime::ExprIndex> expr_index_;
  std::vector<runtime::Slot> slot_of_;  // by value
  struct Freed {
    Expr bytes;
    runtime::Slot slot;
  };
  std::vector<Freed> freed_;      // memory of values that have died, until the next allocation
  std::set<ValueId> taken_over_;  // values whose memory has another one now
  std::map<ValueId, std::vector<ValueId>> views_of_;
  std::map<const Node*, int32_t> random_uses_;
  runtime::Slot next_slot_ = 0;
  size_t launched_ = 0;
  int phases_ = 0;                             // how many times symbols were bound
  std::unordered_map<int32_t, int> bound_in_;  // by unbacked symbol
  std::set<int32_t> awaited_;                  // symbols that nodes bind, if there are checks
  std::vector<bool> checked_;                  // by deferred check
};

}  // namespace

std::shared_ptr<const runtime::Plan> plan_steps(const Schedule& schedule, const std::vector<GroupLoops>& groups,
                                                const std::vector<EmittedGroup>& emitted,
                                                std::vector<codegen::CompiledKernelRef> kernels,
                                                const Lifetimes& lifetimes) {
  return Planner(schedule, groups, emitted, std::move(kernels), lifetimes).run();
}

}  // namespace tenon::schedule
