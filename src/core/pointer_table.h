// Finds equal pointers in a list in linear time, without allocating for lists of ordinary length.
#pragma once

#include <tenon/support/small_vector.h>

#include <bit>
#include <cstdint>

namespace tenon::core {

class PointerTable {
 public:
  explicit PointerTable(size_t most) : mask_(std::bit_ceil(2 * most + 1) - 1), slots_(mask_ + 1) {}

  // The number under which the pointer was added first: `number`, if it is new.
  int32_t add(const void* pointer, int32_t number) {
    auto address = reinterpret_cast<uintptr_t>(pointer);
    for (size_t at = static_cast<size_t>((address >> 4) * 0x9e3779b97f4a7c15u >> 32) & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (slot.pointer == pointer) return slot.number;
      if (slot.pointer) continue;
      slot = {pointer, number};
      return number;
    }
  }

 private:
  struct Slot {
    const void* pointer = nullptr;
    int32_t number = 0;
  };
  size_t mask_;
  SmallVector<Slot, 64> slots_;
};

}  // namespace tenon::core
