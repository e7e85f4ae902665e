// A walk repeated on other tensors: its nodes are copied, what they hold is exchanged, and the engine runs the copies.
//
// In a capture, the tensors are fakes and the numbers may be symbols; the engine's own run becomes the graph. What
// cannot be captured becomes a break: it is called on the real tensors, with the nodes of whatever walk is running
// then.
#pragma once

#include "run.h"

#include <tenon/dispatch/value.h>

namespace tenon::compiled_autograd {

struct Replayed {
  std::vector<Arrival> arrivals;  // gradients that have not landed yet
  std::vector<Tensor> gradients;  // of each
  std::vector<Tensor> captured;   // by capture of the walk; none when accumulating
  std::vector<std::function<void()>> callbacks;
};

struct Substitutes {
  std::span<const Tensor> tensors;           // one for each of the description's
  std::span<const dispatch::Value> numbers;  // one for each that changes
  const std::vector<bool>& changes;          // by number of the description
};

// Of the walk that is running. `verbose`: each node is logged.
Replayed replay(const Substitutes& substitutes, bool verbose);

// A walk's results as a function returns them, and back.
std::vector<dispatch::Value> flatten(Replayed replayed);
Replayed rebuild(std::vector<dispatch::Value> values);

}  // namespace tenon::compiled_autograd
