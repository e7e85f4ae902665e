#include "pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::sym {

Op Expr::op() const {
  TENON_ASSERT(node_ != nullptr, "an undefined expression has no operation");
  return node_->op;
}

int64_t Expr::constant() const {
  TENON_ASSERT(is_constant(), "{} is not a constant", str());
  return node_->value;
}

bool Expr::is_real() const {
  TENON_ASSERT(node_ != nullptr, "an undefined expression has no type");
  return node_->real;
}

double Expr::real_constant() const {
  TENON_ASSERT(is_real_constant(), "{} is not a real constant", str());
  return std::bit_cast<double>(node_->value);
}

const std::string& Expr::name() const {
  TENON_ASSERT(is_symbol(), "{} is not a symbol", str());
  return PoolAccess::state(*this).symbols[static_cast<size_t>(node_->value)].name;
}

int32_t Expr::symbol_id() const {
  TENON_ASSERT(is_symbol(), "{} is not a symbol", str());
  return static_cast<int32_t>(node_->value);
}

std::span<const Expr> Expr::args() const {
  TENON_ASSERT(node_ != nullptr, "an undefined expression has no arguments");
  return {node_->args, node_->arg_count};
}

ExprPool& Expr::pool() const {
  TENON_ASSERT(node_ != nullptr, "an undefined expression has no pool");
  return *node_->pool;
}

bool ExprPool::State::NodeEqual::operator()(const ExprNode* a, const ExprNode* b) const {
  return a->hash == b->hash && a->op == b->op && a->opaque == b->opaque && a->value == b->value &&
         a->arg_count == b->arg_count && std::equal(a->args, a->args + a->arg_count, b->args);
}

void* ExprPool::State::allocate(size_t bytes) {
  constexpr size_t kChunk = 32 * 1024;
  bytes = (bytes + 15) / 16 * 16;
  if (bytes > chunk_left) {
    size_t size = std::max(bytes, kChunk);
    chunks.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    chunk_at = chunks.back().get();
    chunk_left = size;
  }
  void* place = chunk_at;
  chunk_at += bytes;
  chunk_left -= bytes;
  return place;
}

namespace {

// The value of a node from those of its arguments; none where it overflows.
void find_witness(ExprNode& node) {
  if (node.op == Op::Symbol) return;
  if (node.arg_count == 0) {
    node.witnessed = true;
    node.witness = node.value;
    return;
  }
  for (uint32_t i = 0; i < node.arg_count; ++i)
    if (!node.args[i].node()->witnessed) return;
  int64_t result = node.args[0].node()->witness;
  if (node.arg_count == 1 && !apply_operation(node.op, result, result, result)) return;
  for (uint32_t i = 1; i < node.arg_count; ++i) {
    int64_t other = node.args[i].node()->witness;
    if (node.op == Op::Add || node.op == Op::Mul) {
      std::optional<int64_t> folded = node.op == Op::Add ? checked_add(result, other) : checked_mul(result, other);
      if (!folded) return;
      result = *folded;
    } else if (!apply_operation(node.op, result, other, result)) {
      return;
    }
  }
  node.witnessed = true;
  node.witness = result;
}

}  // namespace

void ExprPool::State::set_witness(Expr symbol, int64_t value) {
  symbol.node()->witnessed = true;
  symbol.node()->witness = value;
}

Expr ExprPool::State::intern(Op op, std::span<const Expr> args, int64_t value, bool opaque, bool real_symbol) {
  size_t hash = hash_combine(hash_combine(static_cast<size_t>(op), opaque), static_cast<size_t>(value));
  for (Expr arg : args) hash = hash_combine(hash, arg.node()->hash);
  ExprNode wanted{};
  wanted.op = op;
  wanted.opaque = opaque;
  wanted.real = op >= Op::RealConstant && op <= Op::Log2;
  wanted.newest_symbol = -1;
  wanted.arg_count = static_cast<uint32_t>(args.size());
  wanted.value = value;
  wanted.hash = hash;
  wanted.pool = pool;
  wanted.args = args.data();
  if (auto found = nodes.find(&wanted); found != nodes.end()) return Expr(*found);

  wanted.has_division = op == Op::FloorDiv || op == Op::Mod;
  if (op == Op::Symbol) {
    wanted.newest_symbol = static_cast<int32_t>(value);
    wanted.real = real_symbol;
  }
  Expr* own = args.empty() ? nullptr : static_cast<Expr*>(allocate(args.size() * sizeof(Expr)));
  for (size_t i = 0; i < args.size(); ++i) {
    own[i] = args[i];
    wanted.newest_symbol = std::max(wanted.newest_symbol, args[i].node()->newest_symbol);
    if (op == Op::Mul && !opaque) wanted.has_division |= args[i].node()->has_division;
  }
  wanted.args = own;
  find_witness(wanted);
  const ExprNode* node = new (allocate(sizeof(ExprNode))) ExprNode(wanted);
  nodes.insert(node);
  return Expr(node);
}

