#include "ops/row_evaluator.h"

#include <tenon/core/random.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/trace.h>
#include <tenon/loop/evaluate.h>
#include <tenon/ops/row.h>
#include <tenon/oracle/oracle.h>

#include <cmath>
#include <limits>
#include <set>

namespace tenon::test {
namespace {

using dispatch::Value;
using loop::Lane;
using sym::Expr;

Ints plain(const SymInts& list) {
  Ints result;
  for (const SymInt& each : list) result.push_back(each.plain());
  return result;
}

Tensor allocate(const Ints& sizes, Dtype dtype) {
  return core::allocate(sizes.span(), core::contiguous_strides(sizes.span()).span(), dtype, kCPU);
}

// Calls `visit(position in row-major order, place in storage)`.
template <typename Visit>
void each_element(const Tensor& tensor, Visit&& visit) {
  Ints index;
  index.resize(static_cast<size_t>(tensor.dim()), 0);
  int64_t count = tensor.numel().plain();
  for (int64_t position = 0; position < count; ++position) {
    int64_t place = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) place += index[dim] * tensor.strides()[dim];
    visit(position, place);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < tensor.sizes()[dim]) break;
      index[dim] = 0;
    }
  }
}

void note_operations(const loop::Block& block, Closeness& closeness) {
  for (const loop::Statement& statement : block) {
    if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement)) {
      note_operations((*inner)->body, closeness);
      continue;
    }
    const loop::Op& op = std::get<loop::Op>(statement);
    if (loop::traits(op.code).transcendental && is_floating(op.dtype)) ++closeness.functions;
    if (op.code == loop::OpCode::Reduce && is_floating(op.dtype) &&
        (op.reduce == loop::ReduceKind::Sum || op.reduce == loop::ReduceKind::Product))
      closeness.combines = true;
  }
}

void note_scale(const Tensor& tensor, Closeness& closeness) {
  if (!is_floating(tensor.dtype())) return;
  each_element(tensor, [&](int64_t, int64_t place) {
    double value = std::fabs(loop::load_element(tensor.raw_data(), tensor.dtype(), place).real);
    if (std::isfinite(value)) closeness.scale = std::max(closeness.scale, value);
  });
}

// One row as one kernel. Also what an Element body and a view's index map work with.
class RowKernel final : public ops::Element, public ops::ViewIndex {
 public:
  RowKernel(const ops::Row& row, std::span<const Value> args, const Ints& sizes, Dtype result,
            std::pair<uint64_t, uint64_t> random)
      : row_(row),
        args_(args),
        arguments_(*row.op, args),
        sizes_(sizes),
        result_(result),
        builder_("row"),
        random_(random) {
    for (const Value& value : args)
      value.each_tensor([&](const Tensor& tensor) {
        inputs_.push_back(tensor);
        buffers_.push_back(builder_.buffer(fmt::format("x{}", inputs_.size()), tensor.dtype(), loop::BufferRole::In,
                                           constant(tensor.numel().plain())));
      });
  }

  Tensor run(Closeness& closeness) {
    Tensor out = allocate(sizes_, result_);
    int out_buffer = builder_.buffer("out", result_, loop::BufferRole::Out, constant(out.numel().plain()));
    bool sums =
        row_.kind == ops::Kind::Reduction && is_floating(result_) && row_.reduction.kind == loop::ReduceKind::Sum;
    int magnitude_buffer =
        sums ? builder_.buffer("magnitude", kFloat64, loop::BufferRole::Out, constant(out.numel().plain())) : -1;
    if (row_.element.random) {
      seed_ = builder_.scalar("seed", kInt64);
      offset_ = builder_.scalar("offset", kInt64);
    }
    for (int64_t size : sizes_) ViewIndex::index.push_back(builder_.begin_loop(constant(size), {}));
    switch (row_.kind) {
      case ops::Kind::Pointwise: builder_.store(out_buffer, linear_index(), pointwise()); break;
      case ops::Kind::Element:
        builder_.store(out_buffer, linear_index(), cast(row_.element.body(*this), result_));
        break;
      case ops::Kind::View: builder_.store(out_buffer, linear_index(), load(inputs_[0], row_.view.index(*this))); break;
      case ops::Kind::Reduction: reduction(out_buffer, magnitude_buffer, closeness); break;
      default: TENON_ASSERT(false, "{} is not one kernel", row_.schema.str());
    }
    for (size_t dim = 0; dim < sizes_.size(); ++dim) builder_.end_loop();
    loop::Kernel kernel = builder_.finish();
    note_operations(kernel.body, closeness);
    std::vector<void*> memory;
    for (const Tensor& input : inputs_) memory.push_back(input.raw_data());
    memory.push_back(out.raw_data());
    if (sums) {
      closeness.magnitude.assign(static_cast<size_t>(out.numel().plain()), 0.0);
      memory.push_back(closeness.magnitude.data());
    }
    std::vector<uint64_t> scalars;
    if (row_.element.random) scalars = {random_.first, random_.second};
    oracle::launch_interpreted(kernel, memory, {}, scalars);
    note_scale(out, closeness);
    return out;
  }

