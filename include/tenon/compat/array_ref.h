// Lists as libtorch's functions take them: a pointer and a length into somebody else's elements.
#pragma once

#include <tenon/core/lists.h>
#include <tenon/support/error.h>
#include <tenon/sym/sym_int.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <span>
#include <type_traits>
#include <vector>

namespace c10 {

template <typename T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;
  using reverse_iterator = std::reverse_iterator<iterator>;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(std::nullopt_t) = delete;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& list)
    requires(!std::is_same_v<T, bool>)
      : data_(list.data()), size_(list.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&list)[N]) : data_(list), size_(N) {}
  ArrayRef(std::span<const T> list) : data_(list.data()), size_(list.size()) {}
  template <size_t N>
  ArrayRef(const tenon::SmallVector<T, N>& list) : data_(list.data()), size_(list.size()) {}
  // Good for the call that it is an argument of.
  constexpr ArrayRef(const std::initializer_list<T>& list) : size_(list.size()) { data_ = list.begin(); }

  constexpr iterator begin() const { return data_; }
  constexpr iterator end() const { return data_ + size_; }
  constexpr const_iterator cbegin() const { return data_; }
  constexpr const_iterator cend() const { return data_ + size_; }
  reverse_iterator rbegin() const { return reverse_iterator(end()); }
  reverse_iterator rend() const { return reverse_iterator(begin()); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  constexpr const T& operator[](size_t at) const { return data_[at]; }
  const T& at(size_t at) const {
    TENON_CHECK_INDEX(at < size_, "[ArrayRef] expected a position below {}, got {}", size_, at);
    return data_[at];
  }
  bool equals(ArrayRef other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  bool allMatch(const auto& predicate) const { return std::all_of(begin(), end(), predicate); }
  ArrayRef slice(size_t first, size_t count) const {
    TENON_CHECK_INDEX(first <= size_ && count <= size_ - first,
                      "[ArrayRef] expected a slice of {} elements, got {} + {}", size_, first, count);
    return {data_ + first, count};
  }
  ArrayRef slice(size_t first) const { return slice(first, size_ - std::min(first, size_)); }
  ArrayRef drop_front(size_t count = 1) const { return slice(count); }
  ArrayRef drop_back(size_t count = 1) const { return slice(0, size_ - std::min(count, size_)); }
  std::vector<T> vec() const { return {begin(), end()}; }

  operator std::span<const T>() const { return {data_, size_}; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <typename T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(b);
}
template <typename T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return b.equals(a);
}
template <typename T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  out << "[";
  for (size_t at = 0; at < list.size(); ++at) out << (at ? ", " : "") << list[at];
  return out << "]";
}

using IntArrayRef = ArrayRef<int64_t>;
template <typename T>
ArrayRef<T> makeArrayRef(const std::vector<T>& list) {
  return list;
}
template <typename T>
ArrayRef<T> makeArrayRef(const T* data, size_t size) {
  return {data, size};
}

// A list of plain numbers that may be left out.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef list) : list_(list) {}
  OptionalIntArrayRef(const std::vector<int64_t>& list) : list_(list) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& list) : list_(IntArrayRef(list)) {}
  OptionalIntArrayRef(const std::optional<IntArrayRef>& list) : list_(list) {}
  template <std::integral T>
  OptionalIntArrayRef(T one) : one_(static_cast<int64_t>(one)), single_(true) {}
  bool has_value() const { return single_ || list_.has_value(); }
  explicit operator bool() const { return has_value(); }
  IntArrayRef value() const { return single_ ? IntArrayRef(one_) : list_.value(); }
  IntArrayRef operator*() const { return value(); }
  const IntArrayRef* operator->() const { return list_.operator->(); }

 private:
  std::optional<IntArrayRef> list_;
  int64_t one_ = 0;
  bool single_ = false;
};

// Sizes, plain or symbolic, in whatever form they are at hand.
class SizesArg {
 public:
  SizesArg(std::initializer_list<tenon::SymInt> list) : list_(list.begin(), list.end()) {}
  SizesArg(IntArrayRef list) : list_(list.begin(), list.end()) {}
  SizesArg(ArrayRef<tenon::SymInt> list) : list_(list.begin(), list.end()) {}
  SizesArg(const std::vector<int64_t>& list) : list_(list.begin(), list.end()) {}
  SizesArg(const std::vector<tenon::SymInt>& list) : list_(list.begin(), list.end()) {}
  SizesArg(tenon::SymInts list) : list_(std::move(list)) {}
  template <size_t N>
  SizesArg(const tenon::SmallVector<int64_t, N>& list) : list_(list.begin(), list.end()) {}
  template <size_t N>
  SizesArg(const std::array<int64_t, N>& list) : list_(list.begin(), list.end()) {}
  template <std::integral T>
  SizesArg(T one) : list_{tenon::SymInt(one)} {}
  operator const tenon::SymInts&() const { return list_; }

 private:
  tenon::SymInts list_;
};

}  // namespace c10
