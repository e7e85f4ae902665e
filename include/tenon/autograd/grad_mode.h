// Whether operators on this thread record history for backward. On by default.
//
//   Tensor weight = ones({3}).set_requires_grad(), step = ones({3});
//   NoGrad off;                 // until the end of the scope
//   weight.sub_(step);          // a leaf may be changed: nothing is recorded
//   {
//     EnableGrad on;
//     bool recording = autograd::grad_enabled();
//   }
//   autograd::SetGradMode as_before(false);  // where a bool decides
//   autograd::set_grad_enabled(false);       // without a scope
#pragma once

namespace tenon::autograd {

bool grad_enabled();
void set_grad_enabled(bool enabled);

class SetGradMode {
 public:
  explicit SetGradMode(bool enabled) : before_(grad_enabled()) { set_grad_enabled(enabled); }
  ~SetGradMode() { set_grad_enabled(before_); }
  SetGradMode(const SetGradMode&) = delete;
  SetGradMode& operator=(const SetGradMode&) = delete;

 private:
  bool before_;
};

class NoGrad : public SetGradMode {
 public:
  NoGrad() : SetGradMode(false) {}
};

class EnableGrad : public SetGradMode {
 public:
  EnableGrad() : SetGradMode(true) {}
};

}  // namespace tenon::autograd

namespace tenon {
using autograd::EnableGrad;
using autograd::NoGrad;
}  // namespace tenon
