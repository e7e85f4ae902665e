#include <tenon/autograd/grad_mode.h>

namespace tenon::autograd {
namespace {

// Asked by every call: in the thread's static block.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool mode = true;

}  // namespace

bool grad_enabled() { return mode; }
void set_grad_enabled(bool enabled) { mode = enabled; }

}  // namespace tenon::autograd
