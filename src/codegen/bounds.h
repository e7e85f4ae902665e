// Small switches of code generation that enter the cache key.
#pragma once

#include <tenon/generated/version.h>

namespace tenon::codegen {

// The digest changes whenever generated code may, so that old entries of the object cache are not used.
constexpr const char* kVersion = TENON_VERSION " " TENON_CODEGEN_DIGEST;

// Whether kernels check every access against the stated extents of their buffers: in builds with the address
// sanitizer, which cannot see into generated code. Tests turn it on.
bool bounds_checks();
void set_bounds_checks(bool on);

}  // namespace tenon::codegen
