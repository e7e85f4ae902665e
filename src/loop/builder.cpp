#include <tenon/loop/builder.h>

#include "facts.h"
#include "known_values.h"
#include "op_table.h"

#include <tenon/core/half.h>
#include <tenon/loop/evaluate.h>
#include <tenon/support/hash.h>

#include <bit>
#include <cmath>

namespace tenon::loop {
namespace {

// What makes two operations the same. `version` counts the stores to a load's buffer, so that a load after a store is
// another operation than the one before it.
struct OpKey {
  Op op;
  int64_t version = 0;

  bool operator==(const OpKey& other) const {
    const Op &a = op, &b = other.op;
    return a.code == b.code && a.dtype == b.dtype && a.operands[0] == b.operands[0] && a.operands[1] == b.operands[1] &&
           a.operands[2] == b.operands[2] && a.buffer == b.buffer && a.parameter == b.parameter && a.index == b.index &&
           a.reduce == b.reduce && a.number.is_real == b.number.is_real && a.number.integer == b.number.integer &&
           std::bit_cast<int64_t>(a.number.real) == std::bit_cast<int64_t>(b.number.real) &&
           a.has_rounding == b.has_rounding && a.rounded == b.rounded && version == other.version;
  }
};

struct OpKeyHash {
  size_t operator()(const OpKey& key) const {
    const Op& op = key.op;
    return hash_all(static_cast<int>(op.code), static_cast<int>(op.dtype), op.operands[0], op.operands[1],
                    op.operands[2], op.buffer, op.parameter, op.index, static_cast<int>(op.reduce), op.number.integer,
                    std::bit_cast<int64_t>(op.number.real), static_cast<int>(op.rounded), key.version);
  }
};

}  // namespace

struct Builder::Scope {
  Block* block;
  Loop* loop;  // null at the top
  std::unordered_map<OpKey, ValueId, OpKeyHash> made;
  struct Bound {
    sym::Range range;
    sym::Expr symbol;
  };
  std::unordered_map<ValueId, Bound> bound;
};

struct Builder::Notes {
  std::vector<int64_t> stores;                   // per buffer: how many so far
  std::vector<std::optional<Dtype>> rounded_as;  // per value: the half that it is known to be representable in
  std::vector<bool> is_one;                      // per value: the constant 1
  KnownValues known;
};

Builder::Builder(std::string name) : notes_(std::make_unique<Notes>()) {
  kernel_.name = std::move(name);
  scopes_.push_back(std::make_unique<Scope>(Scope{&kernel_.body, nullptr, {}, {}}));
}

Builder::~Builder() = default;

int Builder::buffer(std::string name, Dtype dtype, BufferRole role, sym::Expr extent) {
  kernel_.buffers.push_back({std::move(name), dtype, role, false, extent});
  notes_->stores.push_back(0);
  return static_cast<int>(kernel_.buffers.size()) - 1;
}

sym::Expr Builder::integer(std::string name, sym::Range range) {
  kernel_.integers.push_back(pool().symbol(name, range));
  return kernel_.integers.back();
}

int Builder::scalar(std::string name, Dtype dtype) {
  TENON_ASSERT(!is_narrow(dtype), "scalar parameter {} is {}; pass a float64", name, tenon::name(dtype));
  kernel_.scalars.push_back({std::move(name), dtype});
  return static_cast<int>(kernel_.scalars.size()) - 1;
}

sym::Expr Builder::fresh_symbol(const char* prefix, sym::Range range) {
  std::string name;
  do {
    name = fmt::format("{}{}", prefix, next_index_++);
  } while (pool().find_symbol(name).defined());
  return pool().symbol(name, range);
}

sym::Expr Builder::begin_loop(sym::Expr extent, LoopFlags flags) {
  auto loop = std::make_unique<Loop>();
  loop->index = fresh_symbol("i", {0, sym::Range::kMax});
  loop->extent = extent;
  loop->parallel = flags.parallel;
  loop->vector = flags.vector;
  loop->reduction = flags.reduction;
  loop->pairwise = flags.pairwise;
  assume_loop(pool(), loop->index, extent);
  Loop* inner = loop.get();
  scopes_.back()->block->push_back(std::move(loop));
  scopes_.push_back(std::make_unique<Scope>(Scope{&inner->body, inner, {}, {}}));
  return inner->index;
}

void Builder::end_loop() {
  TENON_ASSERT(scopes_.size() > 1, "kernel {}: end_loop without begin_loop", kernel_.name);
  scopes_.pop_back();
}

void Builder::loop(sym::Expr extent, LoopFlags flags, const std::function<void(sym::Expr index)>& body) {
  const sym::Expr index = begin_loop(extent, flags);
  body(index);
  end_loop();
}

Lane Builder::emit(Op op) {
  OpKey key{op, 0};
  if (op.code == OpCode::Load) key.version = notes_->stores.at(op.buffer);
  // A reduction belongs to its loop: an equal one in an enclosing loop is another.
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i]->made.find(key);
    if (found != scopes_[i]->made.end()) return Lane(this, found->second, op.dtype);
    if (op.code == OpCode::Reduce) break;
  }
  op.result = kernel_.value_count++;
  std::optional<Dtype> rounded_as;
  if (op.code == OpCode::Load && is_narrow(kernel_.buffers[op.buffer].dtype))
    rounded_as = kernel_.buffers[op.buffer].dtype;
  if (op.has_rounding) rounded_as = op.rounded;
  notes_->rounded_as.push_back(rounded_as);
  notes_->is_one.push_back(op.code == OpCode::Constant && op.number.to_real() == 1);
  notes_->known.add(op, pool());
  scopes_.back()->made.emplace(key, op.result);
  scopes_.back()->block->push_back(op);
  return Lane(this, op.result, op.dtype);
}

