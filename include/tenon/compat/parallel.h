// Loops over ranges and threads, under libtorch's names.
#pragma once

#include <tenon/support/parallel.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace at {

template <typename F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& body) {
  if (begin >= end) return;
  tenon::parallel_for(end - begin, std::max<int64_t>(grain_size, 1),
                      [&](int64_t first, int64_t last) { body(begin + first, begin + last); });
}
// Parts of the range are folded each for itself, then their results with each other, in order.
template <typename T, typename F, typename Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t, T identity, const F& body, const Combine& combine) {
  return begin >= end ? identity : combine(identity, body(begin, end, identity));
}
inline int get_num_threads() { return tenon::num_threads(); }
inline void set_num_threads(int count) { tenon::set_num_threads(count); }
inline bool in_parallel_region() { return false; }
inline int get_thread_num() { return 0; }
namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;
}
inline int64_t divup(int64_t a, int64_t b) { return (a + b - 1) / b; }

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
