#include "pool.h"
#include "support/thread_data.h"

#include <tenon/support/log.h>
#include <tenon/sym/shape_env.h>

#include <fmt/format.h>

#include <bit>

namespace tenon::sym {
namespace {

std::string& current_place() {
  return support::thread_data([] { return new std::string; });
}

std::string bracketed_place(const char* otherwise) {
  return fmt::format("[{}]", current_place().empty() ? otherwise : current_place());
}

// " at model.cpp:31", if that is known.
std::string at_line(const CallSite& site) {
  std::string line = site.known() ? site.str() : "";
  return line.empty() ? "" : " at " + line;
}

}  // namespace

std::string Guard::asked_by() const { return (where.empty() ? "the function" : where) + at_line(site); }

ShapeEnv::ShapeEnv() : pool_(std::make_unique<ExprPool>()) {
  // There are no loops here.
  PoolAccess::state(*pool_).facts_are_global = true;
}
ShapeEnv::~ShapeEnv() = default;

void ShapeEnv::set_place(std::string place) { current_place() = std::move(place); }
const std::string& ShapeEnv::place() { return current_place(); }

Expr ShapeEnv::create(Kind kind, std::string prefix, std::optional<int64_t> hint, std::string source, Range range) {
  std::string name = fmt::format("{}{}", prefix, counts_[prefix]++);
  Expr symbol = kind == Kind::Real ? pool_->real_symbol(name) : pool_->symbol(name, range);
  TENON_ASSERT(static_cast<size_t>(symbol.symbol_id()) == hints_.size(),
               "symbol {} was made behind the environment's back", symbol.name());
  if (hint) PoolAccess::state(*pool_).set_witness(symbol, *hint);
  hints_.push_back(hint.value_or(0));
  backed_.push_back(hint.has_value());
  from_data_.push_back(!hint.has_value());
  PoolAccess::state(*pool_).symbols[static_cast<size_t>(symbol.symbol_id())].from_data = !hint.has_value();
  sources_.push_back(std::move(source));
  kinds_.push_back(kind);
  return symbol;
}

SymInt ShapeEnv::create_size(int64_t hint, std::string source) {
  TENON_ASSERT(hint >= 2, "size {} of {} is not specialised", hint, source);
  Expr symbol = create(Kind::Int, "s", hint, std::move(source), {2, Range::kMax});
  pool_->mark_size(symbol);
  return SymInt(symbol, Ref<ShapeEnv>(this));
}

SymInt ShapeEnv::create_number(int64_t hint, std::string source) {
  return SymInt(create(Kind::Int, "s", hint, std::move(source), {}), Ref<ShapeEnv>(this));
}

SymFloat ShapeEnv::create_real(double hint, std::string source) {
  return SymFloat(create(Kind::Real, "f", std::bit_cast<int64_t>(hint), std::move(source), {}), Ref<ShapeEnv>(this));
}

Expr ShapeEnv::create_unbacked(Kind kind, Range range) {
  Expr symbol;
  if (reuse_ != nullptr) {
    TENON_ASSERT(reuse_->next_ < reuse_->ids_.size(), "{} symbols were handed out before, and now one more",
                 reuse_->ids_.size());
    symbol = pool_->symbol(reuse_->ids_[reuse_->next_++]);
    TENON_ASSERT(kinds_[static_cast<size_t>(symbol.symbol_id())] == kind, "{} is reused as another kind of number",
                 symbol.name());
    if (kind != Kind::Real) pool_->refine(symbol, range);
  } else {
    symbol = create(kind, kind == Kind::Real ? "uf" : "u", std::nullopt, "", range);
  }
  fresh_.push_back(symbol.symbol_id());
  return symbol;
}

SymInt ShapeEnv::create_unbacked(Range range) { return SymInt(create_unbacked(Kind::Int, range), Ref<ShapeEnv>(this)); }

SymFloat ShapeEnv::create_unbacked_real() { return SymFloat(create_unbacked(Kind::Real, {}), Ref<ShapeEnv>(this)); }

SymBool ShapeEnv::create_unbacked_bool() {
  return SymBool(ne(create_unbacked(Kind::Bool, {0, 1}), pool_->constant(0)), Ref<ShapeEnv>(this));
}

std::vector<int32_t> ShapeEnv::take_fresh() { return std::exchange(fresh_, {}); }

void ShapeEnv::mark_size(Expr expr) {
  if (expr.is_symbol()) pool_->mark_size(expr);
}

std::optional<int64_t> ShapeEnv::hint(Expr expr) const {
  if (expr.node()->witnessed) return expr.node()->witness;
  for (int32_t id : symbols_of(expr))
    if (!is_backed(id)) return std::nullopt;
  return evaluate(expr, hints_);
}

const std::string& ShapeEnv::source(int32_t symbol_id) const { return sources_.at(static_cast<size_t>(symbol_id)); }

bool ShapeEnv::is_backed(int32_t symbol_id) const { return backed_.at(static_cast<size_t>(symbol_id)); }

namespace {

// "\n  asked at model.cpp:31", if that is known.
std::string asked_here() {
  std::string line = CallSite::here().str();
  return line.empty() ? "" : "\n  asked at " + line;
}

// What is known of the symbols in an expression, one line each.
std::string describe_symbols(const ShapeEnv& env, Expr expr) {
  std::string text;
  for (int32_t id : symbols_of(expr)) {
    Expr symbol = env.pool().symbol(id);
    text += "\n  " + symbol.name();
    if (!symbol.is_real()) text += " in " + str(env.pool().range(symbol));
    if (env.is_backed(id)) {
      std::string hint = symbol.is_real() ? fmt::format("{}", std::bit_cast<double>(*env.hint(symbol)))
                                          : fmt::format("{}", *env.hint(symbol));
      text += fmt::format(": {}, {} at capture", env.source(id), hint);
    } else {
      text += ": a value from data";
    }
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
  if (!answer && resolver_ && resolver_(condition)) return decide(condition);
  if (!answer) {
    throw DataDependentError(
        fmt::format("{} expected a condition that sizes decide, got {}, which depends on data{}{}\n"
                    "  to settle it, write check({}) or check({}) before this place",
                    bracketed_place("decide"), condition.str(), asked_here(), describe_symbols(*this, condition),
                    condition.str(), logical_not(condition).str()));
  }
  bool holds = *answer != 0;
  // Not assumed either: what is assumed must be guarded.
  if (suppressed_ > 0) return holds;
  Expr guard = holds ? condition : logical_not(condition);
  guards_.push_back({guard, place(), CallSite::here()});
  pool_->assume(guard);
  return holds;
}

int64_t ShapeEnv::pin(Expr expr) {
  TENON_ASSERT(!expr.is_real(), "{} is real", expr.str());
  Expr simple = pool_->simplify(expr);
  if (simple.is_constant()) return simple.constant();
  return pin_to_hint(expr, simple);
}

double ShapeEnv::pin_real(Expr expr) {
  TENON_ASSERT(expr.is_real(), "{} is not real", expr.str());
  Expr simple = pool_->simplify(expr);
  if (simple.is_real_constant()) return simple.real_constant();
  return std::bit_cast<double>(pin_to_hint(expr, simple));
}

int64_t ShapeEnv::pin_to_hint(Expr expr, Expr simple) {
  std::optional<int64_t> value = hint(expr);
  if (!value) {
    expr = simple;
    value = hint(expr);
  }
  if (!value && resolver_ && resolver_(expr)) value = hint(expr);
  if (!value) {
    throw DataDependentError(
        fmt::format("{} expected a number that is known at capture, got {}, which depends on data{}{}\n"
                    "  to settle it, write check({} == ...) before this place",
                    bracketed_place(expr.is_real() ? "double" : "int64_t"), expr.str(), asked_here(),
                    describe_symbols(*this, expr), expr.str()));
  }
  Expr number = expr.is_real() ? pool_->real_constant(std::bit_cast<double>(*value)) : pool_->constant(*value);
  size_t guards = guards_.size();
  bool holds = decide(same(expr, number));
  TENON_ASSERT(holds, "{} is not its hint, {}", expr.str(), number.str());
  if (guards_.size() > guards) {
    // The function itself, no operator in it.
    if (guards_.back().where.empty()) guards_.back().where = "a plain number taken";
    TENON_LOG(Guards, "{} is fixed to {} by {}: other values compile again; left symbolic, one graph serves all",
              expr.str(), number.str(), guards_.back().asked_by());
  }
  return *value;
}

void ShapeEnv::check(Expr condition, const std::string& message, const CallSite& site) {
  std::optional<bool> known = pool_->known(condition);
  if (known.value_or(false)) return;
  std::optional<int64_t> answer = hint(condition);
  bool is_false = known.has_value() || (answer && *answer == 0);
  if (is_false) {
    std::string got = condition.is_constant() ? " a condition that never holds" : describe_symbols(*this, condition);
    fail("{} {}: expected {}, got{}", bracketed_place("check"), message, condition.str(), got);
  }
  if (suppressed_ > 0) return;
  // A call that breaks a promise about sizes alone is captured anew, and told so then.
  if (answer)
    guards_.push_back({condition, message, site});
  else
    deferred_.push_back({condition, message, site});
  pool_->assume(condition);
}

void ShapeEnv::give_hint(int32_t symbol_id, int64_t value) {
  auto id = static_cast<size_t>(symbol_id);
  TENON_ASSERT(!backed_.at(id), "{} has a value already", pool_->symbol(symbol_id).name());
  backed_[id] = true;
  hints_[id] = value;
  sources_[id] = "a value from data";
}

std::string failed_check(const Guard& check, const ShapeEnv& env, std::span<const int64_t> symbol_values) {
  std::vector<std::string> words;
  for (int32_t id : symbols_of(check.condition)) {
    Expr symbol = env.pool().symbol(id);
    int64_t bits = symbol_values[static_cast<size_t>(id)];
    words.push_back(symbol.is_real() ? fmt::format("{} = {}", symbol.name(), std::bit_cast<double>(bits))
                                     : fmt::format("{} = {}", symbol.name(), bits));
  }
  return fmt::format("[check] {}: expected {}, got {}", check.asked_by(), check.condition.str(),
                     fmt::join(words, ", "));
}

void ShapeEnv::check(const SymBool& condition, const std::string& message, const CallSite& site) {
  check(condition.is_symbolic() ? condition.expr() : pool_->constant(bool(condition)), message, site);
}

std::string ShapeEnv::str() const {
  std::string text;
  for (const Guard& guard : guards_) {
    text += guard.condition.str();
    if (!guard.where.empty()) text += fmt::format("  (from: {})", guard.asked_by());
    text += "\n";
  }
  return text;
}

}  // namespace tenon::sym
