#include "facts.h"

namespace tenon::loop {

void assume_loop(sym::ExprPool& pool, sym::Expr index, sym::Expr extent) {
  if (!extent.is_constant()) {
    const sym::Expr counts = ge(extent, pool.constant(0));
    if (!pool.known(counts).has_value()) pool.assume(counts);
  }
  const sym::Range range = pool.range(extent);
  if (range.max != sym::Range::kMax && range.max > 0) pool.refine(index, {0, range.max - 1});
  // Where the index can only be 0, what is left would be said of the extent, and hold outside of the loop as well. But
  // there it may be 0.
  if (pool.range(index).single()) return;
  // A loop that never runs teaches nothing: its condition is a contradiction.
  const sym::Expr inside = lt(index, extent);
  if (!pool.known(inside).has_value()) pool.assume(inside);
}

}  // namespace tenon::loop
