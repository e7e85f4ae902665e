// A folder for one benchmark, and the object cache pointed into it.
#pragma once

#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/support/error.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tenon::bench {

class Workspace {
 public:
  Workspace() : cache_before_(codegen::cache_folder()) {
    std::string name = (std::filesystem::temp_directory_path() / "tenon_bench_XXXXXX").string();
    TENON_CHECK(mkdtemp(name.data()), "[bench] cannot make a folder in {}",
                std::filesystem::temp_directory_path().string());
    folder_ = name;
  }
  ~Workspace() {
    codegen::set_cache_folder(cache_before_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Workspace(const Workspace&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // An object cache that is empty; nothing is loaded.
  void use_fresh_cache() {
    codegen::set_cache_folder((folder_ / ("cache" + std::to_string(caches_++))).string());
    codegen::forget_loaded_kernels();
  }

 private:
  std::string cache_before_;
  std::filesystem::path folder_;
  int caches_ = 0;
};

}  // namespace tenon::bench
