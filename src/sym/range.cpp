// Interval arithmetic. An end at kMin or kMax is infinite; anything beyond an int64_t becomes infinite.
#include "pool.h"
#include "real_math.h"

#include <bit>

namespace tenon::sym {
namespace {

__extension__ using Wide = __int128;

int64_t clamp(Wide value) {
  if (value >= Range::kMax) return Range::kMax;
  if (value <= Range::kMin) return Range::kMin;
  return static_cast<int64_t>(value);
}

// A lower end is never +inf nor an upper end -inf: sums that left int64_t would cancel the infinity of another.
Range bounded(Range r) { return {std::min(r.min, Range::kMax - 1), std::max(r.max, Range::kMin + 1)}; }

bool infinite(int64_t end) { return end == Range::kMin || end == Range::kMax; }
int sign(int64_t x) { return (x > 0) - (x < 0); }

int64_t multiply_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return sign(a) * sign(b) > 0 ? Range::kMax : Range::kMin;
  return clamp(static_cast<Wide>(a) * b);
}

// a / b for b >= 1; an infinite b makes it 0 or -1.
int64_t divide_ends(int64_t a, int64_t b) {
  if (infinite(a)) return b == Range::kMax ? (a > 0 ? Range::kMax : Range::kMin) : a;
  if (b == Range::kMax) return a < 0 ? -1 : 0;
  return divide_floor(a, b);
}

int64_t negate_end(int64_t a) { return a == Range::kMin ? Range::kMax : a == Range::kMax ? Range::kMin : -a; }
Range turn(Range r) { return bounded({negate_end(r.max), negate_end(r.min)}); }

Range unite(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

// A zero divisor has no value, so each sign of the divisor is looked at alone.
Range divide(Range a, Range b);

Range divide_by_positive(Range a, Range b) {
  return {divide_ends(a.min, a.min >= 0 ? b.max : b.min), divide_ends(a.max, a.max >= 0 ? b.min : b.max)};
}

Range divide(Range a, Range b) {
  bool above = b.max >= 1, below = b.min <= -1;
  Range up = above ? divide_by_positive(a, {std::max<int64_t>(b.min, 1), b.max}) : Range();
  Range down = below ? divide_by_positive(turn(a), turn({b.min, std::min<int64_t>(b.max, -1)})) : Range();
  if (above && below) return unite(up, down);
  return above ? up : below ? down : Range();
}

Range modulo_by_positive(Range a, Range b) {
  Range result{0, b.max == Range::kMax ? Range::kMax : b.max - 1};
  if (a.min >= 0) {
    result.max = std::min(result.max, a.max);
    if (a.max < b.min) result.min = a.min;
  }
  return result;
}

Range modulo(Range a, Range b) {
  bool above = b.max >= 1, below = b.min <= -1;
  Range up = above ? modulo_by_positive(a, {std::max<int64_t>(b.min, 1), b.max}) : Range();
  Range down = below ? turn(modulo_by_positive(turn(a), turn({b.min, std::min<int64_t>(b.max, -1)}))) : Range();
  if (above && below) return unite(up, down);
  return above ? up : below ? down : Range();
}

// |base| <= limit, exponent >= 0
int64_t largest_power(int64_t limit, int64_t exponent) {
  int64_t power = 1;
  if (limit <= 1) return 1;
  for (int64_t i = 0; i < exponent; ++i) {
    power = multiply_ends(power, limit);
    if (power == Range::kMax) break;
  }
  return power;
}

// A negative exponent has no value.
Range power(Range base, Range exponent) {
  int64_t most = largest_power(std::max(base.max, negate_end(base.min)), std::max<int64_t>(exponent.max, 0));
  if (base.min < 0) return bounded({negate_end(most), most});
  return bounded({base.min >= 1 ? largest_power(base.min, std::max<int64_t>(exponent.min, 0)) : 0, most});
}

RealRange stored_real_range(Expr expr) {
  const ExprNode& node = *expr.node();
  return {std::bit_cast<double>(node.range.min), std::bit_cast<double>(node.range.max), node.maybe_nan};
}

bool finite(const RealRange& r) { return std::isfinite(r.min) && std::isfinite(r.max); }

// Rounding to nearest is monotone, so the ends of an operation's results are operations on ends.
RealRange corners(Op op, const RealRange& a, const RealRange& b) {
  double ends[] = {apply_binary(op, a.min, b.min), apply_binary(op, a.min, b.max), apply_binary(op, a.max, b.min),
                   apply_binary(op, a.max, b.max)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4), a.maybe_nan || b.maybe_nan};
}

RealRange combine_reals(Op op, const RealRange& a, const RealRange& b) {
  bool maybe_nan = a.maybe_nan || b.maybe_nan;
  switch (op) {
    case Op::RealAdd: return finite(a) && finite(b) ? RealRange{a.min + b.min, a.max + b.max, maybe_nan} : RealRange();
    case Op::RealSub: return finite(a) && finite(b) ? RealRange{a.min - b.max, a.max - b.min, maybe_nan} : RealRange();
    case Op::RealMul: return finite(a) && finite(b) ? corners(op, a, b) : RealRange();
    case Op::RealDiv: return finite(a) && finite(b) && (b.min > 0 || b.max < 0) ? corners(op, a, b) : RealRange();
    case Op::RealMin:
    case Op::RealMax:
      // With a NaN the result may be either operand.
      if (maybe_nan) return {std::min(a.min, b.min), std::max(a.max, b.max), true};
      return {apply_binary(op, a.min, b.min), apply_binary(op, a.max, b.max), false};
    case Op::RealNeg: return {-a.max, -a.min, a.maybe_nan};
    case Op::RealAbs:
      return {a.min <= 0 && a.max >= 0 ? 0 : std::min(std::fabs(a.min), std::fabs(a.max)),
              std::max(std::fabs(a.min), std::fabs(a.max)), a.maybe_nan};
    case Op::Sqrt: return a.min >= 0 ? RealRange{std::sqrt(a.min), std::sqrt(a.max), a.maybe_nan} : RealRange();
    case Op::Exp:
    case Op::Exp2: return {0, std::numeric_limits<double>::infinity(), a.maybe_nan};
    case Op::Sin:
    case Op::Cos: return {-1, 1, a.maybe_nan || !finite(a)};
    case Op::Tanh: return {-1, 1, a.maybe_nan};
    default: return {};
  }
}

}  // namespace

