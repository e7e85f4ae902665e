#include "runtime_symbols.h"

#include "support/log_gamma.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// One list of the lanes functions; it makes the definitions and the table.
// clang-format off
#define TENON_UNARY_LANES(X) \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) \
  X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(exp) X(exp2) X(expm1) X(log) X(log2) \
  X(log10) X(log1p)
// clang-format on
#define TENON_BINARY_LANES(X) X(pow) X(atan2) X(fmod)

extern "C" {

#define TENON_DEFINE_UNARY(name)                                                                     \
  static void tenon_lanes_##name##_f32(float* out, const float* a, const float*, int64_t count) {    \
    for (int64_t i = 0; i < count; ++i) out[i] = std::name(a[i]);                                    \
  }                                                                                                  \
  static void tenon_lanes_##name##_f64(double* out, const double* a, const double*, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) out[i] = std::name(a[i]);                                    \
  }
#define TENON_DEFINE_BINARY(name)                                                                      \
  static void tenon_lanes_##name##_f32(float* out, const float* a, const float* b, int64_t count) {    \
    for (int64_t i = 0; i < count; ++i) out[i] = std::name(a[i], b[i]);                                \
  }                                                                                                    \
  static void tenon_lanes_##name##_f64(double* out, const double* a, const double* b, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) out[i] = std::name(a[i], b[i]);                                \
  }
TENON_UNARY_LANES(TENON_DEFINE_UNARY)
TENON_BINARY_LANES(TENON_DEFINE_BINARY)
#undef TENON_DEFINE_UNARY
#undef TENON_DEFINE_BINARY

static void tenon_lanes_lgamma_f32(float* out, const float* a, const float*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(tenon::support::log_gamma(a[i]));
}
static void tenon_lanes_lgamma_f64(double* out, const double* a, const double*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = tenon::support::log_gamma(a[i]);
}

// Threads of one launch share `failed`, so the smallest number is kept atomically.
static void tenon_check_failed(int64_t* failed, int64_t number) {
  std::atomic_ref<int64_t> shared(*failed);
  int64_t seen = shared.load();
  while ((seen < 0 || number < seen) && !shared.compare_exchange_weak(seen, number)) {
  }
}

// A wild access of generated code is a bug of ours that the address sanitizer cannot see; it ends the process as the
// sanitizer would.
[[noreturn]] static void tenon_bounds_failed(const char* where, int64_t index, int64_t extent) {
  std::fprintf(stderr, "tenon: out-of-bounds access: %s, element %lld of %lld\n", where, static_cast<long long>(index),
               static_cast<long long>(extent));
  std::abort();
}

}  // extern "C"

namespace tenon::load {

std::span<const RuntimeSymbol> runtime_symbols() {
#define TENON_ROW(name) {#name, reinterpret_cast<const void*>(&name)},
#define TENON_LANES_ROWS(name) TENON_ROW(tenon_lanes_##name##_f32) TENON_ROW(tenon_lanes_##name##_f64)
  static const RuntimeSymbol table[] = {TENON_UNARY_LANES(TENON_LANES_ROWS) TENON_BINARY_LANES(TENON_LANES_ROWS)
                                            TENON_LANES_ROWS(lgamma) TENON_ROW(tenon_check_failed)
                                                TENON_ROW(tenon_bounds_failed)
                                        // LLVM may turn runs of stores into these.
                                        TENON_ROW(memcpy) TENON_ROW(memset) TENON_ROW(memmove)};
#undef TENON_LANES_ROWS
#undef TENON_ROW
  return table;
}

}  // namespace tenon::load
