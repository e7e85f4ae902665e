// A kernel in memory, and what must be known of it to launch it.
#pragma once

#include <tenon/load/launch_shape.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon::load {

// How a kernel is called. `scalars` are 8 bytes each: int64_t for integers and bools, double for floats. Iterations
// [begin, end) of the outermost statement run if that is a single parallel loop; otherwise begin and end are ignored.
// `failed` receives the smallest number of a failed check, and must start as -1.
using EntryPoint = void (*)(void* const* buffers, const int64_t* integers, const uint64_t* scalars, int64_t begin,
                            int64_t end, int64_t* failed);

// (Virtual, because compiled kernels also know what they were compiled from.)
struct Kernel {
  std::string name;
  EntryPoint entry = nullptr;
  std::shared_ptr<void> code;           // the memory in which `entry` lies
  std::shared_ptr<sym::ExprPool> pool;  // of the expressions below
  std::vector<sym::Expr> integers;      // symbols: the integer parameters, in the order in which they are passed
  LaunchShape shape;
  std::vector<sym::Expr> scratch;   // bytes of the scratch buffers, which come last among the kernel's
  std::vector<std::string> checks;  // what to say when check number i fails

  virtual ~Kernel() = default;
};
using KernelRef = std::shared_ptr<const Kernel>;

}  // namespace tenon::load
