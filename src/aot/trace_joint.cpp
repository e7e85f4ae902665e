#include "autograd/author_formula.h"
#include "overlap.h"
#include "result_plan.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/trace.h>
#include <tenon/ops/row.h>

#include "support/origin.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::aot {
namespace {

class JointTracer {
 public:
  explicit JointTracer(const Program& program)
      : program_(program), captured_(program.captured), recorder_(captured_.env) {
    const std::vector<bool>& wanted = program.requires_grad;
    records_ = program.grad_enabled && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  }

  JointGraph run() {
    OriginScope nowhere({});
    graph::TraceMode trace(recorder_);
    FunctionalMode functional;
    fake::DynamicSizes sizes(captured_.env);
    autograd::SetGradMode mode(records_);
    // What backward needs is the value at that time, whatever is written to the tensor afterwards: eager has to refuse
    // that, a graph without mutation has the value.
    autograd::SavedTensorHooksGuard as_saved(
        {.pack = [this](const Tensor& tensor) { return std::any(snapshot(tensor)); },
         .unpack = [this](const std::any& kept) { return at_junction(std::any_cast<const Snapshot&>(kept)); },
         .may_give_history = true});
    for (size_t at = 0; at < captured_.inputs.size(); ++at) {
      graph::ValueId id = captured_.inputs[at];
      bool leaf = program_.leaves.empty() || program_.leaves[at];
      add_primal(fake::like(captured_.meta(id)), captured_.values[static_cast<size_t>(id)].name,
                 records_ && program_.requires_grad[at], leaf);
    }
    for (const HoistedView& view : program_.hoisted)
      add_primal(fake::like(captured_.meta(view.value)), captured_.values[static_cast<size_t>(view.value)].name,
                 records_, false);
    std::vector<dispatch::Value> results = run_forward();
    plan_written();
    planner_.plan(results, known_remade(0));
    for (const Met& each : met_) primals_.push_back(each.stand_in);
    for (size_t level = 0; level < program_.levels.size(); ++level) {
      differentiate(level);
      for (const Met& each : met_) each.history->set_next_edges({each.leaf});
    }
    joint_.primals = primals_.size();
    joint_.forward_outputs = forward_.size();
    find_kept_outputs();
    forward_nodes_ = recorder_.graph().nodes.size();
    forward_values_ = recorder_.graph().values.size();
    if (records_ && program_.history) run_backward();
    if (program_.levels.empty()) {
      find_junctions(results);
      find_hoistable(results);
    }
    finish();
    return std::move(joint_);
  }

 private:
  // A tensor kept for backward as it was then.
  struct Snapshot {
    Tensor value;
    Ref<FunctionalStorage> storage;  // where it was
    bool is_whole = false;           // it was all of what is there
  };

  // An input of the program, and its stand-in in the graph.
  Tensor add_primal(const Tensor& inner, std::string name, bool requires_grad, bool leaf) {
    primals_.push_back(add_input(inner, std::move(name), requires_grad, leaf));
    return primals_.back();
  }

  Tensor add_input(const Tensor& inner, std::string name, bool requires_grad, bool leaf) {
    recorder_.add_input(inner, std::move(name), inner);
    joint_.leaves.push_back(requires_grad && leaf);
    joint_.kept_by_eager.push_back(false);
    Tensor outer = to_functional(inner);
    leaves_.push_back(outer);
    origins_.emplace_back();
    if (requires_grad) {
      outer.set_requires_grad(true);
      // A leaf may not be written to, but the function's argument need not be a leaf: the graph works on a stand-in
      // with a history.
      outer = to_functional(inner);
      origins_.back() = autograd::pass_on(outer, leaves_.back());
    }
    return outer;
  }

  // A result that is an input, too: what comes after it is computed from the input. The gradients of the first level
  // go through it to where it was computed from, their own gradients to the input.
  void meet(graph::ValueId id, Tensor& value) {
    for (size_t at = 0; at < program_.hoisted.size(); ++at)
      if (program_.hoisted[at].value == id) value = primals_[captured_.inputs.size() + at];
    for (const Junction& junction : program_.junctions) {
      if (junction.value != id) continue;
      Tensor inner = from_functional(value);
      autograd::Edge computed = autograd::gradient_edge(value);
      Ref<FunctionalStorage> storage = functional_slot(value)->storage;
      value = add_input(fake::like(inner), fmt::format("result{}", junction.tangent), true, false);
      met_.push_back({value, std::move(storage), origins_.back(), origins_.back()->next_edges()[0]});
      origins_.back()->set_next_edges({computed});
    }
  }

