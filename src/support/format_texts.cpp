// fmt's own code, as a part of the library: what it asks `operator new` for is asked by our code then, and memory that
// runs out while a text is made is an Error (core/wrapped_allocations.cpp). Compiled without the precompiled header,
// which has seen fmt already.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace {

// Being named here, the function is a part of this object; the linker prefers it to the one in fmt's own library.
using Format = std::string (*)(fmt::string_view, fmt::format_args);
[[gnu::used]] const Format format = &fmt::vformat;

}  // namespace
