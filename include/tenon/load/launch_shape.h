// How a kernel may be split over threads, as a function of its integer parameters. Without parameters it is two
// numbers.
#pragma once

#include <tenon/sym/expr.h>

namespace tenon::load {

class LaunchShape {
 public:
  // Of a kernel that is no parallel loop: it runs once.
  LaunchShape() = default;
  // `extent`: of the parallel loop, 0 if nothing is done in it; `work`: innermost iterations in one iteration of it,
  // roughly. Expressions of the symbols that the kernel's integer parameters are. `vector`: the parallel loop is also
  // the vector loop.
  LaunchShape(sym::Expr extent, sym::Expr work, bool vector, std::span<const sym::Expr> integers);

  struct Values {
    int64_t extent = 1;
    int64_t work = 1;
  };
  Values evaluate(std::span<const int64_t> integers) const { return symbols_ == 0 ? constant_ : run(integers); }
  bool parallel() const { return parallel_; }
  bool vector() const { return vector_; }
  // As they were given; undefined if it is no parallel loop.
  sym::Expr extent() const { return extent_; }
  sym::Expr work() const { return work_; }

 private:
  Values run(std::span<const int64_t> integers) const;

  bool parallel_ = false, vector_ = false;
  Values constant_;
  size_t symbols_ = 0;               // of the kernel's pool; 0: the values are constant
  std::vector<int32_t> symbol_ids_;  // by integer parameter
  sym::ExprProgram program_;         // extent, work
  sym::Expr extent_, work_;          // of the kernel's pool
};

}  // namespace tenon::load
