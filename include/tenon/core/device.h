// Where a tensor lives, and two small enumerations that schemas mention.
//
//   Device second = parse_device("cuda:1");
//   bool same = second == Device(DeviceType::CUDA, 1) && second.str() == "cuda:1";
//   Tensor copy = x.t().clone(MemoryFormat::Contiguous);
//   Tensor images = ones({2, 3, 8, 8}).contiguous(MemoryFormat::ChannelsLast);  // strides 192, 1, 24, 3
//   std::string_view word = name(MemoryFormat::ChannelsLast);                   // "channels_last"
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
// How a result lies in memory: row by row; as what it is made of does; with the channels of images (of four dimensions,
// of five) side by side.
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
std::string_view name(MemoryFormat format);

}  // namespace tenon
