// The loop back. Forward runs another body, which also keeps what the gradients of a step need; backward is a loop over
// that, in the other direction, whose carry is the gradient of the carry, and the sums of the gradients of what the
// body captured. It is an operator like the first, and has a gradient in the same way.
#include "loop_body.h"
#include "memory_order.h"

#include "graph/translation.h"
#include "support/thread_context.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/visit.h>
#include <tenon/dispatch/call_mode.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>
#include <tenon/graph/recorder.h>

#include <algorithm>

namespace tenon::aot {
namespace {

using dispatch::Value;
using graph::Graph;
using graph::ValueId;

// Appends calls to a graph.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  ValueId input(const Tensor& meta) {
    ValueId id = graph_.add_value(fmt::format("in{}", graph_.values.size()), fake::like(meta));
    graph_.inputs.push_back(id);
    return id;
  }
  ValueId call(const char* name, std::vector<graph::Argument> args, const Tensor& meta) {
    return call(dispatch::find_operator(name), std::move(args), meta);
  }
  ValueId call(const dispatch::Operator& op, std::vector<graph::Argument> args, const Tensor& meta) {
    graph::Node node;
    node.op = dispatch::OperatorRef(op);
    node.args = std::move(args);
    ValueId id = graph_.add_value(std::to_string(graph_.values.size()), meta);
    node.outputs.push_back(id);
    graph_.nodes.push_back(std::move(node));
    return id;
  }
  ValueId zeros(const Tensor& like) {
    return call("aten::zeros",
                {Value(like.sym_sizes()).own(), Value(like.dtype()), Value(), Value(like.device()), Value()},
                dense_like(like));
  }
  ValueId sum(ValueId a, ValueId b) {
    return call("aten::add.Tensor", {a, b, Value(int64_t{1})}, dense_like(graph_.meta(a)));
  }
  // In the order of its memory: contiguous. A value that is contiguous in no order is copied.
  ValueId permuted(ValueId id, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return contiguous(id);
    return call("aten::permute", {id, Value(SymInts(order.begin(), order.end())).own()},
                permuted_meta(graph_.meta(id), order));
  }
  // The other way: a new first value from which all reads of `id`, which was given, are computed.
  ValueId given_permuted(ValueId id, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return given_dense(id);
    ValueId given = graph_.add_value(fmt::format("kept{}", graph_.values.size()),
                                     dense_like(permuted_meta(graph_.meta(id), order)));
    std::vector<int64_t> back(order.size());
    for (size_t at = 0; at < order.size(); ++at) back[static_cast<size_t>(order[at])] = static_cast<int64_t>(at);
    graph::Node node;
    node.op = dispatch::OperatorRef(dispatch::find_operator("aten::permute"));
    node.args = {given, Value(SymInts(back.begin(), back.end())).own()};
    node.outputs = {id};
    graph_.nodes.insert(graph_.nodes.begin(), std::move(node));
    return given;
  }
  ValueId given_dense(ValueId id) {
    Tensor& meta = graph_.values[static_cast<size_t>(id)].meta;
    meta = dense_like(meta);
    return id;
  }
  // A result of the body: no input, and none that there is already.
  void result(ValueId id) {
    const bool is_input = std::find(graph_.inputs.begin(), graph_.inputs.end(), id) != graph_.inputs.end();
    const bool is_taken = std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const graph::Argument& output) {
      const auto* other = std::get_if<ValueId>(&output);
      return other && *other == id;
    });
    if (is_input || is_taken)
      id = call("aten::clone", {id, Value(MemoryFormat::Contiguous)}, dense_like(graph_.meta(id)));
    graph_.outputs.push_back(id);
  }

  static Tensor dense_like(const Tensor& meta) {
    SymInts sizes = meta.sym_sizes();
    return fake::make(sizes, core::contiguous_strides(sizes.span()), meta.dtype(), meta.device());
  }

 private:
  ValueId contiguous(ValueId id) {
    if (is_contiguous(graph_.meta(id))) return id;
    return call("aten::clone", {id, Value(MemoryFormat::Contiguous)}, dense_like(graph_.meta(id)));
  }
  static Tensor permuted_meta(const Tensor& meta, const std::vector<int64_t>& order) {
    SymInts sizes, strides;
    for (int64_t dim : order) {
      sizes.push_back(meta.sym_sizes()[static_cast<size_t>(dim)]);
      strides.push_back(meta.sym_strides()[static_cast<size_t>(dim)]);
    }
    return fake::make(sizes, strides, meta.dtype(), meta.device());
  }
  static bool is_contiguous(const Tensor& meta) {
    SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides(), dense = core::contiguous_strides(sizes.span());
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      if (!strides[dim].same(dense[dim])) return false;
    return true;
  }

  Graph& graph_;
};

