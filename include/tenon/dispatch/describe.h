// Where the kernel of each dispatch key of an operator comes from; for tools and tests.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::dispatch {

enum class KernelOrigin : uint8_t {
  PassedOver,         // a layer that does not concern this operator
  Missing,            // a backend without a kernel: a call is an Error
  Own,
  CompositeExplicit,
  CompositeImplicit,
  Fallback,           // of the key, for all operators
};

// From the highest key down.
std::vector<std::pair<DispatchKey, KernelOrigin>> describe(const Operator& op);

}  // namespace tenon::dispatch
