// Kernel → object file, by LLVM.
#pragma once

#include <tenon/loop/kernel.h>

#include <string>

namespace tenon::codegen {

// `portable`: what every machine with such vectors has (x86-64-v2, v3, v4), and not what this one has besides.
struct Target {
  int bits;
  bool portable = false;
};

struct GeneratedObject {
  std::string object;
  std::string llvm_ir, assembly;  // only if asked for
};

// Safe to call from several threads at once, on different kernels.
GeneratedObject generate_object(const loop::Kernel& kernel, Target target, bool want_text);

}  // namespace tenon::codegen
