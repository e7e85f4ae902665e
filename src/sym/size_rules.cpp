#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon {

using sym::Expr;
using sym::ShapeEnv;

namespace {

// Nothing if the answer depends on data.
std::optional<bool> try_decide(const SymBool& condition) {
  if (!condition.is_symbolic()) return bool(condition);
  ShapeEnv& env = *condition.env();
  if (std::optional<bool> known = env.pool().known(condition.expr())) return known;
  if (!env.hint(condition.expr()) && !env.hint(env.pool().simplify(condition.expr()))) return std::nullopt;
  return env.decide(condition.expr());
}

// Every value from data by two more than its least, if that is less than 2.
Expr suppose_sizes(ShapeEnv& env, Expr expr) {
  std::unordered_map<int32_t, Expr> supposed;
  for (int32_t id : sym::symbols_of(expr)) {
    Expr symbol = env.pool().symbol(id);
    if (env.is_backed(id) || symbol.is_real()) continue;
    int64_t least = env.pool().range(symbol).min;
    if (least >= 0 && least < 2) supposed.emplace(id, symbol + (2 - least));
  }
  return env.pool().substitute(expr, supposed);
}

// With the sizes at hand, and values from data that leave more than one element, be it in front of them or behind.
std::optional<bool> holds_for_typical(ShapeEnv& env, Expr expr) {
  constexpr int64_t kTypical = 2;
  std::vector<int64_t> values(static_cast<size_t>(env.pool().symbol_count()));
  for (int32_t id : sym::symbols_of(expr)) {
    Expr symbol = env.pool().symbol(id);
    if (symbol.is_real()) return std::nullopt;
    sym::Range range = env.pool().range(symbol);
    values[static_cast<size_t>(id)] = env.hint(symbol).value_or(std::clamp(kTypical, range.min, range.max));
  }
  int64_t holds = 0;
  if (!sym::ExprProgram({&expr, 1}).try_run(values, {&holds, 1})) return std::nullopt;
  return holds != 0;
}

}  // namespace

bool expect(const SymBool& condition) {
  if (std::optional<bool> answer = try_decide(condition)) return *answer;
  ShapeEnv& env = *condition.env();
  env.check(condition,
            fmt::format("{} needs {}", ShapeEnv::place().empty() ? "a shape" : ShapeEnv::place(), condition.str()),
            CallSite::here());
  return true;
}

bool decide_or(const SymBool& condition, bool otherwise) { return try_decide(condition).value_or(otherwise); }

bool decide_likely(const SymBool& condition, bool otherwise) {
  if (std::optional<bool> decided = try_decide(condition)) return *decided;
  ShapeEnv& env = *condition.env();
  return env.pool().known(suppose_sizes(env, env.pool().simplify(condition.expr()))).value_or(otherwise);
}

bool decide_typically(const SymBool& condition) {
  if (std::optional<bool> decided = try_decide(condition)) return *decided;
  ShapeEnv& env = *condition.env();
  return holds_for_typical(env, env.pool().simplify(condition.expr())).value_or(false);
}

bool counts_as_one(const SymInt& size, const SymInt& beside) {
  if (is_one(size)) return true;
  return size.is_symbolic() && size.hint() == 1 && beside.is_symbolic() && !beside.hint() && bool(size == 1);
}

bool is_stretched(const SymInt& size, const SymInt& to) {
  if (counts_as_one(size, to)) return true;
  return size.is_symbolic() && !size.hint() && statically_true(size <= 1) && expect(size == 1);
}

bool broadcasts_to(const SymInt& from, const SymInt& to) {
  return is_one(from) || from.same(to) || counts_as_one(from, to) || same_size(from, to) || decide_or(from == 1, false);
}

const SymInt& better_known(const SymInt& a, const SymInt& b) {
  if (!a.is_symbolic() || (a.hint() && b.is_symbolic())) return a;
  return !b.is_symbolic() || b.hint() ? b : a;
}

SymInt from_the_end(const SymInt& index, const SymInt& size) {
  SymBool negative = index < 0;
  if (std::optional<bool> answer = try_decide(negative)) return *answer ? index + size : index;
  return index + to_int(negative) * size;
}

SymInt clamp(const SymInt& value, const SymInt& low, const SymInt& high) {
  std::optional<bool> below = value.same(low) ? false : try_decide(value < low);
  if (below.value_or(false)) return low;
  std::optional<bool> above = value.same(high) ? false : try_decide(value > high);
  if (above.value_or(false)) return high;
  SymInt result = value;
  if (!above) result = min(result, high);
  if (!below) result = max(result, low);
  return result;
}

}  // namespace tenon
