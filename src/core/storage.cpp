#include "memory_limit.h"
#include "support/at_fork.h"
#include "support/out_of_memory.h"

#include <tenon/core/storage.h>
#include <tenon/support/counters.h>
#include <tenon/support/error.h>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

namespace tenon {
namespace allocator {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kClasses = 48;
// From here on blocks ask for large pages: a stream through small ones waits for the page tables as much as for the
// data.
constexpr size_t kLargePage = 2 << 20, kLargeBlock = 2 * kLargePage;

// Blocks up to 1 MiB come in powers of two; larger ones in multiples of 1/8 of the power of two below, so that at most
// an eighth is wasted.
struct SizeClass {
  int index;
  int64_t bytes;
};

struct Pool {
  support::ForkSafe<std::mutex> mutex;
  // Free blocks by rounded size; a flat list per power of two keeps look-up to a short scan.
  std::array<std::vector<std::pair<int64_t, void*>>, kClasses> free;
  int64_t in_use = 0, cached = 0, peak = 0;
  std::atomic<int64_t> limit{0};  // 0: the machine's
};

Pool& pool() {
  static auto* instance = new Pool;  // never destroyed: static tensors may be freed later
  return *instance;
}

SizeClass size_class(int64_t bytes) {
  uint64_t wanted = std::max<uint64_t>(static_cast<uint64_t>(bytes), kAlignment);
  uint64_t power = std::bit_ceil(wanted);
  uint64_t rounded = power;
  if (wanted > (1u << 20)) {
    uint64_t step = power / 16;
    rounded = (wanted + step - 1) / step * step;
  }
  return {std::min(kClasses - 1, std::countr_zero(power)), static_cast<int64_t>(rounded)};
}

// What the machine could hold at best. A system may promise more than that and end the process when it is used.
int64_t machine_bytes() {
  static const int64_t bytes = [] {
    struct sysinfo info{};
    if (sysinfo(&info) != 0) return std::numeric_limits<int64_t>::max();
    int64_t total = 0;
    if (__builtin_add_overflow(info.totalram, info.totalswap, &total) ||
        __builtin_mul_overflow(total, info.mem_unit, &total))
      return std::numeric_limits<int64_t>::max();
    return total;
  }();
  return bytes;
}

int64_t limit() {
  int64_t said = pool().limit.load(std::memory_order_relaxed);
  return said > 0 ? said : machine_bytes();
}

[[noreturn]] void out_of_memory(int64_t bytes, int64_t in_use) {
  support::raise_out_of_memory(
      [=] { return fmt::format("[allocate] out of memory: asked for {} bytes with {} in use", bytes, in_use); });
}

void* from_system(int64_t bytes) {
  auto wanted = static_cast<size_t>(bytes);
  if (wanted < kLargeBlock) return std::aligned_alloc(kAlignment, (wanted + kAlignment - 1) / kAlignment * kAlignment);
  wanted = (wanted + kLargePage - 1) / kLargePage * kLargePage;
  void* data = std::aligned_alloc(kLargePage, wanted);
  // Advice only: where it is refused the block works as it is.
  if (data) madvise(data, wanted, MADV_HUGEPAGE);
  return data;
}

}  // namespace

void* allocate(int64_t bytes) {
  TENON_CHECK(bytes >= 0, "[allocate] expected a non-negative number of bytes, got {}", bytes);
  if (bytes > limit()) out_of_memory(bytes, bytes_in_use());
  static Counter& allocated = counter("bytes_allocated");
  static Counter& allocations = counter("allocations");
  allocated.add(bytes);
  allocations.add();
  auto [index, rounded] = size_class(bytes);
  Pool& blocks = pool();
  {
    std::lock_guard lock(blocks.mutex);
    blocks.in_use += rounded;
    blocks.peak = std::max(blocks.peak, blocks.in_use);
    auto& list = blocks.free[static_cast<size_t>(index)];
    for (size_t at = list.size(); at-- > 0;) {
      if (list[at].first != rounded) continue;
      void* data = list[at].second;
      list.erase(list.begin() + static_cast<ptrdiff_t>(at));
      blocks.cached -= rounded;
      return data;
    }
  }
  // Blocks that nobody uses give way first.
  auto fits = [&] { return bytes_in_use() + bytes_cached() <= limit(); };
  void* data = fits() ? from_system(rounded) : nullptr;
  if (!data) {
    empty_cache();
    data = fits() ? from_system(rounded) : nullptr;
  }
  if (!data) {
    std::lock_guard lock(blocks.mutex);
    blocks.in_use -= rounded;
    out_of_memory(bytes, blocks.in_use);
  }
  return data;
}

void set_limit(int64_t bytes) { pool().limit = bytes; }

void release(void* data, int64_t bytes) {
  if (!data) return;
  auto [index, rounded] = size_class(bytes);
  Pool& blocks = pool();
  std::lock_guard lock(blocks.mutex);
  blocks.in_use -= rounded;
  // Destructors come here: where there is no memory left to remember a block, it goes back to the system.
  try {
    blocks.free[static_cast<size_t>(index)].emplace_back(rounded, data);
    blocks.cached += rounded;
  } catch (...) {
    std::free(data);
  }
}

void empty_cache() {
  Pool& blocks = pool();
  std::lock_guard lock(blocks.mutex);
  for (auto& list : blocks.free) {
    for (auto& [bytes, data] : list) std::free(data);
    list.clear();
  }
  blocks.cached = 0;
}

int64_t bytes_in_use() {
  std::lock_guard lock(pool().mutex);
  return pool().in_use;
}
int64_t bytes_cached() {
  std::lock_guard lock(pool().mutex);
  return pool().cached;
}
int64_t peak_bytes_in_use() {
  std::lock_guard lock(pool().mutex);
  return pool().peak;
}
void reset_peak() {
  std::lock_guard lock(pool().mutex);
  pool().peak = pool().in_use;
}

}  // namespace allocator

Storage::Storage(int64_t bytes, Device device) : bytes_(bytes), device_(device) {
  TENON_CHECK(device.type == DeviceType::CPU, "[storage] expected device cpu, got {}", device.str());
  data_ = allocator::allocate(bytes);
}

Storage::Storage(void* data, int64_t bytes, Device device, std::function<void(void*)> deleter)
    : data_(data), bytes_(bytes), device_(device), deleter_(std::move(deleter)) {}

Ref<Storage> Storage::without_data(Device device) {
  Ref<Storage> storage(new Storage());
  storage->device_ = device;
  storage->has_data_ = false;
  return storage;
}

Storage::~Storage() { free(); }
void Storage::release_resources() { free(); }

void Storage::free() {
  void* data = std::exchange(data_, nullptr);
  if (!data) return;
  if (deleter_) {
    deleter_(data);
    deleter_ = nullptr;
  } else {
    allocator::release(data, bytes_);
  }
}

void Storage::resize(int64_t bytes) {
  TENON_CHECK(has_data_, "[resize] a storage without data cannot be resized");
  TENON_CHECK(!deleter_, "[resize] a storage over foreign memory cannot be resized");
  void* bigger = allocator::allocate(bytes);
  std::memcpy(bigger, data_, static_cast<size_t>(std::min(bytes, bytes_)));
  allocator::release(data_, bytes_);
  data_ = bigger;
  bytes_ = bytes;
}

}  // namespace tenon
