// `Autocast`: while one lives, operators on its thread that gain by it, products and convolutions, compute in bfloat16
// (or float16), and those that would lose too much, losses among them, in float32. All others take what they are given.
//
//   nn::Linear layer(3, 2);
//   Autocast guard(kBFloat16);
//   bool half = layer(x).dtype() == kBFloat16;
//   {
//     Autocast off(kBFloat16, false);                    // not in here
//     bool single = layer(x).dtype() == kFloat32 && !Autocast::current();
//   }
//
// The lists of operators are those of PyTorch's autocast on CPUs, as far as the operators exist here. Gradients are
// computed in the dtypes that forward computed in; call backward() outside. A compiled function is captured with the
// casts in it, and guarded by what it was called under; a frozen one casts its weights once (docs/freezing.md).
#pragma once

#include <tenon/core/dtype.h>

#include <cstdint>
#include <optional>

namespace tenon {

class Autocast {
 public:
  explicit Autocast(Dtype dtype = kBFloat16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // The dtype of the innermost one on this thread, if that is enabled.
  static std::optional<Dtype> current();

 private:
  const Autocast* before_;
  uint16_t included_, excluded_;  // the thread's keys before
  Dtype dtype_;
  bool enabled_;
};

}  // namespace tenon
