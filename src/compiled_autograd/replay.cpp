#include "replay.h"

#include "capture/session.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/support/log.h>

#include <algorithm>
#include <map>

namespace tenon::compiled_autograd {
namespace {

using autograd::Edge;
using autograd::Node;
using autograd::SavedTensor;
using autograd::TensorHooks;
using dispatch::Value;

using Tensors = std::vector<Tensor>;

class Replay {
 public:
  Replay(const Substitutes& substitutes, bool verbose)
      : run_(Run::current()), substitutes_(substitutes), verbose_(verbose) {}

  Replayed go();

  // Something that is done at every walk, for real, with these tensors (some undefined); gives as many tensors every
  // time. Gradients that have come to their end before it land first. `step`: where it stands; `before`: the node is
  // still to run.
  Tensors act(std::string why, const Tensors& given, size_t step, bool before,
              std::function<Tensors(Run&, Tensors)> action);

  void arrive(Arrival arrival, Tensor gradient) {
    result_.arrivals.push_back(arrival);
    result_.gradients.push_back(std::move(gradient));
  }
  Run& run() const { return run_; }

 private:
  class Exchange;

  Ref<Node> copy(size_t step);
  void add_hooks(Node& made, size_t step);
  Ref<TensorHooks> hooks_of(const TensorHooks& real, size_t step, size_t ordinal);

  Run& run_;
  const Substitutes& substitutes_;
  bool verbose_;
  Replayed result_;
  std::vector<uint32_t> order_, rank_;  // steps in the order in which they run, and back
};

// Puts the substitutes in the place of what a copy holds.
class Replay::Exchange final : public autograd::NodeVisitor {
 public:
  Exchange(Replay& replay) : replay_(replay), changes_(replay.substitutes_.changes) {
    for (const Tensor& tensor : replay.substitutes_.tensors)
      for (const SymInt& size : tensor.sym_sizes())
        if (size.is_symbolic() && size.hint()) add(size);
  }

  void begin(size_t step, size_t tensor, size_t number, size_t symbol) {
    step_ = step;
    tensor_ = tensor;
    number_ = number;
    symbol_ = symbol;
    packed_ = 0;
  }

  void fixed(uint64_t) override {}
  void fixed(std::string_view) override {}
  void number(SymInt& number) override {
    if (!changes_[number_++]) return;
    SymInt symbol = replay_.substitutes_.numbers[symbol_++].sym_int();
    if (!symbol.is_symbolic() || !symbol.hint()) {
      number = symbol;
      return;
    }
    // What is equal at capture is one symbol, and 0 and 1 are themselves; guards say so.
    const int64_t hint = *symbol.hint();
    auto equal = first_with_.find(hint);
    int64_t choice = hint == 0 || hint == 1       ? kItself
                     : equal == first_with_.end() ? static_cast<int64_t>(known_.size())
                                                  : equal->second;
    if (capture::Session* session = capture::Session::current()) choice = session->choose(choice);
    if (choice == kItself) {
      (void)bool(symbol == hint);
      number = hint;
    } else if (choice == static_cast<int64_t>(known_.size())) {
      if (hint > 1) (void)bool(symbol > 1);
      add(symbol);
      number = symbol;
    } else {
      const SymInt& known = known_[static_cast<size_t>(choice)];
      if (!known.same(symbol)) (void)bool(symbol == known);
      number = known;
    }
  }
  void number(SymFloat& number) override {
    if (changes_[number_++]) number = replay_.substitutes_.numbers[symbol_++].sym_float();
  }
  void tensor(Tensor& tensor) override {
    if (tensor.defined()) tensor = replay_.substitutes_.tensors[tensor_++];
  }
  void saved(SavedTensor& tensor, std::string_view, FunctionRef<Edge()>) override {
    if (!tensor.defined()) return;
    if (!tensor.is_packed()) {
      tensor = SavedTensor::standing_for(substitutes()[tensor_++]);
      return;
    }
    size_t step = step_, number = packed_++;
    tensor = SavedTensor::asked_for([&replay = replay_, step, number] {
      return replay.act("an unpack hook is called", {}, step, false, [step, number](Run& run, const Tensors&) {
        return Tensors{unpack(run.node(step), number)};
      })[0];
    });
  }

