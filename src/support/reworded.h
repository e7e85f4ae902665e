// An error again, in other words.
#pragma once

#include <tenon/support/error.h>

namespace tenon::support {

// Throws an error of the class that `error` has, with another text.
[[noreturn]] void raise_reworded(const Error& error, const std::string& text);

}  // namespace tenon::support
