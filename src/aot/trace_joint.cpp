#include <tenon/aot/aot.h>
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

namespace tenon::aot {
namespace {

class JointTracer {
 public:
  JointTracer(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled)
      : captured_(captured), requires_grad_(requires_grad), grad_enabled_(grad_enabled), recorder_(captured.env) {}

  JointGraph run() {
    OriginScope nowhere({});
    graph::TraceMode trace(recorder_);
    FunctionalMode functional;
    fake::DynamicSizes sizes(captured_.env);
    autograd::SetGradMode mode(grad_enabled_);
    // What backward needs is the value at that time, whatever is written to the tensor afterwards: eager has to refuse
    // that, a graph without mutation has the value.
    autograd::SavedTensorHooksGuard as_saved({[this](const Tensor& tensor) { return std::any(snapshot(tensor)); },
                                              [](const std::any& kept) { return std::any_cast<Tensor>(kept); }});
    add_inputs();
    std::vector<dispatch::Value> results = run_forward();
    plan_outputs(results);
    if (grad_enabled_) run_backward();
    finish();
    return std::move(joint_);
  }

 private:
  void add_inputs() {
    joint_.primals = captured_.inputs.size();
    joint_.kept = requires_grad_;
    for (size_t at = 0; at < captured_.inputs.size(); ++at) {
      Tensor inner = fake::like(captured_.meta(captured_.inputs[at]));
      recorder_.add_input(inner, captured_.values[static_cast<size_t>(captured_.inputs[at])].name, inner);
      Tensor outer = to_functional(inner);
      if (requires_grad_[at]) outer.set_requires_grad(true);
      leaves_.push_back(outer);
      origins_.emplace_back();
      if (!requires_grad_[at]) {
        primals_.push_back(outer);
        continue;
      }
      // A leaf may not be written to, but the function's argument need not be a leaf: the graph works on a stand-in
      // with a history.
      primals_.push_back(to_functional(inner));
      origins_.back() = autograd::pass_on(primals_.back(), outer);
    }
  }

  Tensor snapshot(const Tensor& tensor) {
    if (const FunctionalSlot* slot = functional_slot(tensor); slot && slot->storage->generation == 0)
      for (size_t at = 0; at < primals_.size(); ++at)
        if (functional_slot(primals_[at])->storage == slot->storage) joint_.kept[at] = true;
    return to_functional(from_functional(tensor));
  }

  std::vector<dispatch::Value> run_forward() {
    graph::InterpretOptions options;
    OriginScope before(current_origin());
    options.before_node = [&](const graph::Node& node) {
      current_origin().module = &node.module;
      autograd::set_grad_enabled(grad_enabled_ && node.grad_enabled);
    };
    std::vector<dispatch::Value> results = graph::interpret(captured_, primals_, options);
    autograd::set_grad_enabled(grad_enabled_);
    return results;
  }

  int32_t add_forward_output(const Tensor& outer, const Tensor& value) {
    forward_.push_back(outer);
    recorder_.graph().outputs.push_back(recorder_.to_argument(dispatch::Value(value)));
    return static_cast<int32_t>(forward_.size()) - 1;
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
      if (!node.grad_enabled) continue;
      for (int argument : node.op->schema().mutated_arguments())
        graph::each_reference(node.args[static_cast<size_t>(argument)], [&](graph::ValueId id) {
          if (int32_t input = input_of[static_cast<size_t>(id)]; input >= 0)
            if (std::string& writer = writers[static_cast<size_t>(input)]; writer.empty())
              writer = node.op->schema().name;
        });
    }
    return writers;
  }

  void plan_outputs(const std::vector<dispatch::Value>& results) {
    std::vector<std::string> writers = seen_writers();
    for (size_t at = 0; at < primals_.size(); ++at)
      if (was_written(primals_[at])) {
        joint_.mutated.push_back(static_cast<int32_t>(at));
        joint_.writers.push_back(writers[at]);
        add_forward_output(primals_[at], from_functional(primals_[at]));
      }
    for (const dispatch::Value& result : results) {
      OutputPlan plan;
      if (!result.is_tensor()) {
        plan.kind = OutputPlan::Kind::Number;
        plan.number = result.own();
      } else {
        plan_tensor(result.tensor(), plan);
      }
      joint_.outputs.push_back(std::move(plan));
    }
    joint_.forward_outputs = forward_.size();
  }