  // Element and ViewIndex.
  loop::Builder& builder() override { return builder_; }
  const ops::Arguments& arguments() const override { return arguments_; }
  Expr index(size_t dim) override { return ViewIndex::index[dim]; }
  Expr linear_index() override {
    Expr position = constant(0);
    for (size_t dim = 0; dim < sizes_.size(); ++dim) position = position * sizes_[dim] + ViewIndex::index[dim];
    return position;
  }
  Expr integer(const SymInt& number) override { return constant(number.plain()); }
  Lane load(const Tensor& input, std::span<const Expr> at) override {
    size_t which = 0;
    while (which < inputs_.size() && !inputs_[which].is(input)) ++which;
    TENON_ASSERT(which < inputs_.size(), "{} reads a tensor that is not its argument", row_.schema.str());
    Expr position = constant(0);
    for (size_t dim = 0; dim < at.size(); ++dim) position = position * input.sizes()[dim] + at[dim];
    return builder_.load(buffers_[which], position);
  }
  Lane scalar(std::string_view argument, Dtype dtype) override {
    return number(arguments_[argument], compute_dtype(dtype));
  }
  Lane random_bits(Expr word) override {
    return builder_.random_bits(builder_.parameter(seed_), builder_.parameter(offset_), word);
  }
  Dtype dtype() const override { return compute_dtype(result_); }

 private:
  Expr constant(int64_t number) { return builder_.pool().constant(number); }

  Lane number(const Value& value, Dtype dtype) {
    Scalar given = value.scalar();
    if (given.is_real() && !is_floating(dtype)) return cast(builder_.constant(given.real(), kFloat64), dtype);
    return given.is_real() ? builder_.constant(given.real(), dtype) : builder_.constant(given.to_int(), dtype);
  }

  Lane pointwise() {
    ops::Dtypes dtypes = ops::pointwise_dtypes(row_, arguments_);
    Dtype compute = compute_dtype(dtypes.compute);
    if (compute == kBool && row_.pointwise.promotion != ops::Promotion::Logical) compute = kUInt8;
    std::vector<Lane> lanes;
    for (size_t at = 0; at < args_.size(); ++at) {
      const schema::Argument& argument = row_.schema.arguments[at];
      if (!ops::is_lane(argument)) continue;
      Dtype wanted = row_.pointwise.promotion == ops::Promotion::Branch && lanes.empty() ? kBool : compute;
      if (args_[at].is_none())
        lanes.emplace_back();
      else if (!args_[at].is_tensor())
        lanes.push_back(cast(number(args_[at], wanted == compute ? compute_dtype(dtypes.compute) : wanted), wanted));
      else if (row_.ignores(argument.name))
        lanes.push_back(builder_.constant(int64_t{0}, wanted));
      else if (dtypes.compute == kBool)
        lanes.push_back(cast(cast(broadcast_load(args_[at].tensor()), kBool), wanted));
      else
        lanes.push_back(cast(broadcast_load(args_[at].tensor()), wanted));
    }
    return cast(row_.pointwise.body(lanes, dtypes.compute), result_);
  }

  Lane broadcast_load(const Tensor& input) {
    std::vector<Expr> at;
    size_t lead = sizes_.size() - static_cast<size_t>(input.dim());
    for (size_t dim = lead; dim < sizes_.size(); ++dim)
      at.push_back(input.sizes()[dim - lead] == 1 ? constant(0) : ViewIndex::index[dim]);
    return load(input, at);
  }

