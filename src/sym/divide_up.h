// Rounding up without passing through a number that is larger than the result.
#pragma once

#include <tenon/sym/sym_int.h>

namespace tenon {

// The least number of pieces of `b` that make up `a`; a >= 0, b >= 1.
inline SymInt divide_up(const SymInt& a, const SymInt& b) {
  if (a.is_symbolic() || b.is_symbolic()) return (a + b - 1) / b;
  return a / b + (a.plain() % b.plain() != 0 ? 1 : 0);
}

}  // namespace tenon
