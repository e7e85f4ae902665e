// Hashing: `hash_combine` for in-memory tables, `Fingerprint` (128 bits, stable across runs and machines)
// for names of files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tenon {

inline size_t hash_combine(size_t seed, size_t value) {
  value *= 0x9E3779B97F4A7C15ull;
  value ^= value >> 32;
  return (seed ^ value) * 0xD6E8FEB86659FD93ull + 0x632BE59BD9B4E019ull;
}

template <typename... Rest>
size_t hash_all(const Rest&... rest) {
  size_t seed = 0;
  ((seed = hash_combine(seed, std::hash<Rest>()(rest))), ...);
  return seed;
}

struct Fingerprint {
  uint64_t high = 0, low = 0;
  bool operator==(const Fingerprint&) const = default;
  std::string hex() const;  // 32 digits
};

Fingerprint fingerprint(std::string_view bytes);

}  // namespace tenon
