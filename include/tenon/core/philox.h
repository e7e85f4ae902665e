// Philox4x32-10, the counter-based random generator: a keyed bijection of 128-bit counters.
//
// All random numbers of Tenon are words of this function, whoever draws them: the CPU generator, the interpreter and
// generated code. A stream is named by (seed, offset); its words are numbered by `element`.
#pragma once

#include <array>
#include <cstdint>

namespace tenon {

constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9, kPhiloxWeyl1 = 0xBB67AE85;  // added to the key after each round
constexpr int kPhiloxRounds = 10;

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  return counter;
}

// Four consecutive words of a stream: elements 4*block … 4*block + 3.
constexpr std::array<uint32_t, 4> philox_block(uint64_t seed, uint64_t offset, uint64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(offset),
                     static_cast<uint32_t>(offset >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

constexpr uint32_t philox_word(uint64_t seed, uint64_t offset, uint64_t element) {
  return philox_block(seed, offset, element / 4)[element % 4];
}

}  // namespace tenon
