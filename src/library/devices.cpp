#include "devices.h"

namespace tenon::library {

std::vector<dispatch::KernelKey> keys_of_devices(const std::vector<std::string>& device_types, ErrorKind otherwise) {
  using dispatch::KernelKey;
  if (device_types.empty()) return {KernelKey::CompositeExplicitAutograd};
  std::vector<KernelKey> keys;
  for (const std::string& type : device_types) {
    if (type == "cpu")
      keys.push_back(KernelKey::CPU);
    else if (type == "cuda")
      keys.push_back(KernelKey::CUDA);
    else if (type == "default")
      keys.push_back(KernelKey::CompositeExplicitAutograd);
    else
      raise(
          otherwise,
          fmt::format("[library] we only support device_type cpu and cuda, got '{}'. Expected one of cpu, cuda", type));
  }
  return keys;
}

}  // namespace tenon::library
