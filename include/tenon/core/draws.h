// Random numbers that were drawn beforehand.
//
// A random operator is a function of a draw: the generator's seed and an offset of its own. A compiled function takes
// all draws of its program before it runs, in program order, so that they are eager's whatever is fused, reordered or
// dead; what runs later finds its draw by number.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace tenon {

using Draw = std::pair<uint64_t, uint64_t>;  // seed, offset

// While one lives, draws with a number on this thread are these; the innermost holds. The caller keeps them.
class FixedDraws {
 public:
  explicit FixedDraws(std::span<const Draw> draws);
  ~FixedDraws();
  FixedDraws(const FixedDraws&) = delete;
  FixedDraws& operator=(const FixedDraws&) = delete;

 private:
  friend Draw draw_number(int32_t);
  friend Draw next_draw();
  std::span<const Draw> draws_;
  FixedDraws* before_;
};

// While one lives, `next_draw` on this thread gives the draw of that number, and then those behind it.
class NumberedDraws {
 public:
  explicit NumberedDraws(int32_t first);
  ~NumberedDraws();
  NumberedDraws(const NumberedDraws&) = delete;
  NumberedDraws& operator=(const NumberedDraws&) = delete;

 private:
  int32_t before_;
};

// The draw of that number; of -1: the next one.
Draw draw_number(int32_t number);
// For a use without a number: the generator's, unless a `NumberedDraws` lives.
Draw next_draw();

}  // namespace tenon
