#include "core/effects.h"

#include <tenon/core/random.h>

namespace tenon {

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void Generator::set_state(uint64_t seed, uint64_t offset) {
  if (const core::EffectInterceptor* instead = core::effect_interceptor(); instead && this == &default_generator()) {
    (*instead)({"manual_seed() or set_state() changes the random generator", {}, [=, this](std::span<const Tensor>) {
                  set_state(seed, offset);
                  return std::vector<Tensor>();
                }});
    return;
  }
  std::lock_guard lock(mutex_);
  seed_ = seed;
  offset_ = offset;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace tenon