  void reduction(int out_buffer, int magnitude_buffer, Closeness& closeness) {
    const Tensor& self = arguments_.tensor("self");
    Ints dims = arguments_.dims_or_all("dim", self.dim());
    bool keep = arguments_.has("keepdim") && arguments_.boolean("keepdim");
    std::vector<Expr> at;
    size_t kept = 0;
    int64_t terms = 1;
    for (int64_t dim = 0; dim < self.dim(); ++dim) {
      bool reduced = std::find(dims.begin(), dims.end(), dim) != dims.end();
      int64_t size = self.sizes()[static_cast<size_t>(dim)];
      at.push_back(reduced ? Expr() : ViewIndex::index[kept]);
      if (!reduced || keep) ++kept;
      if (reduced) terms *= size;
    }
    closeness.terms = std::max(closeness.terms, terms);
    // All reduced dimensions as one loop, taken apart again.
    Expr flat = builder_.begin_loop(constant(terms), {.reduction = true});
    for (size_t dim = at.size(); dim-- > 0;)
      if (!at[dim].defined()) {
        int64_t size = std::max<int64_t>(1, self.sizes()[dim]);
        at[dim] = mod(flat, constant(size));
        flat = floor_div(flat, constant(size));
      }
    Lane value = cast(load(self, at), compute_dtype(result_));
    loop::ReduceKind kind = row_.reduction.kind;
    if (result_ == kBool && (kind == loop::ReduceKind::Max || kind == loop::ReduceKind::Sum))
      kind = loop::ReduceKind::Any;
    if (result_ == kBool && (kind == loop::ReduceKind::Min || kind == loop::ReduceKind::Product))
      kind = loop::ReduceKind::All;
    Lane combined = builder_.reduce(kind, value);
    Lane magnitude = magnitude_buffer < 0 ? Lane() : builder_.reduce(loop::ReduceKind::Sum, cast(abs(value), kFloat64));
    builder_.end_loop();
    Expr place = linear_index();
    builder_.store(out_buffer, place, cast(combined, result_));
    if (magnitude_buffer >= 0) builder_.store(magnitude_buffer, place, magnitude);
  }

  const ops::Row& row_;
  std::span<const Value> args_;
  ops::Arguments arguments_;
  Ints sizes_;
  Dtype result_;
  loop::Builder builder_;
  std::vector<Tensor> inputs_;
  std::vector<int> buffers_;
  int seed_ = -1, offset_ = -1;
  std::pair<uint64_t, uint64_t> random_;
};

struct Context {
  Closeness closeness;
  uint64_t seed = 0, offset = 0;
};

std::vector<Tensor> evaluate_row(const dispatch::Operator& op, std::span<const Value> args, Context& context);

// (An Element says itself what it is; its parts, of long lists, are held against that.)
bool is_said_by_parts(const ops::Row& row) { return row.decomposition && row.kind != ops::Kind::Element; }

