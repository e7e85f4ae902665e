// What the network of this example is about: sines, squares, saws and noise, in noise.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace waves {

constexpr int64_t kLength = 128, kKinds = 4;
inline const char* const kNames[kKinds] = {"sine", "square", "saw", "noise"};

// The same signal for the same number.
inline std::vector<float> signal(int64_t kind, uint64_t number, int64_t length = kLength) {
  uint64_t state = 88172645463325252ull + number * 0x9E3779B97F4A7C15ull;
  auto random = [&] {  // xorshift, from 0 to 1
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  };
  const double waves = 3 + 6 * random(), phase = random(), loud = 0.6 + 0.8 * random();
  std::vector<float> samples;
  for (int64_t at = 0; at < length; ++at) {
    const double turns = phase + waves * static_cast<double>(at) / kLength, within = turns - std::floor(turns);
    const double noise = 2 * random() - 1;
    const double clean[] = {std::sin(2 * 3.14159265358979 * turns), within < 0.5 ? 1.0 : -1.0, 2 * within - 1, noise};
    samples.push_back(static_cast<float>(loud * clean[kind] + 0.2 * noise));
  }
  return samples;
}

}  // namespace waves