std::vector<int64_t> plain_order(const Tensor& meta) {
  std::vector<int64_t> order(static_cast<size_t>(meta.dim()));
  for (size_t dim = 0; dim < order.size(); ++dim) order[dim] = static_cast<int64_t>(dim);
  return order;
}

// Of the body's results, the position among forward's.
std::vector<int32_t> forward_positions(const JointGraph& joint, const std::string& name) {
  std::vector<int32_t> positions;
  for (const OutputPlan& plan : joint.outputs) {
    const OutputPlan& own = plan.same_as >= 0 ? joint.outputs[static_cast<size_t>(plan.same_as)] : plan;
    TENON_ASSERT(own.kind == OutputPlan::Kind::Value, "a result of {} is no value of its own", name);
    positions.push_back(own.index);
  }
  TENON_ASSERT(joint.mutated.empty(), "{} writes to an input", name);
  return positions;
}

bool lies_alike(const Tensor& a, const Tensor& b) {
  const SymInts sizes = a.sym_sizes(), strides = a.sym_strides(), others = b.sym_sizes(), steps = b.sym_strides();
  bool alike = sizes.size() == others.size() && a.sym_storage_offset().same(b.sym_storage_offset());
  for (size_t dim = 0; alike && dim < sizes.size(); ++dim)
    alike = sizes[dim].same(others[dim]) && strides[dim].same(steps[dim]);
  return alike && a.dtype() == b.dtype();
}

// By input: whether these values are computed from it.
std::vector<bool> used_inputs_of(const Graph& graph, std::span<const ValueId> values) {
  Graph part = graph;
  part.outputs.clear();
  for (ValueId id : values)
    if (id != graph::kNoValue) part.outputs.push_back(id);
  graph::remove_dead_code(part);
  std::vector<bool> used(graph.inputs.size(), false);
  auto use = [&](ValueId id) {
    for (size_t at = 0; at < graph.inputs.size(); ++at) used[at] = used[at] || graph.inputs[at] == id;
  };
  for (const graph::Node& node : part.nodes) graph::each_reference(node, use);
  for (const graph::Argument& output : part.outputs) graph::each_reference(output, use);
  return used;
}

// A step and its gradients, recorded above autograd: as the program of a user who writes `grad(…, create_graph)`, which
// can be differentiated like any other. By result and by input, kNoValue where there is no gradient.
struct StepBack {
  Graph graph;
  std::vector<ValueId> tangents, gradients;
};
thread_local bool records_step_back = false;
struct RecordsStepBack {
  bool before = std::exchange(records_step_back, true);
  ~RecordsStepBack() { records_step_back = before; }
};

