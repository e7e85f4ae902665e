// A vector whose first N elements live inside it: sizes, strides and argument lists almost never allocate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace tenon {

template <typename T, size_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  // By way of the default constructor, so that the destructor runs should an element throw.
  explicit SmallVector(size_t count, const T& value = T()) : SmallVector() { resize(count, value); }
  SmallVector(std::initializer_list<T> items) : SmallVector(items.begin(), items.end()) {}
  explicit SmallVector(std::span<const T> items) : SmallVector(items.begin(), items.end()) {}
  template <std::input_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      reserve(other.size_);
      for (const T& item : other) push_back(item);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      destroy();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { destroy(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  void reserve(size_t wanted) {
    if (wanted > capacity_) grow(wanted);
  }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      // Built before growing: an argument may live inside this vector.
      T made(std::forward<Args>(args)...);
      grow(size_ + 1);
      new (data_ + size_) T(std::move(made));
    } else {
      new (data_ + size_) T(std::forward<Args>(args)...);
    }
    return data_[size_++];  // counted only once it exists: its constructor may throw
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  void pop_back() { data_[--size_].~T(); }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void resize(size_t count, const T& value = T()) {
    if (count > capacity_) {
      T kept = value;  // it may live inside this vector
      grow(count);
      while (size_ < count) emplace_back(kept);
      return;
    }
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back(value);
  }
  T* insert(const T* where, T item) {
    size_t at = static_cast<size_t>(where - data_);
    push_back(std::move(item));
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
    return data_ + at;
  }
  T* erase(const T* where) {
    size_t at = static_cast<size_t>(where - data_);
    std::move(data_ + at + 1, data_ + size_, data_ + at);
    pop_back();
    return data_ + at;
  }

  bool operator==(const SmallVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  T* inline_data() { return std::launder(reinterpret_cast<T*>(inline_)); }

  void grow(size_t wanted) {
    size_t capacity = std::max(wanted, capacity_ * 2);
    T* bigger = static_cast<T*>(::operator new(capacity * sizeof(T), std::align_val_t(alignof(T))));
    std::uninitialized_move_n(data_, size_, bigger);
    std::destroy_n(data_, size_);
    free_heap();
    data_ = bigger;
    capacity_ = capacity;
  }
  void free_heap() {
    if (data_ != inline_data()) ::operator delete(data_, std::align_val_t(alignof(T)));
  }
  void destroy() {
    clear();
    free_heap();
    data_ = inline_data();
    capacity_ = N;
  }
  // Expects this vector to be empty and inline.
  void take(SmallVector& other) {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    } else {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    }
  }

  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
  T* data_ = inline_data();
};

}  // namespace tenon
