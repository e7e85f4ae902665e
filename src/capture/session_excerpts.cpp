// What a piece of the function does, recorded and cut out of the graph again: the body of a loop.
#include "session.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/dispatch/registration.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>

#include <algorithm>

namespace tenon::capture {
namespace {

using graph::ValueId;

// Why a recorded call cannot be repeated as a part of a loop; empty if it can.
std::string cannot_be_repeated(const graph::Node& node) {
  if (!node.binds.empty()) return fmt::format("{} gives a size or number that depends on data", node.op->name());
  if (dispatch::has_tag(*node.op, dispatch::Tag::nondeterministic_seeded))  // of rows, their parts say it: `draws`
    return fmt::format("{} draws random numbers", node.op->name());
  return {};
}

}  // namespace

std::optional<Session::Excerpt> Session::record_apart(
    std::span<const Tensor> given,
    const std::function<std::vector<Tensor>(const std::function<bool(const Tensor&)>& is_from_outside)>& body,
    std::string& why, bool is_repeated) {
  graph::Graph& graph = recorder_->graph();
  const size_t first = graph.nodes.size(), first_call = calls_.size(), seeds = graph.seeds.size(), segment = segment_;
  std::unordered_set<const Storage*> written_before = std::exchange(written_, {});
  const bool writes_before = writes;
  std::unordered_map<ValueId, Tensor> known;  // tensors from outside, by value
  recorder_->each_tensor([&](const Tensor& tensor, ValueId id) { known.emplace(id, tensor); });
  std::vector<graph::Recorder::Bound> bindings, *const outer = std::exchange(recorder_->journal, &bindings);
  auto is_input = [&](ValueId id) {
    return std::find(graph.inputs.begin(), graph.inputs.end(), id) != graph.inputs.end();
  };
  std::vector<ValueId> placeholders;
  for (const Tensor& tensor : given) {
    placeholders.push_back(graph.add_value(fmt::format("step{}", graph.values.size()), fake::like(tensor)));
    recorder_->bind(tensor, placeholders.back());
  }
  // (A call that writes to a tensor gives that tensor's value.)
  const auto first_value = static_cast<ValueId>(graph.values.size());
  auto made_inside = [&] {
    std::unordered_set<ValueId> made;
    for (size_t at = first; at < graph.nodes.size(); ++at)
      for (ValueId id : graph.nodes[at].outputs)
        if (id >= first_value) made.insert(id);
    for (ValueId id : graph.inputs) made.erase(id);
    return made;
  };
  auto is_from_outside = [&](const Tensor& tensor) {
    auto shares = [&](const Tensor& other) { return other.is_same_storage(tensor); };
    return std::any_of(known.begin(), known.end(), [&](const auto& each) { return shares(each.second); }) ||
           std::any_of(given.begin(), given.end(), shares) ||
           std::any_of(bindings.begin(), bindings.end(),
                       [&](const auto& each) { return is_input(each.after) && shares(each.tensor); });
  };
  // Whatever happens, the graph goes on as if nothing had been recorded.
  struct PutBack {
    std::function<void()> run;
    ~PutBack() { run(); }
  } put_back{[&] {
    --apart_;
    if (segment_ != segment) return;  // a capture that ends in the middle of it
    recorder_->undo(bindings);
    recorder_->journal = outer;
    for (const graph::Recorder::Bound& each : bindings)
      if (outer && is_input(each.after)) outer->push_back(each);
    graph.nodes.resize(first);
    graph.seeds.resize(seeds);
    calls_.resize(first_call);
    written_ = std::move(written_before);
    writes = writes_before;
    (void)env_->take_fresh();
  }};
  ++apart_;
  // Nothing from data: its symbols would belong to no node.
  fake::DynamicSizes sizes(env_, false, false);
  const bool grad_mode = autograd::grad_enabled();
  std::vector<Tensor> results;
  try {
    results = body(is_from_outside);
  } catch (const NotApart& refused) {
    autograd::set_grad_enabled(grad_mode);
    why = refused.why;
    return std::nullopt;
  }
  if (autograd::grad_enabled() != grad_mode) {
    autograd::set_grad_enabled(grad_mode);
    why = "it leaves another grad mode behind";
    if (is_repeated) return std::nullopt;
  }
  Excerpt excerpt;
  excerpt.graph.env = env_;
  std::unordered_map<ValueId, ValueId> renamed;
  auto take = [&](ValueId id) {
    const graph::ValueInfo& value = graph.values[static_cast<size_t>(id)];
    return renamed[id] = excerpt.graph.add_value(fmt::format("v{}", excerpt.graph.values.size()), value.meta);
  };
  for (ValueId id : placeholders) excerpt.graph.inputs.push_back(take(id));
  for (const graph::Recorder::Bound& each : bindings)
    if (is_input(each.after)) known.emplace(each.after, each.tensor);
  const std::unordered_set<ValueId> made = made_inside();
  auto capture = [&](ValueId id) {
    if (renamed.contains(id) || made.contains(id)) return;
    excerpt.captured.push_back(known.at(id));
    excerpt.graph.inputs.push_back(take(id));
  };
  std::vector<ValueId> outputs;
  for (const Tensor& result : results) {
    outputs.push_back(recorder_->find(result));
    excerpt.needs_grad.push_back(result.requires_grad());
  }
  for (size_t at = first; at < graph.nodes.size(); ++at) {
    why = cannot_be_repeated(graph.nodes[at]);
    if (is_repeated && !why.empty()) return std::nullopt;
    graph::each_reference(graph.nodes[at], capture);
  }
  for (ValueId id : outputs) capture(id);
  for (const Tensor& tensor : excerpt.captured)
    if (is_repeated && written_.contains(tensor.impl()->storage.get())) {
      why = fmt::format("it writes to a tensor from outside, {}", tensor.description());
      return std::nullopt;
    }
  for (const Tensor& tensor : given)
    if (is_repeated && written_.contains(tensor.impl()->storage.get())) {
      why = "it writes to what it was given";
      return std::nullopt;
    }
  for (size_t at = first; at < graph.nodes.size(); ++at) {
    graph::Node node = graph.nodes[at];
    for (graph::Argument& argument : node.args) {
      if (auto* id = std::get_if<ValueId>(&argument); id && *id != graph::kNoValue) *id = renamed.at(*id);
      if (auto* list = std::get_if<graph::ValueList>(&argument))
        for (ValueId& id : list->ids)
          if (id != graph::kNoValue) id = renamed.at(id);
    }
    for (ValueId& id : node.outputs) {
      auto there = renamed.find(id);  // written in place
      id = there == renamed.end() ? take(id) : there->second;
    }
    excerpt.graph.nodes.push_back(std::move(node));
  }
  for (ValueId id : outputs) excerpt.graph.outputs.push_back(renamed.at(id));
  return excerpt;
}

}  // namespace tenon::capture
