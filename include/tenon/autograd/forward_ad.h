// Forward mode: derivatives along one direction, computed beside the values.
//
//   forward_ad::DualLevel level;
//   Tensor angle = forward_ad::make_dual(x, ones_like(x));
//   auto [value, slope] = forward_ad::unpack_dual(angle.sin() * 2);  // slope: 2 cos(x)
//
// A dual tensor is a value with a tangent: how it changes along the direction that was given. Operators give their
// results tangents: views and writes in place too, and an `autograd::Function` by its `jvp`. Tangents are
// differentiable like anything else, so that a gradient of a slope can be asked for; gradients have no tangents. Every
// operator that has a gradient has a tangent: it is the derivative of the gradient with respect to what the gradient is
// given, which costs about three times the operator. Compiled functions run eagerly while a level lives.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::forward_ad {

// While it lives, the thread computes tangents. There is one at a time; a tangent ends with its level.
//
//   {
//     forward_ad::DualLevel level;
//     Tensor dual = forward_ad::make_dual(x, x);
//   }
//   bool is_on = forward_ad::DualLevel::is_on();  // no longer
class DualLevel {
 public:
  DualLevel();
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;

  static bool is_on();
  uint64_t number() const { return number_; }

 private:
  uint64_t number_;
};

// A view of the tensor, with a tangent of its sizes.
//
//   forward_ad::DualLevel level;
//   Tensor dual = forward_ad::make_dual(x, ones_like(x));
Tensor make_dual(const Tensor& tensor, const Tensor& tangent);

//   forward_ad::DualLevel level;
//   forward_ad::DualTensor parts = forward_ad::unpack_dual(forward_ad::make_dual(x, ones_like(x)));
//   Tensor value = parts.primal, slope = parts.tangent;
struct DualTensor {
  Tensor primal;
  Tensor tangent;  // undefined if the tensor has none
};

// The two parts of a dual tensor.
//
//   forward_ad::DualLevel level;
//   bool none = !forward_ad::unpack_dual(x).tangent.defined();
DualTensor unpack_dual(const Tensor& tensor);

}  // namespace tenon::forward_ad
