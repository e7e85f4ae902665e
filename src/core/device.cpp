#include <tenon/core/device.h>
#include <tenon/support/error.h>

namespace tenon {

std::string Device::str() const {
  switch (type) {
    case DeviceType::CPU: return "cpu";
    case DeviceType::CUDA: return fmt::format("cuda:{}", int{index});
    case DeviceType::Meta: return "meta";
  }
  return "unknown";
}

std::string_view name(MemoryFormat format) {
  constexpr std::string_view kNames[] = {"contiguous", "preserve", "channels_last", "channels_last_3d"};
  return kNames[static_cast<size_t>(format)];
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return kCPU;
  if (text == "meta") return kMeta;
  if (text == "cuda") return kCUDA;
  if (text.starts_with("cuda:") && text.size() == 6 && text[5] >= '0' && text[5] <= '9')
    return Device(DeviceType::CUDA, static_cast<int8_t>(text[5] - '0'));
  fail("[device] expected one of cpu, cuda, cuda:N, meta, got '{}'", text);
}

}  // namespace tenon