  // What the operator that computed it keeps of a junction is the junction.
  Tensor at_junction(const Snapshot& kept) const {
    for (const Met& each : met_)
      if (each.computed == kept.storage && kept.is_whole) return each.stand_in;
    return kept.value;
  }

  Snapshot snapshot(const Tensor& tensor) {
    Snapshot kept;
    if (const FunctionalSlot* slot = functional_slot(tensor)) {
      kept.storage = slot->storage;
      std::vector<const ViewLink*> chain = slot->chain();
      kept.is_whole = std::none_of(chain.begin(), chain.end(), [](const ViewLink* link) {
        const ops::Row* row = ops::row_of(*link->op);
        return !row || row->differentiable();  // all but detach()
      });
      saved_.push_back({slot->storage, slot->storage->generation, recorder_.find(from_functional(tensor))});
      for (size_t at = 0; slot->storage->generation == 0 && at < primals_.size(); ++at)
        if (functional_slot(primals_[at])->storage == slot->storage) joint_.kept_by_eager[at] = true;
      for (size_t at = 0; slot->storage->generation == 0 && at < met_.size(); ++at)
        if (functional_slot(met_[at].stand_in)->storage == slot->storage) {
          size_t input = captured_.inputs.size() + program_.hoisted.size() + at;
          joint_.kept_by_eager[input] = true;
        }
    }
    kept.value = to_functional(from_functional(tensor));
    return kept;
  }

  std::vector<dispatch::Value> run_forward() {
    graph::InterpretOptions options;
    options.seeds = false;
    OriginScope before(current_origin());
    options.before_node = [&](const graph::Node& node) {
      seed_before(static_cast<size_t>(&node - captured_.nodes.data()));
      current_origin().module = &node.module;
      autograd::set_grad_enabled(node.grad_enabled);
    };
    const std::set<graph::ValueId> returned = ids_that_may_be_returned();
    options.made = [&](graph::ValueId id, Tensor& value) {
      meet(id, value);
      if (returned.contains(id)) names_.emplace_back(id, value);
    };
    const std::vector<Tensor> inputs(primals_.begin(),
                                     primals_.begin() + static_cast<ptrdiff_t>(captured_.inputs.size()));
    std::vector<dispatch::Value> results = graph::interpret(captured_, inputs, options);
    seed_before(captured_.nodes.size());
    autograd::set_grad_enabled(records_);
    return results;
  }

  // Results, and what results are views of: those may be one and the same tensor, as with `flatten` of a vector.
  std::set<graph::ValueId> ids_that_may_be_returned() const {
    std::set<graph::ValueId> ids;
    for (const graph::Argument& output : captured_.outputs)
      graph::each_reference(output, [&](graph::ValueId id) { ids.insert(id); });
    for (auto node = captured_.nodes.rbegin(); node != captured_.nodes.rend(); ++node) {
      const schema::Schema& schema = node->op->schema();
      bool is_returned =
          std::any_of(node->outputs.begin(), node->outputs.end(), [&](graph::ValueId id) { return ids.contains(id); });
      if (is_returned && schema.is_view())
        for (size_t at = 0; at < schema.arguments.size(); ++at)
          if (schema.arguments[at].alias)
            graph::each_reference(node->args[at], [&](graph::ValueId id) { ids.insert(id); });
    }
    return ids;
  }

  // A result may have several names in the captured graph. By the first, others are computed from it.
  graph::ValueId first_name(graph::ValueId id, const Tensor& result) const {
    for (const auto& [name, tensor] : names_)
      if (tensor.is(result)) return name;
    return id;
  }

  void seed_before(size_t position) {
    for (size_t next = seeds_.size(); next < captured_.seeds.size() && captured_.seeds[next].position <= position;
         ++next)
      seeds_.push_back(recorder_.graph().nodes.size());
  }

