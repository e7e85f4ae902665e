#include "state.h"

#include "gradient_layout.h"
#include "graph/on_data.h"
#include "support/thread_context.h"
#include "without_tangents.h"

#include <tenon/autograd/visit.h>

#include <algorithm>

namespace tenon::aot {
namespace {

GraphFunction interpreted(const std::shared_ptr<const graph::Graph>& graph) {
  return [graph](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    graph::InterpretOptions options;
    const std::vector<int64_t> values = graph::symbols_on_data(*graph, symbols);
    options.symbols = values;
    return graph::interpret(*graph, inputs, options);
  };
}

// Random numbers and what is taken from data belong to the call.
bool can_be_inlined(const State& state) {
  const std::vector<graph::Node>& nodes = state.parts.backward.nodes;
  return state.joint.draws == 0 && state.parts.bound.empty() && state.parts.backward.seeds.empty() &&
         std::all_of(nodes.begin(), nodes.end(), [](const graph::Node& node) { return node.binds.empty(); });
}

// Whether results and their gradients have the same places.
bool same_places(const JointGraph& a, const JointGraph& b) {
  auto same = [](const OutputPlan& one, const OutputPlan& other) {
    return one.kind == other.kind && one.index == other.index && one.same_as == other.same_as;
  };
  return a.tangents == b.tangents && a.gradients == b.gradients &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), same);
}

}  // namespace

std::shared_ptr<State> make_state(Program program, const GraphCompiler& compiler, bool refuse_double_backward) {
  auto state = std::make_shared<State>();
  state->program = std::move(program);
  state->joint = trace_joint(state->program);
  while (!state->joint.hoistable.empty()) {
    std::vector<HoistedView>& hoisted = state->program.hoisted;
    std::move(state->joint.hoistable.begin(), state->joint.hoistable.end(), std::back_inserter(hoisted));
    state->joint = trace_joint(state->program);
  }
  state->parts = partition(state->joint);
  make_gradients_dense(state->parts.backward);
  state->compiler = compiler;
  state->refuse_double_backward = refuse_double_backward;
  TENON_LOG(Graph, "forward:\n{}", graph::to_string(state->parts.forward));
  if (!state->joint.tangents.empty()) TENON_LOG(Graph, "backward:\n{}", graph::to_string(state->parts.backward));
  state->forward = compiler(state->parts.forward);
  if (!state->program.levels.empty()) {
    state->reads = used_inputs(state->parts.forward);
    for (size_t at = 0; at < state->joint.read.size(); ++at)
      if (state->joint.read[at]) state->reads[at] = true;
  }
  state->known = sym::EnvSnapshot::of(state->joint.graph.env);
  state->serial = autograd::new_kind();
  state->can_be_inlined = can_be_inlined(*state);
  return state;
}

// A formula of the user's is given zeros for a gradient that is missing; an operator of the table is not run for it.
// What comes of it is found out as eager does.
std::vector<bool> State::reached_from(const std::vector<bool>& given, std::span<const int64_t> symbols) const {
  // Numbers from data are as unknown as they were, or are not: what is decided of them decides what is a view.
  sym::EnvCopy copy(known, symbols, graph::bound_symbols(program.captured, !program.levels.empty()));
  Program partial = program;
  partial.captured = graph::in_copy(program.captured, copy);
  partial.given_tangents = given;
  partial.are_remade = joint.are_remade;
  // A capture may be going on, which this is no part of; so may a backward.
  support::SwapContext apart(support::ThreadContext{});
  JointGraph traced = trace_joint(partial);
  std::vector<bool> reached;
  for (int32_t input : joint.gradients)
    reached.push_back(std::find(traced.gradients.begin(), traced.gradients.end(), input) != traced.gradients.end());
  return reached;
}

State::Backward* State::known_backward(const std::vector<bool>& given) {
  std::lock_guard lock(mutex_);
  auto found = backward_.find(given);
  return found == backward_.end() ? nullptr : found->second.get();
}

State::Backward& State::backward(const std::vector<bool>& given, std::span<const int64_t> symbols) {
  if (Backward* there = known_backward(given)) return *there;
  support::Undivided made_whole;
  std::lock_guard one_at_a_time(making_);
  if (Backward* there = known_backward(given)) return *there;
  std::unique_ptr<Backward> made = make_backward(given, symbols);
  std::lock_guard lock(mutex_);
  return *backward_.emplace(given, std::move(made)).first->second;
}

