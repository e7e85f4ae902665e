#include "body.h"

#include "core/memory_order.h"
#include "graph/translation.h"
#include "graph_builder.h"
#include "step_back.h"
#include "support/thread_context.h"

#include <tenon/aot/export.h>
#include <tenon/dispatch/registration.h>
#include <tenon/fake/fake.h>
#include <tenon/ops/row.h>
#include <tenon/schedule/schedule.h>

#include <algorithm>
#include <list>

namespace tenon::aot {
namespace {

using dispatch::Value;

// The hint of a number from data. Whatever is decided by it is asked of the caller.
constexpr int64_t kUnknown = 8;

// Operators that were made, by their text. What nobody uses any more goes once there are many.
constexpr size_t kMostOperators = 256;
struct Known {
  support::ForkSafe<std::mutex> mutex;
  struct Entry {
    std::string text;
    MadeOperator made;
  };
  std::list<Entry> operators;  // the latest first
  uint64_t made = 0;
};
Known& known_operators() {
  static auto* known = new Known;
  return *known;
}

// The symbols that a graph reads and does not bind, each where it is met first.
void find_symbols(const graph::Graph& graph, std::vector<int32_t>& symbols) {
  auto meet = [&](int32_t id) {
    if (std::find(symbols.begin(), symbols.end(), id) == symbols.end()) symbols.push_back(id);
  };
  for (graph::ValueId id : graph.inputs) graph::each_symbol(graph.meta(id), meet);
  for (const graph::Node& node : graph.nodes) {
    for (const graph::Argument& argument : node.args) graph::each_symbol(argument, meet);
    for (graph::ValueId id : node.outputs) graph::each_symbol(graph.meta(id), meet);
  }
}

// Whether it draws random numbers, also in the parts of what it calls.
bool draws(const graph::Graph& body) {
  support::SwapContext apart(support::ThreadContext{});
  sym::EnvCopy copy(sym::EnvSnapshot::of(body.env), {}, {});
  Program program;
  program.captured = graph::in_copy(body, copy);
  program.requires_grad.assign(body.inputs.size(), false);
  program.grad_enabled = false;
  return !trace_joint(program).random.empty();
}

bool is_view(const OutputPlan& output) {
  return output.kind != OutputPlan::Kind::Value && output.kind != OutputPlan::Kind::Input;
}

// By result of a body that writes to nothing: which inputs it comes from.
std::vector<std::vector<bool>> origins_in(const graph::Graph& body) {
  std::vector<std::vector<bool>> from(body.values.size(), std::vector<bool>(body.inputs.size(), false));
  for (size_t at = 0; at < body.inputs.size(); ++at) from[static_cast<size_t>(body.inputs[at])][at] = true;
  auto join = [](std::vector<bool>& all, const std::vector<bool>& more) {
    for (size_t at = 0; at < all.size(); ++at) all[at] = all[at] || more[at];
  };
  for (const graph::Node& node : body.nodes) {
    std::vector<bool> all(body.inputs.size(), false);
    graph::each_reference(node, [&](graph::ValueId id) { join(all, from[static_cast<size_t>(id)]); });
    for (graph::ValueId id : node.outputs) join(from[static_cast<size_t>(id)], all);
  }
  std::vector<std::vector<bool>> origins;
  for (const graph::Argument& output : body.outputs)
    origins.push_back(from[static_cast<size_t>(std::get<graph::ValueId>(output))]);
  return origins;
}

// The plan of a graph, and where its results are: of the plan's outputs, or, below zero, of its inputs. A result that
// looks into another one is copied.
std::shared_ptr<const runtime::Plan> planned(graph::Graph graph, std::vector<int32_t>& results) {
  const size_t inputs = graph.inputs.size();
  JointGraph joint = trace_body(std::move(graph), std::vector<bool>(inputs, false), false);
  for (const OutputPlan& output : joint.outputs) {
    const OutputPlan& own = output.same_as >= 0 ? joint.outputs[static_cast<size_t>(output.same_as)] : output;
    TENON_ASSERT(!is_view(own), "a result of a body looks into another");
    results.push_back(own.kind == OutputPlan::Kind::Input ? -1 - own.index : own.index);
  }
  TENON_ASSERT(joint.mutated.empty() && joint.random.empty(), "a body writes to an input, or draws random numbers");
  return schedule::compile_graph(partition(joint).forward);
}

runtime::BodyTensor described(const Tensor& meta, sym::ShapeEnv& env) {
  runtime::BodyTensor tensor{meta.dtype(), {}, {}};
  for (const SymInt& size : meta.sym_sizes()) tensor.sizes.push_back(size.to_expr(env));
  for (const SymInt& stride : meta.sym_strides()) tensor.strides.push_back(stride.to_expr(env));
  return tensor;
}

}  // namespace

Body::Body(graph::Graph graph, size_t dense)
    : runtime::Body({}), graph_(std::move(graph)), known_(sym::EnvSnapshot::of(graph_.env)) {
  for (size_t at = 0; at < graph_.outputs.size(); ++at) {
    const Tensor& meta = graph_.meta(std::get<graph::ValueId>(graph_.outputs[at]));
    SymInts sizes = meta.sym_sizes();
    results_.push_back(at < dense ? fake::make(sizes, core::dense_strides_of(meta), meta.dtype(), meta.device())
                                  : meta);
  }
  shape_.env = graph_.env;
  for (size_t at = 0; at < input_count(); ++at) shape_.inputs.push_back(described(input(at), *graph_.env));
  for (const Tensor& meta : results_) shape_.results.push_back(described(meta, *graph_.env));
}

runtime::BodyPlanRef Body::find(std::span<const int64_t> numbers) {
  return compiled_.find(
      known_, graph_, false, numbers,
      [&](const sym::EnvCopy& copy) {
        support::SwapContext apart(support::ThreadContext{});
        auto made = std::make_shared<runtime::BodyPlan>();
        made->plan = planned(graph::in_copy(graph_, copy), made->results);
        made->env = copy.env();
        made->conditions = copy.conditions();
        return made;
      },
      [&] {
        auto made = std::make_shared<runtime::BodyPlan>();
        for (size_t at = 0; at < results_.size(); ++at) made->results.push_back(static_cast<int32_t>(at));
        made->run = interpreted(graph_);
        return made;
      });
}

JointGraph trace_body(graph::Graph graph, std::vector<bool> requires_grad, bool grad_enabled) {
  Program program;
  program.requires_grad = std::move(requires_grad);
  program.grad_enabled = grad_enabled;
  program.captured = graph;
  JointGraph joint = trace_joint(program);
  if (std::none_of(joint.outputs.begin(), joint.outputs.end(), is_view)) return joint;
  Builder build(graph);
  for (size_t at = 0; at < joint.outputs.size(); ++at)
    if (is_view(joint.outputs[at])) graph.outputs[at] = build.copy(std::get<graph::ValueId>(graph.outputs[at]));
  program.captured = std::move(graph);
  return trace_joint(program);
}

std::vector<std::vector<bool>> origins_of_results(const graph::Node& node) {
  using Kind = runtime::Bodies::Kind;
  if (ops::row_of(*node.op)) return {};
  const runtime::BodiesRef bodies = runtime::bodies_of(*node.op);
  if (!bodies || bodies->kind == Kind::While) return {};
  std::vector<std::vector<bool>> all;
  for (const runtime::BodyRef& each : bodies->bodies) {
    const auto* body = dynamic_cast<const Body*>(each.get());
    if (!body || body->writes()) return {};
    std::vector<std::vector<bool>> origins = origins_in(body->graph());
    if (all.empty()) all.resize(origins.size(), std::vector<bool>(body->input_count(), false));
    for (size_t result = 0; result < origins.size(); ++result)
      for (size_t input = 0; input < origins[result].size(); ++input)
        all[result][input] = all[result][input] || origins[result][input];
  }
  if (bodies->kind == Kind::Branch) {
    for (std::vector<bool>& each : all) each.insert(each.begin(), true);  // the predicate
    return all;
  }
  // A step takes its carry from the step before, the first one as it was given.
  for (size_t at = 0; at < bodies->carried; ++at) all[at][at] = true;
  for (bool grows = true; std::exchange(grows, false);)
    for (std::vector<bool>& each : all)
      for (size_t carry = 0; carry < bodies->carried; ++carry)
        for (size_t input = 0; each[carry] && input < each.size(); ++input)
          if (all[carry][input] && !each[input]) each[input] = grows = true;
  return all;
}

std::optional<MovedApart> moved_apart(std::vector<graph::Graph> pieces, std::string& why) {
  MovedApart made;
  for (graph::Graph& piece : pieces) {
    piece = graph::compacted(piece);
    find_symbols(piece, made.symbols);
  }
  const sym::ShapeEnv& outer = *pieces[0].env;
  auto env = make_ref<sym::ShapeEnv>();
  std::unordered_map<int32_t, sym::Expr> symbols;
  std::vector<graph::SymbolSource> sources;
  for (int32_t id : made.symbols) {
    sym::Expr symbol = pieces[0].env->pool().symbol(id);
    if (symbol.is_real()) {
      why = fmt::format("the body reads {}, which is no integer", symbol.str());
      return std::nullopt;
    }
    sym::Range range = pieces[0].env->pool().range(symbol);
    const int64_t hint = outer.hint(symbol).value_or(kUnknown);
    SymInt number = env->create_number(std::clamp(hint, range.min, range.max), "a number of the loop");
    env->pool().refine(number.expr(), range);
    symbols.emplace(id, number.expr());
    sources.push_back({graph::SymbolSource::Kind::Number, static_cast<int32_t>(sources.size()), -1});
  }
  for (const graph::Graph& piece : pieces) {
    made.graphs.push_back(graph::moved(piece, graph::Translation(env, symbols)));
    made.graphs.back().symbols = sources;
    graph::verify(made.graphs.back());
  }
  return made;
}

std::string text_of(const graph::Graph& graph) {
  std::string text = graph::to_string(graph);
  auto add = [&](graph::ValueId id) {
    const Tensor& meta = graph.meta(id);
    text += fmt::format("{} {} {} {}\n", id, name(meta.dtype()), tenon::str(meta.sym_sizes()),
                        tenon::str(meta.sym_strides()));
  };
  for (graph::ValueId id : graph.inputs) add(id);
  for (const graph::Node& node : graph.nodes) {
    text += fmt::format("{} {}\n", node.op->name(), node.grad_enabled);
    for (graph::ValueId id : node.outputs) add(id);
  }
  for (int32_t id = 0; id < graph.env->pool().symbol_count(); ++id) {
    sym::Range range = graph.env->pool().range(graph.env->pool().symbol(id));
    text += fmt::format("{}..{} ", range.min, range.max);
  }
  return text;
}

std::optional<MadeOperator> operator_of(std::string text, const char* schema_text, std::vector<graph::Graph> graphs,
                                        std::string& why, MakeOperator make) {
  Known& known = known_operators();
  schema::Schema schema = schema::parse(schema_text);
  text = fmt::format("{} {}", schema.name, text);
  {
    std::lock_guard lock(known.mutex);
    for (auto each = known.operators.begin(); each != known.operators.end(); ++each)
      if (each->text == text) {
        known.operators.splice(known.operators.begin(), known.operators, each);
        return each->made;
      }
  }
  if (std::any_of(graphs.begin(), graphs.end(), draws)) {  // dead calls too
    why = "the body draws random numbers";
    return std::nullopt;
  }
  for (graph::Graph& graph : graphs) graph::remove_dead_code(graph);
  // Made by two threads at once, it has two names: neither is wrong.
  std::lock_guard lock(known.mutex);
  for (auto each = known.operators.end();
       known.operators.size() >= kMostOperators && each != known.operators.begin();) {
    --each;
    if (each->made.op->use_count() == 1) each = known.operators.erase(each);
  }
  schema.overload = fmt::format("body{}", ++known.made);
  Ref<dispatch::Operator> op = dispatch::make_operator(std::move(schema));
  std::shared_ptr<BodyOperator> shared = make(std::move(graphs), op->name());
  auto give = [](dispatch::Call& call, const std::vector<Tensor>& results) {
    call.results.push_back(Value(results).own());
  };
  using Key = dispatch::KernelKey;
  auto put_kernel = [&](Key key, dispatch::KernelFunction kernel) {
    dispatch::register_scoped(*op, key, std::move(kernel)).keep();
  };
  put_kernel(Key::Fake, [shared, give](dispatch::Call& call) { give(call, shared->shapes(call)); });
  put_kernel(Key::CompositeExplicitAutograd, [bodies = shared->bodies(), give](dispatch::Call& call) {
    give(call, runtime::run(*bodies, {call.args.data(), call.args.size()}));
  });
  put_kernel(Key::Autograd, [shared, give](dispatch::Call& call) { give(call, shared->run_recorded(call)); });
  runtime::set_bodies_of(*op, shared->bodies());
  TENON_LOG(Graph, "{}:\n{}", op->name(), text);
  MadeOperator made{op.get(), std::move(shared)};
  known.operators.push_front({std::move(text), made});
  return made;
}

std::vector<int64_t> hints(const SymInts& numbers) {
  std::vector<int64_t> values;
  for (const SymInt& number : numbers)
    values.push_back(number.is_symbolic() ? number.env()->hint(number.expr()).value_or(kUnknown) : number.plain());
  return values;
}

void require(std::span<const sym::Expr> conditions, const SymInts& numbers) {
  dispatch::Values values;
  for (const SymInt& number : numbers) values.push_back(Value(number).own());
  graph::Translation translate(values);
  if (!translate.env()) return;
  for (sym::Expr condition : conditions) {
    const bool holds = translate.env()->decide(translate(condition));
    TENON_ASSERT(holds, "a body was made for other sizes: {}", condition.str());
  }
}

bool is_of_capture(std::span<const Tensor> arguments) {
  return !RecordsStepBack::now() && std::any_of(arguments.begin(), arguments.end(), [](const Tensor& argument) {
    return argument.is_fake() && !functional_slot(argument);
  });
}

void finish_node(autograd::FunctionNode& node, std::span<const Tensor> arguments, const std::vector<bool>& needs_grad,
                 std::vector<Tensor>& results) {
  std::vector<Tensor> without;
  for (size_t at = 0; at < results.size(); ++at)
    if (!needs_grad[at]) without.push_back(results[at]);
  node.context().mark_non_differentiable(std::move(without));
  node.context().set_materialize_grads(false);
  node.finish(arguments, results);
}

std::vector<Tensor> translated(const Body& body, const SymInts& numbers) {
  dispatch::Values values;
  for (const SymInt& number : numbers) values.push_back(Value(number).own());
  graph::Translation translate(values);
  std::vector<Tensor> made;
  for (size_t at = 0; at < body.result_count(); ++at) made.push_back(translate(body.result(at)));
  return made;
}

SymInts chosen(const SymInts& numbers, const std::vector<int32_t>& which) {
  SymInts made;
  for (int32_t at : which) made.push_back(numbers[static_cast<size_t>(at)]);
  return made;
}

}  // namespace tenon::aot
