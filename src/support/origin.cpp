#include "support/origin.h"

namespace tenon {
namespace {

// Set by every operator call: in the thread's static block.
[[gnu::tls_model("initial-exec")]] constinit thread_local Origin origin;

}  // namespace

Origin& current_origin() { return origin; }

}  // namespace tenon
