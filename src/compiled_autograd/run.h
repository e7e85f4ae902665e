// One walk that is run as what was compiled of walks like it. What cannot be captured finds the nodes at hand here.
#pragma once

#include "description.h"

namespace tenon::compiled_autograd {

class Run {
 public:
  Run(autograd::RunningWalk& its_walk, Description& its_description)
      : walk(its_walk), description(its_description), before_(std::exchange(current_, this)) {}
  ~Run() { current_ = before_; }
  Run(const Run&) = delete;

  static Run& current();
  autograd::Node& node(size_t step) const { return *description.steps[step].node; }

  autograd::RunningWalk& walk;
  Description& description;

 private:
  Run* before_;
  static thread_local Run* current_;
};

// A gradient that has come to its end: it goes to a leaf, or to a tensor that asked to keep it.
struct Arrival {
  enum class Kind : uint8_t { Accumulate, Retain } kind;
  uint32_t step;
  uint32_t input;  // Retain: of which of the node's inputs it is
};
void land(Run& run, const Arrival& arrival, Tensor gradient);

}  // namespace tenon::compiled_autograd
