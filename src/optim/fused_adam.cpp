#include "optim/fused_adam.h"

#include <tenon/support/counters.h>
#include <tenon/support/parallel.h>

#include <algorithm>
#include <cmath>

namespace tenon::optim {
namespace {

// Elements that one thread takes at a time: 5 arrays of them fit in its cache.
constexpr int64_t kBlock = 8192;

template <typename T>
struct Numbers {
  T *parameter, *mean, *square, *largest;
  const T* gradient;
  T keep, decay, lerp, rest, beta2, one_minus_beta2, root_correction, eps, size;
  bool maximize, decoupled, coupled;
};

template <typename T>
Numbers<T> numbers_of(const FusedAdamPart& part) {
  const AdamOptions& o = *part.options;
  auto correction = [&](double beta) { return 1 - std::pow(beta, static_cast<double>(part.step)); };
  Numbers<T> made;
  made.parameter = part.parameter.data<T>();
  made.gradient = part.gradient.data<T>();
  made.mean = part.mean.data<T>();
  made.square = part.square.data<T>();
  made.largest = part.largest.defined() ? part.largest.data<T>() : nullptr;
  made.keep = static_cast<T>(1 - o.lr * o.weight_decay);
  made.decay = static_cast<T>(o.weight_decay);
  made.lerp = static_cast<T>(1 - o.betas[0]);
  made.rest = T(1) - made.lerp;
  made.beta2 = static_cast<T>(o.betas[1]);
  made.one_minus_beta2 = static_cast<T>(1 - o.betas[1]);
  made.root_correction = static_cast<T>(std::sqrt(correction(o.betas[1])));
  made.eps = static_cast<T>(o.eps);
  made.size = static_cast<T>(-o.lr / correction(o.betas[0]));
  made.maximize = o.maximize;
  made.decoupled = o.weight_decay != 0 && o.decoupled_weight_decay;
  made.coupled = o.weight_decay != 0 && !o.decoupled_weight_decay;
  return made;
}

// The same source for every instruction set; none of them contracts, so that all give the same bits.
template <typename T, bool kLargest>
[[gnu::always_inline]] inline void update(const Numbers<T>& n, int64_t begin, int64_t end) {
  T* __restrict parameter = n.parameter;
  T* __restrict mean = n.mean;
  T* __restrict square = n.square;
  T* __restrict largest = n.largest;
  const T* __restrict gradient = n.gradient;
  const bool near = std::abs(n.lerp) < T(0.5);
  const T sign = n.maximize ? T(-1) : T(1), keep = n.decoupled ? n.keep : T(1), decay = n.coupled ? n.decay : T(0);
  const bool coupled = n.coupled;
  for (int64_t at = begin; at < end; ++at) {
    T g = sign * gradient[at], p = parameter[at] * keep;
    g = coupled ? g + p * decay : g;
    const T distance = g - mean[at];
    const T m = near ? mean[at] + n.lerp * distance : g - distance * n.rest;
    const T v = square[at] * n.beta2 + n.one_minus_beta2 * g * g;
    mean[at] = m;
    square[at] = v;
    T s = v;
    if constexpr (kLargest) {
      s = largest[at] != largest[at] || largest[at] > v ? largest[at] : v;
      largest[at] = s;
    }
    const T scale = std::sqrt(s) / n.root_correction + n.eps;
    parameter[at] = p + n.size * m / scale;
  }
}
template <typename T>
[[gnu::always_inline]] inline void update(const Numbers<T>& n, int64_t begin, int64_t end) {
  n.largest ? update<T, true>(n, begin, end) : update<T, false>(n, begin, end);
}

template <typename T>
void update_anywhere(const Numbers<T>& n, int64_t begin, int64_t end) {
  update<T>(n, begin, end);
}
#ifdef __x86_64__
template <typename T>
[[gnu::target("avx2")]] void update_avx2(const Numbers<T>& n, int64_t begin, int64_t end) {
  update<T>(n, begin, end);
}
#endif

template <typename T>
auto best_update() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return update_avx2<T>;
#endif
  return update_anywhere<T>;
}

// A part, and how many blocks come before it.
struct Placed {
  const FusedAdamPart* part;
  int64_t first_block;
};

template <typename T>
void run(const FusedAdamPart& part, int64_t first, int64_t last) {
  static const auto update_block = best_update<T>();
  const Numbers<T> numbers = numbers_of<T>(part);
  const int64_t count = part.parameter.numel().plain();
  for (int64_t block = first; block < last; ++block)
    update_block(numbers, block * kBlock, std::min(count, (block + 1) * kBlock));
}

int64_t blocks_of(const FusedAdamPart& part) { return (part.parameter.numel().plain() + kBlock - 1) / kBlock; }

}  // namespace

bool can_be_fused(const FusedAdamPart& part) {
  auto plain = [&](const Tensor& tensor) {
    return tensor.defined() && !tensor.is_fake() && tensor.device() == Device(kCPU) && tensor.is_contiguous() &&
           tensor.dtype() == part.parameter.dtype() && tensor.sizes() == part.parameter.sizes();
  };
  const Tensor& parameter = part.parameter;
  if (parameter.is_fake() || (parameter.dtype() != kFloat32 && parameter.dtype() != kFloat64)) return false;
  return plain(parameter) && plain(part.gradient) && plain(part.mean) && plain(part.square) &&
         (!part.options->amsgrad || plain(part.largest)) && !part.gradient.is_same_storage(parameter);
}

void fused_adam_step(std::span<const FusedAdamPart> parts) {
  static Counter& launches = counter("kernels_launched");
  std::vector<Placed> placed;
  int64_t blocks = 0;
  for (const FusedAdamPart& part : parts) {
    placed.push_back({&part, blocks});
    blocks += blocks_of(part);
  }
  if (blocks == 0) return;
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    // The last part that begins at or before `begin`.
    auto at = std::upper_bound(placed.begin(), placed.end(), begin,
                               [](int64_t block, const Placed& each) { return block < each.first_block; }) -
              1;
    for (; at != placed.end() && at->first_block < end; ++at) {
      const int64_t first = std::max<int64_t>(begin - at->first_block, 0);
      const int64_t last = std::min(end - at->first_block, blocks_of(*at->part));
      if (at->part->parameter.dtype() == kFloat32)
        run<float>(*at->part, first, last);
      else
        run<double>(*at->part, first, last);
    }
  });
  launches.add();
  // What was saved before the step is known to have changed.
  for (const FusedAdamPart& part : parts)
    for (const Tensor* written : {&part.parameter, &part.mean, &part.square, &part.largest})
      if (written->defined() && written->impl()->version) ++written->impl()->version->count;
}

}  // namespace tenon::optim
