// Where a tensor lives, and two small enumerations that schemas mention.
//
//   Device second = parse_device("cuda:1");
//   bool same = second == Device(DeviceType::CUDA, 1) && second.str() == "cuda:1";
//   Tensor copy = x.t().clone(MemoryFormat::Contiguous);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

enum class DeviceType : uint8_t { CPU, CUDA, Meta };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = 0;
  constexpr Device(DeviceType device_type = DeviceType::CPU, int8_t device_index = 0)
      : type(device_type), index(device_index) {}
  bool operator==(const Device&) const = default;
  std::string str() const;  // "cpu", "cuda:1", "meta"
};

constexpr Device kCPU{DeviceType::CPU};
constexpr Device kCUDA{DeviceType::CUDA};
constexpr Device kMeta{DeviceType::Meta};

// "cpu", "cuda", "cuda:1", "meta"; an Error that lists these otherwise.
Device parse_device(std::string_view text);

enum class Layout : uint8_t { Strided };
enum class MemoryFormat : uint8_t { Contiguous, Preserve };

}  // namespace tenon
