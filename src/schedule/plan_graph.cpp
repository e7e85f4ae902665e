// Steps of a plan from the groups of a schedule: allocation, launches, calls, and memory taken over from values that
// have died.
#include "fusion.h"

#include <tenon/codegen/compile.h>
#include <tenon/kernels/matmul.h>
#include <tenon/loop/jam.h>
#include <tenon/support/log.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

namespace tenon::schedule {
namespace {

class Planner {
 public:
  explicit Planner(const Schedule& schedule)
      : schedule_(schedule), graph_(schedule.graph), plan_(std::make_shared<runtime::Plan>()) {}

  std::shared_ptr<const runtime::Plan> run() {
    plan_->input_count = graph_.inputs.size();
    slot_of_.assign(graph_.values.size(), -1);
    for (size_t at = 0; at < graph_.inputs.size(); ++at)
      slot_of_[static_cast<size_t>(graph_.inputs[at])] = static_cast<runtime::Slot>(at);
    next_slot_ = static_cast<runtime::Slot>(graph_.inputs.size());
    // Draws are taken in the order of the program, not in that of the kernels.
    for (const Node& node : graph_.nodes)
      if (const ops::Row& row = row_for(*node.op); row.kind == ops::Kind::Element && row.element.random)
        (void)random_use(&node);
    emit_kernels();
    find_last_uses();
    compile_kernels();
    for (ValueId input : graph_.inputs)
      if (last_use_[static_cast<size_t>(input)] == kNever)
        plan_->steps.push_back(runtime::FreeStep{slot_of_[static_cast<size_t>(input)]});
    for (size_t at = 0; at < schedule_.groups.size(); ++at) plan_group(at);
    plan_outputs();
    plan_->slot_count = static_cast<size_t>(next_slot_);
    plan_->env = graph_.env;
    plan_phases();
    return plan_;
  }

 private:
  std::string kernel_name(const Group& group) const {
    std::string name = "fused";
    int words = 0;
    std::vector<bool> seen(graph_.values.size());
    std::function<void(ValueId)> visit = [&](ValueId id) {
      if (seen[static_cast<size_t>(id)] || words >= 6) return;
      seen[static_cast<size_t>(id)] = true;
      const ValueState& state = schedule_.state(id);
      if (!state.node || (state.root && std::find(group.roots.begin(), group.roots.end(), id) == group.roots.end()))
        return;
      graph::each_reference(*state.node, visit);
      if (state.source == graph::kNoValue && words++ < 6) name += "_" + state.node->op->schema().name;
    };
    for (ValueId root : group.roots) visit(root);
    return name;
  }

  void emit_kernels() {
    for (const Group& group : schedule_.groups) {
      emitted_.emplace_back();
      if (group.call) continue;
      bool stores = false;
      for (ValueId id : group.roots) stores |= schedule_.state(id).stored;
      if (stores) emitted_.back() = emit(schedule_, group, kernel_name(group));
    }
  }

  void compile_kernels() {
    std::vector<loop::Kernel> kernels;
    for (std::optional<EmittedKernel>& each : emitted_) {
      if (!each) continue;
      mark_streaming(*each);
      loop::jam_rows(each->kernel);
      kernels.push_back(std::move(each->kernel));
    }
    plan_->kernels = codegen::compile_all(std::move(kernels));
  }

  // A large result that nothing in this plan reads goes past the caches: they keep what is read.
  void mark_streaming(EmittedKernel& emitted) const {
    for (size_t at = 0; at < emitted.buffers.size(); ++at) {
      loop::Buffer& buffer = emitted.kernel.buffers[at];
      auto id = static_cast<size_t>(emitted.buffers[at]);
      if (buffer.role != loop::BufferRole::Out || uses_[id] > 1) continue;
      const Tensor& meta = graph_.meta(emitted.buffers[at]);
      std::optional<int64_t> bytes = graph_.env->hint(to_expr(graph_, meta.numel() * meta.element_size()));
      buffer.streaming = bytes && *bytes >= kStreamingBytes && !loads(emitted.kernel.body, static_cast<int32_t>(at));
    }
  }
  static bool loads(const loop::Block& block, int32_t buffer) {
    for (const loop::Statement& statement : block) {
      if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement)) {
        if (loads((*inner)->body, buffer)) return true;
      } else if (const loop::Op& op = std::get<loop::Op>(statement);
                 op.code == loop::OpCode::Load && op.buffer == buffer) {
        return true;
      }
    }
    return false;
  }

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