Expr ExprPool::State::constant(int64_t value) { return intern(Op::Constant, {}, value); }

Expr ExprPool::State::opaque(Op op, Expr a, Expr b) {
  if (compare(a, b) > 0) std::swap(a, b);
  Expr args[] = {a, b};
  return intern(op, args, 0, true);
}

std::span<const Expr> factors(const Expr& monomial) {
  if (monomial.op() == Op::Mul && !monomial.node()->opaque) return monomial.args();
  return {&monomial, 1};
}

namespace {

int compare_atoms(Expr a, Expr b) {
  const ExprNode &x = *a.node(), &y = *b.node();
  if (x.op != y.op) return x.op < y.op ? -1 : 1;
  if (x.opaque != y.opaque) return x.opaque ? 1 : -1;
  if (x.value != y.value) return x.value < y.value ? -1 : 1;
  if (x.arg_count != y.arg_count) return x.arg_count < y.arg_count ? -1 : 1;
  for (uint32_t i = 0; i < x.arg_count; ++i)
    if (int order = compare(x.args[i], y.args[i])) return order;
  return 0;
}

}  // namespace

int compare(Expr a, Expr b) {
  if (a == b) return 0;
  std::span<const Expr> left = factors(a), right = factors(b);
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (left[i] == right[i]) continue;
    if (int order = compare_atoms(left[i], right[i])) return order;
  }
  // The product before its beginning: n*i + n.
  if (left.size() != right.size()) return left.size() > right.size() ? -1 : 1;
  return 0;
}

ExprPool::ExprPool() : state_(std::make_unique<State>(this)) {}
ExprPool::~ExprPool() = default;

Expr ExprPool::constant(int64_t value) { return state_->constant(value); }

Expr ExprPool::State::symbol(std::string_view name, Range range, bool real) {
  bool identifier =
      !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && name != "inf" && name != "nan";
  for (unsigned char letter : name) identifier &= std::isalnum(letter) || letter == '_' || letter == '.';
  TENON_CHECK(identifier, "[symbol] expected a name of letters, digits, '_' and '.', got \"{}\"", name);
  TENON_CHECK(range.min <= range.max, "[symbol] expected a range with a value for {}, got {}", name, str(range));
  auto id = static_cast<int32_t>(symbols.size());
  auto [entry, added] = symbol_ids.emplace(name, id);
  TENON_CHECK(added, "[symbol] expected a new name, got {}, which this pool has", name);
  Expr expr = intern(Op::Symbol, {}, id, false, real);
  symbols.push_back({std::string(name), range, expr});
  return expr;
}

Expr ExprPool::symbol(std::string_view name, Range range) { return state_->symbol(name, range, false); }
Expr ExprPool::real_symbol(std::string_view name) { return state_->symbol(name, {}, true); }
Expr ExprPool::real_constant(double value) { return state_->real_constant(value); }

void ExprPool::mark_size(Expr symbol) {
  TENON_ASSERT(&symbol.pool() == this && symbol.is_symbol() && !symbol.is_real(), "{} is no integer symbol",
               symbol.str());
  bool& size = state_->symbols[static_cast<size_t>(symbol.symbol_id())].size;
  if (!std::exchange(size, true)) state_->learnt();
}

Expr ExprPool::find_symbol(std::string_view name) const {
  auto found = state_->symbol_ids.find(std::string(name));
  return found == state_->symbol_ids.end() ? Expr() : symbol(found->second);
}

int32_t ExprPool::symbol_count() const { return static_cast<int32_t>(state_->symbols.size()); }

Expr ExprPool::symbol(int32_t id) const {
  TENON_ASSERT(id >= 0 && id < symbol_count(), "symbol {} of {}", id, symbol_count());
  return state_->symbols[static_cast<size_t>(id)].expr;
}

namespace {

bool is_index_operation(Expr expr) {
  switch (expr.op()) {
    case Op::Constant:
    case Op::Add:
    case Op::Mul:
    case Op::Min:
    case Op::Max:
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::And:
    case Op::Or:
    case Op::Not: return true;
    // By -1 or 0 machines trap.
    case Op::FloorDiv:
    case Op::Mod: return expr.pool().range(expr.args()[1]).min >= 1;
    case Op::Symbol: return !expr.is_real();
    default: return false;
  }
}

}  // namespace

bool is_index_arithmetic(Expr expr) {
  if (expr.args().empty()) return is_index_operation(expr);
  bool all = true;
  std::unordered_set<Expr> seen;
  post_order(
      expr, [&](Expr e) { return all && seen.insert(e).second; }, [&](Expr e) { all = all && is_index_operation(e); });
  return all;
}

std::vector<int32_t> symbols_of(Expr expr) {
  std::vector<int32_t> ids;
  std::unordered_set<Expr> seen;
  post_order(
      expr, [&](Expr e) { return e.node()->newest_symbol >= 0 && seen.insert(e).second; },
      [&](Expr e) {
        if (e.is_symbol()) ids.push_back(e.symbol_id());
      });
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace tenon::sym
