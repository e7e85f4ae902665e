#include "debug_files.h"

#include "write_file.h"

#include <tenon/support/hash.h>
#include <tenon/support/log.h>

#include <cstdlib>
#include <filesystem>

namespace tenon::codegen {

bool debug_files_wanted() {
  const char* folder = std::getenv("TENON_DEBUG_DIR");
  return folder && *folder;
}

std::string debug_file_stem(const std::string& name, const std::string& key) {
  const std::filesystem::path folder = std::getenv("TENON_DEBUG_DIR");
  std::string safe = name.substr(0, 80);
  for (char& c : safe)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return (folder / fmt::format("{}_{}", safe, fingerprint(key).hex().substr(0, 8))).string();
}

void write_debug_files(const std::string& name, const std::string& key, const std::string& text,
                       const std::string& llvm_ir, const std::string& assembly) {
  const std::string stem = debug_file_stem(name, key);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(stem).parent_path(), ignored);
  std::string problem;
  const bool ok = write_file(stem + ".kernel", text, &problem) && write_file(stem + ".ll", llvm_ir, &problem) &&
                  write_file(stem + ".s", assembly, &problem);
  if (!ok) warn_once("debug files", fmt::format("TENON_DEBUG_DIR: cannot write {}: {}", stem, problem));
}

}  // namespace tenon::codegen
