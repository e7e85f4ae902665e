// One run of the user's function on fakes, which adds segments to the tree of its function.
#pragma once

#include "function_state.h"

namespace tenon::capture {

// All of it is new, or a path through the tree that was taken before and goes on from there.
class Capture {
 public:
  using Value = dispatch::Value;
  // `why`: nothing that was captured fits.
  static std::vector<Value> run(CompiledFunction::State& state, Frame& frame, std::span<const Value> numbers,
                                std::vector<SegmentRef> path, Body body, std::string why);
  // The whole path is known: an Error if the function does something else now.
  static void verify(CompiledFunction::State& state, Frame& frame, std::span<const Value> numbers,
                     std::vector<SegmentRef> path, Body body);

 private:
  class Run;
};

}  // namespace tenon::capture
