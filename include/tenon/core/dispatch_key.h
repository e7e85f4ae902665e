// Dispatch keys: the layers that a call passes through, from the top. A tensor carries the keys of the layers that
// concern it; a thread adds and removes keys for a while (see dispatch/modes.h). The highest key of a call is served
// first.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace tenon {

enum class DispatchKey : uint8_t {
  None,
  Meta,  // sizes only
  CUDA,
  CPU,
  Fake,             // sizes only, but speaks as if on its device
  Trace,            // records for aot, below autograd
  Functionalize,    // turns mutation and views into values
  ADInplaceOrView,  // bumps versions, marks views
  Autograd,         // builds the backward graph
  Autocast,
  Capture,  // records the user's calls
  Batched,  // vmap: one call for many entries
  UserMode,
  Count_,
};
constexpr int kDispatchKeyCount = static_cast<int>(DispatchKey::Count_);

std::string_view name(DispatchKey key);

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(std::initializer_list<DispatchKey> keys) {
    for (DispatchKey key : keys) bits_ |= bit(key);
  }
  constexpr KeySet operator|(KeySet other) const { return KeySet(bits_ | other.bits_); }
  constexpr KeySet operator-(KeySet other) const { return KeySet(bits_ & ~other.bits_); }
  constexpr KeySet operator&(KeySet other) const { return KeySet(bits_ & other.bits_); }
  constexpr bool has(DispatchKey key) const { return (bits_ & bit(key)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr DispatchKey highest() const {
    return bits_ == 0 ? DispatchKey::None : static_cast<DispatchKey>(15 - std::countl_zero(bits_));
  }
  // The keys below `key`.
  constexpr KeySet below(DispatchKey key) const { return KeySet(static_cast<uint16_t>(bits_ & (bit(key) - 1))); }
  constexpr bool operator==(const KeySet&) const = default;
  // As the thread's context keeps them.
  constexpr uint16_t bits() const { return bits_; }
  static constexpr KeySet from_bits(uint16_t bits) { return KeySet(bits); }

 private:
  explicit constexpr KeySet(int bits) : bits_(static_cast<uint16_t>(bits)) {}
  static constexpr uint16_t bit(DispatchKey key) {
    return key == DispatchKey::None ? uint16_t{0} : static_cast<uint16_t>(1u << static_cast<int>(key));
  }
  uint16_t bits_ = 0;
};

}  // namespace tenon