  // By input: the first operator that writes to it, or to a differentiable view of it, with grad mode on. Eager's
  // checks of such a write belong to the tensor of the call.
  std::vector<std::string> seen_writers() const {
    std::vector<int32_t> input_of(captured_.values.size(), -1);  // that a value is, or looks into as autograd sees it
    for (size_t at = 0; at < captured_.inputs.size(); ++at)
      input_of[static_cast<size_t>(captured_.inputs[at])] = static_cast<int32_t>(at);
    std::vector<std::string> writers(captured_.inputs.size());
    for (const graph::Node& node : captured_.nodes) {
      const ops::Row* row = ops::row_of(*node.op);
      if (row && row->kind == ops::Kind::View && row->differentiable())
        input_of[static_cast<size_t>(node.outputs[0])] =
            input_of[static_cast<size_t>(std::get<graph::ValueId>(node.args[0]))];
      // (An operator that is not in the table has no checks in eager either.)
      if (!node.grad_enabled || !row) continue;
      for (int argument : node.op->schema().mutated_arguments())
        graph::each_reference(node.args[static_cast<size_t>(argument)], [&](graph::ValueId id) {
          if (int32_t input = input_of[static_cast<size_t>(id)]; input >= 0)
            if (std::string& writer = writers[static_cast<size_t>(input)]; writer.empty())
              writer = node.op->schema().name;
        });
    }
    return writers;
  }

  void plan_written() {
    std::vector<std::string> writers = seen_writers();
    for (size_t at = 0; at < primals_.size(); ++at)
      if (was_written(primals_[at])) {
        joint_.mutated.push_back(static_cast<int32_t>(at));
        joint_.writers.push_back(writers[at]);
        planner_.add_forward_output(primals_[at], from_functional(primals_[at]));
      }
  }

  // The gradient of a result that overlaps itself has elements of its own.
  static Tensor tangent_like(const Tensor& value, bool dense) {
    SymInts sizes = value.sym_sizes();
    if (dense) return fake::make(sizes, core::contiguous_strides(sizes.span()), value.dtype(), value.device());
    return fake::like(value);
  }

  // Forward outputs that have a gradient.
  std::vector<size_t> differentiable() const {
    std::vector<size_t> roots;
    for (size_t at = 0; at < forward_.size(); ++at) {
      if (!forward_[at].requires_grad()) continue;
      // A write that autograd did not see (through `detach`, or with grad mode off) leaves the input's history as it
      // was.
      if (at < joint_.mutated.size() &&
          autograd::grad_fn(forward_[at]) == origins_[static_cast<size_t>(joint_.mutated[at])])
        continue;
      roots.push_back(at);
    }
    return roots;
  }

  // The results become their gradients, as eager computes them with create_graph.
  void differentiate(size_t at) {
    const GradientLevel& level = program_.levels[at];
    std::vector<size_t> roots = differentiable();
    TENON_ASSERT(roots.size() == level.given.size(), "{} results have gradients, {} expected", roots.size(),
                 level.given.size());
    std::vector<Tensor> wanted, starts, tangents;
    for (int32_t each : level.of)
      wanted.push_back(level.of_results ? forward_[roots[static_cast<size_t>(each)]]
                                        : leaves_[static_cast<size_t>(each)]);
    for (size_t root = 0; root < roots.size(); ++root) {
      if (!level.given[root]) continue;
      starts.push_back(forward_[roots[root]]);
      tangents.push_back(add_primal(tangent_like(from_functional(starts.back()), level.are_dense[root]),
                                    fmt::format("given{}_{}", at, root), level.requires_grad[root], false));
    }
    autograd::TraceAhead ahead;
    std::vector<Tensor> gradients = autograd::grad(starts, wanted, tangents, true, true, true);
    planner_.forget();
    joint_.reached.clear();
    std::vector<dispatch::Value> results;
    for (const Tensor& gradient : gradients) {
      joint_.reached.push_back(gradient.defined());
      if (gradient.defined()) results.push_back(dispatch::Value(gradient).own());
    }
    planner_.plan(results, known_remade(at + 1));
  }

