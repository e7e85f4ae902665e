#include "pool.h"

#include <tenon/sym/env_copy.h>

#include <algorithm>
#include <bit>

namespace tenon::sym {

EnvSnapshot EnvSnapshot::of(const Ref<ShapeEnv>& env) {
  EnvSnapshot snapshot{env, {}, env->guards(), env->deferred_checks()};
  for (int32_t id = 0; id < env->pool().symbol_count(); ++id) {
    Symbol symbol{env->pool().symbol(id)};
    if (!symbol.expr.is_real()) {
      symbol.range = env->pool().range(symbol.expr);
      symbol.is_size = PoolAccess::state(env->pool()).symbols[static_cast<size_t>(id)].size;
    }
    symbol.from_data = env->is_from_data(id);
    symbol.hint = env->hint(symbol.expr);
    symbol.source = env->source(id);
    snapshot.symbols.push_back(std::move(symbol));
  }
  return snapshot;
}

EnvCopy::EnvCopy(const EnvSnapshot& from, std::span<const int64_t> values, std::span<const Bound> bound)
    : env_(make_ref<ShapeEnv>()) {
  ExprPool& pool = env_->pool();
  for (size_t at = 0; at < from.symbols.size(); ++at) {
    const EnvSnapshot::Symbol& symbol = from.symbols[at];
    auto id = static_cast<int32_t>(at);
    std::optional<int64_t> value = at < values.size() ? std::optional(values[at]) : symbol.hint;
    bool real = symbol.expr.is_real();
    if (symbol.from_data) {
      auto found = std::find_if(bound.begin(), bound.end(), [&](const Bound& each) { return each.symbol == id; });
      if (real)
        (void)env_->create_unbacked_real();
      else if (found != bound.end() && found->is_bool)
        (void)env_->create_unbacked_bool();
      else
        (void)env_->create_unbacked();
      if (value && (found == bound.end() || found->is_known)) env_->give_hint(id, *value);
    } else if (real) {
      (void)env_->create_real(std::bit_cast<double>(value.value_or(0)), symbol.source);
    } else {
      (void)env_->create_number(value.value_or(0), symbol.source);
    }
    Expr made = pool.symbol(id);
    if (symbol.is_size) pool.mark_size(made);
    if (!real) pool.refine(made, symbol.range);
    symbols_.emplace(id, made);
  }
  (void)env_->take_fresh();
  for (const Guard& guard : from.guards) pool.assume((*this)(guard.condition));
  for (const Guard& check : from.checks) env_->check((*this)(check.condition), check.where, check.site);
  given_ = env_->guards().size();
}

SymInt EnvCopy::operator()(const SymInt& number) const {
  return number.is_symbolic() ? SymInt((*this)(number.expr()), env_) : number;
}
SymFloat EnvCopy::operator()(const SymFloat& number) const {
  return number.is_symbolic() ? SymFloat((*this)(number.expr()), env_) : number;
}
SymBool EnvCopy::operator()(const SymBool& flag) const {
  return flag.is_symbolic() ? SymBool((*this)(flag.expr()), env_) : flag;
}
SymInts EnvCopy::operator()(const SymInts& numbers) const {
  SymInts copy;
  for (const SymInt& number : numbers) copy.push_back((*this)(number));
  return copy;
}

std::vector<Expr> EnvCopy::conditions() const {
  std::vector<Expr> conditions;
  for (size_t at = given_; at < env_->guards().size(); ++at) conditions.push_back(env_->guards()[at].condition);
  return conditions;
}

}  // namespace tenon::sym