StepBack record_step_back(const Graph& body, const std::vector<bool>& wanted) {
  RecordsStepBack inner_loops_too;
  graph::Recorder recorder(body.env);
  // A result that its node has saved comes back as another tensor with the same memory.
  recorder.unknown = [&](const Tensor& tensor) {
    ValueId same = graph::kNoValue;
    recorder.each_tensor([&](const Tensor& other, ValueId id) {
      if (other.is_same_storage(tensor) && lies_alike(other, tensor)) same = id;
    });
    TENON_ASSERT(same != graph::kNoValue, "a tensor {} that the loop back does not know", tensor.description());
    return same;
  };
  fake::FakeMode fakes;
  autograd::EnableGrad on;
  std::vector<Tensor> inputs, leaves, roots, starts;
  std::vector<size_t> which;
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    const Tensor& meta = body.meta(body.inputs[at]);
    Tensor input = fake::like(meta);
    recorder.add_input(input, fmt::format("in{}", at), fake::like(meta));
    if (wanted[at]) {
      leaves.push_back(input.set_requires_grad(true));
      which.push_back(at);
    }
    inputs.push_back(std::move(input));
  }
  dispatch::CallMode recording(
      [&](dispatch::Call& call, const std::function<void()>& proceed) {
        proceed();
        recorder.record(call.op, call.args, call.results, [](const Tensor& tensor) { return fake::like(tensor); })
            .grad_enabled = autograd::grad_enabled();
      },
      {.shows_parts = false, .captures_walks = true, .hides_others = true});
  graph::InterpretOptions options;
  options.seeds = false;
  options.before_node = [](const graph::Node& node) { autograd::set_grad_enabled(node.grad_enabled); };
  std::vector<Value> results = graph::interpret(body, inputs, options);
  autograd::set_grad_enabled(true);
  StepBack made;
  made.gradients.assign(inputs.size(), graph::kNoValue);
  for (const Value& result : results) {
    made.tangents.push_back(graph::kNoValue);
    if (!result.tensor().requires_grad()) continue;
    Tensor tangent = Builder::dense_like(result.tensor());
    made.tangents.back() = recorder.add_input(tangent, fmt::format("tangent{}", roots.size()), fake::like(tangent));
    roots.push_back(result.tensor());
    starts.push_back(std::move(tangent));
  }
  if (!roots.empty()) {
    std::vector<Tensor> gradients = autograd::grad(roots, leaves, starts, true, true, true);
    for (size_t at = 0; at < gradients.size(); ++at)
      if (gradients[at].defined()) {
        // Results have memory of their own.
        auto has_memory = [&](const Tensor& other) { return other.defined() && other.is_same_storage(gradients[at]); };
        const auto own = gradients.begin() + static_cast<ptrdiff_t>(at);
        if (std::any_of(inputs.begin(), inputs.end(), has_memory) ||
            std::any_of(starts.begin(), starts.end(), has_memory) || std::any_of(gradients.begin(), own, has_memory))
          gradients[at] = gradients[at].clone(MemoryFormat::Contiguous);
        made.gradients[which[at]] = recorder.find(gradients[at]);
        if (made.gradients[which[at]] == graph::kNoValue) made.gradients[which[at]] = recorder.unknown(gradients[at]);
      }
  }
  made.graph = std::move(recorder.graph());
  return made;
}

template <typename T>
int32_t position_of(const std::vector<T>& list, const T& what) {
  auto found = std::find(list.begin(), list.end(), what);
  return found == list.end() ? -1 : static_cast<int32_t>(found - list.begin());
}

SymInts chosen(const SymInts& numbers, const std::vector<int32_t>& which) {
  SymInts made;
  for (int32_t at : which) made.push_back(numbers[static_cast<size_t>(at)]);
  return made;
}

}  // namespace

// A step forth, and a step back before it is the body of a loop.
struct LoopBody::Step {
  Graph forward, backward;
  LoopShape shape;  // of forward
  // Of the backward graph: what `Differentiated::kept` says, and by result and by input, kNoValue where there is none.
  std::vector<ValueId> kept, tangents, gradients;
};

