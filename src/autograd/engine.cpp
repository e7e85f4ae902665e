#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/dispatch/call_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/support/warnings.h>
#include <tenon/sym/size_rules.h>

#include "autograd/anomaly.h"
#include "autograd/batched.h"
#include "autograd/current_walk.h"
#include "autograd/operation.h"
#include "autograd/prepare_walk.h"
#include "autograd/row_node.h"
#include "autograd/running_walk.h"
#include "support/out_of_memory.h"
#include "support/own_stack.h"
#include "support/thread_context.h"

#include <algorithm>
#include <queue>

namespace tenon::autograd {
namespace {

using State = RunningWalk;

State* current() { return current_walk(); }

std::atomic<const EngineInterceptor*> default_interceptor{nullptr};

const EngineInterceptor* interceptor() {
  return support::thread_context.get<const EngineInterceptor>(support::ContextSlot::EngineInterceptor);
}

bool broadcasts(const SymInts& from, const SymInts& to) {
  if (from.size() > to.size()) return false;
  size_t lead = to.size() - from.size();
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (!broadcasts_to(from[dim], to[lead + dim])) return false;
  return true;
}

// Brings a gradient to the form that its receiver expects.
Tensor fitted(Tensor gradient, const InputMeta& expected, const Node& giver, size_t edge) {
  if (!gradient.defined()) return gradient;
  SymInts sizes = gradient.sym_sizes();
  if (!same_sizes(sizes, expected.sizes)) {
    TENON_CHECK(broadcasts(expected.sizes, sizes),
                "[backward] {} gave a gradient {} for its input {}, expected shape {}", giver.name(),
                gradient.description(), edge, expected.str());
    gradient = sum_to_size(gradient, expected.sizes);
  }
  TENON_CHECK(gradient.device() == expected.device, "[backward] {} gave a gradient on {} for its input {}, expected {}",
              giver.name(), gradient.device().str(), edge, expected.device.str());
  TENON_CHECK(gradient.is_floating_point(), "[backward] {} gave a gradient {} for its input {}, expected {}",
              giver.name(), gradient.description(), edge, expected.str());
  if (gradient.dtype() != expected.dtype) gradient = gradient.to(expected.dtype);
  return gradient;
}

std::vector<Tensor> apply(Node& node, std::vector<Tensor> gradients) {
  dispatch::ProfileScope profiled("", node.name(), static_cast<int64_t>(node.operation()), node.thread());
  if (!anomaly_enabled()) [[likely]]
    return node.apply(std::move(gradients));
  try {
    std::vector<Tensor> leaving = node.apply(std::move(gradients));
    if (checks_nan()) refuse_nan(node, leaving);
    return leaving;
  } catch (...) {
    tell_of_failure(node);
    throw;
  }
}

// What was asked for twice is one tensor.
void capture(State& state, const Node& node, const std::vector<Tensor>& gradients) {
  const std::vector<Edge>& edges = state.walk.captures;
  for (size_t at = 0; at < edges.size(); ++at) {
    if (edges[at].node.get() != &node) continue;
    size_t first = 0;
    while (edges[first].node.get() != &node || edges[first].input_nr != edges[at].input_nr) ++first;
    state.captured[at] = first < at ? state.captured[first] : node.whole_gradient(edges[at].input_nr, gradients);
  }
}

std::vector<Tensor> run_node(State& state, const WalkPlan::Entry& entry, std::vector<Tensor> gradients) {
  Node& node = *entry.node;
  state.running = &node;
  node.run_tensor_hooks(gradients);
  if (entry.captured) capture(state, node, gradients);
  if (!entry.runs) return {};
  // A hook may remove itself or add others.
  if (!node.pre_hooks().empty())
    for (const HookEntry<PreHook>& each : std::vector(node.pre_hooks())) {
      each.hook(gradients);
      TENON_CHECK(gradients.size() == node.inputs().size(), "[backward] a hook of {} left {} gradients, expected {}",
                  node.name(), gradients.size(), node.inputs().size());
    }
  std::vector<Tensor> leaving;
  if (node.post_hooks().empty()) {
    leaving = apply(node, std::move(gradients));
  } else {
    std::vector<Tensor> kept = gradients;
    leaving = apply(node, std::move(gradients));
    for (const HookEntry<PostHook>& each : std::vector(node.post_hooks())) each.hook(leaving, kept);
  }
  if (!state.walk.retain_graph && !state.walk.create_graph) node.release_saved();
  TENON_CHECK(leaving.size() == node.next_edges().size() || node.next_edges().empty(),
              "[backward] {} gave {} gradients, expected {}", node.name(), leaving.size(), node.next_edges().size());
  leaving.resize(node.next_edges().size());
  for (size_t at = 0; at < leaving.size(); ++at)
    if (const Edge& edge = node.next_edges()[at]; edge.valid())
      leaving[at] = fitted(std::move(leaving[at]), edge.node->inputs()[edge.input_nr], node, at);
  return leaving;
}

// The number of the node, if it is wanted. `is_reached`: the walk goes there, be it with nothing.
uint32_t deliver(State& state, const Edge& edge, Tensor gradient, bool is_reached) {
  uint32_t to = state.plan.find(edge.node.get());
  WalkPlan::Entry& entry = state.plan.entries[to];
  if (!entry.runs && !entry.captured) return WalkPlan::kNone;
  entry.reached |= is_reached;
  std::vector<Tensor>& inputs = state.arrived[to];
  if (inputs.empty()) inputs.resize(edge.node->inputs().size());
  if (!gradient.defined()) return to;
  Tensor& sum = inputs[edge.input_nr];
  sum = sum.defined() ? sum + gradient : std::move(gradient);
  return to;
}

}  // namespace

RunningWalk::RunningWalk(const Walk& its_walk)
    : walk(its_walk), plan(its_walk), captured(its_walk.captures.size()), outer(current_walk()) {}

RunningWalk* current_walk() { return support::thread_context.get<RunningWalk>(support::ContextSlot::Walk); }

bool walk_wants(const Edge& edge) { return !current() || current()->plan.wants(edge.node.get()); }
bool walk_frees(const Node& node) {
  const RunningWalk* walk = current();
  return walk && walk->running == &node && !walk->walk.retain_graph && !walk->walk.create_graph;
}

InterceptWalks::InterceptWalks(EngineInterceptor asked) : interceptor_(std::move(asked)), before_(interceptor()) {
  support::thread_context.set(support::ContextSlot::EngineInterceptor, &interceptor_);
}
InterceptWalks::~InterceptWalks() { support::thread_context.set(support::ContextSlot::EngineInterceptor, before_); }

void run_nodes(RunningWalk& state) {
  const Walk& walk = state.walk;
  SetGradMode mode(walk.create_graph);
  support::SwapSlot running(support::ContextSlot::Walk, &state);
  support::SwapSlot without_tangents(support::ContextSlot::DualLevel, nullptr);
  support::OwnCode own;
  state.arrived.resize(state.plan.entries.size());

  using Ready = std::pair<uint64_t, uint32_t>;  // of the nodes that are ready the one made last comes first
  std::priority_queue<Ready> ready;
  auto make_ready = [&](uint32_t at) { ready.emplace(state.plan.entries[at].node->sequence(), at); };
  for (size_t at = 0; at < walk.roots.size(); ++at) {
    uint32_t to = state.plan.find(walk.roots[at].node.get());
    bool first = state.arrived[to].empty();
    to = deliver(state, walk.roots[at], walk.gradients[at], true);
    if (to != WalkPlan::kNone && first && state.plan.entries[to].missing == 0) make_ready(to);
  }
  // Of several operations that are one node, those that no gradient came to would not have run, nor what is behind
  // them.
  auto pass_on = [&](const WalkPlan::Entry& from, std::vector<Tensor> leaving) {
    for (size_t at = 0; at < leaving.size(); ++at) {
      const Edge& edge = from.node->next_edges()[at];
      if (!edge.valid()) continue;
      const bool is_reached = leaving[at].defined() || (from.reached && !from.node->is_compound());
      uint32_t to = deliver(state, edge, std::move(leaving[at]), is_reached);
      if (to != WalkPlan::kNone && --state.plan.entries[to].missing == 0) make_ready(to);
    }
  };
  while (!ready.empty()) {
    const WalkPlan::Entry& entry = state.plan.entries[ready.top().second];
    Node* node = entry.node;
    std::vector<Tensor> gathered = std::move(state.arrived[ready.top().second]);
    ready.pop();
    if (!entry.reached) {
      if (entry.runs) pass_on(entry, std::vector<Tensor>(node->next_edges().size()));
      continue;
    }
    gathered.resize(node->inputs().size());
    // Sums of gradients belong to the node that gives the last of them.
    OriginScope differentiated({static_cast<int64_t>(node->operation()), true, nullptr});
    dispatch::ProfileScope profiled("autograd::engine::evaluate_function: ", node->name(),
                                    static_cast<int64_t>(node->operation()), node->thread());
    pass_on(entry, run_node(state, entry, std::move(gathered)));
  }
  state.running = nullptr;
}

void run_callbacks(RunningWalk& state) {
  if (state.outer) return;
  support::SwapSlot running(support::ContextSlot::Walk, &state);
  // One may queue the next.
  for (size_t at = 0; at < state.callbacks.size(); ++at) {
    std::function<void()> callback = std::move(state.callbacks[at]);
    callback();
  }
}

int64_t next_walk_id() {
  static std::atomic<int64_t> walks{0};
  return walks++;
}

std::vector<Tensor> run_walk(const Walk& walk) {
  RunningWalk state(walk);
  state.id = next_walk_id();
  run_nodes(state);
  run_callbacks(state);
  return std::move(state.captured);
}

void queue_callback(std::function<void()> callback) {
  State* walk = current();
  TENON_CHECK(walk, "[queue_callback] Final callbacks can only be installed during backward pass.");
  while (walk->outer && !walk->keeps_callbacks) walk = walk->outer;
  walk->callbacks.push_back(std::move(callback));
}

const Node* current_node() { return current() ? current()->running : nullptr; }

bool will_execute(const Node& node) {
  const State* walk = current();
  TENON_CHECK(walk, "[will_execute] expected to be called during the backward pass");
  uint32_t at = walk->plan.find(&node);
  if (at == WalkPlan::kNone) return false;
  const WalkPlan::Entry& entry = walk->plan.entries[at];
  TENON_CHECK(!entry.captured || entry.runs || !dynamic_cast<const AccumulateGrad*>(&node),
              "[will_execute] a leaf's node was asked for, and we are currently running autograd.grad(): it takes the "
              "gradient there, and does not run");
  return entry.runs;
}

void set_default_interceptor(const EngineInterceptor* asked) {
  default_interceptor.store(asked, std::memory_order_release);
}

namespace {

std::vector<Tensor> start_here(const Walk& walk) {
  const EngineInterceptor* asked = interceptor();
  if (!asked) asked = default_interceptor.load(std::memory_order_acquire);
  // What goes through a walk inside of vmap is no tensor of a graph.
  if (asked && !dispatch::CallMode::watches_walks() && !innermost_level(walk.gradients))
    if (std::optional<std::vector<Tensor>> answer = (*asked)(walk)) return std::move(*answer);
  return run_walk(walk);
}

}  // namespace

std::vector<Tensor> start_walk(const Walk& walk) {
  if (!current()) return start_here(walk);
  // Within another, and perhaps many others.
  std::vector<Tensor> results;
  support::with_room([&] { results = start_here(walk); });
  return results;
}

namespace {

Tensor root_gradient(const Tensor& root, const Tensor& given, size_t at, const char* what, bool create_graph) {
  if (!given.defined()) {
    TENON_CHECK(root.is_floating_point() && bool(root.numel() == 1),
                "[{}] grad can be implicitly created only for scalar outputs, got {}", what, root.description());
    NoGrad off;
    return ones_like(root);
  }
  bool fits = same_sizes(given.sym_sizes(), root.sym_sizes());
  TENON_CHECK(fits, "[{}] Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}.", what,
              at, str(given.sym_sizes()), at, str(root.sym_sizes()));
  TENON_CHECK(given.is_floating_point() && given.device() == root.device(),
              "[{}] expected a gradient {} on {}, got {} on {}", what, root.description(), root.device().str(),
              given.description(), given.device().str());
  SetGradMode mode(create_graph);
  return given.dtype() == root.dtype() ? given : given.to(root.dtype());
}

}  // namespace

Walk prepare_walk(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph,
                  bool create_graph, const char* what) {
  TENON_CHECK(!roots.empty(), "[{}] expected at least one tensor to start from", what);
  TENON_CHECK(gradients.empty() || gradients.size() == roots.size(), "[{}] expected {} gradients, one per root, got {}",
              what, roots.size(), gradients.size());
  TENON_CHECK_IMPLEMENTED(!innermost_level(roots),
                          "[{}] vmap: a walk from a batched tensor would add up the gradients of all entries: "
                          "autograd::grad gives those of each",
                          what);
  Walk walk;
  walk.retain_graph = retain_graph;
  walk.create_graph = create_graph;
  for (size_t at = 0; at < roots.size(); ++at) {
    TENON_CHECK(roots[at].defined(), "[{}] root {} is an undefined tensor", what, at);
    Edge edge = gradient_edge(roots[at]);
    TENON_CHECK(edge.valid(), "[{}] root {} does not require grad: {}", what, at, roots[at].description());
    walk.gradients.push_back(
        root_gradient(roots[at], gradients.empty() ? Tensor() : gradients[at], at, what, create_graph));
    walk.roots.push_back(std::move(edge));
    walk.started_from.push_back(roots[at]);
  }
  return walk;
}

Edge edge_of_input(const Tensor& input, size_t at, const char* what) {
  TENON_CHECK(input.defined(), "[{}] input {} is an undefined tensor", what, at);
  Edge edge = gradient_edge(input);
  TENON_CHECK(edge.valid(), "[{}] input {} does not require grad: {}", what, at, input.description());
  return edge;
}

void check_used(const Tensor& gradient, size_t at, const std::string& input) {
  TENON_CHECK(gradient.defined(),
              "[grad] input {} ({}) seems to not have been used in the graph of the outputs. Set allow_unused=True if "
              "that is meant",
              at, input);
}

void warn_of_ring(bool create_graph) {
  if (create_graph)
    warn(
        "[backward] Using backward() with create_graph=True makes a ring of a parameter and its gradient, which is not "
        "freed by itself: use grad(), or forget the gradients with set_grad(Tensor())");
}

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph, bool create_graph,
              std::span<const Tensor> inputs) try {
  Walk walk = prepare_walk(roots, gradients, retain_graph, create_graph, "backward");
  for (size_t at = 0; at < inputs.size(); ++at) {
    walk.captures.push_back(edge_of_input(inputs[at], at, "backward"));
    walk.asked_for.push_back(inputs[at]);
    if (!inputs[at].is_leaf()) inputs[at].retain_grad();
  }
  walk.accumulate = true;
  warn_of_ring(create_graph);
  start_walk(walk);
} catch (...) {
  support::rethrow_named("backward");
}

