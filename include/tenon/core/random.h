// The random generator: a seed and an offset. A random operator is a function of both and of the element's position, so that
// recomputing it repeats it; each use advances the offset.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

namespace tenon {

class Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721ull) : seed_(seed) {}
  Generator(const Generator& other) : seed_(other.seed_), offset_(other.offset_) {}

  void manual_seed(uint64_t seed) {
    std::lock_guard lock(mutex_);
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t seed() const { return seed_; }
  uint64_t offset() const { return offset_; }
  // The seed and a fresh offset for one use.
  std::pair<uint64_t, uint64_t> next() {
    std::lock_guard lock(mutex_);
    return {seed_, offset_++};
  }
  void set_state(uint64_t seed, uint64_t offset) {
    std::lock_guard lock(mutex_);
    seed_ = seed;
    offset_ = offset;
  }

 private:
  std::mutex mutex_;
  uint64_t seed_, offset_ = 0;
};

// The generator that operators use.
Generator& default_generator();
void manual_seed(uint64_t seed);

}  // namespace tenon