// The joint graph of a step, parted: forward keeps what backward needs.
LoopBody::Step LoopBody::step_once(const Graph& body, const std::vector<bool>& wanted, Differentiated& made) const {
  using Kept = Differentiated::Kept;
  const size_t carried = shape_.carried, own = carried + shape_.sliced;
  Program program;
  program.captured = body;
  program.requires_grad = wanted;
  JointGraph joint = trace_joint(program);
  Partition parts = partition(joint);
  Step step{std::move(parts.forward), std::move(parts.backward), shape_, {}, {}, {}};
  const std::vector<int32_t> positions = forward_positions(joint, name_);
  const std::vector<ValueId>& inputs = step.backward.inputs;
  step.kept.assign(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(parts.saved.size()));
  for (int32_t position : positions) {
    const int32_t at = position_of(joint.tangents, position);
    step.tangents.push_back(at < 0 ? graph::kNoValue : inputs[parts.saved.size() + static_cast<size_t>(at)]);
  }
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    const int32_t found = position_of(joint.gradients, static_cast<int32_t>(at));
    step.gradients.push_back(found < 0 ? graph::kNoValue
                                       : std::get<ValueId>(step.backward.outputs[static_cast<size_t>(found)]));
  }
  std::vector<graph::Argument> outputs = std::move(step.forward.outputs);
  step.forward.outputs.clear();
  for (int32_t at : positions) step.forward.outputs.push_back(outputs[static_cast<size_t>(at)]);
  Builder pack(step.forward), unpack(step.backward);
  size_t stacks = 0;
  for (size_t at = 0; at < parts.saved.size(); ++at) {
    const auto input = parts.saved_inputs[at];
    if (input >= static_cast<int32_t>(own)) {
      made.kept.push_back({Kept::From::Captured, static_cast<size_t>(input) - own});
    } else if (input >= static_cast<int32_t>(carried)) {
      made.kept.push_back({Kept::From::Slice, static_cast<size_t>(input) - carried});
    } else {
      // Stacks are contiguous: what lies otherwise goes there and comes back in the order of its memory.
      ValueId saved = std::get<ValueId>(outputs[joint.forward_outputs + at]);
      const Tensor& meta = step.forward.meta(saved);
      std::vector<int64_t> order = is_dense(meta) ? memory_order(meta) : plain_order(meta);
      step.forward.outputs.push_back(pack.permuted(saved, order));
      step.kept[at] = unpack.given_permuted(step.kept[at], order);
      made.kept.push_back({Kept::From::Stack, stacks++});
    }
  }
  step.shape.needs_grad.resize(step.forward.outputs.size(), false);
  return step;
}

// Every step back begins with its primals again, of which forward stacks the carries. What no gradient is computed from
// is not asked for: it may be gone.
LoopBody::Step LoopBody::step_again(const Graph& body, const std::vector<bool>& wanted, Differentiated& made) const {
  using Kept = Differentiated::Kept;
  const size_t carried = shape_.carried, own = carried + shape_.sliced;
  StepBack back = record_step_back(body, wanted);
  Step step{body, std::move(back.graph), {}, {}, std::move(back.tangents), std::move(back.gradients)};
  const std::vector<bool> used = used_inputs_of(step.backward, step.gradients);
  std::vector<bool> runs(carried, false);  // by carry: whether forward needs it
  for (size_t at = 0; at < carried; ++at) runs[at] = used[at];
  std::vector<bool> read;
  auto read_by = [&] {
    std::vector<ValueId> results;
    for (size_t at = 0; at < carried; ++at)
      if (runs[at]) results.push_back(std::get<ValueId>(body.outputs[at]));
    return used_inputs_of(body, results);
  };
  for (bool grows = true; grows;) {
    grows = false;
    read = read_by();
    for (size_t at = 0; at < carried; ++at) {
      grows = grows || (read[at] && !runs[at]);
      runs[at] = runs[at] || read[at];
    }
  }
  step.forward.inputs.clear();
  step.forward.outputs.clear();
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    if (at < carried ? !runs[at] : !read[at]) continue;
    step.forward.inputs.push_back(body.inputs[at]);
    auto& list = at < carried ? made.carry_again : at < own ? made.xs_again : made.captured_again;
    list.push_back(static_cast<int32_t>(at < carried ? at : at < own ? at - carried : at - own));
  }
  step.shape.carried = made.carry_again.size();
  step.shape.sliced = made.xs_again.size();
  for (int32_t at : made.carry_again) {
    step.forward.outputs.push_back(body.outputs[static_cast<size_t>(at)]);
    step.shape.needs_grad.push_back(shape_.needs_grad[static_cast<size_t>(at)]);
  }
  Builder stack(step.forward);
  size_t stacks = 0;
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    if (!used[at]) continue;
    step.kept.push_back(step.backward.inputs[at]);
    made.kept.push_back(at >= own       ? Kept{Kept::From::Captured, at - own}
                        : at >= carried ? Kept{Kept::From::Slice, at - carried}
                                        : Kept{Kept::From::Stack, stacks++});
    if (at >= carried) continue;
    stack.result(body.inputs[at]);
    step.shape.needs_grad.push_back(shape_.needs_grad[at]);
  }
  return step;
}

