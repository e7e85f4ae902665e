#include <tenon/runtime/launch.h>
#include <tenon/support/counters.h>
#include <tenon/support/parallel.h>
#include <tenon/support/small_vector.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "support/thread_data.h"

namespace tenon::runtime {
namespace {

constexpr int64_t kParallelWork = 32768;  // elements below which waking other threads costs more than it gives

std::atomic<LaunchWatch> watch{nullptr};

[[noreturn]] void check_failed(const load::Kernel& kernel, int64_t number) {
  raise_named(kernel.checks.at(static_cast<size_t>(number)));
}

// A thread's memory for scratch buffers, which come last among a kernel's. It grows, and is kept.
class Scratch {
 public:
  Scratch(const load::Kernel& kernel, std::span<const int64_t> integers) {
    if (kernel.scratch.empty()) return;
    std::vector<int64_t> symbols(static_cast<size_t>(kernel.pool->symbol_count()));
    for (size_t at = 0; at < kernel.integers.size(); ++at)
      symbols[static_cast<size_t>(kernel.integers[at].symbol_id())] = integers[at];
    for (sym::Expr bytes : kernel.scratch) {
      constexpr int64_t kLine = 64;
      sizes_.push_back((sym::evaluate(bytes, symbols) + kLine - 1) / kLine * kLine);
      total_ += sizes_.back();
    }
  }
  bool any() const { return !sizes_.empty(); }

  // The given buffers, and this thread's scratch behind them.
  SmallVector<void*, 16> with(std::span<void* const> buffers) const {
    std::vector<std::byte>& memory = support::thread_data([] { return new std::vector<std::byte>; });
    if (static_cast<int64_t>(memory.size()) < total_ + 64) memory.resize(static_cast<size_t>(total_) + 64);
    SmallVector<void*, 16> all;
    for (void* buffer : buffers) all.push_back(buffer);
    auto* next = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    for (int64_t size : sizes_) {
      all.push_back(next);
      next += size;
    }
    return all;
  }

 private:
  SmallVector<int64_t, 4> sizes_;
  int64_t total_ = 0;
};

void run_on_threads(const load::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
                    std::span<const uint64_t> scalars) {
  int64_t failed = -1;
  const Scratch scratch(kernel, integers);
  auto run = [&](int64_t begin, int64_t end, int64_t* failure) {
    if (!scratch.any()) return kernel.entry(buffers.data(), integers.data(), scalars.data(), begin, end, failure);
    SmallVector<void*, 16> all = scratch.with(buffers);
    kernel.entry(all.data(), integers.data(), scalars.data(), begin, end, failure);
  };
  auto [extent, work_each] = kernel.shape.evaluate(integers);
  int64_t work;
  if (__builtin_mul_overflow(extent, work_each, &work)) work = std::numeric_limits<int64_t>::max();
  if (!kernel.shape.parallel() || extent <= 1 || work < kParallelWork || num_threads() == 1) {
    run(0, extent, &failed);
  } else {
    std::atomic<int64_t> first_failure{-1};
    // Enough work for a thread; of a loop with lanes whole vectors.
    int64_t grain = std::max<int64_t>(1, kParallelWork / 4 / std::max<int64_t>(work_each, 1));
    if (kernel.shape.vector()) grain = std::clamp<int64_t>(grain / 64 * 64, 64, 1024);
    parallel_for(extent, grain, [&](int64_t begin, int64_t end) {
      int64_t local = -1;
      run(begin, end, &local);
      if (local < 0) return;
      int64_t seen = first_failure;
      while ((seen < 0 || local < seen) && !first_failure.compare_exchange_weak(seen, local)) {
      }
    });
    failed = first_failure;
  }
  if (failed >= 0) check_failed(kernel, failed);
}

}  // namespace

void launch(const load::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
            std::span<const uint64_t> scalars) {
  static Counter& launches = counter("kernels_launched");
  launches.add();
  if (LaunchWatch watcher = watch.load(std::memory_order_relaxed)) [[unlikely]]
    watcher(kernel, buffers, integers, scalars, [&] { run_on_threads(kernel, buffers, integers, scalars); });
  else
    run_on_threads(kernel, buffers, integers, scalars);
}

void watch_launches(LaunchWatch watcher) { watch = watcher; }
LaunchWatch launch_watch() { return watch; }

}  // namespace tenon::runtime
