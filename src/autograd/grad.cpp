#include <tenon/autograd/grad.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include "autograd/prepare_walk.h"
#include "autograd/running_walk.h"

#include <algorithm>

namespace tenon::autograd {
namespace {

using Tensors = std::vector<Tensor>;

Edge edge_of(const GradInput& input, size_t at, const char* what) {
  return input.is_edge() ? input.edge() : edge_of_input(input.tensor(), at, what);
}

std::string described(const GradInput& input) {
  return input.is_edge() ? "an edge to " + input.edge().node->name() : input.tensor().description();
}

// One walk for each entry of the first dimension of what was given.
Tensors grad_of_batch(const Tensors& outputs, const std::vector<GradInput>& inputs, const GradOptions& options) {
  TENON_CHECK(options.grad_outputs.size() == outputs.size(),
              "[grad] expected {} grad_outputs, one per output, got {} (is_grads_batched)", outputs.size(),
              options.grad_outputs.size());
  int64_t count = -1;
  for (size_t at = 0; at < outputs.size(); ++at) {
    std::span<const int64_t> sizes = options.grad_outputs[at].sizes(), own = outputs[at].sizes();
    TENON_CHECK(!sizes.empty() && std::ranges::equal(sizes.subspan(1), own),
                "[grad] If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch, "
                "and the others are the output's: grad_output[{}] is {}, and output[{}] is {}",
                at, options.grad_outputs[at].description(), at, outputs[at].description());
    TENON_CHECK(count < 0 || count == sizes[0], "[grad] expected batches of {} gradients, got one of {}", count,
                sizes[0]);
    count = sizes[0];
  }
  std::vector<Tensors> found(inputs.size());
  for (int64_t entry = 0; entry < count; ++entry) {
    GradOptions one = options;
    one.is_grads_batched = false;
    one.retain_graph = options.retain_graph || entry + 1 < count;
    for (Tensor& each : one.grad_outputs) each = each.select(0, entry);
    Tensors gradients = grad_with(outputs, inputs, one);
    for (size_t at = 0; at < inputs.size(); ++at) found[at].push_back(std::move(gradients[at]));
  }
  Tensors stacked(inputs.size());
  SetGradMode mode(options.create_graph);
  for (size_t at = 0; at < inputs.size(); ++at)
    if (count > 0 && found[at][0].defined()) stacked[at] = stack(found[at]);
  return stacked;
}

}  // namespace

GradientEdge::GradientEdge(const Tensor& tensor) : edge_(edge_of_input(tensor, 0, "GradientEdge")) {}

Tensors grad_with(const Tensors& outputs, const std::vector<GradInput>& inputs, const GradOptions& options) {
  TENON_CHECK(!inputs.empty(), "[grad] grad requires non-empty inputs.");
  TENON_CHECK_VALUE(!options.materialize_grads || options.allow_unused.value_or(true),
                    "[grad] Expected allow_unused to be True or not passed when materialize_grads is set: zeros stand "
                    "for inputs that are unused");
  if (options.is_grads_batched) return grad_of_batch(outputs, inputs, options);
  Walk walk = prepare_walk(outputs, options.grad_outputs, options.retain_graph, options.create_graph, "grad");
  for (size_t at = 0; at < inputs.size(); ++at) {
    walk.captures.push_back(edge_of(inputs[at], at, "grad"));
    walk.asked_for.push_back(inputs[at].is_edge() ? Tensor() : inputs[at].tensor());
  }
  Tensors result = start_walk(walk);
  for (size_t at = 0; at < inputs.size(); ++at) {
    if (result[at].defined()) continue;
    if (options.materialize_grads) {
      TENON_CHECK(!inputs[at].is_edge(),
                  "[grad] materialize_grads cannot be used when the given input is a GradientEdge, which does not know "
                  "the sizes: input {} is {}",
                  at, described(inputs[at]));
      result[at] = zeros_like(inputs[at].tensor().detach()).set_requires_grad(options.create_graph);
    } else if (!options.allow_unused.value_or(false)) {
      check_used(result[at], at, described(inputs[at]));
    }
  }
  return result;
}

void backward_with(const Tensors& roots, const BackwardOptions& options) {
  TENON_CHECK(!options.inputs || !options.inputs->empty(),
              "[backward] the inputs cannot be empty: leave them out for all leaves");
  Walk walk = prepare_walk(roots, options.gradients, options.retain_graph, options.create_graph, "backward");
  walk.accumulate = true;
  for (size_t at = 0; options.inputs && at < options.inputs->size(); ++at) {
    const GradInput& input = (*options.inputs)[at];
    walk.captures.push_back(edge_of(input, at, "backward"));
    walk.asked_for.push_back(input.is_edge() ? Tensor() : input.tensor());
    if (!input.is_edge() && !input.tensor().is_leaf()) input.tensor().retain_grad();
  }
  warn_of_ring(options.create_graph);
  start_walk(walk);
}

Tensors call_node(const Ref<Node>& node, Tensors gradients) {
  TENON_CHECK(node, "[call_node] expected a node, got none: a leaf has no grad_fn");
  TENON_CHECK_TYPE(gradients.size() == node->inputs().size(), "[{}] expected {} arguments, got {} instead",
                   node->name(), node->inputs().size(), gradients.size());
  return node->apply(std::move(gradients));
}

int64_t current_walk_id() { return current_walk() ? current_walk()->id : -1; }

std::vector<Ref<Node>> execution_order() {
  const RunningWalk* walk = current_walk();
  TENON_CHECK(walk, "[execution_order] should only be called during the backward pass");
  WalkPlan plan(walk->walk);
  std::vector<Ref<Node>> order;
  for (uint32_t at : plan.in_order())
    if (plan.entries[at].runs || plan.entries[at].captured) order.emplace_back(plan.entries[at].node);
  return order;
}

}  // namespace tenon::autograd
