#include "support/thread_context.h"

#include <tenon/autograd/grad_mode.h>

namespace tenon::autograd {

bool grad_enabled() { return support::thread_context.grad_enabled; }
void set_grad_enabled(bool enabled) { support::thread_context.grad_enabled = enabled; }

}  // namespace tenon::autograd