  // The last step that reads each stored value; outputs live for ever.
  void find_last_uses() {
    last_use_.assign(graph_.values.size(), kNever);
    uses_.assign(graph_.values.size(), 0);
    for (size_t at = 0; at < schedule_.groups.size(); ++at) {
      auto touch = [&](ValueId id) {
        auto base = static_cast<size_t>(schedule_.state(id).base);
        if (std::exchange(last_use_[base], static_cast<int>(at)) != static_cast<int>(at)) ++uses_[base];
      };
      if (schedule_.groups[at].call) {
        graph::each_reference(*schedule_.groups[at].call, touch);
        for (ValueId id : schedule_.groups[at].roots) touch(id);
      } else if (emitted_[at]) {
        for (ValueId id : emitted_[at]->buffers) touch(id);
      }
    }
    for (const graph::Argument& output : graph_.outputs)
      graph::each_reference(output,
                            [&](ValueId id) { last_use_[static_cast<size_t>(schedule_.state(id).base)] = kForever; });
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

  void allocate(ValueId id) {
    const Tensor& meta = graph_.meta(id);
    runtime::Slot at = slot_of_[static_cast<size_t>(id)] = next_slot_++;
    runtime::AllocateStep step{at, exprs(meta.sym_sizes()), exprs(meta.sym_strides()), meta.dtype()};
    Expr bytes = graph_.env->pool().simplify(to_expr(graph_, meta.numel() * meta.element_size()));
    if (last_use_[static_cast<size_t>(id)] != kForever) {
      auto& free = free_memory_[bytes];
      if (!free.empty()) {
        step.reuse = free.back();
        free.pop_back();
      }
    }
    plan_->steps.push_back(step);
  }

  // Values that no later step reads: their memory goes to the next value of the same size, or back to the allocator.
  void release(size_t at) {
    for (size_t id = 0; id < last_use_.size(); ++id) {
      if (last_use_[id] != static_cast<int>(at) || slot_of_[id] < 0) continue;
      const Tensor& meta = graph_.meta(static_cast<ValueId>(id));
      for (ValueId view : views_of_[static_cast<ValueId>(id)])
        plan_->steps.push_back(runtime::FreeStep{slot_of_[static_cast<size_t>(view)]});
      // The caller may have given it up (core/given_up.h).
      if (schedule_.is_input(static_cast<ValueId>(id))) {
        plan_->steps.push_back(runtime::FreeStep{slot_of_[id]});
        continue;
      }
      // What a custom operator gave is not ours to write to: it may have kept it.
      if (const Node* node = schedule_.state(static_cast<ValueId>(id)).node; !ops::row_of(*node->op)) {
        plan_->steps.push_back(runtime::FreeStep{slot_of_[id]});
        continue;
      }
      free_memory_[graph_.env->pool().simplify(to_expr(graph_, meta.numel() * meta.element_size()))].push_back(
          slot_of_[id]);
    }
  }

  void plan_group(size_t at) {
    const Group& group = schedule_.groups[at];
    if (group.call) {
      plan_call(group);
    } else if (emitted_[at]) {
      for (ValueId id : emitted_[at]->buffers)
        if (slot_of_[static_cast<size_t>(id)] < 0) allocate(id);
      runtime::LaunchStep step;
      step.kernel = launched_++;
      for (ValueId id : emitted_[at]->buffers) step.buffers.push_back(slot(id));
      for (Expr each : emitted_[at]->integers) step.integers.push_back(expr(each));
      for (runtime::ScalarSource source : emitted_[at]->scalars) {
        if (source.kind == runtime::ScalarSource::Kind::Expr)
          source.index = expr(emitted_[at]->scalar_exprs[static_cast<size_t>(source.index)]);
        if (source.kind == runtime::ScalarSource::Kind::Seed || source.kind == runtime::ScalarSource::Kind::Offset)
          source.index = random_use(emitted_[at]->random_nodes[static_cast<size_t>(source.index)]);
        step.scalars.push_back(source);
      }
      plan_->steps.push_back(std::move(step));
    }
    release(at);
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
    for (size_t at = 0; at < checks.size(); ++at) {
      if (checked_[at]) continue;
      std::vector<int32_t> symbols = sym::symbols_of(checks[at].condition);
      if (!std::all_of(symbols.begin(), symbols.end(),
                       [&](int32_t id) { return graph_.env->is_backed(id) || bound_in_.contains(id); }))
        continue;
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

  void plan_call(const Group& group) {
    const Node& node = *group.call;
    if (is_item(node)) return plan_bindings(node);
    runtime::CallStep step;
    step.name = node.op->name() + (group.relu ? "+relu" : "");
    graph::each_reference(node, [&](ValueId id) { step.inputs.push_back(slot(id)); });
    const ops::Row* row = ops::row_of(*node.op);
    for (ValueId id : group.roots) {
      if (row && !row->dynamic())
        allocate(id);
      else
        slot_of_[static_cast<size_t>(id)] = next_slot_++;  // the operator makes it
      step.outputs.push_back(slot(id));
    }
    // Symbolic numbers among the arguments are evaluated with everything else, and passed in order.
    for (const graph::Argument& argument : node.args)
      if (const auto* constant = std::get_if<dispatch::Value>(&argument)) {
        if (constant->tag() == dispatch::Value::Tag::Int) step.integers.push_back(expr(constant->sym_int()));
        if (constant->tag() == dispatch::Value::Tag::Ints || constant->tag() == dispatch::Value::Tag::SymInts)
          for (const SymInt& number : constant->sym_ints()) step.integers.push_back(expr(number));
        if (is_symbolic_real(*constant)) step.integers.push_back(expr(constant->sym_float().expr()));
        if (is_symbolic_bool(*constant)) step.integers.push_back(expr(constant->sym_bool().expr()));
      }
    if (!row || row->dynamic())
      step.run = custom_call(node);
    else if (group.relu)
      step.run = product_with_relu(node);
    else
      step.run = [row, node](std::span<const Tensor> inputs, std::span<Tensor> outputs,
                             std::span<const int64_t> integers) {
        dispatch::Values values = fill(node, inputs, integers);
        row->opaque.cpu(ops::Arguments(*node.op, values), outputs);
      };
    std::vector<runtime::Slot> outputs = step.outputs;
    std::map<int32_t, runtime::Slot> numbers;
    if (!row)
      for (size_t at = 0; at < node.op->schema().returns.size(); ++at)
        if (!node.op->schema().returns[at].type.is_tensor_like())
          step.outputs.push_back(numbers[static_cast<int32_t>(at)] = next_slot_++);
    plan_->steps.push_back(std::move(step));
    plan_bindings(node, numbers);
    for (const auto& [result, slot] : numbers) plan_->steps.push_back(runtime::FreeStep{slot});
    if (!row) check_like_fakes(node, std::move(outputs));
  }

  static bool is_item(const Node& node) { return node.op->schema().name == "_local_scalar_dense"; }
  static bool is_symbolic_real(const dispatch::Value& value) {
    return value.tag() == dispatch::Value::Tag::Real && value.sym_float().is_symbolic();
  }
  static bool is_symbolic_bool(const dispatch::Value& value) {
    return value.tag() == dispatch::Value::Tag::Bool && value.sym_bool().is_symbolic();
  }

  // The node's arguments with tensors and evaluated numbers in their places.
  static dispatch::Values fill(const Node& node, std::span<const Tensor> inputs, std::span<const int64_t> integers) {
    dispatch::Values values;
    size_t input = 0, integer = 0;
    for (const graph::Argument& argument : node.args) {
      if (const auto* id = std::get_if<ValueId>(&argument)) {
        values.push_back(*id == graph::kNoValue ? dispatch::Value() : dispatch::Value(inputs[input++]));
      } else if (const auto* list = std::get_if<graph::ValueList>(&argument)) {
        if (list->optional) {
          std::vector<std::optional<Tensor>> tensors;
          for (ValueId each : list->ids)
            tensors.push_back(each == graph::kNoValue ? std::nullopt : std::optional<Tensor>(inputs[input++]));
          values.push_back(dispatch::Value(tensors).own());
          continue;
        }
        values.push_back(dispatch::Value(inputs.subspan(input, list->ids.size())));
        input += list->ids.size();
      } else {
        const auto& constant = std::get<dispatch::Value>(argument);
        if (constant.tag() == dispatch::Value::Tag::Int) {
          values.push_back(integers[integer++]);
        } else if (constant.tag() == dispatch::Value::Tag::Ints || constant.tag() == dispatch::Value::Tag::SymInts) {
          size_t count = constant.sym_ints().size();
          values.push_back(dispatch::Value(integers.subspan(integer, count)));
          integer += count;
        } else if (is_symbolic_real(constant)) {
          values.push_back(std::bit_cast<double>(integers[integer++]));
        } else if (is_symbolic_bool(constant)) {
          values.push_back(integers[integer++] != 0);
        } else {
          values.push_back(constant);
        }
      }
    }
    return values;
  }

  static Tensor held(const Scalar& number) {
    if (number.is_real()) return tensor(number.to_double(), kFloat64);
    return number.kind() == Scalar::Kind::Bool ? tensor(number.to_bool()) : tensor(number.to_int());
  }

  // A call through the dispatcher; its results take their slots as they are.
  decltype(runtime::CallStep::run) custom_call(const Node& node) {
    return [node](std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const int64_t> integers) {
      dispatch::Values values = fill(node, inputs, integers);
      dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView, DispatchKey::Capture});
      dispatch::Results results = dispatch::call_boxed(*node.op, values);
      // Tensors first, then the numbers, as tensors of one element.
      const size_t tensors = node.outputs.size();
      size_t at = 0, number = tensors;
      for (const dispatch::Value& result : results) {
        result.each_tensor([&](const Tensor& tensor) {
          TENON_CHECK(at < tensors, "[{}] gave more tensors than its fake implementation ({})", node.op->name(),
                      tensors);
          outputs[at++] = tensor;
        });
        if (result.is_number() && number < outputs.size()) outputs[number++] = held(result.scalar());
      }
      TENON_CHECK(at == tensors, "[{}] gave {} tensors, its fake implementation {}", node.op->name(), at, tensors);
    };
  }

  // What a custom operator gave must look like its fake: the rest of the plan relies on those sizes and strides. The
  // look comes after the symbols that the operator binds are known.
  void check_like_fakes(const Node& node, std::vector<runtime::Slot> outputs) {
    runtime::CallStep step;
    step.name = node.op->name() + " is like its fake";
    step.inputs = std::move(outputs);
    std::vector<Dtype> dtypes;
    std::vector<size_t> ranks;
    for (ValueId id : node.outputs) {
      const Tensor& meta = graph_.meta(id);
      dtypes.push_back(meta.dtype());
      ranks.push_back(static_cast<size_t>(meta.dim()));
      for (runtime::ExprIndex at : exprs(meta.sym_sizes())) step.integers.push_back(at);
      for (runtime::ExprIndex at : exprs(meta.sym_strides())) step.integers.push_back(at);
    }
    step.run = [node, dtypes, ranks](std::span<const Tensor> inputs, std::span<Tensor>,
                                     std::span<const int64_t> expected) {
      for (size_t at = 0; at < inputs.size(); ++at) {
        TENON_CHECK(static_cast<size_t>(inputs[at].dim()) == ranks[at],
                    "[{}] result {} is {}, but its fake implementation said {} dimensions", node.op->name(), at,
                    inputs[at].description(), ranks[at]);
        check_like_fake(node, at, inputs[at], dtypes[at], expected.first(ranks[at]),
                        expected.subspan(ranks[at], ranks[at]));
        expected = expected.subspan(2 * ranks[at]);
      }
    };
    plan_->steps.push_back(std::move(step));
  }

  static void check_like_fake(const Node& node, size_t at, const Tensor& tensor, Dtype dtype,
                              std::span<const int64_t> sizes, std::span<const int64_t> strides) {
    bool same = tensor.defined() && tensor.dtype() == dtype && std::ranges::equal(tensor.sizes(), sizes);
    TENON_CHECK(same, "[{}] result {} is {}, but its fake implementation said {}[{}]", node.op->name(), at,
                tensor.description(), name(dtype), fmt::join(sizes, ", "));
    for (size_t dim = 0; dim < sizes.size(); ++dim) same &= sizes[dim] <= 1 || tensor.strides()[dim] == strides[dim];
    for (int64_t size : sizes) same |= size == 0;
    TENON_CHECK(same, "[{}] result {} has strides [{}], but its fake implementation said [{}]", node.op->name(), at,
                fmt::join(tensor.strides(), ", "), fmt::join(strides, ", "));
  }

  static decltype(runtime::CallStep::run) product_with_relu(const Node& node) {
    return [node](std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const int64_t> integers) {
      dispatch::Values values = fill(node, inputs, integers);
      ops::Arguments arguments(*node.op, values);
      kernels::MatmulEpilogue epilogue;
      epilogue.relu = true;
      if (node.op->schema().name == "mm") {
        kernels::matmul(arguments.tensor("self"), arguments.tensor("mat2"), outputs[0], epilogue);
        return;
      }
      epilogue.bias = &arguments.tensor("self");
      epilogue.alpha = arguments["alpha"].scalar().to_double();
      epilogue.beta = arguments["beta"].scalar().to_double();
      kernels::matmul(arguments.tensor("mat1"), arguments.tensor("mat2"), outputs[0], epilogue);
    };
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

  static constexpr int kForever = 1 << 30, kNever = -1;
  static constexpr int64_t kStreamingBytes = 8 << 20;

  const Schedule& schedule_;
  const Graph& graph_;
  std::shared_ptr<runtime::Plan> plan_;
  std::vector<std::optional<EmittedKernel>> emitted_;  // by group
  std::unordered_map<Expr, runtime::ExprIndex> expr_index_;
  std::vector<runtime::Slot> slot_of_;                                // by value
  std::vector<int> last_use_;                                         // by value: a group's position
  std::vector<int> uses_;                                             // by value: how many groups write or read it
  std::unordered_map<Expr, std::vector<runtime::Slot>> free_memory_;  // by size in bytes
  std::map<ValueId, std::vector<ValueId>> views_of_;
  std::map<const Node*, int32_t> random_uses_;
  runtime::Slot next_slot_ = 0;
  size_t launched_ = 0;
  int phases_ = 0;                             // how many times symbols were bound
  std::unordered_map<int32_t, int> bound_in_;  // by unbacked symbol
  std::vector<bool> checked_;                  // by deferred check
};

}  // namespace

std::shared_ptr<const runtime::Plan> compile_graph(const graph::Graph& graph, const Options& options) {
  graph::Graph parts = decompose(graph);
  // Numbers that are passed at run time may be others then.
  if (options.fuse && !options.scalar_parameters) remove_identities(parts);
  TENON_LOG(Graph, "after decomposition:\n{}", graph::to_string(parts));
  Schedule schedule = fuse(parts, options);
  std::shared_ptr<const runtime::Plan> plan = Planner(schedule).run();
  TENON_LOG(Plan, "{}", runtime::to_string(*plan));
  return plan;
}

}  // namespace tenon::schedule
