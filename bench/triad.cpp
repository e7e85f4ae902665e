#include "triad.h"

#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <tenon/support/error.h>
#include <tenon/support/parallel.h>

#include <algorithm>
#include <cstdlib>

#include "bench.h"

namespace tenon::bench {
namespace {

constexpr float kScale = 3.0f;
constexpr int64_t kGrain = 4096;  // ranges begin on a page, so vectors are aligned

// 16 floats at a time; a range ends on a multiple of 16, because the arrays have a multiple of the grain.
template <bool streaming>
__attribute__((target("avx512f"))) void triad_512(const float* a, const float* b, float* c, int64_t begin,
                                                  int64_t end) {
  __m512 scale = _mm512_set1_ps(kScale);
  for (int64_t i = begin; i < end; i += 16) {
    __m512 sum = _mm512_add_ps(_mm512_mul_ps(_mm512_load_ps(a + i), scale), _mm512_load_ps(b + i));
    if constexpr (streaming)
      _mm512_stream_ps(c + i, sum);
    else
      _mm512_store_ps(c + i, sum);
  }
  if constexpr (streaming) _mm_sfence();
}

template <bool streaming>
void triad_128(const float* a, const float* b, float* c, int64_t begin, int64_t end) {
  __m128 scale = _mm_set1_ps(kScale);
  for (int64_t i = begin; i < end; i += 4) {
    __m128 sum = _mm_add_ps(_mm_mul_ps(_mm_load_ps(a + i), scale), _mm_load_ps(b + i));
    if constexpr (streaming)
      _mm_stream_ps(c + i, sum);
    else
      _mm_store_ps(c + i, sum);
  }
  if constexpr (streaming) _mm_sfence();
}

template <bool streaming>
void triad(const float* a, const float* b, float* c, int64_t count) {
  static const auto body = __builtin_cpu_supports("avx512f") ? triad_512<streaming> : triad_128<streaming>;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) { body(a, b, c, begin, end); });
}

}  // namespace

Triad::Triad(int64_t count) : count_(count > 0 ? (count + kGrain - 1) / kGrain * kGrain : 16 << 20) {
  a_ = make(1);
  b_ = make(2);
  c_ = make(0);
}

Triad::Array Triad::make(float value) const {
  // Large pages, as our own tensors have.
  constexpr size_t kLargePage = 2 << 20;
  size_t total = (static_cast<size_t>(count_) * sizeof(float) + kLargePage - 1) / kLargePage * kLargePage;
  auto* memory = static_cast<float*>(std::aligned_alloc(kLargePage, total));
  TENON_CHECK(memory, "[bench] no memory for {} floats", count_);
  madvise(memory, total, MADV_HUGEPAGE);
  // Touched by the threads that will use it.
  parallel_for(count_, kGrain, [&](int64_t begin, int64_t end) { std::fill(memory + begin, memory + end, value); });
  return Array(memory);
}

void Triad::Free::operator()(float* pointer) const { std::free(pointer); }

void Triad::run_plain() { triad<false>(a_.get(), b_.get(), c_.get(), count_); }
void Triad::run_streaming() { triad<true>(a_.get(), b_.get(), c_.get(), count_); }

BENCH(triad) {
  Triad arrays;
  auto [plain, streaming] = time_against([&] { arrays.run_plain(); }, [&] { arrays.run_streaming(); });
  report.add({.name = fmt::format("triad_bandwidth_{}_threads", num_threads()),
              .value = arrays.bytes() / std::min(plain.median, streaming.median) / 1e9,
              .unit = "GB/s",
              .against = "plain stores",
              .ratio = plain.median / std::min(plain.median, streaming.median),
              .better = Better::Higher});
}

}  // namespace tenon::bench
