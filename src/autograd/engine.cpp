#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include "autograd/current_walk.h"
#include "autograd/operation.h"
#include "autograd/row_node.h"
#include "support/thread_context.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace tenon::autograd {
namespace {

// With captures: what is to be done at a node.
struct Wanted {
  bool runs = false;                                  // something wanted lies beyond it
  std::vector<std::pair<uint32_t, size_t>> captures;  // input → position in the result
  bool any() const { return runs || !captures.empty(); }
};

struct State {
  explicit State(const Walk& its_walk) : walk(its_walk), captured(its_walk.captures.size()) {}

  const Walk& walk;
  bool selective = false;  // only what leads to a capture
  std::unordered_map<const Node*, Wanted> wanted;
  std::unordered_map<const Node*, size_t> missing;  // gradients still to come, by edge
  std::unordered_map<const Node*, std::vector<Tensor>> arrived;
  std::vector<Tensor> captured;

  bool wants(const Node* node) const {
    if (!selective) return true;
    auto found = wanted.find(node);
    return found != wanted.end() && found->second.any();
  }
};

const State* current() { return support::thread_context.get<const State>(support::ContextSlot::Walk); }

const EngineInterceptor* interceptor() {
  return support::thread_context.get<const EngineInterceptor>(support::ContextSlot::EngineInterceptor);
}

// Every node that the roots reach, each after all that it leads to, without recursion.
std::vector<Node*> reachable(const std::vector<Edge>& roots) {
  std::vector<Node*> order;
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<Node*, size_t>> path;
  for (const Edge& root : roots) {
    if (!seen.insert(root.node.get()).second) continue;
    path.emplace_back(root.node.get(), 0);
    while (!path.empty()) {
      auto& [node, at] = path.back();
      if (at == node->next_edges().size()) {
        order.push_back(node);
        path.pop_back();
        continue;
      }
      Node* next = node->next_edges()[at++].node.get();
      if (next && seen.insert(next).second) path.emplace_back(next, 0);
    }
  }
  return order;
}

void plan(State& state) {
  std::vector<Node*> order = reachable(state.walk.roots);
  if (!state.walk.captures.empty()) {
    state.selective = true;
    for (size_t at = 0; at < state.walk.captures.size(); ++at) {
      const Edge& edge = state.walk.captures[at];
      Wanted& wanted = state.wanted[edge.node.get()];
      if (state.walk.accumulate)
        wanted.runs = true;
      else
        wanted.captures.emplace_back(edge.input_nr, at);
    }
    for (Node* node : order)
      for (const Edge& edge : node->next_edges())
        if (edge.valid() && state.wants(edge.node.get())) {
          state.wanted[node].runs = true;
          break;
        }
  }
  for (Node* node : order) {
    if (state.selective && !state.wanted[node].runs) continue;
    for (const Edge& edge : node->next_edges())
      if (edge.valid()) ++state.missing[edge.node.get()];
  }
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
    TENON_CHECK(broadcasts(expected.sizes, sizes), "[backward] {} gave a gradient {} for its input {}, expected {}",
                giver.name(), gradient.description(), edge, expected.str());
    gradient = sum_to_size(gradient, expected.sizes);
  }
  TENON_CHECK(gradient.device() == expected.device, "[backward] {} gave a gradient on {} for its input {}, expected {}",
              giver.name(), gradient.device().str(), edge, expected.device.str());
  TENON_CHECK(gradient.is_floating_point(), "[backward] {} gave a gradient {} for its input {}, expected {}",
              giver.name(), gradient.description(), edge, expected.str());
  if (gradient.dtype() != expected.dtype) gradient = gradient.to(expected.dtype);
  return gradient;
}

