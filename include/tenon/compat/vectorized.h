// `at::vec::Vectorized<T>`: a few elements that are computed with at once, by plain loops that the compiler makes
// vectors of. What libtorch writes for each instruction set is written once here.
#pragma once

#include <tenon/compat/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace at::vec {

template <typename T>
class Vectorized {
 public:
  using value_type = T;
  using size_type = int;
  static constexpr size_type size() { return static_cast<size_type>(64 / sizeof(T)); }

  Vectorized() = default;
  Vectorized(T value) { values_.fill(value); }
  template <typename... Rest>
    requires(sizeof...(Rest) + 2 == 64 / sizeof(T))
  Vectorized(T first, T second, Rest... rest) : values_{first, second, static_cast<T>(rest)...} {}

  // The first `count` from memory, zeros behind them.
  static Vectorized loadu(const void* from, int64_t count = size()) {
    Vectorized made;
    std::memcpy(static_cast<void*>(made.values_.data()), from,
                static_cast<size_t>(std::min<int64_t>(count, size())) * sizeof(T));
    return made;
  }
  void store(void* to, int64_t count = size()) const {
    std::memcpy(to, static_cast<const void*>(values_.data()),
                static_cast<size_t>(std::min<int64_t>(count, size())) * sizeof(T));
  }
  // base, base + step, base + 2 · step, …
  template <typename Step = T>
  static Vectorized arange(T base = 0, Step step = 1) {
    return made_of([&](size_t at) { return static_cast<T>(base + static_cast<T>(at) * step); });
  }
  // The first `count` of b, then those of a.
  static Vectorized set(const Vectorized& a, const Vectorized& b, int64_t count = size()) {
    return made_of([&](size_t at) { return static_cast<int64_t>(at) < count ? b[at] : a[at]; });
  }
  // b where the mask is set.
  static Vectorized blendv(const Vectorized& a, const Vectorized& b, const Vectorized& mask) {
    return made_of([&](size_t at) { return is_set(mask[at]) ? b[at] : a[at]; });
  }
  template <int64_t kMask>
  static Vectorized blend(const Vectorized& a, const Vectorized& b) {
    return made_of([&](size_t at) { return kMask >> at & 1 ? b[at] : a[at]; });
  }

  const T& operator[](size_t at) const { return values_[at]; }
  T& operator[](size_t at) { return values_[at]; }
  Vectorized map(T (*function)(T)) const {
    return made_of([&](size_t at) { return function(values_[at]); });
  }

#define TENON_COMPAT_FUNCTION_(name)                                                  \
  Vectorized name() const {                                                           \
    return made_of([&](size_t at) { return static_cast<T>(std::name(number(at))); }); \
  }
  TENON_COMPAT_FUNCTION_(acos)
  TENON_COMPAT_FUNCTION_(asin)
  TENON_COMPAT_FUNCTION_(atan)
  TENON_COMPAT_FUNCTION_(ceil)
  TENON_COMPAT_FUNCTION_(cos)
  TENON_COMPAT_FUNCTION_(cosh)
  TENON_COMPAT_FUNCTION_(erf)
  TENON_COMPAT_FUNCTION_(erfc)
  TENON_COMPAT_FUNCTION_(exp)
  TENON_COMPAT_FUNCTION_(exp2)
  TENON_COMPAT_FUNCTION_(expm1)
  TENON_COMPAT_FUNCTION_(floor)
  TENON_COMPAT_FUNCTION_(lgamma)
  TENON_COMPAT_FUNCTION_(log)
  TENON_COMPAT_FUNCTION_(log10)
  TENON_COMPAT_FUNCTION_(log1p)
  TENON_COMPAT_FUNCTION_(log2)
  TENON_COMPAT_FUNCTION_(sin)
  TENON_COMPAT_FUNCTION_(sinh)
  TENON_COMPAT_FUNCTION_(sqrt)
  TENON_COMPAT_FUNCTION_(tan)
  TENON_COMPAT_FUNCTION_(tanh)
  TENON_COMPAT_FUNCTION_(trunc)
#undef TENON_COMPAT_FUNCTION_
  Vectorized exp_u20() const { return exp(); }
  Vectorized round() const {
    return made_of([&](size_t at) { return static_cast<T>(std::nearbyint(number(at))); });
  }
  Vectorized abs() const {
    return made_of([&](size_t at) { return values_[at] < T(0) ? static_cast<T>(-values_[at]) : values_[at]; });
  }
  Vectorized neg() const {
    return made_of([&](size_t at) { return static_cast<T>(-values_[at]); });
  }
  Vectorized reciprocal() const { return Vectorized(T(1)) / *this; }
  Vectorized rsqrt() const { return sqrt().reciprocal(); }
  Vectorized frac() const { return *this - trunc(); }
  Vectorized pow(const Vectorized& exponent) const {
    return made_of([&](size_t at) { return static_cast<T>(std::pow(number(at), exponent.number(at))); });
  }
  Vectorized isnan() const {
    return made_of([&](size_t at) { return mask(values_[at] != values_[at]); });
  }
  int zero_mask() const {
    int bits = 0;
    for (size_t at = 0; at < values_.size(); ++at) bits |= (values_[at] == T(0) ? 1 : 0) << at;
    return bits;
  }

// Masks, all bits of an element or none.
#define TENON_COMPAT_COMPARISON_(sign)                                           \
  Vectorized operator sign(const Vectorized& other) const {                      \
    return made_of([&](size_t at) { return mask(values_[at] sign other[at]); }); \
  }
  TENON_COMPAT_COMPARISON_(==)
  TENON_COMPAT_COMPARISON_(!=)
  TENON_COMPAT_COMPARISON_(<)
  TENON_COMPAT_COMPARISON_(<=)
  TENON_COMPAT_COMPARISON_(>)
  TENON_COMPAT_COMPARISON_(>=)
#undef TENON_COMPAT_COMPARISON_
// The same as ones and zeros.
#define TENON_COMPAT_COMPARISON_(name, sign)                                             \
  Vectorized name(const Vectorized& other) const {                                       \
    return made_of([&](size_t at) { return values_[at] sign other[at] ? T(1) : T(0); }); \
  }
  TENON_COMPAT_COMPARISON_(eq, ==)
  TENON_COMPAT_COMPARISON_(ne, !=)
  TENON_COMPAT_COMPARISON_(lt, <)
  TENON_COMPAT_COMPARISON_(le, <=)
  TENON_COMPAT_COMPARISON_(gt, >)
  TENON_COMPAT_COMPARISON_(ge, >=)
#undef TENON_COMPAT_COMPARISON_

