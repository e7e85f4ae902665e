#include "support/thread_context.h"

namespace tenon::support {

constinit thread_local ThreadContext thread_context;

}  // namespace tenon::support