  const std::vector<Remade>* known_remade(size_t level) const {
    return level < program_.are_remade.size() ? &program_.are_remade[level] : nullptr;
  }

  void run_backward() {
    std::vector<Tensor> roots, gradients, wanted;
    std::vector<size_t> which;
    for (size_t at = 0; at < leaves_.size(); ++at)
      if (leaves_[at].requires_grad()) {
        wanted.push_back(leaves_[at]);
        which.push_back(at);
      }
    const std::vector<bool>& given = program_.given_tangents;
    for (size_t nr = 0; size_t at : differentiable()) {
      if (size_t now = nr++; !given.empty() && !given[now]) continue;
      joint_.are_dense.push_back(may_overlap(from_functional(forward_[at])));
      Tensor inner = tangent_like(from_functional(forward_[at]), joint_.are_dense.back());
      recorder_.add_input(inner, fmt::format("tangent{}", roots.size()), inner);
      roots.push_back(forward_[at]);
      gradients.push_back(to_functional(inner));
      joint_.tangents.push_back(static_cast<int32_t>(at));
    }
    joint_.behind.resize(roots.size());
    if (roots.empty() || wanted.empty()) return;
    find_behind(roots);
    autograd::TraceAhead ahead;
    std::vector<Tensor> results = autograd::grad(roots, wanted, gradients, false, false, true);
    for (size_t at = 0; at < results.size(); ++at) {
      if (!results[at].defined()) continue;
      joint_.gradients.push_back(static_cast<int32_t>(which[at]));
      recorder_.graph().outputs.push_back(recorder_.to_argument(dispatch::Value(from_functional(results[at]))));
    }
  }

  // Which results were computed from which: the gradient of one goes to, or through, the history of another.
  void find_behind(const std::vector<Tensor>& roots) {
    std::map<std::pair<const autograd::Node*, uint32_t>, size_t> known;
    for (size_t at = 0; at < roots.size(); ++at) {
      autograd::Edge edge = autograd::gradient_edge(roots[at]);
      known.emplace(std::pair(edge.node.get(), edge.input_nr), at);
    }
    for (size_t at = 0; roots.size() > 1 && at < roots.size(); ++at) {
      std::set<size_t> met;
      for (const auto& edge : edges_behind({autograd::gradient_edge(roots[at]).node.get()}))
        if (auto found = known.find(edge); found != known.end()) met.insert(found->second);
      for (size_t from : met)
        if (from != at) joint_.behind[from].push_back(static_cast<int32_t>(at));
    }
  }

  // Results of the function's own that nobody writes to. (Of others, gradients have the history of what they were
  // computed from.)
  void find_junctions(const std::vector<dispatch::Value>& results) {
    // In the order in which they are met, results of one node too.
    std::vector<int32_t> made_as(captured_.values.size(), -1);
    int32_t made = 0;
    for (const graph::Node& node : captured_.nodes)
      for (graph::ValueId id : node.outputs) made_as[static_cast<size_t>(id)] = made++;
    for (size_t nr = 0; nr < joint_.tangents.size(); ++nr) {
      auto output = static_cast<size_t>(joint_.tangents[nr]);
      const FunctionalSlot& slot = *functional_slot(forward_[output]);
      if (output < joint_.mutated.size() || slot.links > 0 || slot.storage->generation > 0) continue;
      if (joint_.behind[nr].empty() && !joint_.outputs_kept[output]) continue;
      if (graph::ValueId id = result_with(static_cast<int32_t>(output), results);
          id != graph::kNoValue && made_as[static_cast<size_t>(id)] >= 0)
        joint_.junctions.push_back({id, static_cast<int32_t>(nr)});
    }
    std::sort(joint_.junctions.begin(), joint_.junctions.end(), [&](const Junction& a, const Junction& b) {
      return made_as[static_cast<size_t>(a.value)] < made_as[static_cast<size_t>(b.value)];
    });
  }