  template <typename F>
  static Vectorized made_of(F element) {
    Vectorized made;
    for (size_t at = 0; at < made.values_.size(); ++at) made.values_[at] = element(at);
    return made;
  }
  // Element by element, by their bits.
  template <typename F>
  static Vectorized by_bits(const Vectorized& a, const Vectorized& b, F combine) {
    Vectorized made;
    for (size_t byte = 0; byte < 64; ++byte)
      bytes(made)[byte] = static_cast<unsigned char>(combine(bytes(a)[byte], bytes(b)[byte]));
    return made;
  }

 private:
  auto number(size_t at) const { return static_cast<opmath_type<T>>(values_[at]); }
  static T mask(bool set) {
    T made;
    std::memset(static_cast<void*>(&made), set ? 0xFF : 0, sizeof(T));
    return made;
  }
  static bool is_set(const T& element) {
    unsigned char high[sizeof(T)];
    std::memcpy(high, static_cast<const void*>(&element), sizeof(T));
    return (high[sizeof(T) - 1] & 0x80) != 0;
  }
  static unsigned char* bytes(Vectorized& all) { return reinterpret_cast<unsigned char*>(all.values_.data()); }
  static const unsigned char* bytes(const Vectorized& all) {
    return reinterpret_cast<const unsigned char*>(all.values_.data());
  }

  std::array<T, 64 / sizeof(T)> values_{};
};

#define TENON_COMPAT_OPERATOR_(sign)                                                            \
  template <typename T>                                                                         \
  Vectorized<T> operator sign(const Vectorized<T>& a, const Vectorized<T>& b) {                 \
    return Vectorized<T>::made_of([&](size_t at) { return static_cast<T>(a[at] sign b[at]); }); \
  }                                                                                             \
  template <typename T>                                                                         \
  Vectorized<T>& operator sign##=(Vectorized<T>& a, const Vectorized<T>& b) {                   \
    return a = a sign b;                                                                        \
  }
TENON_COMPAT_OPERATOR_(+)
TENON_COMPAT_OPERATOR_(-)
TENON_COMPAT_OPERATOR_(*)
TENON_COMPAT_OPERATOR_(/)
#undef TENON_COMPAT_OPERATOR_
#define TENON_COMPAT_OPERATOR_(sign)                                                                \
  template <typename T>                                                                             \
  Vectorized<T> operator sign(const Vectorized<T>& a, const Vectorized<T>& b) {                     \
    return Vectorized<T>::by_bits(a, b, [](unsigned char x, unsigned char y) { return x sign y; }); \
  }