 private:
  static constexpr int64_t kItself = -1;

  std::span<const Tensor> substitutes() const { return replay_.substitutes_.tensors; }
  void add(const SymInt& symbol) {
    first_with_.try_emplace(*symbol.hint(), static_cast<int64_t>(known_.size()));
    known_.push_back(symbol);
  }

  Replay& replay_;
  const std::vector<bool>& changes_;
  std::vector<SymInt> known_;              // in the order in which they are met
  std::map<int64_t, int64_t> first_with_;  // by hint: where it stands among them
  size_t step_ = 0, tensor_ = 0, number_ = 0, symbol_ = 0, packed_ = 0;
};

Tensors Replay::act(std::string why, const Tensors& given, size_t step, bool before,
                    std::function<Tensors(Run&, Tensors)> action) {
  Tensors operands;
  std::vector<bool> defined;
  for (const Tensor& tensor : given) {
    defined.push_back(tensor.defined());
    if (tensor.defined()) operands.push_back(tensor);
  }
  std::vector<Arrival> arrivals = std::exchange(result_.arrivals, {});
  for (Tensor& gradient : result_.gradients) operands.push_back(std::move(gradient));
  result_.gradients.clear();
  std::vector<uint32_t> later;  // nodes that will read what they saved
  for (size_t at = rank_[step] + !before; at < order_.size(); ++at)
    if (const Description::Step& each = run_.description.steps[order_[at]]; each.runs && !each.opaque)
      later.push_back(order_[at]);
  auto for_real = [defined, arrivals, later = std::move(later),
                   action = std::move(action)](std::span<const Tensor> tensors) {
    Run& run = Run::current();
    Tensors real;
    size_t next = 0;
    for (bool each : defined) real.push_back(each ? tensors[next++] : Tensor());
    for (const Arrival& arrival : arrivals) land(run, arrival, tensors[next++]);
    Tensors results = action(run, std::move(real));
    // What was done may have changed what others saved.
    for (uint32_t each : later) check_saved(run.node(each));
    return results;
  };
  capture::Session* session = capture::Session::current();
  if (!session) return for_real(operands);
  return session->act_on(std::move(why), operands, for_real);
}

namespace {

// Where a gradient leaves the walk: at a leaf, or because it was asked for.
class EndNode final : public Node {
 public:
  EndNode(Replay& replay, size_t step, bool has_hooks)
      : Node(replay.run().node(step).name(), Leaf{}), replay_(replay), step_(step), has_hooks_(has_hooks) {
    copy_structure(replay.run().node(step));
    set_next_edges({});
  }
  Tensors apply(Tensors gradients) override {
    if (!gradients[0].defined()) return {};
    replay_.arrive({Arrival::Kind::Accumulate, static_cast<uint32_t>(step_), 0}, std::move(gradients[0]));
    if (has_hooks_)
      replay_.act("a hook is called after a gradient was added", {}, step_, false,
                  [step = step_](Run& run, const Tensors&) {
                    static_cast<autograd::AccumulateGrad&>(run.node(step)).run_hooks_after();
                    return Tensors{};
                  });
    return {};
  }