  // Views of inputs among the results whose gradients other results contribute to. Of several that are views of each
  // other, the outermost.
  void find_hoistable(const std::vector<dispatch::Value>& results) {
    std::vector<const autograd::Node*> nodes;
    for (int32_t output : joint_.tangents)
      nodes.push_back(autograd::grad_fn(forward_[static_cast<size_t>(output)]).get());
    const EdgeSet reached = edges_behind(std::move(nodes));
    std::vector<Tensor> found;
    for (size_t at = 0; at < results.size() && !reached.empty(); ++at) {
      const auto* id = std::get_if<graph::ValueId>(&captured_.outputs[at]);
      if (!id || !results[at].is_tensor() || !results[at].tensor().requires_grad()) continue;
      const Tensor& outer = results[at].tensor();
      autograd::Edge edge = autograd::gradient_edge(outer);
      std::optional<HoistedView> view = planner_.as_view_of_input(outer);
      if (!view || !reached.contains({edge.node.get(), edge.input_nr}) ||
          functional_slot(outer)->storage->generation > 0)
        continue;
      view->value = first_name(*id, outer);
      view->creation = autograd::meta_of(outer)->creation;
      joint_.hoistable.push_back(std::move(*view));
      found.push_back(outer);
    }
    auto is_inner = [&](const Tensor& outer) {
      return std::any_of(found.begin(), found.end(), [&](const Tensor& other) { return is_view_of(outer, other); });
    };
    for (size_t at = found.size(); at-- > 0;) {
      bool is_repeated = std::any_of(found.begin(), found.begin() + static_cast<ptrdiff_t>(at),
                                     [&](const Tensor& other) { return other.is(found[at]); });
      if (is_repeated || is_inner(found[at]))
        joint_.hoistable.erase(joint_.hoistable.begin() + static_cast<ptrdiff_t>(at));
    }
  }

  // The value of the captured graph that is returned as this forward output.
  graph::ValueId result_with(int32_t output, const std::vector<dispatch::Value>& results) const {
    for (size_t at = 0; at < joint_.outputs.size(); ++at) {
      const OutputPlan& plan = joint_.outputs[at];
      bool is_value = plan.kind == OutputPlan::Kind::Value && plan.index == output;
      bool is_remade = plan.kind == OutputPlan::Kind::ViewOfOutput &&
                       joint_.remade[static_cast<size_t>(plan.index)].output == output;
      const auto* id = std::get_if<graph::ValueId>(&captured_.outputs[at]);
      if (plan.same_as < 0 && (is_value || is_remade) && id) return first_name(*id, results[at].tensor());
    }
    return graph::kNoValue;
  }

  void find_kept_outputs() {
    for (const Tensor& outer : forward_) {
      const Ref<FunctionalStorage>& storage = functional_slot(outer)->storage;
      joint_.outputs_kept.push_back(std::any_of(saved_.begin(), saved_.end(), [&](const auto& saved) {
        return saved.storage == storage && saved.generation == storage->generation;
      }));
    }
  }

  // Random operators are numbered, dead ones too, before anything is taken out.
  void number_draws() {
    std::vector<graph::Node>& nodes = recorder_.graph().nodes;
    size_t next_seed = 0;
    for (size_t at = 0; at <= nodes.size(); ++at) {
      for (; next_seed < seeds_.size() && seeds_[next_seed] <= at; ++next_seed)
        if (program_.levels.empty()) joint_.random.push_back({captured_.seeds[next_seed].seed});
      if (at == forward_nodes_) joint_.forward_draws = joint_.draws;
      if (at == nodes.size()) break;
      const ops::Row* row = ops::row_of(*nodes[at].op);
      nodes[at].draw = -1;
      if (!row || row->kind != ops::Kind::Element || !row->element.random) continue;
      if (at < forward_nodes_ && joint_.draws >= program_.given_draws) joint_.random.push_back({});
      nodes[at].draw = joint_.draws++;
    }
  }

