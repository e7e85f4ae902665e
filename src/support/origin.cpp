#include "support/origin.h"

#include "support/thread_context.h"

namespace tenon {

Origin& current_origin() { return support::thread_context.origin; }

}  // namespace tenon
