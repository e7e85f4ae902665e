#include <tenon/autograd/grad_mode.h>

namespace tenon::autograd {
namespace {

bool& mode() {
  thread_local bool enabled = true;
  return enabled;
}

}  // namespace

bool grad_enabled() { return mode(); }
void set_grad_enabled(bool enabled) { mode() = enabled; }

}  // namespace tenon::autograd