  // An argument of which only the geometry is read (`zeros_like` of a forward value) must not keep that value alive: a
  // tensor without contents takes its place.
  static void release_ignored(graph::Graph& graph) {
    static const dispatch::Operator& empty = dispatch::find_operator("aten::empty_strided");
    std::vector<graph::Node> nodes;
    for (graph::Node& node : graph.nodes) {
      const ops::Row* row = ops::row_of(*node.op);
      for (size_t at = 0; row && at < node.args.size(); ++at) {
        const auto* id = std::get_if<graph::ValueId>(&node.args[at]);
        if (!id || *id == graph::kNoValue || !row->ignores(row->schema.arguments[at].name)) continue;
        const Tensor meta = graph.meta(*id);
        graph::Node stand_in;
        stand_in.op = &empty;
        stand_in.sequence = node.sequence;
        stand_in.module = node.module;
        stand_in.args = {dispatch::Value(meta.sym_sizes()).own(), dispatch::Value(meta.sym_strides()).own(),
                         dispatch::Value(meta.dtype()),           dispatch::Value(),
                         dispatch::Value(meta.device()),          dispatch::Value()};
        stand_in.outputs = {graph.add_value(std::to_string(graph.values.size()), fake::like(meta))};
        node.args[at] = stand_in.outputs[0];
        nodes.push_back(std::move(stand_in));
      }
      nodes.push_back(std::move(node));
    }
    graph.nodes = std::move(nodes);
  }

  // The primals that gradients are computed from.
  void find_read() {
    graph::Graph gradients = joint_.graph;
    gradients.outputs.erase(gradients.outputs.begin(),
                            gradients.outputs.begin() + static_cast<ptrdiff_t>(joint_.forward_outputs));
    graph::remove_dead_code(gradients);
    std::vector<bool> used(gradients.values.size());
    auto use = [&](graph::ValueId id) { used[static_cast<size_t>(id)] = true; };
    for (const graph::Node& node : gradients.nodes) graph::each_reference(node, use);
    for (const graph::Argument& output : gradients.outputs) graph::each_reference(output, use);
    for (size_t at = 0; at < joint_.primals; ++at)
      joint_.read.push_back(used[static_cast<size_t>(gradients.inputs[at])]);
  }

  // Which gradients eager computes from a forward output, or from an input: nodes of backward that read its memory
  // tell, also where what they make of it meets a tangent only later on.
  void find_needed() {
    const graph::Graph& graph = joint_.graph;
    std::vector<graph::ValueId> memory(graph.values.size());  // by value: the one whose memory it shows
    for (size_t id = 0; id < memory.size(); ++id) memory[id] = static_cast<graph::ValueId>(id);
    std::vector<std::set<int32_t>> tangents(graph.values.size());  // by value: those that it depends on
    for (size_t at = joint_.primals; at < graph.inputs.size(); ++at)
      tangents[static_cast<size_t>(graph.inputs[at])] = {static_cast<int32_t>(at - joint_.primals)};
    for (const graph::Node& node : graph.nodes) {
      std::set<int32_t> of;
      graph::each_reference(node, [&](graph::ValueId id) { join(of, tangents[static_cast<size_t>(id)]); });
      const ops::Row* row = ops::row_of(*node.op);
      bool view = row && row->kind == ops::Kind::View;
      for (graph::ValueId id : node.outputs) {
        tangents[static_cast<size_t>(id)] = of;
        if (view) memory[static_cast<size_t>(id)] = memory[static_cast<size_t>(std::get<graph::ValueId>(node.args[0]))];
      }
    }
    std::vector<std::set<int32_t>> met(graph.values.size());  // by value: tangents of whatever backward makes of it
    std::map<graph::ValueId, std::set<int32_t>> readers;      // the same by value with memory
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      bool backward = !node->outputs.empty() && static_cast<size_t>(node->outputs[0]) >= forward_values_;
      // Where it meets one, it is part of a derivative; what is added to that later on does not matter.
      std::set<int32_t> of;
      for (graph::ValueId id : node->outputs) join(of, tangents[static_cast<size_t>(id)]);
      if (of.empty())
        for (graph::ValueId id : node->outputs) join(of, met[static_cast<size_t>(id)]);
      if (!backward || of.empty()) continue;
      graph::each_reference(*node, [&](graph::ValueId id) {
        join(met[static_cast<size_t>(id)], of);
        join(readers[memory[static_cast<size_t>(id)]], of);
      });
    }
    // What was kept may be a part of it, which was a value of its own.
    auto needed_by = [&](graph::ValueId id, const Ref<FunctionalStorage>& storage, int64_t generation) {
      std::set<int32_t> found = readers[memory[static_cast<size_t>(id)]];
      for (const Saved& saved : saved_)
        if (saved.storage == storage && saved.generation == generation && saved.value != graph::kNoValue)
          join(found, readers[memory[static_cast<size_t>(saved.value)]]);
      return std::vector<int32_t>(found.begin(), found.end());
    };
    joint_.needed_by.resize(joint_.forward_outputs);
    for (size_t at = 0; at < joint_.forward_outputs; ++at) {
      const auto* id = std::get_if<graph::ValueId>(&graph.outputs[at]);
      const Ref<FunctionalStorage>& storage = functional_slot(forward_[at])->storage;
      if (id && joint_.outputs_kept[at]) joint_.needed_by[at] = needed_by(*id, storage, storage->generation);
    }
    joint_.primals_needed_by.resize(joint_.primals);
    for (size_t at = 0; at < primals_.size(); ++at)
      if (joint_.kept_by_eager[at]) {
        joint_.primals_needed_by[at] = needed_by(graph.inputs[at], functional_slot(primals_[at])->storage, 0);
        // What is kept for something that nobody needs goes with that.
        joint_.kept_by_eager[at] = !joint_.primals_needed_by[at].empty();
      }
  }