std::vector<Tensor> run_node(State& state, Node& node, std::vector<Tensor> gradients) {
  node.run_tensor_hooks(gradients);
  if (state.selective) {
    const Wanted& wanted = state.wanted[&node];
    for (auto [nr, at] : wanted.captures) state.captured[at] = node.whole_gradient(nr, gradients);
    if (!wanted.runs) return {};
  }
  for (const PreHook& hook : node.pre_hooks()) {
    hook(gradients);
    TENON_CHECK(gradients.size() == node.inputs().size(), "[backward] a hook of {} left {} gradients, expected {}",
                node.name(), gradients.size(), node.inputs().size());
  }
  std::vector<Tensor> leaving;
  if (node.post_hooks().empty()) {
    leaving = node.apply(std::move(gradients));
  } else {
    std::vector<Tensor> kept = gradients;
    leaving = node.apply(std::move(gradients));
    for (const PostHook& hook : node.post_hooks()) hook(leaving, kept);
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

void deliver(State& state, const Edge& edge, Tensor gradient) {
  if (!state.wants(edge.node.get())) return;
  std::vector<Tensor>& inputs = state.arrived[edge.node.get()];
  inputs.resize(edge.node->inputs().size());
  if (!gradient.defined()) return;
  Tensor& sum = inputs[edge.input_nr];
  sum = sum.defined() ? sum + gradient : std::move(gradient);
}

}  // namespace

bool walk_wants(const Edge& edge) { return !current() || current()->wants(edge.node.get()); }

InterceptWalks::InterceptWalks(EngineInterceptor asked) : interceptor_(std::move(asked)), before_(interceptor()) {
  support::thread_context.set(support::ContextSlot::EngineInterceptor, &interceptor_);
}
InterceptWalks::~InterceptWalks() { support::thread_context.set(support::ContextSlot::EngineInterceptor, before_); }

std::vector<Tensor> run_walk(const Walk& walk) {
  SetGradMode mode(walk.create_graph);
  State state(walk);
  plan(state);
  support::SwapSlot running(support::ContextSlot::Walk, &state);
  support::OwnCode own;

  auto later = [](const Node* a, const Node* b) { return a->sequence() < b->sequence(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (size_t at = 0; at < walk.roots.size(); ++at) {
    Node* node = walk.roots[at].node.get();
    bool first = !state.arrived.contains(node);
    deliver(state, walk.roots[at], walk.gradients[at]);
    if (first && !state.missing.contains(node) && state.wants(node)) ready.push(node);
  }
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    // Sums of gradients belong to the node that gives the last of them.
    OriginScope differentiated({static_cast<int64_t>(node->operation()), true, nullptr});
    dispatch::ProfileScope profiled(node->name(), static_cast<int64_t>(node->operation()));
    auto gathered = state.arrived.extract(node);
    std::vector<Tensor> leaving = run_node(state, *node, std::move(gathered.mapped()));
    if (leaving.empty()) continue;
    for (size_t at = 0; at < leaving.size(); ++at) {
      const Edge& edge = node->next_edges()[at];
      if (!edge.valid()) continue;
      deliver(state, edge, std::move(leaving[at]));
      size_t& missing = state.missing[edge.node.get()];
      if (--missing == 0 && state.wants(edge.node.get())) ready.push(edge.node.get());
    }
  }
  return std::move(state.captured);
}

namespace {

Tensor root_gradient(const Tensor& root, const Tensor& given, const char* what, bool create_graph) {
  if (!given.defined()) {
    TENON_CHECK(root.is_floating_point() && bool(root.numel() == 1),
                "[{}] grad can be implicitly created only for scalar outputs, got {}", what, root.description());
    NoGrad off;
    return ones_like(root);
  }
  bool fits = same_sizes(given.sym_sizes(), root.sym_sizes());
  TENON_CHECK(fits, "[{}] expected a gradient {} for a root of that shape, got {}", what, root.description(),
              given.description());
  TENON_CHECK(given.is_floating_point() && given.device() == root.device(),
              "[{}] expected a gradient {} on {}, got {} on {}", what, root.description(), root.device().str(),
              given.description(), given.device().str());
  SetGradMode mode(create_graph);
  return given.dtype() == root.dtype() ? given : given.to(root.dtype());
}

Walk prepare(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph, bool create_graph,
             const char* what) {
  TENON_CHECK(!roots.empty(), "[{}] expected at least one tensor to start from", what);
  TENON_CHECK(gradients.empty() || gradients.size() == roots.size(), "[{}] expected {} gradients, one per root, got {}",
              what, roots.size(), gradients.size());
  Walk walk;
  walk.retain_graph = retain_graph;
  walk.create_graph = create_graph;
  for (size_t at = 0; at < roots.size(); ++at) {
    TENON_CHECK(roots[at].defined(), "[{}] root {} is an undefined tensor", what, at);
    Edge edge = gradient_edge(roots[at]);
    TENON_CHECK(edge.valid(), "[{}] root {} does not require grad: {}", what, at, roots[at].description());
    walk.gradients.push_back(
        root_gradient(roots[at], gradients.empty() ? Tensor() : gradients[at], what, create_graph));
    walk.roots.push_back(std::move(edge));
  }
  return walk;
}

std::vector<Tensor> start(const Walk& walk) {
  if (const EngineInterceptor* asked = interceptor())
    if (std::optional<std::vector<Tensor>> answer = (*asked)(walk)) return std::move(*answer);
  return run_walk(walk);
}

void capture_inputs(Walk& walk, std::span<const Tensor> inputs, const char* what) {
  for (size_t at = 0; at < inputs.size(); ++at) {
    TENON_CHECK(inputs[at].defined(), "[{}] input {} is an undefined tensor", what, at);
    Edge edge = gradient_edge(inputs[at]);
    TENON_CHECK(edge.valid(), "[{}] input {} does not require grad: {}", what, at, inputs[at].description());
    walk.captures.push_back(std::move(edge));
  }
}

}  // namespace

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph, bool create_graph,
              std::span<const Tensor> inputs) {
  Walk walk = prepare(roots, gradients, retain_graph, create_graph, "backward");
  capture_inputs(walk, inputs, "backward");
  for (size_t at = 0; at < inputs.size(); ++at)
    TENON_CHECK(inputs[at].is_leaf(), "[backward] input {} is not a leaf: {}; use grad() for its gradient", at,
                inputs[at].description());
  walk.accumulate = true;
  start(walk);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs, bool retain_graph, bool create_graph,
                         bool allow_unused) {
  TENON_CHECK(!inputs.empty(), "[grad] expected at least one input");
  Walk walk = prepare(outputs, grad_outputs, retain_graph, create_graph, "grad");
  capture_inputs(walk, inputs, "grad");
  std::vector<Tensor> result = start(walk);
  for (size_t at = 0; at < inputs.size() && !allow_unused; ++at)
    TENON_CHECK(result[at].defined(), "[grad] input {} ({}) was not used for the outputs: pass allow_unused=true", at,
                inputs[at].description());
  return result;
}

}  // namespace tenon::autograd
