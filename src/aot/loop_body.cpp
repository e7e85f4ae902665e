#include "loop_body.h"

#include "graph/translation.h"
#include "memory_order.h"
#include "support/thread_context.h"

#include <tenon/aot/export.h>
#include <tenon/dispatch/registration.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>

#include <algorithm>
#include <cstring>
#include <list>

namespace tenon::aot {
namespace {

using dispatch::Value;

// The hint of a number from data. Whatever is decided by it is asked of the caller.
constexpr int64_t kUnknown = 8;

// Bodies that were made, by their text. What nobody uses any more goes once there are many.
constexpr size_t kMostBodies = 256;
struct Known {
  support::ForkSafe<std::mutex> mutex;
  struct Entry {
    std::string text;
    dispatch::OperatorRef op;
    std::shared_ptr<LoopBody> body;
  };
  std::list<Entry> bodies;  // the latest first
  uint64_t made = 0;
};
Known& known_bodies() {
  static auto* known = new Known;
  return *known;
}

// The symbols that a graph reads, each where it is met first.
std::vector<int32_t> symbols_in(const graph::Graph& graph) {
  std::vector<int32_t> symbols;
  auto meet = [&](int32_t id) {
    if (std::find(symbols.begin(), symbols.end(), id) == symbols.end()) symbols.push_back(id);
  };
  for (graph::ValueId id : graph.inputs) graph::each_symbol(graph.meta(id), meet);
  for (const graph::Node& node : graph.nodes) {
    for (const graph::Argument& argument : node.args) graph::each_symbol(argument, meet);
    for (graph::ValueId id : node.outputs) graph::each_symbol(graph.meta(id), meet);
  }
  return symbols;
}

// Everything that tells two bodies apart.
std::string text_of(const graph::Graph& graph, const LoopShape& shape) {
  std::string text = fmt::format("{} carried, {} sliced, ", shape.carried, shape.sliced);
  for (bool needs_grad : shape.needs_grad) text += needs_grad ? 'g' : '-';
  text += '\n' + graph::to_string(graph);
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

SymInts strides_of(const Tensor& meta, std::span<const int64_t> symbols) {
  SymInts strides;
  for (const SymInt& stride : meta.sym_strides())
    strides.push_back(stride.is_symbolic() ? SymInt(sym::evaluate(stride.expr(), symbols)) : stride);
  return strides;
}

// Whether the last dimensions of a tensor lie so.
bool lies_so(const Tensor& tensor, const SymInts& strides) {
  const size_t first = tensor.sizes().size() - strides.size();
  for (size_t dim = 0; dim < strides.size(); ++dim)
    if (tensor.sizes()[first + dim] > 1 && tensor.strides()[first + dim] != strides[dim].plain()) return false;
  return true;
}

// As the body was traced with it.
Tensor laid_out(const Tensor& tensor, const Tensor& meta, std::span<const int64_t> symbols) {
  const SymInts strides = strides_of(meta, symbols);
  if (lies_so(tensor, strides)) return tensor;
  Tensor copy = empty_strided(tensor.sym_sizes(), strides, TensorOptions(tensor.dtype(), tensor.device()));
  copy.copy_(tensor);
  return copy;
}

// Whose slices lie so.
Tensor stack_of(const Tensor& xs, const Tensor& meta, std::span<const int64_t> symbols) {
  const SymInts strides = strides_of(meta, symbols);
  if (lies_so(xs, strides)) return xs;
  SymInts all{1};
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    all[0] = all[0] * xs.size(static_cast<int64_t>(dim) + 1);
    all.push_back(strides[dim]);
  }
  Tensor copy = empty_strided(xs.sym_sizes(), all, TensorOptions(xs.dtype(), xs.device()));
  copy.copy_(xs);
  return copy;
}

Tensor slice_at(const Tensor& stack, int64_t step) {
  SymInts sizes(stack.sym_sizes().span().subspan(1)), strides(stack.sym_strides().span().subspan(1));
  return core::make_view(stack, sizes, strides, stack.storage_offset() + step * stack.strides()[0]);
}

void put(const Tensor& made, const Tensor& stack, int64_t step) {
  if (made.is_contiguous()) {
    size_t bytes = static_cast<size_t>(made.numel().plain()) * size_of(made.dtype());
    if (bytes > 0)
      std::memcpy(static_cast<char*>(stack.raw_data()) + static_cast<size_t>(step) * bytes, made.raw_data(), bytes);
  } else {
    slice_at(stack, step).copy_(made);
  }
}

}  // namespace

LoopCall::LoopCall(const dispatch::Call& call)
    : carry(call.args[0].tensors()),
      xs(call.args[1].tensors()),
      captured(call.args[2].tensors()),
      numbers(call.args[3].sym_ints()),
      steps(call.args[4].sym_int()),
      reverse(call.args[5].boolean()) {}

std::vector<Tensor> LoopCall::run(const dispatch::Operator& op) const {
  const Value args[] = {Value(carry), Value(xs), Value(captured), Value(numbers), Value(steps), Value(reverse)};
  dispatch::Results results = dispatch::call_boxed(op, args);
  std::span<const Tensor> tensors = results[0].tensors();
  return {tensors.begin(), tensors.end()};
}

std::vector<Tensor> LoopCall::tensors() const {
  std::vector<Tensor> all(carry.begin(), carry.end());
  all.insert(all.end(), xs.begin(), xs.end());
  all.insert(all.end(), captured.begin(), captured.end());
  return all;
}

LoopBody::LoopBody(graph::Graph graph, LoopShape shape, std::string name)
    : graph_(std::move(graph)),
      shape_(std::move(shape)),
      name_(std::move(name)),
      known_(sym::EnvSnapshot::of(graph_.env)) {
  for (size_t at = 0; at < shape_.carried; ++at) {
    const Tensor& meta = graph_.meta(std::get<graph::ValueId>(graph_.outputs[at]));
    SymInts sizes = meta.sym_sizes();
    last_.push_back(fake::make(sizes, dense_strides(sizes, memory_order(meta)), meta.dtype(), meta.device()));
  }
}

std::vector<Tensor> LoopBody::shapes(const LoopCall& call) const {
  dispatch::Values numbers;
  for (const SymInt& number : call.numbers) numbers.push_back(Value(number).own());
  graph::Translation translate(numbers);
  std::vector<Tensor> made;
  for (size_t at = 0; at < graph_.outputs.size(); ++at) {
    const Tensor& meta = graph_.meta(std::get<graph::ValueId>(graph_.outputs[at]));
    if (at < shape_.carried) {
      made.push_back(translate(last_[at]));
      continue;
    }
    SymInts sizes{call.steps};
    for (const SymInt& size : translate(meta.sym_sizes())) sizes.push_back(size);
    made.push_back(fake::make(sizes, core::contiguous_strides(sizes.span()), meta.dtype(), meta.device()));
  }
  return made;
}

std::vector<int64_t> LoopBody::hints(const SymInts& numbers) {
  std::vector<int64_t> values;
  for (const SymInt& number : numbers)
    values.push_back(number.is_symbolic() ? number.env()->hint(number.expr()).value_or(kUnknown) : number.plain());
  return values;
}

std::vector<Tensor> LoopBody::run(const LoopCall& call) {
  const std::vector<int64_t> symbols = hints(call.numbers);
  std::shared_ptr<GraphFunction> step = executables_.find(
      known_, graph_, false, symbols,
      [&](const sym::EnvCopy& copy) {
        support::SwapContext apart(support::ThreadContext{});
        graph::Graph body = graph::in_copy(graph_, copy);
        return std::make_shared<GraphFunction>(
            compile(body, std::vector<bool>(body.inputs.size(), false), false, scheduled).run);
      },
      [&] { return std::make_shared<GraphFunction>(interpreted(graph_)); });
  const int64_t steps = call.steps.plain();
  std::vector<Tensor> inputs, xs, kept;
  auto meta = [&](size_t input) -> const Tensor& { return graph_.meta(graph_.inputs[input]); };
  for (const Tensor& tensor : call.carry) inputs.push_back(laid_out(tensor, meta(inputs.size()), symbols));
  for (const Tensor& tensor : call.xs) xs.push_back(stack_of(tensor, meta(shape_.carried + xs.size()), symbols));
  inputs.resize(shape_.carried + shape_.sliced);
  for (const Tensor& tensor : call.captured) inputs.push_back(laid_out(tensor, meta(inputs.size()), symbols));
  for (int64_t at = 0; at < steps; ++at) {
    const int64_t time = call.reverse ? steps - 1 - at : at;
    for (size_t which = 0; which < xs.size(); ++which) inputs[shape_.carried + which] = slice_at(xs[which], time);
    std::vector<Value> results = (*step)(inputs, symbols);
    for (size_t which = 0; which < shape_.carried; ++which)
      inputs[which] = laid_out(results[which].tensor(), at + 1 == steps ? last_[which] : meta(which), symbols);
    for (size_t which = shape_.carried; which < results.size(); ++which) {
      const Tensor& made = results[which].tensor();
      if (at == 0) {
        SymInts sizes{steps};
        for (const SymInt& size : made.sym_sizes()) sizes.push_back(size);
        kept.push_back(empty(sizes, TensorOptions(made.dtype(), made.device())));
      }
      put(made, kept[which - shape_.carried], time);
    }
  }
  // What was carried nowhere is still the caller's.
  std::vector<Tensor> results(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(shape_.carried));
  for (size_t at = 0; at < results.size(); ++at)
    if (steps == 0 || results[at].is_same_storage(call.carry[at])) results[at] = results[at].clone();
  if (const std::vector<Tensor> shapes_now = steps == 0 ? shapes(call) : std::vector<Tensor>(); !shapes_now.empty())
    for (const Tensor& shape : std::span<const Tensor>(shapes_now).subspan(shape_.carried))
      kept.push_back(empty(shape.sym_sizes(), TensorOptions(shape.dtype(), shape.device())));
  results.insert(results.end(), kept.begin(), kept.end());
  return results;
}

std::optional<LoopOperator> loop_operator(graph::Graph piece, LoopShape shape, std::string& why) {
  piece = graph::compacted(piece);
  LoopOperator made;
  made.symbols = symbols_in(piece);
  auto env = make_ref<sym::ShapeEnv>();
  std::unordered_map<int32_t, sym::Expr> symbols;
  std::vector<graph::SymbolSource> sources;
  for (int32_t id : made.symbols) {
    sym::Expr symbol = piece.env->pool().symbol(id);
    if (symbol.is_real()) {
      why = fmt::format("the body reads {}, which is no integer", symbol.str());
      return std::nullopt;
    }
    sym::Range range = piece.env->pool().range(symbol);
    const int64_t hint = piece.env->hint(symbol).value_or(kUnknown);
    SymInt number = env->create_number(std::clamp(hint, range.min, range.max), "a number of the loop");
    env->pool().refine(number.expr(), range);
    symbols.emplace(id, number.expr());
    sources.push_back({graph::SymbolSource::Kind::Number, static_cast<int32_t>(sources.size()), -1});
  }
  graph::Graph body = graph::moved(piece, graph::Translation(env, std::move(symbols)));
  body.symbols = std::move(sources);
  graph::verify(body);
  std::string text = text_of(body, shape);
  Known& known = known_bodies();
  auto find = [&] {
    std::lock_guard lock(known.mutex);
    for (auto each = known.bodies.begin(); each != known.bodies.end(); ++each)
      if (each->text == text) {
        known.bodies.splice(known.bodies.begin(), known.bodies, each);
        made.op = each->op;
        made.body = each->body;
        return true;
      }
    return false;
  };
  if (find()) return made;
  if (draws(body)) {  // dead calls too
    why = "the body draws random numbers";
    return std::nullopt;
  }
  graph::remove_dead_code(body);
  // Made by two threads at once, it has two names: neither is wrong.
  std::lock_guard lock(known.mutex);
  for (auto each = known.bodies.end(); known.bodies.size() >= kMostBodies && each != known.bodies.begin();) {
    --each;
    if (each->op->use_count() == 1) each = known.bodies.erase(each);
  }
  schema::Schema schema = schema::parse(
      "tenon::scan(Tensor[] carry, Tensor[] xs, Tensor[] captured, SymInt[] numbers, SymInt steps, bool reverse) -> "
      "Tensor[]");
  schema.overload = fmt::format("body{}", ++known.made);
  Ref<dispatch::Operator> op = dispatch::make_operator(std::move(schema));
  auto shared = std::make_shared<LoopBody>(std::move(body), std::move(shape), op->name());
  auto give = [](dispatch::Call& call, const std::vector<Tensor>& results) {
    call.results.push_back(Value(results).own());
  };
  using Key = dispatch::KernelKey;
  auto put_kernel = [&](Key key, dispatch::KernelFunction kernel) {
    dispatch::register_scoped(*op, key, std::move(kernel)).keep();
  };
  put_kernel(Key::Fake, [shared, give](dispatch::Call& call) { give(call, shared->shapes(LoopCall(call))); });
  put_kernel(Key::CompositeExplicitAutograd,
             [shared, give](dispatch::Call& call) { give(call, shared->run(LoopCall(call))); });
  put_kernel(Key::Autograd,
             [shared, give](dispatch::Call& call) { give(call, shared->run_recorded(call.op, LoopCall(call))); });
  TENON_LOG(Graph, "{}:\n{}", op->name(), text);
  made.op = op.get();
  made.body = shared;
  known.bodies.push_front({std::move(text), made.op, std::move(shared)});
  return made;
}

}  // namespace tenon::aot
