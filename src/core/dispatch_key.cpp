#include <tenon/core/dispatch_key.h>

namespace tenon {

std::string_view name(DispatchKey key) {
  constexpr std::string_view kNames[kDispatchKeyCount] = {
      "None",     "Meta",     "CUDA",    "CPU",     "Fake",    "Trace", "Functionalize", "ADInplaceOrView",
      "Autograd", "Autocast", "Capture", "Batched", "UserMode"};
  return kNames[static_cast<int>(key)];
}

}  // namespace tenon