 private:
  Replay& replay_;
  size_t step_;
  bool has_hooks_;
};

// A node that is called as it is.
class OpaqueNode final : public Node {
 public:
  OpaqueNode(Replay& replay, size_t step) : Node(replay.run().node(step).name()), replay_(replay), step_(step) {
    copy_structure(replay.run().node(step));
  }
  Tensors apply(Tensors gradients) override {
    return replay_.act(fmt::format("{} is called as it is: it is not traceable", name()), gradients, step_, false,
                       [step = step_](Run& run, Tensors real) {
                         Node& node = run.node(step);
                         run.walk.running = &node;
                         Tensors leaving = node.apply(std::move(real));
                         TENON_CHECK(leaving.size() == node.next_edges().size() || node.next_edges().empty(),
                                     "[backward] {} gave {} gradients, expected {}", node.name(), leaving.size(),
                                     node.next_edges().size());
                         leaving.resize(node.next_edges().size());
                         return leaving;
                       });
  }
  // Of its results one may have been computed from another: what it keeps is the whole gradient.
  void run_tensor_hooks(Tensors& gradients) override {
    Node::run_tensor_hooks(gradients);
    for (const auto& [nr, tensor] : replay_.run().node(step_).retained()) {
      if (tensor.expired()) continue;
      if (Tensor whole = whole_gradient(nr, gradients); whole.defined())
        replay_.arrive({Arrival::Kind::Retain, static_cast<uint32_t>(step_), nr}, std::move(whole));
    }
  }
  bool is_compound() const override { return replay_.run().node(step_).is_compound(); }
  bool is_partial(uint32_t nr, const Tensors& gradients) const override {
    return replay_.run().node(step_).is_partial(nr, gradients);
  }
  Tensor whole_gradient(uint32_t nr, const Tensors& gradients) const override {
    if (!is_partial(nr, gradients)) return gradients[nr];
    return replay_.act(fmt::format("{} is asked for the gradient of a result", name()), gradients, step_, true,
                       [step = step_, nr](Run& run, const Tensors& real) {
                         return Tensors{run.node(step).whole_gradient(nr, real)};
                       })[0];
  }

