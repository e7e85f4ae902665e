// How a kernel may be split over threads, as a function of its integer parameters; made once, when the kernel is
// compiled. Without parameters it is two numbers.
#pragma once

#include <tenon/loop/kernel.h>

namespace tenon::codegen {

class LaunchShape {
 public:
  LaunchShape() = default;
  explicit LaunchShape(const loop::Kernel& kernel);

  struct Values {
    int64_t extent = 1;  // of the parallel loop, 0 if nothing is done in it; 1 without one
    int64_t work = 1;    // innermost iterations in one iteration of it, roughly
  };
  Values evaluate(std::span<const int64_t> integers) const { return symbols_ == 0 ? constant_ : run(integers); }
  bool parallel() const { return parallel_; }
  bool vector() const { return vector_; }  // the parallel loop is also the vector loop

 private:
  Values run(std::span<const int64_t> integers) const;

  bool parallel_ = false, vector_ = false;
  Values constant_;
  size_t symbols_ = 0;               // of the kernel's pool; 0: the values are constant
  std::vector<int32_t> symbol_ids_;  // by integer parameter
  sym::ExprProgram program_;         // extent, work
  sym::Expr extent_;                 // of the kernel's pool
};

}  // namespace tenon::codegen
