// The tensors around a function: what it is called with, what it reads besides, and what they look into.
#pragma once

#include "fuzz/printed.h"
#include "fuzz/program.h"

#include <tenon/core/cell.h>

namespace tenon::fuzz {

struct World : Around {
  std::vector<Tensor> closures;     // handles that the function reads; by source, undefined for others
  std::vector<Cell<Tensor>> cells;  // the same for cells
  Cell<double> rate{0.5};
  std::vector<int64_t> hook_calls;  // by the hook's factor
  std::vector<size_t> sizes;        // of a kept base: which sizes it has

  std::vector<Tensor> arguments(const Program& program) const;
};

// Makes everything ready for a call: new tensors, kept ones where they stay, no gradients, the generator seeded.
void prepare(World& world, const Program& program, size_t call);

// A base's sizes in a call, and the tensor with its contents.
Ints base_sizes(const Base& base, size_t sizes);
// With each real off by a little, of halves by one in the last place.
Tensor nudged(const Tensor& tensor);
Tensor make_base(const Program& program, size_t base, size_t call);

constexpr double kRates[] = {0.5, 0.25, 2.0};

}  // namespace tenon::fuzz
