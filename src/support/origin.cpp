#include "support/origin.h"

namespace tenon {

// Set by every operator call: in the thread's static block. Hidden and in no anonymous namespace, because gold gives
// such a variable the place of another one if there are several.
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] constinit thread_local Origin thread_origin;

Origin& current_origin() { return thread_origin; }

}  // namespace tenon
