// A fake implementation as a kernel of the Fake key.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::library {

// Operators that the implementation calls are not seen by the layers above (they would be recorded), and its factories
// give fakes.
dispatch::KernelFunction fake_kernel(dispatch::KernelFunction fake);

// An Error if a result that is to be a tensor is an undefined one. `who`: "kernel".
void check_defined(const dispatch::Call& call, std::string_view who);

}  // namespace tenon::library
