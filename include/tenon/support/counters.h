// Counts by name: compiles, recompiles, kernels generated, kernels launched, bytes allocated. Tests and the
// tools read them; a count is cheap (one relaxed atomic addition) and never a time.
//
//   static Counter& launches = counter("kernels_launched");
//   launches.add();
//   int64_t so_far = launches.value();
//   int64_t same = counters()["kernels_launched"];
//   launches.reset();
//   reset_counters();  // all of them
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tenon {

class Counter {
 public:
  void add(int64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }
  void reset() { value_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// The counter of that name, made at its first mention; the reference stays valid for ever.
Counter& counter(std::string_view name);

// Every counter that has been mentioned, by name.
std::map<std::string, int64_t> counters();
void reset_counters();

}  // namespace tenon
