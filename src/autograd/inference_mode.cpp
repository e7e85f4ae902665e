#include <tenon/autograd/inference_mode.h>

#include <utility>

namespace tenon::autograd {
namespace {
thread_local bool enabled_here = false;
}

// Turned off, gradients are recorded; where no such mode was on, they are as they were.
InferenceMode::InferenceMode(bool enabled)
    : before_(std::exchange(enabled_here, enabled)), grad_(enabled ? false : before_ || grad_enabled()) {}
InferenceMode::~InferenceMode() { enabled_here = before_; }
bool InferenceMode::is_enabled() { return enabled_here; }

}  // namespace tenon::autograd