std::unique_ptr<State::Backward> State::make_backward(const std::vector<bool>& given,
                                                      std::span<const int64_t> symbols) const {
  auto made = std::make_unique<Backward>();
  bool all = std::find(given.begin(), given.end(), false) == given.end();
  if (all) {
    made->graph = std::make_shared<graph::Graph>(parts.backward);
    made->read.assign(parts.saved.size(), true);
    made->reached.assign(joint.gradients.size(), true);
    for (int32_t draw = joint.forward_draws; draw < joint.draws; ++draw) made->draws.push_back(draw);
    return made;
  }
  graph::Graph graph = without_tangents(parts.backward, parts.saved.size(), given, reached_from(given, symbols));
  std::vector<graph::Argument> outputs;
  for (const graph::Argument& output : graph.outputs) {
    const auto* id = std::get_if<graph::ValueId>(&output);
    made->reached.push_back(!id || *id != graph::kNoValue);
    if (made->reached.back()) outputs.push_back(output);
  }
  graph.outputs = std::move(outputs);
  // A value that only the other results need may have been changed since, or given back.
  made->read = drop_unused_inputs(graph, parts.saved.size());
  for (const graph::Node& node : graph.nodes)
    if (node.draw >= joint.forward_draws) made->draws.push_back(node.draw);
  TENON_LOG(Graph, "backward of some results:\n{}", graph::to_string(graph));
  made->graph = std::make_shared<graph::Graph>(std::move(graph));
  return made;
}

std::shared_ptr<GraphFunction> State::compiled(Backward& backward, std::span<const int64_t> symbols) {
  return backward.compiled.find(
      known, *backward.graph, false, symbols,
      [&](const sym::EnvCopy& copy) {
        return std::make_shared<GraphFunction>(compiler(graph::in_copy(*backward.graph, copy)));
      },
      [&] { return std::make_shared<GraphFunction>(interpreted(backward.graph)); });
}

// Whether the program does in the copy what it did when it was traced.
bool State::are_places_kept(const sym::EnvCopy& copy) const {
  if (graph::bound_symbols(program.captured, true).empty()) return true;
  Program again = program;
  again.captured = graph::in_copy(program.captured, copy);
  again.are_remade = joint.are_remade;
  support::SwapContext apart(support::ThreadContext{});
  return same_places(trace_joint(again), joint);
}

std::shared_ptr<State> State::differentiated(const GradientLevel& level, bool history,
                                             std::span<const int64_t> symbols) {
  Variants<State>* variants = nullptr;
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Variants<State>>& found = orders_[{level, history}];
    if (!found) found = std::make_unique<Variants<State>>();
    variants = found.get();
  }
  auto make_in = [&](const sym::EnvCopy& copy, const GraphCompiler& with) {
    Program next = program;
    next.captured = graph::in_copy(program.captured, copy);
    if (next.levels.empty())
      for (size_t at = 0; at < joint.junctions.size(); ++at)
        if (level.junctions[at]) next.junctions.push_back(joint.junctions[at]);
    next.levels.push_back(level);
    next.are_remade = joint.are_remade;
    next.history = history;
    next.given_draws = joint.forward_draws;
    return make_state(std::move(next), with, refuse_double_backward);
  };
  // What numbers from data were is known by now. Where that makes another thing of a result (`contiguous()` gives the
  // tensor itself, if there is one element), they are unknown once more.
  auto make = [&](const sym::EnvCopy& copy, const GraphCompiler& with) {
    if (are_places_kept(copy)) return make_in(copy, with);
    sym::EnvCopy unknown(known, symbols, graph::bound_symbols(program.captured, false));
    std::shared_ptr<State> made = make_in(unknown, with);
    for (sym::Expr condition : unknown.conditions()) (void)copy.env()->decide(copy(condition));
    return made;
  };
  return variants->find(
      known, program.captured, true, symbols, [&](const sym::EnvCopy& copy) { return make(copy, compiler); },
      [&] {
        sym::EnvCopy copy(known, symbols, graph::bound_symbols(program.captured, true));
        return make(copy, [](const graph::Graph& graph) { return interpreted(std::make_shared<graph::Graph>(graph)); });
      });
}

}  // namespace tenon::aot
