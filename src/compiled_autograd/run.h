// One walk that is run as what was compiled of walks like it. What cannot be captured finds the nodes at hand here.
#pragma once

#include "description.h"

#include <map>

namespace tenon::compiled_autograd {

class Run {
 public:
  Run(autograd::RunningWalk& its_walk, Description& its_description)
      : walk(its_walk), description(its_description), before_(std::exchange(current_, this)) {}
  ~Run() { current_ = before_; }
  Run(const Run&) = delete;

  static Run& current();
  autograd::Node& node(size_t step) const { return *description.steps[step].node; }

  // The hooks of a step as they were when the first of them was called: one may remove others, or itself. Of tensors:
  // by their place among those of the node, `kOfLeaf` for a leaf's own.
  static constexpr size_t kOfLeaf = ~size_t{0};
  autograd::TensorHook tensor_hook(size_t step, size_t ordinal, size_t at);
  autograd::PreHook pre_hook(size_t step, size_t at);
  autograd::PostHook post_hook(size_t step, size_t at);

  autograd::RunningWalk& walk;
  Description& description;

 private:
  std::map<std::pair<size_t, size_t>, std::vector<autograd::TensorHooks::Entry>> tensor_hooks_;
  std::map<size_t, std::vector<autograd::HookEntry<autograd::PreHook>>> pre_hooks_;
  std::map<size_t, std::vector<autograd::HookEntry<autograd::PostHook>>> post_hooks_;
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
