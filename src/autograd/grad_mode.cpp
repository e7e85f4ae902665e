#include <tenon/autograd/grad_mode.h>

namespace tenon::autograd {

// Asked by every call: in the thread's static block. Hidden and in no anonymous namespace, because gold gives such a
// variable the place of another one if there are several.
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] constinit thread_local bool thread_grad_mode = true;

bool grad_enabled() { return thread_grad_mode; }
void set_grad_enabled(bool enabled) { thread_grad_mode = enabled; }

}  // namespace tenon::autograd
