#include "support/thread_context.h"

#include <tenon/core/draws.h>
#include <tenon/core/generators.h>
#include <tenon/core/random.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

// The generator that stands in for the default one on this thread; null: none does.
thread_local Generator* chosen = nullptr;

FixedDraws* innermost() { return support::thread_context.get<FixedDraws>(support::ContextSlot::FixedDraws); }

}  // namespace

FixedDraws::FixedDraws(std::span<const Draw> draws) : draws_(draws), before_(innermost()) {
  support::thread_context.set(support::ContextSlot::FixedDraws, this);
}
FixedDraws::~FixedDraws() { support::thread_context.set(support::ContextSlot::FixedDraws, before_); }

NumberedDraws::NumberedDraws(int32_t first) : before_(std::exchange(support::thread_context.next_draw, first)) {}
NumberedDraws::~NumberedDraws() { support::thread_context.next_draw = before_; }

Draw draw_number(int32_t number) {
  if (number < 0) return next_draw();
  const FixedDraws* taken = innermost();
  TENON_ASSERT(taken && static_cast<size_t>(number) < taken->draws_.size(), "draw {} was not taken beforehand", number);
  return taken->draws_[static_cast<size_t>(number)];
}

Draw next_draw() {
  int32_t& next = support::thread_context.next_draw;
  if (chosen) return chosen->next();
  return next < 0 ? default_generator().next() : draw_number(next++);
}

UseGenerator::UseGenerator(Generator& generator) : before_(std::exchange(chosen, &generator)) {}
UseGenerator::~UseGenerator() { chosen = before_; }

}  // namespace tenon
