// The folder in which the demo leaves what the compiler made, as text.
#pragma once

#include <tenon/capture/compiled_function.h>

#include <filesystem>
#include <functional>

namespace demo {

class Artefacts {
 public:
  // Takes a folder that does not exist, is empty, or was written by an earlier run, whose files it removes.
  explicit Artefacts(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path kernels() const { return folder_ / "kernels"; }
  std::filesystem::path object_cache() const { return folder_ / "object_cache"; }

  // Runs `body` so that every kernel compiled in it is written to `kernels()`, as loops, as LLVM IR and as assembly.
  void write_kernels(const std::function<void()>& body) const;
  // The graphs and guards of every entry, one folder each.
  void write_graphs(const tenon::Explanation& explanation) const;

 private:
  void write(const std::filesystem::path& path, const std::string& text) const;

  std::filesystem::path folder_;
};

// Beside the program.
std::filesystem::path default_folder();

}  // namespace demo
