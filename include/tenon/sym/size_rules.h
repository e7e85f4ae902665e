// How shape rules ask about sizes.
//
// Sizes with a hint are decided, and guarded, as everywhere. A size from data (unbacked) has no answer yet, and a rule
// must not break the capture over it: such a size counts as neither 0 nor 1, and what a valid call needs is asserted
// (`ShapeEnv::check`) instead of asked: where `u0` must be `s0`, the plan checks that it is, and `s0` stands for it
// from there on.
#pragma once

#include <tenon/sym/sym_int.h>

namespace tenon {

// Known to be that number; asks nothing.
inline bool is_one(const SymInt& size) { return size.is_symbolic() ? statically_true(size == 1) : size.plain() == 1; }
inline bool is_zero(const SymInt& size) { return size.is_symbolic() ? statically_true(size == 0) : size.plain() == 0; }

// Whether a condition holds that every valid call meets. If it depends on data, it does from here on.
bool expect(const SymBool& condition);
// The answer, or `otherwise` if it depends on data. Where either choice is right and one is better.
bool decide_or(const SymBool& condition, bool otherwise);
// The same, but values from data are first supposed to be at least 2. For the order of dimensions and the like: what is
// supposed is not asserted.
bool decide_likely(const SymBool& condition, bool otherwise);
// The same for a choice that has to be made some way: with values from data that are small, and the sizes at hand.
bool decide_typically(const SymBool& condition);

// Known to be 1; or 1 at this call beside a size from data: as that counts as not 1, it is 1 from here on.
bool counts_as_one(const SymInt& size, const SymInt& beside);
// Whether a dimension that somebody asks to be another size is 1 and stretches: one from data that is at most 1 does,
// because it counts as not 0.
bool is_stretched(const SymInt& size, const SymInt& to);
// Whether two sizes agree.
inline bool same_size(const SymInt& a, const SymInt& b) {
  return !a.is_symbolic() && !b.is_symbolic() ? a.plain() == b.plain() : a.same(b) || expect(a == b);
}
// Whether a dimension of size `from` stands for one of size `to`: it is that size, or 1. The latter is asked only where
// the former does not hold, so that a size which happens to be 1 is not fixed to it without need.
bool broadcasts_to(const SymInt& from, const SymInt& to);
// Of two sizes that agree, the one that is better known: a number, then a size with a hint.
const SymInt& better_known(const SymInt& a, const SymInt& b);
// Whether a number may be a size: at least 0.
inline bool may_be_size(const SymInt& number) {
  return number.is_symbolic() ? expect(number >= 0) : number.plain() >= 0;
}
// A size that is given as -1, "whatever fits".
inline bool is_left_open(const SymInt& size) {
  return size.is_symbolic() ? decide_or(size == -1, false) : size.plain() == -1;
}

// An index or a slice's bound that counts from the end if it is negative; an expression of both if data tells.
SymInt from_the_end(const SymInt& index, const SymInt& size);
// `value` within [low, high]; likewise.
SymInt clamp(const SymInt& value, const SymInt& low, const SymInt& high);

}  // namespace tenon