 private:
  Replay& replay_;
  size_t step_;
};

const TensorHooks* leaf_hooks(const Node& node) {
  const auto* end = dynamic_cast<const autograd::AccumulateGrad*>(&node);
  const autograd::AutogradMeta* meta = end ? autograd::meta_of(end->leaf()) : nullptr;
  return meta ? meta->hooks.get() : nullptr;
}

}  // namespace

// A graph of one walk serves others, whose hooks have numbers of their own: they are known by position.
Ref<TensorHooks> Replay::hooks_of(const TensorHooks& real, size_t step, size_t ordinal) {
  auto made = make_ref<TensorHooks>();
  for (size_t at = 0; at < real.entries.size(); ++at) {
    if (real.entries[at].kind != 0) {
      made->add(real.entries[at].hook, 0);
      continue;
    }
    made->add(
        [this, step, ordinal, at](const Tensor& gradient) {
          return act("a hook is called with a gradient", {gradient}, step, true,
                     [step, ordinal, at](Run& run, Tensors given) {
                       run.walk.running = &run.node(step);
                       autograd::TensorHook hook = run.tensor_hook(step, ordinal, at);
                       if (!hook) return given;
                       Tensor replaced = hook(given[0]);
                       return Tensors{replaced.defined() ? replaced : given[0]};
                     })[0];
        },
        0);
  }
  return made;
}

void Replay::add_hooks(Node& made, size_t step) {
  Node& real = run_.node(step);
  for (size_t at = 0; at < real.tensor_hooks().size(); ++at)
    if (const auto& [nr, hooks] = real.tensor_hooks()[at]; !hooks->entries.empty())
      made.add_tensor_hooks(nr, hooks_of(*hooks, step, at));
  if (const TensorHooks* hooks = leaf_hooks(real); hooks && !hooks->entries.empty())
    made.add_tensor_hooks(0, hooks_of(*hooks, step, Run::kOfLeaf));
  // Retained gradients see what all hooks have left.
  bool keeps_them_itself = run_.description.steps[step].opaque || !run_.description.steps[step].runs;
  for (const auto& [nr, tensor] : real.retained()) {
    if (tensor.expired() || keeps_them_itself) continue;
    auto keeps = make_ref<TensorHooks>();
    keeps->add(
        [this, step, nr = nr](const Tensor& gradient) {
          arrive({Arrival::Kind::Retain, static_cast<uint32_t>(step), nr}, gradient);
          return Tensor();
        },
        0);
    made.add_tensor_hooks(nr, std::move(keeps));
  }
  for (size_t at = 0; at < real.pre_hooks().size(); ++at) {
    const auto& entry = real.pre_hooks()[at];
    if (entry.kind != 0) {
      made.add_pre_hook(entry.hook);
      continue;
    }
    made.add_pre_hook([this, step, at](Tensors& gradients) {
      gradients =
          act("a hook is called before a node runs", gradients, step, true, [step, at](Run& run, Tensors given) {
            Node& node = run.node(step);
            run.walk.running = &node;
            autograd::PreHook hook = run.pre_hook(step, at);
            if (!hook) return given;
            size_t expected = given.size();
            hook(given);
            TENON_CHECK(given.size() == expected, "[backward] a hook of {} left {} gradients, expected {}", node.name(),
                        given.size(), expected);
            return given;
          });
    });
  }
  for (size_t at = 0; at < real.post_hooks().size(); ++at) {
    const auto& entry = real.post_hooks()[at];
    if (entry.kind != 0) {
      made.add_post_hook(entry.hook);
      continue;
    }
    made.add_post_hook([this, step, at](Tensors& leaving, const Tensors& arrived) {
      Tensors both = leaving;
      both.insert(both.end(), arrived.begin(), arrived.end());
      leaving = act("a hook is called after a node ran", both, step, false,
                    [step, at, count = leaving.size()](Run& run, Tensors given) {
                      Node& node = run.node(step);
                      run.walk.running = &node;
                      Tensors came(given.begin() + static_cast<ptrdiff_t>(count), given.end());
                      given.resize(count);
                      autograd::PostHook hook = run.post_hook(step, at);
                      if (!hook) return given;
                      hook(given, came);
                      TENON_CHECK(given.size() == count, "[backward] a hook of {} left {} gradients, expected {}",
                                  node.name(), given.size(), count);
                      return given;
                    });
    });
  }
}

Ref<Node> Replay::copy(size_t step) {
  const Description::Step& described = run_.description.steps[step];
  Node& real = *described.node;
  if (const auto* end = dynamic_cast<const autograd::AccumulateGrad*>(&real)) {
    const autograd::AutogradMeta* meta = autograd::meta_of(end->leaf());
    bool has_hooks = meta && meta->after_accumulation && !meta->after_accumulation->entries.empty();
    return make_ref<EndNode>(*this, step, has_hooks);
  }
  if (described.opaque || !described.runs) return make_ref<OpaqueNode>(*this, step);
  return real.copy();
}

Replayed Replay::go() {
  const std::vector<Description::Step>& steps = run_.description.steps;
  const autograd::Walk& walk = run_.walk.walk;
  // Copies are made in the order in which their originals were, so that the engine chooses among them alike.
  std::vector<size_t> by_age(steps.size());
  for (size_t at = 0; at < steps.size(); ++at) by_age[at] = at;
  std::sort(by_age.begin(), by_age.end(),
            [&](size_t a, size_t b) { return steps[a].node->sequence() < steps[b].node->sequence(); });
  std::vector<Ref<Node>> copies(steps.size());
  for (size_t at : by_age) copies[at] = copy(at);

  for (uint32_t place : run_.walk.plan.in_order()) order_.push_back(place);
  std::vector<uint32_t> step_of(run_.walk.plan.entries.size(), autograd::WalkPlan::kNone);
  for (uint32_t at = 0; at < steps.size(); ++at) step_of[run_.walk.plan.find(steps[at].node)] = at;
  rank_.resize(steps.size());
  for (uint32_t at = 0; at < order_.size(); ++at) rank_[order_[at] = step_of[order_[at]]] = at;
  auto redirected = [&](const Edge& edge) {
    uint32_t place = run_.walk.plan.find(edge.node.get());
    uint32_t to = place == autograd::WalkPlan::kNone ? place : step_of[place];
    return to == autograd::WalkPlan::kNone ? Edge{} : Edge{copies[to], edge.input_nr};
  };
  Exchange exchange(*this);
  size_t symbols = 0, numbers = 0, tensors = run_.description.roots;
  for (size_t at = 0; at < steps.size(); ++at) {
    exchange.begin(at, tensors, numbers, symbols);
    copies[at]->visit_inputs(exchange);
    if (steps[at].runs && !steps[at].opaque) (void)copies[at]->visit(exchange);
    copies[at]->redirect(redirected);
    add_hooks(*copies[at], at);
    for (; numbers < steps[at].numbers_end; ++numbers) symbols += substitutes_.changes[numbers];
    tensors = steps[at].tensors_end;
  }

  autograd::Walk repeated;
  repeated.create_graph = walk.create_graph;
  repeated.retain_graph = true;
  for (size_t at = 0; at < walk.roots.size(); ++at) {
    Edge root = redirected(walk.roots[at]);
    if (!root.valid()) continue;  // nothing that is wanted lies beyond it
    repeated.roots.push_back(std::move(root));
    repeated.gradients.push_back(substitutes_.tensors[at]);
  }
  std::vector<size_t> reached;
  for (size_t at = 0; at < walk.captures.size() && !walk.accumulate; ++at) {
    Edge edge = redirected(walk.captures[at]);
    if (!edge.valid()) continue;
    repeated.captures.push_back(std::move(edge));
    reached.push_back(at);
  }
  if (verbose_)
    for (size_t at = 0; at < steps.size(); ++at)
      log_line(LogTopic::CompiledAutograd, fmt::format("{} (NodeCall {})", steps[at].node->name(), at + 1));
  autograd::RunningWalk running(repeated);
  running.keeps_callbacks = true;
  autograd::run_nodes(running);
  if (!walk.accumulate) result_.captured.resize(walk.captures.size());
  for (size_t at = 0; at < reached.size(); ++at) result_.captured[reached[at]] = std::move(running.captured[at]);
  result_.callbacks = std::move(running.callbacks);
  return std::move(result_);
}

}  // namespace

Replayed replay(const Substitutes& substitutes, bool verbose) { return Replay(substitutes, verbose).go(); }

std::vector<Value> flatten(Replayed replayed) {
  std::vector<Value> values;
  values.emplace_back(replayed.arrivals.size());
  for (size_t at = 0; at < replayed.arrivals.size(); ++at) {
    const Arrival& arrival = replayed.arrivals[at];
    values.emplace_back(static_cast<int64_t>(arrival.kind));
    values.emplace_back(static_cast<int64_t>(arrival.step));
    values.emplace_back(static_cast<int64_t>(arrival.input));
    values.emplace_back(std::move(replayed.gradients[at]));
  }
  for (Tensor& tensor : replayed.captured) {
    values.emplace_back(tensor.defined());
    if (tensor.defined()) values.emplace_back(std::move(tensor));
  }
  return values;
}

Replayed rebuild(std::vector<Value> values) {
  Replayed made;
  size_t next = 0;
  auto count = static_cast<size_t>(values[next++].integer());
  for (size_t at = 0; at < count; ++at) {
    auto kind = static_cast<Arrival::Kind>(values[next].integer());
    auto step = static_cast<uint32_t>(values[next + 1].integer()),
         input = static_cast<uint32_t>(values[next + 2].integer());
    made.arrivals.push_back({kind, step, input});
    made.gradients.push_back(values[next + 3].take_tensor());
    next += 4;
  }
  while (next < values.size()) {
    bool defined = values[next++].boolean();
    made.captured.push_back(defined ? values[next++].take_tensor() : Tensor());
  }
  return made;
}

}  // namespace tenon::compiled_autograd
