#include "step_back.h"

#include "body.h"
#include "core/memory_order.h"
#include "graph_builder.h"

#include <tenon/autograd/grad.h>
#include <tenon/autograd/grad_mode.h>
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

thread_local bool records_step_back = false, is_inside_body = false;

std::vector<int64_t> plain_order(const Tensor& meta) {
  std::vector<int64_t> order(static_cast<size_t>(meta.dim()));
  for (size_t dim = 0; dim < order.size(); ++dim) order[dim] = static_cast<int64_t>(dim);
  return order;
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
StepBack record_step_back(const Graph& body, const std::vector<bool>& wanted) {
  RecordsStepBack inner_loops_too;
  graph::Recorder recorder(body.env);
  // A result that its node has saved comes back as another tensor with the same memory.
  recorder.unknown = [&](const Tensor& tensor) {
    ValueId same = graph::kNoValue;
    recorder.each_tensor([&](const Tensor& other, ValueId id) {
      if (other.is_same_storage(tensor) && lies_alike(other, tensor)) same = id;
    });
    TENON_CHECK(same != graph::kNoValue, "backward needs a value {} as it was before it was written to",
                tensor.description());
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

// Of a body's results, the position among forward's.
std::vector<int32_t> forward_positions(const JointGraph& joint) {
  std::vector<int32_t> positions;
  for (const OutputPlan& plan : joint.outputs) {
    const OutputPlan& own = plan.same_as >= 0 ? joint.outputs[static_cast<size_t>(plan.same_as)] : plan;
    TENON_ASSERT(own.kind == OutputPlan::Kind::Value, "a result of a body is no value of its own");
    positions.push_back(own.index);
  }
  TENON_ASSERT(joint.mutated.empty(), "a body writes to an input");
  return positions;
}

}  // namespace

InsideBody::InsideBody() : before_(std::exchange(is_inside_body, true)) {}
InsideBody::~InsideBody() { is_inside_body = before_; }
bool InsideBody::now() { return is_inside_body; }

RecordsStepBack::RecordsStepBack() : before_(std::exchange(records_step_back, true)) {}
RecordsStepBack::~RecordsStepBack() { records_step_back = before_; }
bool RecordsStepBack::now() { return records_step_back; }

Step step_once(const Graph& body, const LoopShape& shape, const std::vector<bool>& wanted) {
  InsideBody inside;
  const size_t carried = shape.carried, own = carried + shape.sliced;
  JointGraph joint = trace_body(body, wanted, true);
  Partition parts = partition(joint);
  Step step{std::move(parts.forward), std::move(parts.backward), shape, {}, {}, {}, {}};
  const std::vector<int32_t> positions = forward_positions(joint);
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
      step.kept_from.push_back({Kept::From::Captured, static_cast<size_t>(input) - own});
    } else if (input >= static_cast<int32_t>(carried)) {
      step.kept_from.push_back({Kept::From::Slice, static_cast<size_t>(input) - carried});
    } else {
      // Stacks are contiguous: what lies otherwise goes there and comes back in the order of its memory.
      ValueId saved = std::get<ValueId>(outputs[joint.forward_outputs + at]);
      const Tensor& meta = step.forward.meta(saved);
      std::vector<int64_t> order = core::is_dense(meta) ? core::memory_order(meta) : plain_order(meta);
      step.forward.outputs.push_back(pack.permuted(saved, order));
      step.kept[at] = unpack.given_permuted(step.kept[at], order);
      step.kept_from.push_back({Kept::From::Stack, stacks++});
    }
  }
  step.shape.needs_grad.resize(step.forward.outputs.size(), false);
  return step;
}

Step step_again(const Graph& body, const LoopShape& shape, const std::vector<bool>& wanted) {
  InsideBody inside;
  const size_t carried = shape.carried, own = carried + shape.sliced;
  StepBack back = record_step_back(body, wanted);
  Step step{body, std::move(back.graph), {}, {}, {}, std::move(back.tangents), std::move(back.gradients)};
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
    auto& list = at < carried ? step.carry_again : at < own ? step.xs_again : step.captured_again;
    list.push_back(static_cast<int32_t>(at < carried ? at : at < own ? at - carried : at - own));
  }
  step.shape.carried = step.carry_again.size();
  step.shape.sliced = step.xs_again.size();
  for (int32_t at : step.carry_again) {
    step.forward.outputs.push_back(body.outputs[static_cast<size_t>(at)]);
    step.shape.needs_grad.push_back(shape.needs_grad[static_cast<size_t>(at)]);
  }
  Builder stack(step.forward);
  size_t stacks = 0;
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    if (!used[at]) continue;
    step.kept.push_back(step.backward.inputs[at]);
    step.kept_from.push_back(at >= own       ? Kept{Kept::From::Captured, at - own}
                             : at >= carried ? Kept{Kept::From::Slice, at - carried}
                                             : Kept{Kept::From::Stack, stacks++});
    if (at >= carried) continue;
    stack.result(body.inputs[at]);
    step.shape.needs_grad.push_back(shape.needs_grad[at]);
  }
  return step;
}

}  // namespace tenon::aot
