// Interval arithmetic. An end at kMin or kMax is infinite; anything beyond an int64_t becomes infinite.
#include "pool.h"

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
Range negate(Range r) { return bounded({negate_end(r.max), negate_end(r.min)}); }

Range unite(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

// A zero divisor has no value, so each sign of the divisor is looked at alone.
Range divide(Range a, Range b);

Range divide_by_positive(Range a, Range b) {
  return {divide_ends(a.min, a.min >= 0 ? b.max : b.min), divide_ends(a.max, a.max >= 0 ? b.min : b.max)};
}

Range divide(Range a, Range b) {
  bool above = b.max >= 1, below = b.min <= -1;
  Range up = above ? divide_by_positive(a, {std::max<int64_t>(b.min, 1), b.max}) : Range();
  Range down = below ? divide_by_positive(negate(a), negate({b.min, std::min<int64_t>(b.max, -1)})) : Range();
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
  Range down = below ? negate(modulo_by_positive(negate(a), negate({b.min, std::min<int64_t>(b.max, -1)}))) : Range();
  if (above && below) return unite(up, down);
  return above ? up : below ? down : Range();
}

}  // namespace

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

Range ExprPool::State::range_of_node(Expr expr) {
  std::span<const Expr> args = expr.args();
  // The arguments are fresh: `range` visits them first.
  auto of = [](Expr arg) { return arg.node()->range; };
  Range result;
  switch (expr.op()) {
    case Op::Constant: {
      // The largest numbers are no infinities.
      int64_t value = expr.constant();
      return {value == Range::kMax ? value - 1 : value, value == Range::kMin ? value + 1 : value};
    }
    case Op::Symbol: {
      result = symbols[static_cast<size_t>(expr.symbol_id())].range;
      if (auto found = solutions.find(expr.symbol_id()); found != solutions.end())
        result = intersect(result, range(found->second));
      return bounded(result);
    }
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
    default: return {0, 1};
  }
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
        Range result = range_of_node(e);
        e.node()->range = result;
        e.node()->range_epoch = epoch;
      });
  return expr.node()->range;
}

Range ExprPool::range(Expr expr) const {
  TENON_ASSERT(&expr.pool() == this, "{} belongs to another pool", expr.str());
  return state_->range(expr);
}

}  // namespace tenon::sym
