// A body forth and back: what runs in its place where gradients are wanted, and what computes them.
#pragma once

#include <tenon/aot/aot.h>

#include <string>
#include <vector>

namespace tenon::aot {

// How a body's inputs come about: what is carried from step to step, one slice each of other tensors, and what it
// captured. A branch has what it captured alone.
struct LoopShape {
  size_t carried = 0, sliced = 0;  // of the inputs; the others are captured
  std::vector<bool> needs_grad;    // by result, where an input that it comes from requires grad
  auto operator<=>(const LoopShape&) const = default;
};

// What the way back needs of the way forth: what forward stacks besides its results, one of the xs, a captured tensor.
struct Kept {
  enum class From : uint8_t { Stack, Slice, Captured } from = From::Stack;
  size_t index = 0;
};

// A step forth, and a step back before it is a body.
struct Step {
  graph::Graph forward, backward;
  LoopShape shape;  // of forward
  std::vector<Kept> kept_from;
  // Of the backward graph: what `kept_from` says, and by result and by input, kNoValue where there is none.
  std::vector<graph::ValueId> kept, tangents, gradients;
  // Of a forward that runs again, which may be none: what of the loop it takes.
  std::vector<int32_t> carry_again = {}, xs_again = {}, captured_again = {};
};

// The joint graph of a body, parted: forward keeps what backward needs. `wanted`: by input.
Step step_once(const graph::Graph& body, const LoopShape& shape, const std::vector<bool>& wanted);
// For gradients that are differentiated themselves: every step back begins with its primals again, of which forward
// stacks the carries. What no gradient is computed from is not asked for: it may be gone.
Step step_again(const graph::Graph& body, const LoopShape& shape, const std::vector<bool>& wanted);

// A body is being differentiated, as a whole: what stands in it and cannot be part of that says so.
class InsideBody {
 public:
  InsideBody();
  ~InsideBody();
  InsideBody(const InsideBody&) = delete;
  static bool now();

 private:
  bool before_;
};

// Steps back are being recorded above autograd, inside of this: bodies that are met record theirs too.
class RecordsStepBack {
 public:
  RecordsStepBack();
  ~RecordsStepBack();
  RecordsStepBack(const RecordsStepBack&) = delete;
  static bool now();

 private:
  bool before_;
};

}  // namespace tenon::aot
