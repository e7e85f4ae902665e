#include "support/out_of_memory.h"

#include <tenon/library/load.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

extern char** environ;

namespace tenon::library {
namespace {

namespace fs = std::filesystem;

// The folders of an installation, from where this very code lies: lib/libtenon.so beside include/.
std::vector<std::string> installed_includes() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&load_library), &info) || !info.dli_fname) return {};
  std::error_code error;
  fs::path include = fs::weakly_canonical(info.dli_fname, error).parent_path().parent_path() / "include";
  if (!fs::exists(include / "tenon" / "tenon.h", error)) return {};
  // Beside our own headers those with libtorch's names.
  return {include.string(), (include / "tenon_torch").string()};
}

// Runs a program, its output going to a file; its exit status.
int run(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  TENON_CHECK(failed == 0, "[load_inline] the compiler '{}' cannot be started: set $CXX", words[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Beside the compiled kernels: $TENON_CACHE, else the user's cache folder. Without one, a folder of this user's for
// temporary files.
fs::path cache_folder() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (std::string chosen = variable("TENON_CACHE"); !chosen.empty()) return fs::path(chosen) / "inline";
  if (std::string user = variable("XDG_CACHE_HOME"); !user.empty()) return fs::path(user) / "tenon" / "inline";
  if (std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "tenon" / "inline";
  return fs::temp_directory_path() / fmt::format("tenon_inline_{}", getuid());
}

// "ccache g++" is two words.
std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void load_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    fail("[load_library] {} cannot be loaded: {}", path, reason ? reason : "unknown reason");
  }
}

namespace {

// What one build writes, under names of its own, so that processes and threads may compile the same source: the library
// is renamed when it is whole, and what is left of the rest goes whatever happens.
struct BuildFiles {
  explicit BuildFiles(const std::string& stem) : source(stem + ".cpp"), log(stem + ".log"), library(stem + ".so") {}
  ~BuildFiles() {
    for (const std::string* file : {&source, &log, &library}) unlink(file->c_str());
  }
  BuildFiles(const BuildFiles&) = delete;
  const std::string source, log, library;
};
std::atomic<int64_t> builds{0};

// What was compiled against another build of this library may not fit it.
std::string this_library() {
  Dl_info info{};
  std::error_code error;
  if (!dladdr(reinterpret_cast<void*>(&load_inline), &info) || !info.dli_fname) return "";
  auto size = fs::file_size(info.dli_fname, error);
  auto written = fs::last_write_time(info.dli_fname, error);
  return fmt::format("{} {}", size, written.time_since_epoch().count());
}

}  // namespace

std::string load_inline(const std::string& name, const std::string& source, const LoadOptions& options) try {
  const char* from_environment = std::getenv("CXX");
  std::string compiler = !options.compiler.empty()               ? options.compiler
                         : from_environment && *from_environment ? from_environment
                                                                 : "c++";
  std::vector<std::string> words = split_words(compiler);
  words.insert(words.end(), {"-std=c++20", "-shared", "-fPIC", "-w"});
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  for (const auto& list : {options.include_paths, installed_includes()})
    for (const std::string& path : list) words.push_back("-I" + path);
  std::string key = fmt::format("load_inline\n{}\n{}\n{}\n{}", name, fmt::join(words, "\n"), this_library(), source);
  fs::path base = cache_folder();
  fs::create_directories(base);
  fs::permissions(base, fs::perms::owner_all);
  fs::path made = base / fmt::format("{}_{}.so", name, fingerprint(key).hex());
  // Only a file: loading from a pipe would wait for ever.
  if (!fs::is_regular_file(made)) {
    const BuildFiles files((base / fmt::format("{}_{}_{}", name, getpid(), ++builds)).string());
    std::ofstream(files.source) << source;
    words.insert(words.end(), {files.source, "-o", files.library});
    int status = run(words, files.log);
    TENON_CHECK(status == 0, "[load_inline] compiling '{}' failed (status {}):\n{}", name, status,
                read_file(files.log));
    fs::rename(files.library, made);
  }
  load_library(made.string());
  return made.string();
} catch (...) {
  support::rethrow_named("load_inline");
}

}  // namespace tenon::library
