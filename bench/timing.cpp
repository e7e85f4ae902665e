#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench.h"

namespace tenon::bench {
namespace {

constexpr double kRoundSeconds = 1e-3;

// Warms up and finds the number of calls that make a round.
int calls_per_round(const std::function<void()>& body, const Rounds& rounds) {
  for (int i = 0; i < rounds.warm_up; ++i) body();
  if (rounds.calls > 0) return rounds.calls;
  double start = now();
  body();
  double once = std::max(now() - start, 1e-8);
  return std::clamp(static_cast<int>(std::ceil(kRoundSeconds / once)), 1, 100000);
}

double time_round(const std::function<void()>& body, int calls) {
  double start = now();
  for (int i = 0; i < calls; ++i) body();
  return (now() - start) / calls;
}

Timing summarise(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  size_t middle = seconds.size() / 2;
  double median = seconds.size() % 2 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  return {median, seconds.front()};
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Timing time_rounds(const std::function<void()>& body, Rounds rounds) {
  int calls = calls_per_round(body, rounds);
  std::vector<double> seconds;
  for (int i = 0; i < rounds.count; ++i) seconds.push_back(time_round(body, calls));
  return summarise(std::move(seconds));
}

std::pair<Timing, Timing> time_against(const std::function<void()>& one, const std::function<void()>& other,
                                       Rounds rounds) {
  int calls_one = calls_per_round(one, rounds);
  int calls_other = calls_per_round(other, rounds);
  std::vector<double> seconds_one, seconds_other;
  for (int i = 0; i < rounds.count; ++i) {
    seconds_one.push_back(time_round(one, calls_one));
    seconds_other.push_back(time_round(other, calls_other));
  }
  return {summarise(std::move(seconds_one)), summarise(std::move(seconds_other))};
}

}  // namespace tenon::bench
