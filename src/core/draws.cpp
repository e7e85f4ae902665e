#include <tenon/core/draws.h>
#include <tenon/core/random.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

thread_local FixedDraws* innermost = nullptr;
thread_local int32_t next_number = -1;

}  // namespace

FixedDraws::FixedDraws(std::span<const Draw> draws) : draws_(draws), before_(std::exchange(innermost, this)) {}
FixedDraws::~FixedDraws() { innermost = before_; }

NumberedDraws::NumberedDraws(int32_t first) : before_(std::exchange(next_number, first)) {}
NumberedDraws::~NumberedDraws() { next_number = before_; }

Draw draw_number(int32_t number) {
  if (number < 0) return next_draw();
  TENON_ASSERT(innermost && static_cast<size_t>(number) < innermost->draws_.size(), "draw {} was not taken beforehand",
               number);
  return innermost->draws_[static_cast<size_t>(number)];
}

Draw next_draw() { return next_number < 0 ? default_generator().next() : draw_number(next_number++); }

}  // namespace tenon
