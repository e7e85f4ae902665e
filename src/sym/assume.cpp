// What a pool learns: ranges of symbols, bounds of linear forms, values that are excluded, symbols that are solved for.
#include "pool.h"

namespace tenon::sym {

ExprPool::State::Normal ExprPool::State::normal(Expr expr) {
  Sum sum = decompose(expr);
  if (sum.terms.empty()) return {constant(0), 1, sum.constant};
  int64_t common = 0;
  bool negatable = true;
  for (const Term& term : sum.terms) {
    common = gcd(common, term.coefficient);
    negatable &= term.coefficient != Range::kMin;
  }
  int64_t scale = sum.terms[0].coefficient < 0 && negatable ? -common : common;
  int64_t offset = std::exchange(sum.constant, 0);
  for (Term& term : sum.terms) term.coefficient /= scale;
  return {build(sum), scale, offset};
}

void ExprPool::State::learnt() {
  ++epoch;
  // Clearing an empty table still walks its buckets.
  if (!memo.empty()) memo.clear();
  if (!proofs.empty()) proofs.clear();
  if (!dyadics.empty()) dyadics.clear();
  if (!simplified.empty()) simplified.clear();
}

bool ExprPool::State::excludes(Expr form, int64_t value) const {
  auto found = excluded.find(form);
  return found != excluded.end() && std::find(found->second.begin(), found->second.end(), value) != found->second.end();
}

void ExprPool::State::refine(int32_t symbol, Range range) {
  SymbolInfo& info = symbols[static_cast<size_t>(symbol)];
  Range narrowed = intersect(info.range, range);
  if (narrowed == info.range) return;
  TENON_CHECK(narrowed.min <= narrowed.max, "[refine] expected a value of {} in {}, got {}", info.name, str(info.range),
              str(range));
  info.range = narrowed;
  while (info.range.min < info.range.max && excludes(info.expr, info.range.min)) ++info.range.min;
  while (info.range.min < info.range.max && excludes(info.expr, info.range.max)) --info.range.max;
  learnt();
}

namespace {

// k*form in range → form
Range divide_range(Range range, int64_t k) {
  auto floor_end = [](int64_t end, int64_t by) {
    return end == Range::kMin || end == Range::kMax ? end : divide_floor(end, by);
  };
  auto minus = [](int64_t end) { return end == Range::kMin ? Range::kMax : end == Range::kMax ? Range::kMin : -end; };
  if (k < 0) {
    range = {minus(range.max), minus(range.min)};
    k = -k;
  }
  return {minus(floor_end(minus(range.min), k)), floor_end(range.max, k)};
}

Range shift(Range range, int64_t by) { return add(range, {by, by}); }

}  // namespace

void ExprPool::State::learn_bound(Expr linear, Range wanted) {
  ++steps;
  Normal n = normal(linear);
  // Near the ends a bound cannot be told from an infinity.
  constexpr int64_t kFar = Range::kMax / 2;
  if (n.offset < -kFar || n.offset > kFar || n.scale == Range::kMin) return;
  wanted = divide_range(shift(wanted, -n.offset), n.scale);
  if (n.form.is_symbol()) return refine(n.form.symbol_id(), wanted);
  if (n.form.is_constant()) return;
  Range known = range(n.form);
  Range narrowed = intersect(known, wanted);
  while (narrowed.min < narrowed.max && excludes(n.form, narrowed.max)) fire(Rule::LearnUnequal), --narrowed.max;
  while (narrowed.min < narrowed.max && excludes(n.form, narrowed.min)) fire(Rule::LearnUnequal), ++narrowed.min;
  if (narrowed == known) return;
  TENON_CHECK(narrowed.min <= narrowed.max, "[assume] expected a value of {} in {}, got {}", n.form.str(), str(known),
              str(wanted));
  if (narrowed.single() && solve(n.form, narrowed.min)) return;
  auto [entry, added] = bounds.emplace(n.form, narrowed);
  entry->second = narrowed;
  if (added) {
    index_form(n.form);
    int32_t newest = n.form.node()->newest_symbol;
    for (const Term& term : decompose(n.form).terms)
      if (facts_are_global || term.monomial.node()->newest_symbol == newest)
        forms_by_term[term.monomial].push_back({n.form, term.coefficient});
  }
  learnt();
  propagate(n.form, narrowed);
  learn_inside(n.form, narrowed);
}

// A bound of something composite says more about what is inside.
void ExprPool::State::learn_inside(Expr form, Range bound) {
  bool below = bound.max != Range::kMax, above = bound.min != Range::kMin;
  std::span<const Expr> args = form.args();
  if (form.op() == Op::Mod && bound.single() && args[1].is_constant() && args[1].constant() > 0)
    known_mods[args[0]].push_back({args[1].constant(), bound.min});
  // A part with the form's newest symbol has its scope.
  auto teach = [&](Rule rule, Expr part, Range range_of_part) {
    if (!facts_are_global && part.node()->newest_symbol != form.node()->newest_symbol) return;
    fire(rule);
    learn_bound(part, range_of_part);
  };
  switch (form.op()) {
    case Op::Min:
    case Op::Max: {
      bool is_max = form.op() == Op::Max;
      if (is_max ? below : above) {
        for (Expr arg : args) {
          if (arg.is_constant()) continue;
          teach(is_max ? Rule::LearnMaxUpper : Rule::LearnMinLower, arg,
                is_max ? Range{Range::kMin, bound.max} : Range{bound.min, Range::kMax});
        }
      }
      // What only one argument can reach, that one does.
      if (!(is_max ? above : below)) break;
      Expr candidate;
      int candidates = 0;
      for (Expr arg : args) {
        if (is_max ? range(arg).max < bound.min : range(arg).min > bound.max) continue;
        candidate = arg;
        ++candidates;
      }
      if (candidates != 1) break;
      teach(is_max ? Rule::LearnMaxLower : Rule::LearnMinUpper, candidate,
            is_max ? Range{bound.min, Range::kMax} : Range{Range::kMin, bound.max});
      break;
    }
    case Op::Abs:
      if (below) teach(Rule::LearnAbs, args[0], {-bound.max, bound.max});
      break;
    case Op::FloorDiv: {
      Expr x = args[0], n = args[1];
      if (!positive(n)) break;
      if (below && bound.max < Range::kMax - 1)
        teach(Rule::LearnFloorDivUpper, add(x, mul(n, constant(bound.max + 1)), -1), {Range::kMin, -1});
      if (above) teach(Rule::LearnFloorDivLower, add(x, mul(n, constant(bound.min)), -1), {0, Range::kMax});
      break;
    }
    case Op::Mul: {
      if (!below || form.node()->opaque) break;
      for (Expr arg : args)
        if (range(arg).min < 1) return;
      for (size_t at = 0; at < args.size(); ++at) {
        if (!args[at].is_symbol()) continue;
        Range others{1, 1};
        for (size_t other = 0; other < args.size(); ++other)
          if (other != at) others = sym::multiply(others, range(args[other]));
        if (others.min <= 1) continue;
        teach(Rule::LearnProduct, args[at], {Range::kMin, bound.max / others.min});
      }
      break;
    }
    default: break;
  }
}

// Narrows symbols of a form by the ranges of the rest: the newest one, or all where facts hold everywhere.
void ExprPool::State::propagate(Expr form, Range bound) {
  Sum sum = decompose(form);
  if (facts_are_global) {
    constexpr size_t kMaxTerms = 8;
    if (sum.terms.size() < 2 || sum.terms.size() > kMaxTerms) return;
    for (const Term& term : sum.terms) {
      if (!term.monomial.is_symbol()) continue;
      Range rest = range(add_raw(form, build(term), -1));
      Range product = sym::add(bound, sym::multiply(rest, {-1, -1}));
      fire(Rule::LearnTerm);
      refine(term.monomial.symbol_id(), divide_range(product, term.coefficient));
    }
    return;
  }
  int32_t newest = form.node()->newest_symbol;
  const Term* own = nullptr;
  for (const Term& term : sum.terms) {
    if (term.monomial.node()->newest_symbol != newest) continue;
    if (own != nullptr || !term.monomial.is_symbol()) return;
    own = &term;
  }
  if (own == nullptr) return;
  Range rest = range(add_raw(form, build(*own), -1));
  Range product = sym::add(bound, sym::multiply(rest, {-1, -1}));
  refine(newest, divide_range(product, own->coefficient));
}

bool ExprPool::State::solve(Expr linear, int64_t value) {
  Sum sum = decompose(linear);
  // A symbol may become an expression of others that are known by the time that it is.
  auto known_at = [&](int32_t id) { return symbols[static_cast<size_t>(id)].from_data ? id : -1; };
  int32_t last = -1;
  for (int32_t id : symbols_of(linear)) last = std::max(last, known_at(id));
  const Term* best = nullptr;
  for (const Term& term : sum.terms) {
    if (!term.monomial.is_symbol() || (term.coefficient != 1 && term.coefficient != -1)) continue;
    int32_t id = term.monomial.symbol_id();
    if (known_at(id) < last || (best != nullptr && best->monomial.symbol_id() > id)) continue;
    bool elsewhere = false;
    for (const Term& other : sum.terms) {
      if (&other == &term || other.monomial.node()->newest_symbol < id) continue;
      std::vector<int32_t> ids = symbols_of(other.monomial);
      elsewhere |= std::binary_search(ids.begin(), ids.end(), id);
    }
    if (!elsewhere) best = &term;
  }
  if (best == nullptr) return false;
  int32_t id = best->monomial.symbol_id();
  Expr rest = add_raw(linear, build(*best), -1);
  Expr solution = mul_raw(constant(best->coefficient), add_raw(constant(value), rest, -1));
  if (solution.node()->opaque) return false;
  if (solution.is_constant()) {
    refine(id, {solution.constant(), solution.constant()});
    return true;
  }
  Range own = symbols[static_cast<size_t>(id)].range;
  refine(id, range(solution));
  solutions.emplace(id, solution);
  learnt();
  relearn(id);
  learn_bound(solution, own);
  if (auto found = excluded.find(best->monomial); found != excluded.end())
    for (int64_t gone : std::vector<int64_t>(found->second)) learn_unequal(solution, gone);
  return true;
}

void ExprPool::State::index_form(Expr form) {
  for (int32_t id : symbols_of(form)) forms_by_symbol[id].push_back(form);
}

// States the facts about a symbol that is solved for in terms of the symbols that are left.
void ExprPool::State::relearn(int32_t solved) {
  auto found = forms_by_symbol.find(solved);
  if (found == forms_by_symbol.end()) return;
  std::vector<Expr> forms = std::exchange(found->second, {});
  std::vector<std::pair<Expr, Range>> old_bounds;
  std::vector<std::pair<Expr, std::vector<int64_t>>> old_excluded;
  for (Expr form : forms) {
    if (auto bound = bounds.find(form); bound != bounds.end()) {
      old_bounds.emplace_back(form, bound->second);
      bounds.erase(bound);
    }
    // Of a lone symbol, `excludes` is asked by its own name.
    if (auto values = excluded.find(form); values != excluded.end() && !form.is_symbol()) {
      old_excluded.emplace_back(form, std::move(values->second));
      excluded.erase(values);
    }
  }
  learnt();
  for (auto& [form, bound] : old_bounds) learn_bound(simplify(form), bound);
  for (auto& [form, values] : old_excluded)
    for (int64_t value : values) learn_unequal(simplify(form), value);
}

void ExprPool::State::learn_equal(Expr linear, int64_t value) {
  if (!solve(linear, value)) learn_bound(linear, {value, value});
}

void ExprPool::State::learn_unequal(Expr linear, int64_t value) {
  Normal n = normal(linear);
  if (n.form.is_constant() || n.offset == Range::kMin) return;
  std::optional<int64_t> shifted = checked_add(value, -n.offset);
  if (!shifted || *shifted % n.scale != 0) return;
  value = *shifted / n.scale;
  if (!excludes(n.form, value)) {
    std::vector<int64_t>& values = excluded[n.form];
    if (values.empty()) index_form(n.form);
    values.push_back(value);
  }
  learnt();
  Range known = range(n.form);
  if (known.min == value)
    learn_bound(n.form, {value + 1, Range::kMax});
  else if (known.max == value)
    learn_bound(n.form, {Range::kMin, value - 1});
}

void ExprPool::State::assume(Expr condition) {
  Expr plain = simplify(as_condition(condition));
  TENON_CHECK(!plain.is_constant(0), "[assume] expected a condition that can hold, got {}",
              condition.is_constant() ? "one that is known to be false" : condition.str() + ", known to be false");
  if (plain.is_constant()) return;
  truths.insert(condition);
  truths.insert(plain);
  std::span<const Expr> args = plain.args();
  switch (plain.op()) {
    case Op::And:
      for (Expr arg : args) assume(arg);
      break;
    case Op::Le: learn_bound(args[0], {Range::kMin, args[1].constant()}); break;
    case Op::Eq: learn_equal(args[0], args[1].constant()); break;
    case Op::Ne: learn_unequal(args[0], args[1].constant()); break;
    case Op::Or: break;
    default: learn_real(plain); break;
  }
  learnt();
}

void ExprPool::refine(Expr symbol, Range range) {
  TENON_ASSERT(&symbol.pool() == this, "{} belongs to another pool", symbol.str());
  state_->refine(symbol.symbol_id(), range);
}

void ExprPool::assume(Expr condition) {
  TENON_ASSERT(&condition.pool() == this, "{} belongs to another pool", condition.str());
  state_->assume(condition);
}

std::optional<bool> ExprPool::known(Expr condition) const {
  TENON_ASSERT(&condition.pool() == this, "{} belongs to another pool", condition.str());
  State& state = *state_;
  condition = state.as_condition(condition);
  Expr plain = state.simplify(condition);
  if (plain.is_constant()) return plain.constant() != 0;
  if (state.truths.contains(condition) || state.truths.contains(plain)) return true;
  Expr negation = state.logical_not(plain);
  if (negation.is_constant(1) || state.truths.contains(negation)) return false;
  return std::nullopt;
}

}  // namespace tenon::sym
