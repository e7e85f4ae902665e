// Written once with GCC's vector types, for three widths. All of it is inlined into functions that have an instruction
// set as their attribute, so that no other code is compiled for it. Vectors are passed by reference: how values of
// types that the instruction set does not have are passed is not settled.
#include "kernels/attention_tiles.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tenon::kernels {
namespace {

#define TENON_INLINE [[gnu::always_inline]] inline
#define TENON_UNROLL _Pragma("GCC unroll 16")

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <int Bytes>
struct Lanes {
  // As registers hold them; what lies in memory, at any place, is read and written by `load` and `store`. (Types with
  // a smaller alignment are spilled to places that are aligned no better, by moves that need it: g++ 13 under asan.)
  typedef float Float __attribute__((vector_size(Bytes)));
  typedef int32_t Int __attribute__((vector_size(Bytes)));
  static constexpr int kCount = Bytes / 4;
  static constexpr int kVectors =
      Bytes == 64 ? 4 : 2;  // side by side in a tile of a product, so that registers suffice
  static constexpr int kRows = Bytes == 16 ? 4 : 6;
};

template <typename L>
TENON_INLINE void load(typename L::Float& to, const float* from) {
  std::memcpy(&to, from, sizeof to);
}
template <typename L>
TENON_INLINE void store(float* to, const typename L::Float& from) {
  std::memcpy(to, &from, sizeof from);
}
template <typename L>
TENON_INLINE float largest(const typename L::Float& values) {
  float result = values[0];
  TENON_UNROLL for (int at = 1; at < L::kCount; ++at) result = std::max(result, values[at]);
  return result;
}
template <typename L>
TENON_INLINE float total(const typename L::Float& values) {
  float lanes[L::kCount];
  store<L>(lanes, values);
  for (int half = L::kCount / 2; half > 0; half /= 2)
    for (int at = 0; at < half; ++at) lanes[at] += lanes[at + half];
  return lanes[0];
}

// e^x to about two units in the last place, for x up to 88; 0 below -87.3. NaNs stay.
template <typename L>
TENON_INLINE void exponential(typename L::Float& x) {
  using Float = typename L::Float;
  using Int = typename L::Int;
  Float at = x < -87.3f ? Float{} - 87.3f : x;
  at = at > 88.0f ? 88.0f - Float{} : at;
  const Float magic = 12582912.0f - Float{};  // 1.5 · 2^23: adding it rounds to a whole number
  const Float whole = (at * 1.44269504088896341f + magic) - magic;
  // ln 2 in two parts, the first with few bits: its products are exact.
  const Float rest = (at - whole * 0.693359375f) + whole * 2.12194440e-4f;
  Float sum = 1.9875691500e-4f - Float{};
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1.0f;
  // 2^whole: in the bits of the exponent. A NaN's are nobody's business, as it times anything is one.
  const Float numbered = whole == whole ? whole : Float{};
  const Int power = (__builtin_convertvector(numbered, Int) + 127) << 23;
  Float scale;
  std::memcpy(&scale, &power, sizeof scale);
  x = x < -87.3f ? Float{} : sum * scale;
}

// out[i][…] (+)= Σ_k left(i, k) · right[k][…], for R rows and V vectors of columns.
template <typename L, int R, int V>
TENON_INLINE void tile(TileLeft left, const float* right, int64_t right_row, float* out, int64_t out_row, int64_t depth,
                       bool adds) {
  using Float = typename L::Float;
  Float sums[R][V];  // in registers: every loop over it is unrolled
  TENON_UNROLL for (int i = 0; i < R; ++i) {
    TENON_UNROLL for (int j = 0; j < V; ++j) {
      sums[i][j] = Float{};
      if (adds) load<L>(sums[i][j], out + i * out_row + j * L::kCount);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    Float columns[V];
    TENON_UNROLL for (int j = 0; j < V; ++j) load<L>(columns[j], right + k * right_row + j * L::kCount);
    TENON_UNROLL for (int i = 0; i < R; ++i) {
      // x - 0 is x, whatever its sign: a load that fills all lanes.
      const Float factor = left.data[i * left.row + k * left.step] - Float{};
      TENON_UNROLL for (int j = 0; j < V; ++j) sums[i][j] += factor * columns[j];
    }
  }
  TENON_UNROLL for (int i = 0; i < R; ++i) {
    TENON_UNROLL for (int j = 0; j < V; ++j) store<L>(out + i * out_row + j * L::kCount, sums[i][j]);
  }
}

template <typename L, int R>
TENON_INLINE void strip(TileLeft left, const float* right, int64_t right_row, float* out, int64_t out_row,
                        int64_t depth, int64_t columns, bool adds) {
  int64_t at = 0;
  for (; at + L::kVectors * L::kCount <= columns; at += L::kVectors * L::kCount)
    tile<L, R, L::kVectors>(left, right + at, right_row, out + at, out_row, depth, adds);
  for (; at < columns; at += L::kCount) tile<L, R, 1>(left, right + at, right_row, out + at, out_row, depth, adds);
}

// The product of a whole matrix; `columns` is a multiple of the lanes.
template <typename L>
TENON_INLINE void multiply(TileLeft left, const float* right, int64_t right_row, float* out, int64_t out_row,
                           int64_t rows, int64_t depth, int64_t columns, bool adds) {
  int64_t row = 0;
  for (; row + L::kRows <= rows; row += L::kRows)
    strip<L, L::kRows>({left.data + row * left.row, left.row, left.step}, right, right_row, out + row * out_row,
                       out_row, depth, columns, adds);
  for (; row + 2 <= rows; row += 2)
    strip<L, 2>({left.data + row * left.row, left.row, left.step}, right, right_row, out + row * out_row, out_row,
                depth, columns, adds);
  for (; row < rows; ++row)
    strip<L, 1>({left.data + row * left.row, left.row, left.step}, right, right_row, out + row * out_row, out_row,
                depth, columns, adds);
}

// One row of a block of scores becomes weights e^(score - largest), where `largest` and `sum` run over all blocks.
// Returns what the sums of the blocks before are to be multiplied by. `columns` is a multiple of the lanes.
template <typename L>
TENON_INLINE float soften(float* scores, int64_t columns, float& so_far, float& sum) {
  using Float = typename L::Float;
  Float most = Float{} - kInfinity, numbers{}, each;
  for (int64_t at = 0; at < columns; at += L::kCount) {
    load<L>(each, scores + at);
    most = each > most ? each : most;
    numbers = each == each ? numbers : each;  // a NaN, which no comparison finds
  }
  const float before = so_far;
  float now = std::max(before, largest<L>(most));
  if (now == -kInfinity) {
    if (total<L>(numbers) == 0) {  // nothing is seen so far
      std::fill(scores, scores + columns, 0.0f);
      return 1;
    }
    now = 0;
  }
  Float sums{};
  for (int64_t at = 0; at < columns; at += L::kCount) {
    load<L>(each, scores + at);
    each -= now;
    exponential<L>(each);
    sums += each;
    store<L>(scores + at, each);
  }
  Float change = (before - now) - Float{};
  exponential<L>(change);
  so_far = now;
  sum = sum * change[0] + total<L>(sums);
  return change[0];
}

// A row of scores to weights, when the logarithm of their sum is known.
template <typename L>
TENON_INLINE void weigh(float* scores, int64_t columns, float logsumexp) {
  typename L::Float each;
  for (int64_t at = 0; at < columns; at += L::kCount) {
    load<L>(each, scores + at);
    each -= logsumexp;
    exponential<L>(each);
    store<L>(scores + at, each);
  }
}

#undef TENON_INLINE
#undef TENON_UNROLL

#if defined(__x86_64__)
#define TENON_ISA_WIDE [[gnu::target("avx512f,fma")]]
#define TENON_ISA_MIDDLE [[gnu::target("avx2,fma")]]
#else
#define TENON_ISA_WIDE
#define TENON_ISA_MIDDLE
#endif

// The three functions for vectors of some bytes, with an attribute.
#define TENON_TILES(name, bytes, attribute)                                                                         \
  attribute void multiply_##name(TileLeft left, const float* right, int64_t right_row, float* out, int64_t out_row, \
                                 int64_t rows, int64_t depth, int64_t columns, bool adds) {                         \
    multiply<Lanes<bytes>>(left, right, right_row, out, out_row, rows, depth, columns, adds);                       \
  }                                                                                                                 \
  attribute float soften_##name(float* scores, int64_t columns, float& most, float& sum) {                          \
    return soften<Lanes<bytes>>(scores, columns, most, sum);                                                        \
  }                                                                                                                 \
  attribute void weigh_##name(float* scores, int64_t columns, float logsumexp) {                                    \
    weigh<Lanes<bytes>>(scores, columns, logsumexp);                                                                \
  }                                                                                                                 \
  constexpr AttentionTiles k_##name { bytes / 4, multiply_##name, soften_##name, weigh_##name }

TENON_TILES(wide, 64, TENON_ISA_WIDE);
TENON_TILES(middle, 32, TENON_ISA_MIDDLE);
TENON_TILES(narrow, 16, );

}  // namespace

const AttentionTiles& attention_tiles() {
  static const AttentionTiles& best = []() -> const AttentionTiles& {
#if defined(__x86_64__)
    const char* limit = std::getenv("TENON_ISA");  // as for generated code: 512, 256 or 128 bits
    const int bits = limit && *limit ? std::atoi(limit) : 512;
    if (bits >= 512 && __builtin_cpu_supports("avx512f")) return k_wide;
    if (bits >= 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return k_middle;
#endif
    return k_narrow;
  }();
  return best;
}

}  // namespace tenon::kernels
