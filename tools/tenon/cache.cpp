// `tenon cache`: the object cache on disk.
#include <fmt/format.h>
#include <tenon/codegen/object_cache.h>

#include <filesystem>

#include "commands.h"

namespace tool {

namespace fs = std::filesystem;

int run_cache(const Words& words) {
  const bool clear = words.size() == 1 && words[0] == "clear";
  if (!words.empty() && !clear)
    throw UsageError(fmt::format("[cache] expected nothing or 'clear', got '{}'", fmt::join(words, " ")));
  std::string folder = tenon::codegen::cache_folder();
  if (folder.empty()) {
    fmt::print("folder: none (TENON_CACHE is empty, or the folder cannot be used)\n");
    return clear ? 1 : 0;
  }
  int64_t entries = 0, bytes = 0, kept = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    // Entries only: whatever else lies there is not ours.
    if (file.path().extension() != ".tenon" || !file.is_regular_file()) continue;
    std::error_code problem;
    auto size = static_cast<int64_t>(file.file_size(problem));
    if (clear && !fs::remove(file.path(), problem)) {
      ++kept;
      continue;
    }
    ++entries;
    bytes += problem ? 0 : size;
  }
  if (error) tenon::fail("[cache] cannot read {}: {}", folder, error.message());
  fmt::print("folder: {}\n{}: {}\nbytes: {}\n", folder, clear ? "removed" : "entries", entries, bytes);
  if (kept > 0) tenon::fail("[cache] {} entries in {} could not be removed", kept, folder);
  return 0;
}

}  // namespace tool
