// Sums and products of sizes, strides, positions and bytes: an `OverflowError` where 64 bits do not hold the result.
//
// Every such number passes one of three places. `SymInt` checks its own arithmetic, in shape rules and in the user's
// program; an expression of symbols is checked where its value is taken (`sym/program.cpp`); plain numbers come here.
// An operator adds its name and its arguments to what is raised (`dispatch/named_errors.h`).
#pragma once

#include <cstdint>
#include <span>

namespace tenon::checked {

[[noreturn]] void does_not_fit(int64_t a, const char* sign, int64_t b);

inline int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    does_not_fit(a, "+", b);
  return sum;
}

inline int64_t subtract(int64_t a, int64_t b) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference)) [[unlikely]]
    does_not_fit(a, "-", b);
  return difference;
}

inline int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
    does_not_fit(a, "*", b);
  return product;
}

// How many elements a tensor of these sizes has: 0 if one of them is, however large the others.
int64_t element_count(std::span<const int64_t> sizes);

}  // namespace tenon::checked
