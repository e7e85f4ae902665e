#include "core/effects.h"

#include <tenon/core/random.h>

#include <pthread.h>

#include <new>

namespace tenon {
namespace {

// Another thread may have held its lock: a copy has a lock of its own.
void free_in_child() {
  Generator& generator = default_generator();
  const Generator copy(generator);
  new (&generator) Generator(copy);
}

}  // namespace

Generator& default_generator() {
  // Never destroyed: static objects may draw while the process ends.
  static auto* generator = [] {
    pthread_atfork(nullptr, nullptr, free_in_child);
    return new Generator;
  }();
  return *generator;
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
