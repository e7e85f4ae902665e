// The random generator: a seed and an offset. A random operator is a function of both and of the element's position, so
// that recomputing it repeats it; each use advances the offset.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

namespace tenon {

//   Generator generator(7);
//   auto [seed, offset] = generator.next();           // (7, 0)
//   uint64_t following = generator.offset();          // 1
//   generator.set_state(generator.seed(), 0);         // once more from there
//   generator.manual_seed(8);
class Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721ull) : seed_(seed) {}
  Generator(const Generator& other) : seed_(other.seed_), offset_(other.offset_) {}

  void manual_seed(uint64_t seed) { set_state(seed, 0); }
  uint64_t seed() const { return seed_; }
  uint64_t offset() const { return offset_; }
  // The seed and a fresh offset for one use.
  std::pair<uint64_t, uint64_t> next() {
    std::lock_guard lock(mutex_);
    return {seed_, offset_++};
  }
  // Of the default generator, inside a compiled function: happens at every call, in its place.
  void set_state(uint64_t seed, uint64_t offset);

 private:
  std::mutex mutex_;
  uint64_t seed_, offset_ = 0;
};

// The generator that operators use.
//
//   manual_seed(1);
//   Tensor noise = randn({2});
//   default_generator().manual_seed(1);  // the same: randn({2}) is `noise` again
Generator& default_generator();
void manual_seed(uint64_t seed);

}  // namespace tenon