namespace {

// Inside of vmap: entries do not depend on each other, so that the gradient of all of them is that of each.
std::vector<Tensor> grad_of_entries(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                    std::span<const Tensor> grad_outputs, bool retain_graph, bool create_graph,
                                    bool allow_unused, uint64_t level) {
  const SymInt count = entries_of(outputs, level);
  std::vector<Tensor> roots, leaves, gradients;
  for (size_t at = 0; at < outputs.size(); ++at) {
    Tensor given = grad_outputs.empty() ? Tensor() : grad_outputs[at];
    roots.push_back(value_for_all(outputs[at], level, count));
    given = root_gradient(outputs[at], given, at, "grad", create_graph);
    gradients.push_back(value_for_all(given, level, count));
  }
  for (size_t at = 0; at < inputs.size(); ++at) {
    const BatchedSlot* slot = batched_slot(inputs[at]);
    TENON_CHECK_IMPLEMENTED(slot && slot->level == level,
                            "[grad] vmap: expected inputs that are batched, as the outputs are, got {} as input {}, "
                            "which is the same for all entries: pass it to vmap as a batch",
                            inputs[at].description(), at);
    leaves.push_back(slot->value);
  }
  std::vector<Tensor> found = grad(roots, leaves, gradients, retain_graph, create_graph, allow_unused);
  for (Tensor& each : found)
    if (each.defined()) each = make_batched(each, level);
  return found;
}

}  // namespace

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs, bool retain_graph, bool create_graph,
                         bool allow_unused) try {
  TENON_CHECK(!inputs.empty(), "[grad] grad requires non-empty inputs.");
  if (uint64_t level = innermost_level(outputs))
    return grad_of_entries(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, level);
  Walk walk = prepare_walk(outputs, grad_outputs, retain_graph, create_graph, "grad");
  for (size_t at = 0; at < inputs.size(); ++at) walk.captures.push_back(edge_of_input(inputs[at], at, "grad"));
  walk.asked_for.assign(inputs.begin(), inputs.end());
  std::vector<Tensor> result = start_walk(walk);
  for (size_t at = 0; at < inputs.size() && !allow_unused; ++at) check_used(result[at], at, inputs[at].description());
  return result;
} catch (...) {
  support::rethrow_named("grad");
}

}  // namespace tenon::autograd
