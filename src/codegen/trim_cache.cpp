#include "trim_cache.h"

#include <tenon/support/log.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

namespace tenon::codegen {
namespace {

namespace fs = std::filesystem;

// Writing an entry takes milliseconds: one that is older is nobody's.
constexpr std::chrono::minutes kUnfinished{10};

struct Entry {
  fs::file_time_type used;
  int64_t bytes;
  fs::path path;
};

}  // namespace

void trim_cache(const std::string& folder, int64_t limit) {
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto used = at->last_write_time(gone);
    const auto bytes = gone ? 0 : static_cast<int64_t>(at->file_size(gone));
    if (gone) continue;
    if (at->path().extension() == ".tmp") {
      if (now - used > kUnfinished) fs::remove(at->path(), gone);
    } else if (at->path().extension() == ".tenon") {
      entries.push_back({used, bytes, at->path()});
      total += bytes;
    }
  }
  if (total <= limit) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit - limit / 4) break;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
    TENON_LOG(Cache, "removed {}", entry.path.string());
  }
}

}  // namespace tenon::codegen
