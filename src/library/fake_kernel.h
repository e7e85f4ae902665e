// A fake implementation as a kernel of the Fake key.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::library {

// Operators that the implementation calls are not seen by the layers above (they would be recorded), and its factories
// give fakes.
dispatch::KernelFunction fake_kernel(dispatch::KernelFunction fake);

}  // namespace tenon::library
