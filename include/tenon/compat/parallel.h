// Loops over ranges and threads, under libtorch's names.
#pragma once

#include <tenon/support/parallel.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace at {

namespace compat {
// The range that the thread runs: its number among those of the loop, and whether it runs one at all.
struct Region {
  int number = 0;
  bool inside = false;
};
inline thread_local Region region;
class EnterRegion {
 public:
  explicit EnterRegion(int number) { region = {number, true}; }
  ~EnterRegion() { region = before_; }
  EnterRegion(const EnterRegion&) = delete;

 private:
  Region before_ = region;
};
// [begin, end) in at most as many parts as there are threads, none smaller than the grain but the last.
struct Parts {
  int64_t count, size;
  Parts(int64_t begin, int64_t end, int64_t grain) {
    const int64_t all = end - begin, least = std::max<int64_t>(grain, 1);
    const int64_t wanted = std::min<int64_t>(tenon::num_threads(), (all + least - 1) / least);
    size = (all + wanted - 1) / wanted;
    count = (all + size - 1) / size;
  }
};
}  // namespace compat

inline int get_num_threads() { return tenon::num_threads(); }
inline void set_num_threads(int count) { tenon::set_num_threads(count); }
inline bool in_parallel_region() { return compat::region.inside; }
// Below get_num_threads(), and no two ranges of a loop that run at once have the same: buffers of one's own are found
// by it.
inline int get_thread_num() { return compat::region.number; }

// A loop inside of another's body runs on the thread that it is met on.
template <typename F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& body) {
  if (begin >= end) return;
  const compat::Parts parts(begin, end, grain_size);
  if (in_parallel_region() || parts.count == 1) {
    compat::EnterRegion inside(get_thread_num());
    body(begin, end);
    return;
  }
  tenon::parallel_for(parts.count, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      compat::EnterRegion inside(static_cast<int>(part));
      body(begin + part * parts.size, std::min(end, begin + (part + 1) * parts.size));
    }
  });
}
// Parts of the range are folded each for itself, then their results with each other, in order.
template <typename T, typename F, typename Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain_size, T identity, const F& body, const Combine& combine) {
  if (begin >= end) return identity;
  const compat::Parts parts(begin, end, grain_size);
  if (in_parallel_region() || parts.count == 1) {
    compat::EnterRegion inside(get_thread_num());
    return body(begin, end, identity);
  }
  struct Result {  // bits of a std::vector<bool> cannot be written at once
    T value;
  };
  std::vector<Result> results(static_cast<size_t>(parts.count), Result{identity});
  parallel_for(0, parts.count, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part)
      results[static_cast<size_t>(part)].value =
          body(begin + part * parts.size, std::min(end, begin + (part + 1) * parts.size), identity);
  });
  T folded = identity;
  for (const Result& each : results) folded = combine(folded, each.value);
  return folded;
}
namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;
}
inline int64_t divup(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline void lazy_init_num_threads() {}

}  // namespace at

namespace c10 {

// for (auto i : c10::irange(n))
template <typename T>
class IntegerRange {
 public:
  struct Iterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;
    T value;
    T operator*() const { return value; }
    Iterator& operator++() {
      ++value;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  IntegerRange(T begin, T end) : begin_(begin), end_(std::max(begin, end)) {}
  Iterator begin() const { return {begin_}; }
  Iterator end() const { return {end_}; }

 private:
  T begin_, end_;
};
template <typename T>
IntegerRange<T> irange(T end) {
  return {T(0), end};
}
template <typename A, typename B>
IntegerRange<B> irange(A begin, B end) {
  return {static_cast<B>(begin), end};
}

}  // namespace c10
