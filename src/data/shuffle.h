// Numbers by a seed, the same on every machine (those of <random>'s distributions are not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tenon::data {

// Below `bound`, each as likely.
inline size_t below(std::mt19937_64& random, size_t bound) {
  const uint64_t rest = (UINT64_MAX % bound + 1) % bound, last = UINT64_MAX - rest;
  uint64_t drawn = random();
  while (drawn > last) drawn = random();
  return drawn % bound;
}

// 0, 1, …, size - 1 in an order that the seed decides.
std::vector<size_t> permutation(size_t size, uint64_t seed, uint64_t stream);

}  // namespace tenon::data