TENON_COMPAT_OPERATOR_(&)
TENON_COMPAT_OPERATOR_(|)
TENON_COMPAT_OPERATOR_(^)
#undef TENON_COMPAT_OPERATOR_
template <typename T>
Vectorized<T> operator~(const Vectorized<T>& a) {
  return Vectorized<T>::by_bits(a, a, [](unsigned char x, unsigned char) { return ~x; });
}
template <typename T>
Vectorized<T> operator-(const Vectorized<T>& a) {
  return a.neg();
}

template <typename T>
Vectorized<T> fmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b + c;
}
template <typename T>
Vectorized<T> fmsub(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b - c;
}
// NaN where either is.
template <typename T>
Vectorized<T> maximum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return Vectorized<T>::made_of([&](size_t at) { return a[at] != a[at] || a[at] > b[at] ? a[at] : b[at]; });
}
template <typename T>
Vectorized<T> minimum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return Vectorized<T>::made_of([&](size_t at) { return a[at] != a[at] || a[at] < b[at] ? a[at] : b[at]; });
}
template <typename T>
Vectorized<T> clamp_min(const Vectorized<T>& a, const Vectorized<T>& low) {
  return Vectorized<T>::made_of([&](size_t at) { return a[at] < low[at] ? low[at] : a[at]; });
}
template <typename T>
Vectorized<T> clamp_max(const Vectorized<T>& a, const Vectorized<T>& high) {
  return Vectorized<T>::made_of([&](size_t at) { return a[at] > high[at] ? high[at] : a[at]; });
}
template <typename T>
Vectorized<T> clamp(const Vectorized<T>& a, const Vectorized<T>& low, const Vectorized<T>& high) {
  return clamp_max(clamp_min(a, low), high);
}

// Functions of vectors over arrays of any length.
template <typename T, typename F>
void map(const F& function, T* out, const T* in, int64_t count) {
  constexpr int64_t kSize = Vectorized<T>::size();
  for (int64_t at = 0; at < count; at += kSize) {
    const int64_t here = std::min(kSize, count - at);
    Vectorized<T>(function(Vectorized<T>::loadu(in + at, here))).store(out + at, here);
  }
}
template <typename T, typename F>
void map2(const F& function, T* out, const T* a, const T* b, int64_t count) {
  constexpr int64_t kSize = Vectorized<T>::size();
  for (int64_t at = 0; at < count; at += kSize) {
    const int64_t here = std::min(kSize, count - at);
    Vectorized<T>(function(Vectorized<T>::loadu(a + at, here), Vectorized<T>::loadu(b + at, here)))
        .store(out + at, here);
  }
}
template <typename T, typename F>
void map3(const F& function, T* out, const T* a, const T* b, const T* c, int64_t count) {
  constexpr int64_t kSize = Vectorized<T>::size();
  for (int64_t at = 0; at < count; at += kSize) {
    const int64_t here = std::min(kSize, count - at);
    Vectorized<T>(function(Vectorized<T>::loadu(a + at, here), Vectorized<T>::loadu(b + at, here),
                           Vectorized<T>::loadu(c + at, here)))
        .store(out + at, here);
  }
}
// The elements of `of` folded, at least one of them: vectors with each other, then the elements of the last.
template <typename T, typename Of, typename F>
T map_reduce_all(const Of& of, const F& fold, const T* data, int64_t count) {
  constexpr int64_t kSize = Vectorized<T>::size();
  Vectorized<T> folded = of(Vectorized<T>::loadu(data, count));
  int64_t kept = std::min(kSize, count);
  for (int64_t at = kSize; at < count; at += kSize) {
    const int64_t here = std::min(kSize, count - at);
    Vectorized<T> next = of(Vectorized<T>::loadu(data + at, here)), both = fold(folded, next);
    folded = Vectorized<T>::set(folded, both, here);
  }
  for (int64_t at = 1; at < kept; ++at) {
    Vectorized<T> left(folded[0]), right(folded[static_cast<size_t>(at)]);
    folded[0] = Vectorized<T>(fold(left, right))[0];
  }
  return folded[0];
}
template <typename T, typename F>
T reduce_all(const F& fold, const T* data, int64_t count) {
  return map_reduce_all<T>([](Vectorized<T> each) { return each; }, fold, data, count);
}

}  // namespace at::vec
