// The thread's state inside a capture, and its suspension while something runs for real in the middle of one.
#pragma once

#include "session.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/fake/dynamic_size.h>

namespace tenon::capture {

void set_current_session(Session* session);

// While it lives, calls on this thread are captured by the session.
class Inside {
 public:
  explicit Inside(Session& session);
  ~Inside();
  Inside(const Inside&) = delete;

 private:
  friend class Outside;
  Session& session_;
  core::CellReader reader_;
  const core::CellReader* reader_before_;
  autograd::EngineInterceptor interceptor_before_;
  autograd::GradientInterceptor gradients_before_;
  autograd::DropSavedTensors drop_{true};
  dispatch::IncludeKeys include_;
};

// While it lives, nothing is captured: everything is as it was before the capture began, with the grad mode of the
// call.
class Outside {
 public:
  explicit Outside(Session& session);
  ~Outside();
  Outside(const Outside&) = delete;

 private:
  Session& session_;
  dispatch::ThreadKeys keys_;
  const core::CellReader* reader_;
  autograd::EngineInterceptor interceptor_;
  autograd::GradientInterceptor gradients_;
  autograd::DropSavedTensors keep_{false};
  autograd::SetGradMode mode_;
  fake::DynamicSizes no_sizes_;
};

}  // namespace tenon::capture
