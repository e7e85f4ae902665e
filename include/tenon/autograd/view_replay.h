// How the history of a view is made anew after its memory was changed.
//
// By default the steps that made the view are applied again, to the base as it is then. Turned off, one step takes the
// view's places in the base's memory (`AsStridedBackward0`): the same gradients, whatever the steps were.
#pragma once

namespace tenon::autograd {

// Of this thread.
//
//   bool on = autograd::is_view_replay_enabled();
bool is_view_replay_enabled();
// From now on, or until the innermost scope ends.
//
//   autograd::set_view_replay(true);
void set_view_replay(bool enabled);

// The same as a scope; when it ends all is as it was before.
//
//   autograd::ViewReplay by_places(false);
//   Tensor view = (x * 1).set_requires_grad().mul(2).view({-1});
//   view.add_(1);
//   std::string name = autograd::grad_fn(view)->name();
class ViewReplay {
 public:
  explicit ViewReplay(bool enabled);
  ~ViewReplay();
  ViewReplay(const ViewReplay&) = delete;
  ViewReplay& operator=(const ViewReplay&) = delete;

 private:
  bool before_;
};

}  // namespace tenon::autograd
