// Bytes that tensors share. A storage may have no bytes at all (fake and meta tensors).
#pragma once

#include <tenon/core/device.h>
#include <tenon/support/intrusive.h>

#include <cstddef>
#include <functional>

namespace tenon {

class Storage final : public Counted {
 public:
  // `bytes` from the caching allocator of the device.
  Storage(int64_t bytes, Device device);
  // Foreign memory; `deleter` runs when the storage goes.
  Storage(void* data, int64_t bytes, Device device, std::function<void(void*)> deleter);
  // No memory: a fake's.
  static Ref<Storage> without_data(Device device);
  ~Storage() override;

  void* data() const { return data_; }
  bool has_data() const { return has_data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // Grows or shrinks in place; keeps the common prefix.
  void resize(int64_t bytes);

 protected:
  void release_resources() override;

 private:
  Storage() = default;
  void free();

  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  bool has_data_ = true;
  std::function<void(void*)> deleter_;  // empty: the memory is the allocator's
};

// The caching CPU allocator: 64-byte aligned blocks, kept by size class and handed out again.
namespace allocator {
void* allocate(int64_t bytes);
void release(void* data, int64_t bytes);
// Gives cached blocks back to the system.
void empty_cache();
int64_t bytes_in_use();
int64_t bytes_cached();
int64_t peak_bytes_in_use();
void reset_peak();
}  // namespace allocator

}  // namespace tenon
