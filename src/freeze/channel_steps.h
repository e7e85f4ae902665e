// What follows a value and does the same to all elements of a channel: multiplying, dividing, adding, subtracting a
// constant that has one number for each channel (or one for all), casts, and views that keep the channels.
#pragma once

#include "constants.h"
#include "schedule/rewrite.h"

namespace tenon::freezing {

using schedule::Values;

struct ChannelStep {
  enum class Kind : uint8_t { Add, Subtract, SubtractFrom, Multiply, Divide, Negate, Cast, View } kind = Kind::Add;
  const Node* node = nullptr;
  ValueId result = graph::kNoValue;
  graph::Argument operand;  // a constant value, or a number
  double alpha = 1;         // what it is multiplied by, of Add and Subtract

  bool computes() const { return kind != Kind::Cast && kind != Kind::View; }
};

struct ChannelSteps {
  std::vector<ChannelStep> steps;
  std::string why;  // the steps end there
};

// From `start` on, as long as each value has a single reader and is no result. `channel`: its dimension of channels,
// counted from the last (-1, -3).
ChannelSteps channel_steps(const Graph& graph, const Mask& constants, ValueId start, int64_t channel);

// All of them together: x * scale + shift. Of one dimension, [channels] or [1]; undefined: nothing is multiplied,
// added.
struct Scaling {
  Tensor scale, shift;
};
Scaling scaling_of(std::span<const ChannelStep> steps, const Values& now, Dtype dtype);

}  // namespace tenon::freezing
