// Operators that join a running program: from a shared library, or from C++ source text.
//
//   auto load_when_asked = [](const std::string& source) {  // needs a compiler and an installed Tenon
//     library::LoadOptions options{.flags = {"-O3"}};
//     std::string path = library::load_inline("my_operators", source, options);
//     library::load_library(path);
//   };
#pragma once

#include <string>
#include <vector>

namespace tenon::library {

// Loads a shared library; its TENON_LIBRARY blocks register as it loads. It stays loaded. An Error tells what the
// system's loader said.
void load_library(const std::string& path);

struct LoadOptions {
  std::vector<std::string> include_paths = {};  // beside those of an installed Tenon
  std::vector<std::string> flags = {"-O2"};
  std::string compiler = {};  // empty: $CXX, else c++
};
// Compiles the source with the system's compiler and loads the result. Sources are known by their content: one that was
// compiled before, with the same flags, comes from the cache folder. An Error shows what the compiler printed. Returns
// the path of the shared library.
std::string load_inline(const std::string& name, const std::string& source, const LoadOptions& options = {});

}  // namespace tenon::library
