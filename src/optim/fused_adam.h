// A step of Adam over many parameters at once, as one launch.
#pragma once

#include <tenon/optim/adam.h>

namespace tenon::optim {

// One parameter of the step: its tensors, and the numbers that its group and its count of steps give.
struct FusedAdamPart {
  Tensor parameter, gradient, mean, square, largest;  // `largest` is undefined without amsgrad
  const AdamOptions* options = nullptr;
  int64_t step = 0;
};

// Whether the part can take part: plain numbers of one floating type of 4 or 8 bytes, laid out alike.
bool can_be_fused(const FusedAdamPart& part);
// Does to the elements what `Adam::update` does by operators, in the same order and with the same rounding.
void fused_adam_step(std::span<const FusedAdamPart> parts);

}  // namespace tenon::optim
