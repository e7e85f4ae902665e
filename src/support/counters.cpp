#include <tenon/support/counters.h>

#include <mutex>

#include "support/at_fork.h"

namespace tenon {
namespace {

struct Registry {
  support::ForkSafe<std::mutex> mutex;
  std::map<std::string, Counter, std::less<>> counters;  // nodes never move, so references stay valid
};

Registry& registry() {
  static auto* instance = new Registry;  // never destroyed: threads may still count at exit
  return *instance;
}

}  // namespace

Counter& counter(std::string_view name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.counters.find(name);
  if (found == all.counters.end()) found = all.counters.try_emplace(std::string(name)).first;
  return found->second;
}

std::map<std::string, int64_t> counters() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::map<std::string, int64_t> values;
  for (const auto& [name, count] : all.counters) values[name] = count.value();
  return values;
}

void reset_counters() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  for (auto& [name, count] : all.counters) count.reset();
}

}  // namespace tenon