std::shared_ptr<LoopBody::Differentiated> LoopBody::differentiate(const Wanted& wanted,
                                                                  const sym::EnvCopy& copy) const {
  support::SwapContext apart(support::ThreadContext{});
  using Kept = Differentiated::Kept;
  const size_t carried = shape_.carried, own = carried + shape_.sliced;
  const Graph body = graph::in_copy(graph_, copy);
  auto made = std::make_shared<Differentiated>();
  made->kind = autograd::new_kind();
  Step step = wanted.second ? step_again(body, wanted.first, *made) : step_once(body, wanted.first, *made);
  step.forward.written.clear();
  step.backward.written.clear();
  Graph& backward = step.backward;
  const auto& [kept, tangents, gradients] = std::tie(step.kept, step.tangents, step.gradients);

  // The loop back: [gradients of carries, sums | gradients of what was kept, what forward kept | captured].
  backward.inputs.clear();
  backward.outputs.clear();
  Builder build(backward);
  std::vector<ValueId> carries;                   // by slot: the new one
  std::vector<std::pair<ValueId, ValueId>> sums;  // the sum so far, and what is added
  for (size_t at = 0; at < carried; ++at) {
    ValueId tangent = tangents[at], gradient = gradients[at];
    if (tangent == graph::kNoValue && gradient == graph::kNoValue) continue;
    made->slots.push_back(static_cast<int32_t>(at));
    made->slot_has_gradient.push_back(gradient != graph::kNoValue);
    carries.push_back(gradient);
    if (tangent != graph::kNoValue)
      backward.inputs.push_back(tangent);
    else
      build.input(Builder::dense_like(backward.meta(gradient)));
  }
  for (size_t at = own; at < graph_.inputs.size(); ++at)
    if (ValueId gradient = gradients[at]; gradient != graph::kNoValue) {
      made->summed.push_back(static_cast<int32_t>(at - own));
      sums.emplace_back(build.input(Builder::dense_like(backward.meta(gradient))), gradient);
    }
  LoopShape back;
  back.carried = backward.inputs.size();
  for (size_t at = carried; at < tangents.size(); ++at)
    if (ValueId tangent = tangents[at]; tangent != graph::kNoValue) {
      made->tangents.push_back(static_cast<int32_t>(at));
      backward.inputs.push_back(build.given_dense(tangent));
    }
  for (size_t at = 0; at < kept.size(); ++at)
    if (made->kept[at].from != Kept::From::Captured) backward.inputs.push_back(kept[at]);
  back.sliced = backward.inputs.size() - back.carried;
  for (size_t at = 0; at < kept.size(); ++at)
    if (made->kept[at].from == Kept::From::Captured) backward.inputs.push_back(kept[at]);
  for (size_t at = 0; at < carries.size(); ++at)
    build.result(carries[at] != graph::kNoValue ? carries[at] : build.zeros(backward.meta(backward.inputs[at])));
  for (const auto& [sum, gradient] : sums) build.result(build.sum(sum, gradient));
  for (size_t at = carried; at < own; ++at)
    if (ValueId gradient = gradients[at]; gradient != graph::kNoValue) {
      made->sliced.push_back(static_cast<int32_t>(at - carried));
      build.result(gradient);
    }
  back.needs_grad.assign(backward.outputs.size(), true);
  std::string why;
  auto make = [&](Graph graph, LoopShape shape) {
    graph::remove_dead_code(graph);
    std::optional<LoopOperator> op = loop_operator(std::move(graph), std::move(shape), why);
    TENON_ASSERT(op, "{} cannot be differentiated: {}", name_, why);
    return std::move(*op);
  };
  if (!wanted.second || !made->carry_again.empty())
    made->forward = make(std::move(step.forward), std::move(step.shape));
  made->backward = make(std::move(backward), std::move(back));
  made->env = copy.env();
  made->conditions = copy.conditions();
  return made;
}

