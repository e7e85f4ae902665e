// The thread's context inside a capture, and its suspension while something runs for real in the middle of one.
#pragma once

#include "core/effects.h"
#include "core/size_reader.h"
#include "session.h"

#include <tenon/autograd/engine.h>
#include <tenon/core/cell.h>
#include <tenon/fake/dynamic_size.h>

namespace tenon::capture {

// While it lives, calls on this thread are captured by the session.
class Inside {
 public:
  explicit Inside(Session& session);
  Inside(const Inside&) = delete;

 private:
  // First of all, so that it is put back last.
  support::SwapContext context_;
  core::CellReader reader_;
  core::SizeReader sizes_;
  core::EffectInterceptor effects_;
  autograd::InterceptWalks walks_;
};

// While it lives, nothing is captured: the context is that of the call.
class Outside {
 public:
  explicit Outside(const Session& session);

 private:
  support::SwapContext context_;
};

}  // namespace tenon::capture