// The parts of a composite, recorded on fakes of these very sizes, then evaluated.
std::vector<Tensor> evaluate_parts(const dispatch::Operator& op, std::span<const Value> args, Context& context) {
  auto env = make_ref<sym::ShapeEnv>();
  graph::Recorder recorder(env);
  std::vector<Tensor> inputs;
  dispatch::Values fake_args;
  for (const Value& value : args)
    fake_args.push_back(value.map_tensors([&](const Tensor& tensor) {
      Tensor fake = fake::like(tensor);
      recorder.add_input(fake, fmt::format("x{}", inputs.size()), fake);
      inputs.push_back(contiguous_copy(tensor));
      return fake;
    }));
  {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
    fake::DynamicSizes sizes(env);
    graph::TraceMode trace(recorder, [](const dispatch::Call& call) {
      const ops::Row* row = ops::row_of(call.op);
      return row && is_said_by_parts(*row);
    });
    for (const Value& result : dispatch::call_boxed(op, fake_args))
      recorder.graph().outputs.push_back(recorder.to_argument(result));
  }
  const graph::Graph& graph = recorder.graph();
  std::vector<Tensor> values(graph.values.size());
  for (size_t at = 0; at < inputs.size(); ++at) values[static_cast<size_t>(graph.inputs[at])] = inputs[at];
  for (const graph::Node& node : graph.nodes) {
    dispatch::Values given;
    for (const graph::Argument& argument : node.args) {
      if (const auto* id = std::get_if<graph::ValueId>(&argument)) {
        given.push_back(*id == graph::kNoValue ? Value() : Value(values[static_cast<size_t>(*id)]));
      } else if (const auto* list = std::get_if<graph::ValueList>(&argument)) {
        std::vector<Tensor> tensors;
        std::vector<std::optional<Tensor>> optional;
        for (graph::ValueId each : list->ids) {
          bool none = each == graph::kNoValue;
          optional.push_back(none ? std::nullopt : std::optional(values[static_cast<size_t>(each)]));
          if (!none) tensors.push_back(*optional.back());
        }
        given.push_back(list->optional ? Value(optional).own() : Value(tensors).own());
      } else {
        given.push_back(std::get<Value>(argument));
      }
    }
    std::vector<Tensor> results = evaluate_row(*node.op, given, context);
    for (size_t at = 0; at < node.outputs.size(); ++at) values[static_cast<size_t>(node.outputs[at])] = results[at];
  }
  context.closeness.magnitude.clear();
  context.closeness.parts |= graph.nodes.size() > 1;
  std::vector<Tensor> results;
  for (const graph::Argument& output : graph.outputs)
    graph::each_reference(output, [&](graph::ValueId id) { results.push_back(values[static_cast<size_t>(id)]); });
  return results;
}

std::vector<Tensor> evaluate_row(const dispatch::Operator& op, std::span<const Value> args, Context& context) {
  const ops::Row* row = ops::row_of(op);
  TENON_ASSERT(row, "{} has no row", op.name());
  if (is_said_by_parts(*row)) return evaluate_parts(op, args, context);
  // Around a root, what is left of large parts is as exact as they are.
  static const std::set<std::string_view> kWithRoots = {"digamma", "lgamma", "logaddexp", "logaddexp2"};
  context.closeness.parts |= kWithRoots.contains(row->schema.name);
  dispatch::Values copies;
  for (const Value& value : args) copies.push_back(value.map_tensors(contiguous_copy));
  ops::Arguments arguments(op, copies);
  for (const Value& value : copies)
    value.each_tensor([&](const Tensor& tensor) { note_scale(tensor, context.closeness); });
  if (row->view.of_storage) {
    // Copies do not lie as the arguments do: the memory itself is read, by the definition of such a view.
    ops::Geometry shown = row->view.geometry(ops::Arguments(op, args));
    return {contiguous_copy(core::make_view(args[0].tensor(), shown.sizes, shown.strides, shown.offset))};
  }
  if (row->kind == ops::Kind::View) {
    Ints sizes = plain(row->view.geometry(arguments).sizes);
    RowKernel kernel(*row, copies, sizes, copies[0].tensor().dtype(), {});
    return {kernel.run(context.closeness)};
  }
  if (row->dynamic()) return row->opaque.cpu.make(arguments);
  std::vector<ops::TensorMeta> metas = ops::infer(*row, arguments);
  std::vector<Tensor> results;
  if (row->kind == ops::Kind::Opaque) {
    for (const ops::TensorMeta& meta : metas) results.push_back(allocate(plain(meta.sizes), meta.dtype));
    row->opaque.cpu.fill(arguments, results);
    return results;
  }
  RowKernel kernel(*row, copies, plain(metas[0].sizes), metas[0].dtype,
                   {context.seed, row->element.random ? context.offset++ : 0});
  return {kernel.run(context.closeness)};
}

double epsilon_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::Float16: return std::ldexp(1, -10);
    case Dtype::BFloat16: return std::ldexp(1, -7);
    case Dtype::Float32: return std::ldexp(1, -23);
    default: return std::ldexp(1, -52);
  }
}

// The gap between neighbours around `value`.
double unit_in_last_place(double value, Dtype dtype) {
  double smallest = dtype == Dtype::Float16    ? std::ldexp(1, -24)
                    : dtype == Dtype::BFloat16 ? std::ldexp(1, -133)
                    : dtype == Dtype::Float32  ? std::ldexp(1, -149)
                                               : std::numeric_limits<double>::denorm_min();
  if (value == 0 || !std::isfinite(value)) return smallest;
  return std::max(smallest, std::ldexp(epsilon_of(dtype), std::ilogb(value)));
}