std::shared_ptr<LoopBody::Differentiated> LoopBody::differentiated(const Wanted& wanted, const SymInts& numbers) {
  Variants<Differentiated>* variants = nullptr;
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Variants<Differentiated>>& found = orders_[wanted];
    if (!found) found = std::make_unique<Variants<Differentiated>>();
    variants = found.get();
  }
  const std::vector<int64_t> values = hints(numbers);
  std::shared_ptr<Differentiated> made = variants->find(
      known_, graph_, true, values, [&](const sym::EnvCopy& copy) { return differentiate(wanted, copy); },
      [&] {
        sym::EnvCopy copy(known_, values, {});
        return differentiate(wanted, copy);
      });
  // Where numbers are symbols, what was decided for it must hold at every call.
  dispatch::Values translated;
  for (const SymInt& number : numbers) translated.push_back(Value(number).own());
  graph::Translation translate(translated);
  if (translate.env())
    for (sym::Expr condition : made->conditions) {
      const bool holds = translate.env()->decide(translate(condition));
      TENON_ASSERT(holds, "{} was differentiated for other sizes: {}", name_, condition.str());
    }
  return made;
}

LoopBody::Reach LoopBody::step_reach(const std::vector<bool>& wanted, const SymInts& numbers) const {
  support::SwapContext apart(support::ThreadContext{});
  RecordsStepBack inner_loops_too;
  sym::EnvCopy copy(known_, hints(numbers), {});
  const Graph body = graph::in_copy(graph_, copy);
  fake::FakeMode fakes;
  std::vector<Tensor> inputs, leaves;
  std::vector<size_t> which;
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    inputs.push_back(fake::like(body.meta(body.inputs[at])));
    if (!wanted[at]) continue;
    leaves.push_back(inputs.back().set_requires_grad(true));
    which.push_back(at);
  }
  graph::InterpretOptions options;
  options.seeds = false;
  options.before_node = [](const graph::Node& node) { autograd::set_grad_enabled(node.grad_enabled); };
  const std::vector<Value> results = graph::interpret(body, inputs, options);
  autograd::set_grad_enabled(true);
  Reach reach;
  for (const Value& result : results) {
    reach.emplace_back(inputs.size(), false);
    if (!result.tensor().requires_grad()) continue;
    const std::vector<Tensor> roots{result.tensor()}, starts{fake::like(result.tensor())};
    const std::vector<Tensor> gradients = autograd::grad(roots, leaves, starts, true, false, true);
    for (size_t at = 0; at < gradients.size(); ++at) reach.back()[which[at]] = gradients[at].defined();
  }
  return reach;
}

std::vector<bool> LoopBody::reached(const std::vector<bool>& wanted, const std::vector<bool>& given,
                                    const SymInts& numbers) {
  auto known = [&]() -> const Reach* {
    std::lock_guard lock(mutex_);
    auto found = reach_.find(wanted);
    return found == reach_.end() ? nullptr : &found->second;
  };
  const Reach* step = known();
  if (!step) {
    Reach made = step_reach(wanted, numbers);
    std::lock_guard lock(mutex_);
    step = &reach_.emplace(wanted, std::move(made)).first->second;
  }
  // From a result to what its step was given; from a carry on to the step before.
  std::vector<bool> reached(graph_.inputs.size(), false), seen(given.size(), false);
  std::vector<size_t> waiting;
  for (size_t at = 0; at < given.size(); ++at)
    if (given[at]) waiting.push_back(at);
  while (!waiting.empty()) {
    const size_t result = waiting.back();
    waiting.pop_back();
    if (seen[result]) continue;
    seen[result] = true;
    for (size_t input = 0; input < reached.size(); ++input) {
      if (!(*step)[result][input]) continue;
      reached[input] = true;
      if (input < shape_.carried) waiting.push_back(input);
    }
  }
  return reached;
}