  static void join(std::set<int32_t>& into, const std::set<int32_t>& more) { into.insert(more.begin(), more.end()); }

  void finish() {
    number_draws();
    joint_.graph = std::move(recorder_.graph());
    joint_.graph.symbols = captured_.symbols;
    joint_.graph.symbols.resize(static_cast<size_t>(captured_.env->pool().symbol_count()));
    release_ignored(joint_.graph);
    find_needed();  // also by what eager computes in vain
    // The wrapper too needs numbers that come from data: what binds them must stay.
    size_t outputs = joint_.graph.outputs.size();
    auto need = [&](const ViewLink& link) {
      for (const dispatch::Value& arg : link.args) joint_.graph.outputs.push_back(arg);
    };
    for (const OutputPlan& plan : joint_.outputs) {
      if (plan.kind == OutputPlan::Kind::Number) joint_.graph.outputs.push_back(plan.number);
      for (const ViewLink& link : plan.chain) need(link);
    }
    for (const RemadeView& view : joint_.remade) {
      need(view.link);
      for (const ViewLink& link : view.chain) need(link);
    }
    for (const RandomEvent& event : joint_.random)
      if (event.seed) joint_.graph.outputs.push_back(*event.seed);
    graph::remove_dead_code(joint_.graph);
    joint_.graph.outputs.resize(outputs);
    graph::verify(joint_.graph);
    find_read();
  }

  const Program& program_;
  const graph::Graph& captured_;
  bool records_ = false;  // anything for gradients
  graph::Recorder recorder_;
  std::vector<Tensor> leaves_, primals_;      // functional tensors by input: the leaf, and what the graph works on
  std::vector<Ref<autograd::Node>> origins_;  // by input: the history that its stand-in began with
  std::vector<Tensor> forward_;               // functional tensors by forward output
  struct Met {
    Tensor stand_in;
    Ref<FunctionalStorage> computed;  // what the program would have gone on with
    Ref<autograd::Node> history;
    autograd::Edge leaf;
  };
  std::vector<Met> met_;  // junctions, in the order of their inputs
  // What is returned and what that is a view of, in the order of the program.
  std::vector<std::pair<graph::ValueId, Tensor>> names_;
  struct Saved {
    Ref<FunctionalStorage> storage;
    int64_t generation;
    graph::ValueId value;
  };
  std::vector<Saved> saved_;   // what eager keeps for backward, and when
  std::vector<size_t> seeds_;  // by seed event of the captured graph: how many nodes were recorded before
  size_t forward_nodes_ = 0;   // how many nodes were recorded before backward
  size_t forward_values_ = 0;  // and how many values
  JointGraph joint_;
  ResultPlanner planner_{recorder_, primals_, forward_, joint_};
};

}  // namespace

JointGraph trace_joint(const Program& program) { return JointTracer(program).run(); }

}  // namespace tenon::aot
