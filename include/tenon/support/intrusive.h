// Reference counts inside the object, strong and weak, so that a handle is one pointer.
//
//   struct Node : Counted { ... };
//   Ref<Node> node = make_ref<Node>(...);
//   WeakRef<Node> weak(node);
//   if (Ref<Node> again = weak.lock()) { ... }
//
// When the last strong reference goes, `release_resources()` runs; the memory itself stays until the last
// weak reference goes too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace tenon {

class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  virtual ~Counted() = default;

  uint32_t use_count() const { return strong_.load(std::memory_order_acquire); }

 protected:
  // Drops what the object holds. Runs once, before the destructor.
  virtual void release_resources() {}

 private:
  template <typename T>
  friend class Ref;
  template <typename T>
  friend class WeakRef;

  void retain() const { strong_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (strong_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const_cast<Counted*>(this)->release_resources();
    release_weak();
  }
  void retain_weak() const { weak_.fetch_add(1, std::memory_order_relaxed); }
  void release_weak() const {
    if (weak_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool try_retain() const {
    uint32_t count = strong_.load(std::memory_order_relaxed);
    while (count != 0)
      if (strong_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  mutable std::atomic<uint32_t> strong_{0};
  mutable std::atomic<uint32_t> weak_{1};  // all strong references together hold one weak one
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) : Ref(other.get()) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }

  // Takes over a reference that the caller already holds.
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Gives the reference up without dropping it.
  T* detach() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

 private:
  T* object_ = nullptr;
};

template <typename T>
class WeakRef {
 public:
  WeakRef() = default;
  explicit WeakRef(const Ref<T>& ref) : object_(ref.get()) {
    if (object_) object_->retain_weak();
  }
  WeakRef(const WeakRef& other) : object_(other.object_) {
    if (object_) object_->retain_weak();
  }
  WeakRef(WeakRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  WeakRef& operator=(WeakRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~WeakRef() {
    if (object_) object_->release_weak();
  }

  // The object, or nothing if it is gone.
  Ref<T> lock() const { return object_ && object_->try_retain() ? Ref<T>::adopt(object_) : Ref<T>(); }
  bool expired() const { return !object_ || object_->use_count() == 0; }
  // For identity comparison only; the object may be gone.
  const T* address() const { return object_; }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tenon

template <typename T>
struct std::hash<tenon::Ref<T>> {
  size_t operator()(const tenon::Ref<T>& ref) const noexcept { return std::hash<T*>()(ref.get()); }
};