// The gradients of [carry, xs, captured]. Saved: what forward stacked, then these themselves.
std::vector<Tensor> LoopBody::walk_back(const Wanted& wanted, const Differentiated& first,
                                        autograd::AutogradContext& context, std::vector<Tensor> gradients) {
  using From = Differentiated::Kept::From;
  const size_t sliced = shape_.sliced;
  size_t stacks = 0;
  for (const Differentiated::Kept& each : first.kept) stacks += each.from == From::Stack ? 1 : 0;
  auto primal = [&](size_t at) { return context.saved_tensor(stacks + at); };
  SymInts numbers;
  for (const AnyValue& number : context.saved_data.at("numbers").list()) numbers.push_back(number.sym_int());
  const SymInt steps = context.saved_data.at("steps").sym_int();
  const bool reverse = context.saved_data.at("reverse").boolean();

  std::vector<bool> came;
  for (const Tensor& gradient : gradients) came.push_back(gradient.defined());
  const bool all = std::find(came.begin(), came.end(), false) == came.end();
  if (!all) {
    const std::vector<Tensor> like = shapes(LoopCall({}, {}, {}, numbers, steps, reverse));
    for (size_t at = 0; at < gradients.size(); ++at)
      if (!came[at] && like[at].is_floating_point())
        gradients[at] = zeros(like[at].sym_sizes(), TensorOptions(like[at].dtype(), like[at].device()));
  }

  std::shared_ptr<Differentiated> again;
  std::vector<Tensor> stacked;
  if (autograd::grad_enabled()) {
    again = differentiated({wanted.first, true}, numbers);
    std::vector<Tensor> carry, xs, captured;
    for (int32_t at : again->carry_again) carry.push_back(primal(static_cast<size_t>(at)));
    for (int32_t at : again->xs_again) xs.push_back(primal(shape_.carried + static_cast<size_t>(at)));
    for (int32_t at : again->captured_again)
      captured.push_back(primal(shape_.carried + sliced + static_cast<size_t>(at)));
    if (!carry.empty()) {
      stacked = LoopCall(carry, xs, captured, chosen(numbers, again->forward.symbols), steps, reverse)
                    .run(*again->forward.op);
      stacked.erase(stacked.begin(), stacked.begin() + static_cast<ptrdiff_t>(carry.size()));
    }
  } else {
    for (size_t at = 0; at < stacks; ++at) stacked.push_back(context.saved_tensor(at));
  }
  const Differentiated& parts = again ? *again : first;
  std::vector<Tensor> carry, xs, captured;
  for (int32_t at : parts.slots) carry.push_back(gradients[static_cast<size_t>(at)].contiguous());
  const AnyValue::List& sizes = context.saved_data.at("sizes").list();
  for (int32_t at : parts.summed) {
    SymInts of;
    for (const AnyValue& size : sizes[static_cast<size_t>(at)].list()) of.push_back(size.sym_int());
    const Tensor& meta = graph_.meta(graph_.inputs[shape_.carried + sliced + static_cast<size_t>(at)]);
    carry.push_back(zeros(of, TensorOptions(meta.dtype(), meta.device())));
  }
  for (int32_t at : parts.tangents) xs.push_back(gradients[static_cast<size_t>(at)]);
  for (const Differentiated::Kept& each : parts.kept) {
    if (each.from == From::Stack) xs.push_back(stacked[each.index]);
    if (each.from == From::Slice) xs.push_back(primal(shape_.carried + each.index));
    if (each.from == From::Captured) captured.push_back(primal(shape_.carried + sliced + each.index));
  }
  std::vector<Tensor> made =
      LoopCall(carry, xs, captured, chosen(numbers, parts.backward.symbols), steps, !reverse).run(*parts.backward.op);
  std::vector<Tensor> given(graph_.inputs.size());
  size_t next = 0;
  for (size_t slot = 0; slot < parts.slots.size(); ++slot, ++next)
    if (parts.slot_has_gradient[slot]) given[static_cast<size_t>(parts.slots[slot])] = made[next];
  for (int32_t at : parts.summed) given[shape_.carried + sliced + static_cast<size_t>(at)] = made[next++];
  for (int32_t at : parts.sliced) given[shape_.carried + static_cast<size_t>(at)] = made[next++];
  if (!all) {
    const std::vector<bool> is_reached = reached(wanted.first, came, numbers);
    for (size_t at = 0; at < given.size(); ++at)
      if (!is_reached[at]) given[at] = Tensor();
  }
  return given;
}

