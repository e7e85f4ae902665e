// With TENON_DEBUG_DIR set, every kernel that LLVM compiles leaves three files there, side by side: its text, the LLVM
// IR and the assembly.
#pragma once

#include <string>

namespace tenon::codegen {

bool debug_files_wanted();
// Their path without the ending (".kernel", ".ll", ".s").
std::string debug_file_stem(const std::string& name, const std::string& key);
void write_debug_files(const std::string& name, const std::string& key, const std::string& text,
                       const std::string& llvm_ir, const std::string& assembly);

}  // namespace tenon::codegen