RealRange ExprPool::State::real_range_of_node(Expr expr) {
  std::span<const Expr> args = expr.args();
  if (expr.is_real_constant()) {
    double value = expr.real_constant();
    return std::isnan(value) ? RealRange() : RealRange{value, value, false};
  }
  if (expr.is_symbol()) return {};
  if (expr.op() == Op::ToReal) {
    // An unbounded integer is still one of 64 bits.
    Range inner = args[0].node()->range;
    return {static_cast<double>(inner.min), static_cast<double>(inner.max), false};
  }
  return combine_reals(expr.op(), stored_real_range(args[0]), stored_real_range(args[args.size() - 1]));
}

Range add(Range a, Range b) {
  auto ends = [](int64_t x, int64_t y) { return infinite(x) ? x : infinite(y) ? y : clamp(static_cast<Wide>(x) + y); };
  return bounded({ends(a.min, b.min), ends(a.max, b.max)});
}

Range multiply(Range a, Range b) {
  int64_t ends[] = {multiply_ends(a.min, b.min), multiply_ends(a.min, b.max), multiply_ends(a.max, b.min),
                    multiply_ends(a.max, b.max)};
  return bounded({*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)});
}

Range intersect(Range a, Range b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

std::string str(Range range) {
  std::string low = range.min == Range::kMin ? "(-inf" : fmt::format("[{}", range.min);
  std::string high = range.max == Range::kMax ? "inf)" : fmt::format("{}]", range.max);
  return low + ", " + high;
}

template <typename Of, typename OfReal>
Range ExprPool::State::combine_ranges(Expr expr, const Of& of, const OfReal& of_real) {
  std::span<const Expr> args = expr.args();
  Range result;
  switch (expr.op()) {
    case Op::Add:
      result = of(args[0]);
      for (Expr arg : args.subspan(1)) result = sym::add(result, of(arg));
      break;
    case Op::Mul: {
      result = {1, 1};
      for (size_t i = 0; i < args.size();) {
        Range factor = of(args[i]);
        // Squares are the only correlation inside a product.
        if (++i < args.size() && args[i] == args[i - 1]) {
          factor = sym::multiply(factor, factor);
          factor.min = std::max<int64_t>(factor.min, 0);
          ++i;
        }
        result = sym::multiply(result, factor);
      }
      break;
    }
    case Op::FloorDiv: result = divide(of(args[0]), of(args[1])); break;
    case Op::Mod: result = modulo(of(args[0]), of(args[1])); break;
    case Op::Min:
    case Op::Max:
      result = of(args[0]);
      for (Expr arg : args.subspan(1)) {
        Range other = of(arg);
        result = expr.op() == Op::Min ? Range{std::min(result.min, other.min), std::min(result.max, other.max)}
                                      : Range{std::max(result.min, other.min), std::max(result.max, other.max)};
      }
      break;
    case Op::Abs: {
      Range inner = of(args[0]), turned = turn(inner);
      bool either = inner.min < 0 && inner.max > 0;
      result = {either ? 0 : std::max(inner.min, turned.min), std::max(inner.max, turned.max)};
      break;
    }
    case Op::Pow: result = power(of(args[0]), of(args[1])); break;
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc: {
      RealRange real = of_real(args[0]);
      // Beyond 64 bits there is no value.
      if (!apply_rounding(expr.op(), real.min, result.min)) result.min = Range::kMin;
      if (!apply_rounding(expr.op(), real.max, result.max)) result.max = Range::kMax;
      break;
    }
    default: return {0, 1};
  }
  return result;
}

Range ExprPool::State::range_of_node(Expr expr) {
  if (expr.is_constant()) {
    // The largest numbers are no infinities.
    int64_t value = expr.constant();
    return {value == Range::kMax ? value - 1 : value, value == Range::kMin ? value + 1 : value};
  }
  if (expr.is_symbol()) {
    Range result = symbols[static_cast<size_t>(expr.symbol_id())].range;
    if (auto found = solutions.find(expr.symbol_id()); found != solutions.end())
      result = intersect(result, range(found->second));
    return bounded(result);
  }
  // The arguments are fresh: `range` visits them first.
  Range result =
      combine_ranges(expr, [](Expr arg) { return arg.node()->range; }, [](Expr arg) { return stored_real_range(arg); });
  if (expr.is_boolean()) return result;
  if (!bounds.empty() && !expr.node()->opaque) {
    Normal n = normal(expr);
    if (auto found = bounds.find(n.form); found != bounds.end()) {
      Range known = sym::multiply(found->second, {n.scale, n.scale});
      result = intersect(result, sym::add(known, {n.offset, n.offset}));
    }
  }
  return result;
}

Range ExprPool::State::range(Expr expr) {
  post_order(
      expr, [this](Expr e) { return e.node()->range_epoch != epoch; },
      [this](Expr e) {
        // Reached twice when an argument appears twice on the stack's path.
        if (e.node()->range_epoch == epoch) return;
        if (e.is_real()) {
          RealRange result = real_range_of_node(e);
          e.node()->range = {std::bit_cast<int64_t>(result.min), std::bit_cast<int64_t>(result.max)};
          e.node()->maybe_nan = result.maybe_nan;
        } else {
          Range result = range_of_node(e);
          e.node()->range = result;
        }
        e.node()->range_epoch = epoch;
      });
  return expr.node()->range;
}

Range ExprPool::State::ordinary_range(Expr expr) {
  constexpr int64_t kMaxSize = int64_t{1} << 48;  // more elements than an address space has bytes
  std::unordered_map<Expr, Range> known;
  auto of = [&known](Expr e) { return known.at(e); };
  auto of_real = [this](Expr e) { return real_range(e); };
  post_order(
      expr, [&](Expr e) { return !e.is_real() && !known.contains(e); },
      [&](Expr e) {
        if (known.contains(e)) return;
        Range result = range(e);
        if (e.is_symbol()) {
          if (symbols[static_cast<size_t>(e.symbol_id())].size) result = intersect(result, {Range::kMin, kMaxSize});
        } else if (!e.is_constant() && !e.node()->opaque) {
          result = intersect(result, combine_ranges(e, of, of_real));
        }
        known.emplace(e, result);
      });
  return known.at(expr);
}

RealRange ExprPool::State::real_range(Expr expr) {
  range(expr);
  return stored_real_range(expr);
}

Range ExprPool::range(Expr expr) const {
  TENON_ASSERT(&expr.pool() == this, "{} belongs to another pool", expr.str());
  TENON_ASSERT(!expr.is_real(), "{} is real", expr.str());
  return state_->range(expr);
}

RealRange ExprPool::real_range(Expr expr) const {
  TENON_ASSERT(&expr.pool() == this, "{} belongs to another pool", expr.str());
  TENON_ASSERT(expr.is_real(), "{} is not real", expr.str());
  return state_->real_range(expr);
}

}  // namespace tenon::sym