std::vector<Tensor> LoopBody::run_recorded(const dispatch::Operator& op, const LoopCall& call) {
  std::vector<Tensor> arguments = call.tensors();
  auto below = [](const dispatch::Operator& which, const LoopCall& with) {
    dispatch::ExcludeKeys keys(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
    return with.run(which);
  };
  if (!autograd::detail::records(arguments)) return below(op, call);
  // A carry has gradients at every step, if it has them at one.
  Wanted wanted;
  for (size_t at = 0; at < arguments.size(); ++at)
    wanted.first.push_back(arguments[at].is_floating_point() &&
                           (arguments[at].requires_grad() || (at < shape_.carried && shape_.needs_grad[at])));
  // Of a capture, nobody walks back: its graphs are differentiated as a whole.
  const bool is_captured =
      !records_step_back && std::any_of(arguments.begin(), arguments.end(), [](const Tensor& argument) {
        return argument.is_fake() && !functional_slot(argument);
      });
  std::shared_ptr<Differentiated> parts;
  std::vector<Tensor> results, kept;
  if (is_captured) {
    results = below(op, call);
  } else {
    parts = differentiated(wanted, call.numbers);
    results =
        below(*parts->forward.op, LoopCall(call.carry, call.xs, call.captured,
                                           chosen(call.numbers, parts->forward.symbols), call.steps, call.reverse));
    kept.assign(results.begin() + static_cast<ptrdiff_t>(shape_.needs_grad.size()), results.end());
    results.resize(shape_.needs_grad.size());
  }
  auto formula = [body = shared_from_this(), wanted, parts](autograd::AutogradContext& context,
                                                            const std::vector<Tensor>& gradients) {
    TENON_ASSERT(parts, "the loop of a capture is walked back");
    return body->walk_back(wanted, *parts, context, gradients);
  };
  auto node = make_ref<autograd::FunctionNode>("ScanBackward0", std::move(formula), parts ? parts->kind : 0);
  auto count = [](std::span<const Tensor> list) { return static_cast<uint32_t>(list.size()); };
  node->connect(arguments, {count(call.carry), count(call.xs), count(call.captured)});
  autograd::AutogradContext& context = node->context();
  if (parts) {
    kept.insert(kept.end(), arguments.begin(), arguments.end());
    context.save_for_backward(std::move(kept));
    AnyValue::List numbers, sizes;
    for (const SymInt& number : call.numbers) numbers.emplace_back(number);
    for (const Tensor& captured : call.captured) {
      AnyValue::List of;
      for (const SymInt& size : captured.sym_sizes()) of.emplace_back(size);
      sizes.emplace_back(std::move(of));
    }
    context.saved_data["numbers"] = AnyValue(std::move(numbers));
    context.saved_data["sizes"] = AnyValue(std::move(sizes));
    context.saved_data["steps"] = AnyValue(call.steps);
    context.saved_data["reverse"] = AnyValue(call.reverse);
  }
  std::vector<Tensor> without;
  for (size_t at = 0; at < results.size(); ++at)
    if (!shape_.needs_grad[at]) without.push_back(results[at]);
  context.mark_non_differentiable(std::move(without));
  context.set_materialize_grads(false);
  node->finish(arguments, results);
  return results;
}

}  // namespace tenon::aot
