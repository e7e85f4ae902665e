#include <tenon/support/hash.h>

#include <fmt/format.h>

#include <cstring>

namespace tenon {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A multiply-fold hash over 8-byte words; the length closes it, so that padding cannot collide.
uint64_t fold(std::string_view bytes, uint64_t seed, uint64_t key) {
  uint64_t state = seed;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    state = mix(state ^ word, key) + 0x9E3779B97F4A7C15ull;
  }
  uint64_t last = 0;
  if (at < bytes.size()) std::memcpy(&last, bytes.data() + at, bytes.size() - at);
  state = mix(state ^ last, key) + bytes.size();
  return mix(state ^ (state >> 29), 0xBF58476D1CE4E5B9ull);
}

}  // namespace

std::string Fingerprint::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Fingerprint fingerprint(std::string_view bytes) {
  return {fold(bytes, 0x243F6A8885A308D3ull, 0xA0761D6478BD642Full),
          fold(bytes, 0x13198A2E03707344ull, 0xE7037ED1A0B428DBull)};
}

}  // namespace tenon