void Builder::require_own(Lane lane) const {
  TENON_ASSERT(lane.defined(), "kernel {}: an operand is undefined", kernel_.name);
  TENON_ASSERT(&lane.builder() == this, "kernel {}: operand %{} belongs to kernel {}", kernel_.name, lane.id(),
               lane.builder().kernel().name);
}

// Memory and sources
// ---------------------------------------------------------------------------------------------------

Lane Builder::load(int buffer, sym::Expr index, bool always) {
  Op op{.code = OpCode::Load, .dtype = compute_dtype(kernel_.buffers.at(buffer).dtype)};
  op.buffer = buffer;
  op.index = index;
  if (conditions_.empty() || always) return emit(op);
  // What was read at any rate, or under a condition around this one, is read here too.
  for (size_t known = 0; known < conditions_.size(); ++known) {
    op.operands[0] = known == 0 ? kNone : conditions_[known - 1].id();
    const OpKey key{op, notes_->stores.at(buffer)};
    for (const auto& scope : scopes_)
      if (const auto found = scope->made.find(key); found != scope->made.end())
        return Lane(this, found->second, op.dtype);
  }
  op.operands[0] = conditions_.back().id();
  return emit(op);
}

Lane Builder::when(Lane condition, const std::function<Lane()>& body) {
  require_own(condition);
  TENON_ASSERT(condition.dtype() == Dtype::Bool, "a condition is bool, got {}", name(condition.dtype()));
  conditions_.push_back(conditions_.empty() ? condition : binary(OpCode::And, conditions_.back(), condition));
  struct End {
    std::vector<Lane>& conditions;
    ~End() { conditions.pop_back(); }
  } end{conditions_};
  return body();
}

Lane Builder::choose(Lane condition, const std::function<Lane()>& then, const std::function<Lane()>& otherwise) {
  Lane taken = when(condition, then), other = when(unary(OpCode::Not, condition), otherwise);
  return select(condition, taken, other);
}

void Builder::store(int buffer, sym::Expr index, Lane value) {
  require_own(value);
  const Dtype dtype = kernel_.buffers.at(buffer).dtype;
  // A float32 needs no cast to a half: the store rounds. Other dtypes round once, in the cast.
  if (value.dtype() != compute_dtype(dtype)) value = cast(value, dtype);
  Op op{.code = OpCode::Store, .dtype = value.dtype()};
  op.buffer = buffer;
  op.index = index;
  op.operands[0] = value.id();
  scopes_.back()->block->push_back(op);
  ++notes_->stores[buffer];
}

Lane Builder::constant(double value, Dtype dtype) {
  Op op{.code = OpCode::Constant, .dtype = compute_dtype(dtype)};
  if (!is_floating(dtype)) {
    const bool exact = value >= -0x1p63 && value < 0x1p63 && std::trunc(value) == value;
    TENON_ASSERT(exact, "the constant {} is no {}", value, name(dtype));
    return constant(static_cast<int64_t>(value), dtype);
  }
  op.number = round_to(Number::of(value), dtype);
  return emit(op);
}

Lane Builder::constant(int64_t value, Dtype dtype) {
  Op op{.code = OpCode::Constant, .dtype = compute_dtype(dtype)};
  op.number = round_to(Number::of(value), dtype);
  return emit(op);
}

Lane Builder::parameter(int scalar) {
  Op op{.code = OpCode::Parameter, .dtype = kernel_.scalars.at(scalar).dtype};
  op.parameter = scalar;
  return emit(op);
}

Lane Builder::index(sym::Expr expr) {
  Op op{.code = OpCode::Index, .dtype = Dtype::Int64};
  op.index = expr;
  return emit(op);
}

