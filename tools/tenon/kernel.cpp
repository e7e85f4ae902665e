// `tenon kernel FILE` and `tenon version`.
#include <fmt/format.h>
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/generated/version.h>
#include <tenon/support/parallel.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "codegen/debug_files.h"
#include "commands.h"

namespace tool {

using namespace tenon;

int run_kernel(const Words& words) {
  if (words.size() != 1) throw UsageError(fmt::format("[kernel] expected one file, got {} words", words.size()));
  std::ifstream file(words[0]);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  TENON_CHECK(file, "[kernel] cannot read {}: {}", words[0], std::strerror(errno));
  loop::Kernel kernel = loop::parse(content.str());
  loop::verify(kernel);
  const std::string text = loop::to_string(kernel), name = kernel.name;
  fmt::print("{}\n", text);
  // An object from the cache leaves no text.
  if (codegen::debug_files_wanted()) codegen::set_cache_folder("");
  codegen::CompiledKernelRef compiled = codegen::compile(std::move(kernel));
  fmt::print("{} in {:.2f} ms for {}-bit vectors\n", compiled->from_cache ? "loaded from the object cache" : "compiled",
             compiled->compile_ms, codegen::isa_bits());
  if (codegen::debug_files_wanted()) {
    std::string stem = codegen::debug_file_stem(name, codegen::target_description() + "\n" + text);
    fmt::print("LLVM IR:  {0}.ll\nassembly: {0}.s\n", stem);
  } else {
    fmt::print("set TENON_DEBUG_DIR to a folder to see its LLVM IR and assembly\n");
  }
  return 0;
}

int run_version(const Words& words) {
  if (!words.empty()) throw UsageError(fmt::format("[version] expected nothing, got '{}'", words[0]));
  fmt::print("tenon {}\nvectors: {} bits\nthreads: {}\ntarget: {}\n", TENON_VERSION, codegen::isa_bits(), num_threads(),
             codegen::target_description());
  return 0;
}

}  // namespace tool
