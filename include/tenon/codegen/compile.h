// From kernels to machine code.
//
// `compile_all` looks every kernel up in this process, then in the object cache on disk, and compiles the rest, in
// parallel. A kernel stays loaded as long as somebody holds it, and the latest few thousand beyond that.
#pragma once

#include <tenon/load/kernel.h>
#include <tenon/loop/kernel.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::codegen {

struct CompiledKernel final : load::Kernel {
  loop::Kernel kernel;      // what was compiled
  std::string text;         // the same as text
  bool from_cache = false;  // the object came from disk
  double compile_ms = 0;    // time to get the entry point
};

using CompiledKernelRef = std::shared_ptr<const CompiledKernel>;

// What a kernel was compiled from; null: it was loaded from a file.
const CompiledKernel* compiled_from(const load::Kernel& kernel);

// How a kernel may be split over threads.
load::LaunchShape launch_shape(const loop::Kernel& kernel);

std::vector<CompiledKernelRef> compile_all(std::vector<loop::Kernel> kernels);
CompiledKernelRef compile(loop::Kernel kernel);

// The kernel as an object file for every machine with vectors of so many bits: 256 (x86-64-v3) or 512 (x86-64-v4).
std::string portable_object(const loop::Kernel& kernel, int bits);

// The widest vectors in use, in bits: what the host has, capped by TENON_ISA (128, 256 or 512). Reading a bad value is
// an Error that lists the good ones. Tests set it with `set_isa` (0: back to the default); kernels compiled before keep
// theirs.
int isa_bits();
void set_isa(int bits);

// The host's features and the version as they enter the cache key, e.g. "x86-64 avx512f,… tenon 0.1.0".
std::string target_description();

// Forgets the kernels of this process (those that somebody holds stay valid), so that the next compile goes to the disk
// or to LLVM again. For tests and benchmarks.
void forget_loaded_kernels();
// How many kernels are loaded.
int64_t loaded_kernel_count();

}  // namespace tenon::codegen
