#include "artefacts.h"

#include <fmt/format.h>
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>

#include <cstdlib>
#include <fstream>

namespace demo {

namespace fs = std::filesystem;

namespace {

constexpr const char* kGuide = "README.txt";  // also tells a folder of ours from others
constexpr const char* kGuideText = R"(Written by the Tenon demo; its next run replaces it.

  graph_0/, graph_1/   what compile() made for batches of 32, and then for batches of any size:
    captured.txt         the user's function as it was recorded
    joint.txt            forward and backward as one graph, without mutation
    forward.txt          what the compiled call computes, and what it saves
    backward.txt         what backward() computes from that
    guards.txt           what must hold for this graph to be used again
  kernels/             every kernel that was generated:
    *.kernel             its loops
    *.ll                 LLVM IR
    *.s                  assembly
  object_cache/        the compiled kernels, as a later process would find them
)";

}  // namespace

Artefacts::Artefacts(fs::path folder) : folder_(fs::absolute(std::move(folder)).lexically_normal()) {
  std::error_code error;
  if (fs::exists(folder_, error)) {
    TENON_CHECK(fs::is_directory(folder_, error), "[demo] {} is not a folder", folder_.string());
    TENON_CHECK(fs::exists(folder_ / kGuide, error) || fs::is_empty(folder_, error),
                "[demo] the folder {} holds other files: expected a new one, an empty one, or one that the demo wrote",
                folder_.string());
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
      std::string name = entry.path().filename().string();
      if (name.starts_with("graph_") || name == "kernels" || name == "object_cache")
        fs::remove_all(entry.path(), error);
    }
  }
  fs::create_directories(folder_, error);
  write(folder_ / kGuide, kGuideText);
}

void Artefacts::write_kernels(const std::function<void()>& body) const {
  // A kernel that is loaded, or found on the disk, would not be written.
  std::string cache = tenon::codegen::cache_folder();
  tenon::codegen::set_cache_folder("");
  tenon::codegen::forget_loaded_kernels();
  setenv("TENON_DEBUG_DIR", kernels().c_str(), 1);
  body();
  unsetenv("TENON_DEBUG_DIR");
  tenon::codegen::set_cache_folder(cache);
}

void Artefacts::write_graphs(const tenon::Explanation& explanation) const {
  for (size_t at = 0; at < explanation.entries.size(); ++at) {
    const auto& entry = explanation.entries[at];
    fs::path place = folder_ / fmt::format("graph_{}", at);
    std::error_code ignored;
    fs::create_directories(place, ignored);
    write(place / "captured.txt", entry.captured);
    write(place / "joint.txt", entry.joint);
    write(place / "forward.txt", entry.forward);
    write(place / "backward.txt", entry.backward);
    std::string guards;
    for (const std::string& guard : entry.guards) guards += guard + "\n";
    if (at > 0) guards += fmt::format("\nmade because: {}\n", explanation.recompiles.at(at - 1));
    write(place / "guards.txt", guards);
  }
}

void Artefacts::write(const fs::path& path, const std::string& text) const {
  std::ofstream file(path);
  file << text;
  file.close();
  TENON_CHECK(file, "[demo] cannot write {}: choose another folder with --output", path.string());
}

fs::path default_folder() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (error ? fs::current_path() : program.parent_path()) / "demo_files";
}

}  // namespace demo