sym::Expr Builder::bind_index(Lane value, sym::Range range) {
  require_own(value);
  TENON_ASSERT(value.dtype() == Dtype::Int64, "an index is int64, got {}", name(value.dtype()));
  if (const sym::Expr known = notes_->known.number(value.id()); known.defined() && is_index_arithmetic(known))
    return known;
  for (const auto& scope : scopes_) {
    const auto found = scope->bound.find(value.id());
    if (found != scope->bound.end() && found->second.range == range) return found->second.symbol;
  }
  Op op{.code = OpCode::BindIndex, .dtype = Dtype::Int64};
  op.operands[0] = value.id();
  op.index = fresh_symbol("j", range);
  scopes_.back()->bound.insert_or_assign(value.id(), Scope::Bound{range, op.index});
  scopes_.back()->block->push_back(op);
  return op.index;
}

Lane Builder::random_bits(Lane seed, Lane offset, sym::Expr element) {
  require_own(seed);
  require_own(offset);
  Op op{.code = OpCode::Random, .dtype = Dtype::Int64};
  op.operands[0] = seed.id();
  op.operands[1] = offset.id();
  op.index = element;
  return emit(op);
}

Lane Builder::reduce(ReduceKind kind, Lane value) {
  require_own(value);
  const Loop* loop = scopes_.back()->loop;
  TENON_ASSERT(loop && loop->reduction, "kernel {}: reduce {} outside of a reduction loop", kernel_.name,
               row(kind).name);
  Op op{.code = OpCode::Reduce, .dtype = value.dtype()};
  op.operands[0] = value.id();
  op.reduce = kind;
  return emit(op);
}

void Builder::check(Lane condition, std::string message) {
  require_own(condition);
  TENON_ASSERT(condition.dtype() == Dtype::Bool, "a checked condition is bool, got {}", name(condition.dtype()));
  if (notes_->known.truth(condition.id()) == true) return;
  if (!conditions_.empty()) condition = binary(OpCode::Or, unary(OpCode::Not, conditions_.back()), condition);
  Op op{.code = OpCode::Check, .dtype = Dtype::Bool};
  op.operands[0] = condition.id();
  op.parameter = static_cast<int32_t>(kernel_.checks.size());
  kernel_.checks.push_back(std::move(message));
  scopes_.back()->block->push_back(op);
}

// Arithmetic
// -----------------------------------------------------------------------------------------------------------

Lane Builder::apply(OpCode code, std::initializer_list<Lane> operands) {
  const OpRow& entry = row(code);
  TENON_ASSERT(static_cast<int>(operands.size()) == entry.traits.operands, "{} takes {} operands, got {}",
               entry.traits.name, entry.traits.operands, operands.size());
  for (Lane lane : operands) require_own(lane);
  const Lane* first = operands.begin() + (entry.typing == Typing::Choose ? 1 : 0);
  for (const Lane* lane = first; lane != operands.end(); ++lane) {
    TENON_ASSERT(lane->dtype() == first->dtype(), "{} of {} and {}: operands need one dtype", entry.traits.name,
                 name(first->dtype()), name(lane->dtype()));
  }
  if (entry.typing == Typing::Choose) {
    TENON_ASSERT(operands.begin()->dtype() == Dtype::Bool, "{} wants a bool as its condition, got {}",
                 entry.traits.name, name(operands.begin()->dtype()));
  }
  TENON_ASSERT(is_allowed(entry.traits, first->dtype()), "{} is not defined for {}", entry.traits.name,
               name(first->dtype()));
  Op op{.code = code, .dtype = entry.typing == Typing::Predicate ? Dtype::Bool : first->dtype()};
  int position = 0;
  for (Lane lane : operands) op.operands[position++] = lane.id();
  return emit(op);
}

Lane Builder::unary(OpCode code, Lane a) { return apply(code, {a}); }

Lane Builder::binary(OpCode code, Lane a, Lane b) {
  // Exact for every number, signed zeros and infinities included, and common: `alpha` of add.
  if (code == OpCode::Mul && a.dtype() == b.dtype()) {
    require_own(a);
    require_own(b);
    if (notes_->is_one[static_cast<size_t>(b.id())]) return a;
    if (notes_->is_one[static_cast<size_t>(a.id())]) return b;
  }
  return apply(code, {a, b});
}
Lane Builder::compare(OpCode code, Lane a, Lane b) { return apply(code, {a, b}); }
Lane Builder::select(Lane condition, Lane a, Lane b) { return apply(OpCode::Select, {condition, a, b}); }

Lane Builder::cast(Lane a, Dtype dtype) {
  require_own(a);
  Op op{.code = OpCode::Cast, .dtype = compute_dtype(dtype)};
  op.operands[0] = a.id();
  if (is_narrow(dtype)) {
    if (notes_->rounded_as[a.id()] == dtype) return a;
    op.has_rounding = true;
    op.rounded = dtype;
  } else if (a.dtype() == dtype) {
    return a;
  }
  return emit(op);
}

Kernel Builder::finish() {
  TENON_ASSERT(scopes_.size() == 1, "kernel {}: {} loops are not ended", kernel_.name, scopes_.size() - 1);
  verify(kernel_);
  return std::move(kernel_);
}

}  // namespace tenon::loop
