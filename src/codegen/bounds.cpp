#include "bounds.h"

#include <atomic>

namespace tenon::codegen {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kByDefault = true;
#else
constexpr bool kByDefault = false;
#endif
std::atomic<bool> checks{kByDefault};

}  // namespace

bool bounds_checks() { return checks; }
void set_bounds_checks(bool on) { checks = on; }

}  // namespace tenon::codegen