// Compares with a bound on the difference of two floats; without one, bits. An infinite bound on what is not finite:
// infinities and NaNs are as good as one another, because the order of operations decides which of them an overflow
// becomes.
using Bound = std::function<double(int64_t position, double expected)>;

std::string compare(const Tensor& got, const Tensor& expected, const Bound& bound) {
  if (got.description() != expected.description())
    return fmt::format("expected {}, got {}", expected.description(), got.description());
  Tensor flat = contiguous_copy(got), wanted = contiguous_copy(expected);
  int64_t count = flat.numel().plain();
  Dtype dtype = flat.dtype();
  for (int64_t position = 0; position < count; ++position) {
    loop::Number a = loop::load_element(flat.raw_data(), dtype, position),
                 b = loop::load_element(wanted.raw_data(), dtype, position);
    if (!is_floating(dtype)) {
      if (a.integer != b.integer) return fmt::format("element {}: expected {}, got {}", position, b.integer, a.integer);
      continue;
    }
    if (std::isnan(a.real) && std::isnan(b.real)) continue;
    bool same = a.real == b.real && (bound || std::signbit(a.real) == std::signbit(b.real));
    if (same) continue;
    if (bound && std::isfinite(a.real) && std::isfinite(b.real) &&
        std::fabs(a.real - b.real) <= bound(position, b.real))
      continue;
    if (bound && !std::isfinite(a.real) && !std::isfinite(b.real) && std::isinf(bound(position, b.real))) continue;
    return fmt::format("element {}: expected {:.17g}, got {:.17g}", position, b.real, a.real);
  }
  return "";
}

}  // namespace

Tensor contiguous_copy(const Tensor& tensor) {
  Tensor copy = allocate(Ints(tensor.sizes()), tensor.dtype());
  int64_t bytes = tensor.element_size();
  each_element(tensor, [&](int64_t position, int64_t place) {
    std::memcpy(static_cast<char*>(copy.raw_data()) + position * bytes,
                static_cast<const char*>(tensor.raw_data()) + place * bytes, static_cast<size_t>(bytes));
  });
  return copy;
}

Evaluated evaluate(const dispatch::Operator& op, std::span<const Value> args) {
  Context context;
  context.seed = default_generator().seed();
  context.offset = default_generator().offset();
  Evaluated evaluated;
  evaluated.results = evaluate_row(op, args, context);
  evaluated.closeness = std::move(context.closeness);
  return evaluated;
}

std::string difference(const Tensor& got, const Tensor& expected) { return compare(got, expected, nullptr); }

std::string difference(const Tensor& got, const Tensor& expected, const Closeness& closeness) {
  if (closeness.exact()) return difference(got, expected);
  Dtype dtype = expected.dtype();
  double epsilon = epsilon_of(dtype);
  // A product of two such numbers, or a sum of products, may overflow on the way. oneDNN takes halves in pairs where
  // the machine has no instructions for them: an infinity beside a pair's padding is NaN there.
  bool overflows = closeness.combines && (closeness.scale > 1e18 || is_half(dtype));
  return compare(got, expected, [&](int64_t position, double value) {
    if (!std::isfinite(value)) return overflows ? std::numeric_limits<double>::infinity() : 0.0;
    double terms = static_cast<double>(closeness.terms) + 1;
    // Halves are computed in float32: what is left is the rounding at the end.
    double ulps = is_half(dtype) ? 1 : 4.0 * closeness.functions;
    double size = closeness.parts ? std::max(std::fabs(value), closeness.scale) : value;
    double allowed = closeness.functions > 0 ? ulps * unit_in_last_place(size, dtype) : 0;
    if (closeness.combines)
      allowed += closeness.magnitude.empty() ? 4 * terms * epsilon * std::max(closeness.scale, std::fabs(value))
                                             : terms * epsilon * closeness.magnitude[static_cast<size_t>(position)];
    return allowed;
  });
}

std::string difference(const Tensor& got, const Tensor& expected, double relative, double of_largest) {
  Closeness notes;
  notes.scale = 1;
  note_scale(expected, notes);
  return compare(got, expected, [&](int64_t, double value) {
    return relative * std::max(std::fabs(value), of_largest * notes.scale);
  });
}

}  // namespace tenon::test
