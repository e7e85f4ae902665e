// Kernel → object file, by LLVM.
#pragma once

#include <tenon/loop/kernel.h>

#include <string>

namespace tenon::codegen {

struct GeneratedObject {
  std::string object;
  std::string llvm_ir, assembly;  // only if asked for
};

// Safe to call from several threads at once, on different kernels.
GeneratedObject generate_object(const loop::Kernel& kernel, int bits, bool want_text);

}  // namespace tenon::codegen