  void plan_tensor(const Tensor& outer, OutputPlan& plan) {
    FunctionalSlot* slot = functional_slot(outer);
    TENON_ASSERT(slot, "a result {} that is not functional", outer.description());
    for (size_t at = 0; at < primals_.size(); ++at) {
      if (functional_slot(primals_[at])->storage != slot->storage) continue;
      // The links that lead from the input to its stand-in in the graph are not the user's.
      size_t own = functional_slot(primals_[at])->chain.size();
      plan.index = static_cast<int32_t>(at);
      plan.chain.assign(slot->chain.begin() + static_cast<ptrdiff_t>(own), slot->chain.end());
      plan.kind = plan.chain.empty() ? OutputPlan::Kind::Input : OutputPlan::Kind::ViewOfInput;
      if (grad_enabled_ && outer.requires_grad() && is_cut_off(plan.chain)) plan.history = forward_output_of(outer);
      return;
    }
    plan.index = forward_output_of(outer);
    plan.differentiable = grad_enabled_ && outer.requires_grad();
  }

  int32_t forward_output_of(const Tensor& outer) {
    for (size_t at = joint_.mutated.size(); at < forward_.size(); ++at)
      if (forward_[at].is(outer)) return static_cast<int32_t>(at);
    return add_forward_output(outer, from_functional_as_shown(outer));
  }

  // Whether autograd does not follow these views, because one of them (detach) has no gradient.
  static bool is_cut_off(const std::vector<ViewLink>& chain) {
    return std::any_of(chain.begin(), chain.end(), [](const ViewLink& link) {
      const ops::Row* row = ops::row_of(*link.op);
      return row && !row->differentiable();
    });
  }

  // The gradient of an expanded result has elements of its own.
  static Tensor tangent_like(const Tensor& value) {
    SymInts sizes = value.sym_sizes(), strides = value.sym_strides();
    for (const SymInt& stride : strides)
      if (statically_true(stride == 0))
        return fake::make(sizes, core::contiguous_strides(sizes.span()), value.dtype(), value.device());
    return fake::like(value);
  }

  void run_backward() {
    std::vector<Tensor> roots, gradients, wanted;
    std::vector<size_t> which;
    for (size_t at = 0; at < leaves_.size(); ++at)
      if (requires_grad_[at]) {
        wanted.push_back(leaves_[at]);
        which.push_back(at);
      }
    for (size_t at = 0; at < forward_.size(); ++at) {
      if (!forward_[at].requires_grad()) continue;
      // A write that autograd did not see (through `detach`, or with grad mode off) leaves the input's history as it
      // was.
      if (at < joint_.mutated.size() &&
          autograd::grad_fn(forward_[at]) == origins_[static_cast<size_t>(joint_.mutated[at])])
        continue;
      Tensor value = from_functional(forward_[at]);
      Tensor inner = tangent_like(value);
      recorder_.add_input(inner, fmt::format("tangent{}", roots.size()), inner);
      roots.push_back(forward_[at]);
      gradients.push_back(to_functional(inner));
      joint_.tangents.push_back(static_cast<int32_t>(at));
    }
    if (roots.empty() || wanted.empty()) return;
    std::vector<Tensor> results = autograd::grad(roots, wanted, gradients, false, false, true);
    for (size_t at = 0; at < results.size(); ++at) {
      if (!results[at].defined()) continue;
      joint_.gradients.push_back(static_cast<int32_t>(which[at]));
      recorder_.graph().outputs.push_back(recorder_.to_argument(dispatch::Value(from_functional(results[at]))));
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

  void finish() {
    joint_.graph = std::move(recorder_.graph());
    joint_.graph.symbols = captured_.symbols;
    joint_.graph.symbols.resize(static_cast<size_t>(captured_.env->pool().symbol_count()));
    release_ignored(joint_.graph);
    // The wrapper too needs numbers that come from data: what binds them must stay.
    size_t outputs = joint_.graph.outputs.size();
    for (const OutputPlan& plan : joint_.outputs) {
      if (plan.kind == OutputPlan::Kind::Number) joint_.graph.outputs.push_back(plan.number);
      for (const ViewLink& link : plan.chain)
        for (const dispatch::Value& arg : link.args) joint_.graph.outputs.push_back(arg);
    }
    graph::remove_dead_code(joint_.graph);
    joint_.graph.outputs.resize(outputs);
    graph::verify(joint_.graph);
  }

  const graph::Graph& captured_;
  const std::vector<bool>& requires_grad_;
  bool grad_enabled_;
  graph::Recorder recorder_;
  std::vector<Tensor> leaves_, primals_;      // functional tensors by input: the leaf, and what the graph works on
  std::vector<Ref<autograd::Node>> origins_;  // by input: the history that its stand-in began with
  std::vector<Tensor> forward_;               // functional tensors by forward output
  JointGraph joint_;
};

}  // namespace

JointGraph trace_joint(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled) {
  return JointTracer(captured, requires_grad, grad_enabled).run();
}

}  // namespace tenon::aot
