#include "pool.h"

#include <tenon/sym/shape_env.h>

namespace tenon::sym {
namespace {

std::string& current_place() {
  thread_local std::string place;
  return place;
}

std::string bracketed_place(const char* otherwise) {
  return fmt::format("[{}]", current_place().empty() ? otherwise : current_place());
}

}  // namespace

ShapeEnv::ShapeEnv() : pool_(std::make_unique<ExprPool>()) {}
ShapeEnv::~ShapeEnv() = default;

void ShapeEnv::set_place(std::string place) { current_place() = std::move(place); }
const std::string& ShapeEnv::place() { return current_place(); }

SymInt ShapeEnv::create(std::string prefix, std::optional<int64_t> hint, std::string source, Range range) {
  int& count = hint ? backed_count_ : unbacked_count_;
  Expr symbol = pool_->symbol(fmt::format("{}{}", prefix, count++), range);
  TENON_ASSERT(static_cast<size_t>(symbol.symbol_id()) == hints_.size(),
               "symbol {} was made behind the environment's back", symbol.name());
  hints_.push_back(hint.value_or(0));
  backed_.push_back(hint.has_value());
  sources_.push_back(std::move(source));
  return SymInt(symbol, Ref<ShapeEnv>(this));
}

SymInt ShapeEnv::create_size(int64_t hint, std::string source) {
  TENON_ASSERT(hint >= 2, "size {} of {} is not specialised", hint, source);
  return create("s", hint, std::move(source), {2, Range::kMax});
}

SymInt ShapeEnv::create_number(int64_t hint, std::string source) { return create("s", hint, std::move(source), {}); }

SymInt ShapeEnv::create_unbacked(Range range) { return create("u", std::nullopt, "", range); }

std::optional<int64_t> ShapeEnv::hint(Expr expr) const {
  for (int32_t id : symbols_of(expr))
    if (!is_backed(id)) return std::nullopt;
  return evaluate(expr, hints_);
}

const std::string& ShapeEnv::source(int32_t symbol_id) const { return sources_.at(static_cast<size_t>(symbol_id)); }

bool ShapeEnv::is_backed(int32_t symbol_id) const { return backed_.at(static_cast<size_t>(symbol_id)); }

namespace {

// What is known of the symbols in an expression, one line each.
std::string describe_symbols(const ShapeEnv& env, Expr expr) {
  std::string text;
  for (int32_t id : symbols_of(expr)) {
    Expr symbol = env.pool().symbol(id);
    std::string range = str(env.pool().range(symbol));
    if (env.is_backed(id))
      text += fmt::format("\n  {} in {}: {}, {} at capture", symbol.name(), range, env.source(id), *env.hint(symbol));
    else
      text += fmt::format("\n  {} in {}: a value from data", symbol.name(), range);
  }
  return text;
}

}  // namespace

bool ShapeEnv::decide(Expr condition) {
  if (std::optional<bool> known = pool_->known(condition)) return *known;
  // Facts may have replaced an unbacked symbol by backed ones, or the other way round.
  std::optional<int64_t> answer = hint(condition);
  if (!answer) {
    condition = pool_->simplify(condition);
    answer = hint(condition);
  }
  if (!answer) {
    throw DataDependentError(fmt::format("{} expected a condition that sizes decide, got {}, which depends on data{}\n"
                                         "  to settle it, write check({}) or check({}) before this place",
                                         bracketed_place("decide"), condition.str(), describe_symbols(*this, condition),
                                         condition.str(), logical_not(condition).str()));
  }
  bool holds = *answer != 0;
  // Not assumed either: what is assumed must be guarded.
  if (suppressed_ > 0) return holds;
  Expr guard = holds ? condition : logical_not(condition);
  guards_.push_back({guard, place()});
  pool_->assume(guard);
  return holds;
}

int64_t ShapeEnv::pin(Expr expr) {
  Expr simple = pool_->simplify(expr);
  if (simple.is_constant()) return simple.constant();
  std::optional<int64_t> value = hint(expr);
  if (!value) {
    expr = simple;
    value = hint(expr);
  }
  if (!value) {
    throw DataDependentError(
        fmt::format("{} expected a number that is known at capture, got {}, which depends on data{}\n"
                    "  to settle it, write check({} == ...) before this place",
                    bracketed_place("int64_t"), expr.str(), describe_symbols(*this, expr), expr.str()));
  }
  bool holds = decide(eq(expr, pool_->constant(*value)));
  TENON_ASSERT(holds, "{} is not its hint, {}", expr.str(), *value);
  return *value;
}

void ShapeEnv::check(Expr condition, const std::string& message) {
  std::optional<bool> known = pool_->known(condition);
  if (known.value_or(false)) return;
  std::optional<int64_t> answer = hint(condition);
  bool is_false = known.has_value() || (answer && *answer == 0);
  if (is_false) {
    std::string got = condition.is_constant() ? " a condition that never holds" : describe_symbols(*this, condition);
    fail("{} {}: expected {}, got{}", bracketed_place("check"), message, condition.str(), got);
  }
  if (!answer) deferred_.push_back({condition, message});
  pool_->assume(condition);
}

void ShapeEnv::check(const SymBool& condition, const std::string& message) {
  check(condition.is_symbolic() ? condition.expr() : pool_->constant(bool(condition)), message);
}

std::string ShapeEnv::str() const {
  std::string text;
  for (const Guard& guard : guards_) {
    text += guard.condition.str();
    if (!guard.where.empty()) text += fmt::format("  (from: {})", guard.where);
    text += "\n";
  }
  return text;
}

}  // namespace tenon::sym
