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

double median_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  size_t middle = numbers.size() / 2;
  return numbers.size() % 2 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

Timing summarise(std::vector<double> seconds) {
  double median = median_of(seconds), best = *std::min_element(seconds.begin(), seconds.end());
  return {median, best, std::move(seconds)};
}

}  // namespace

double paired_ratio(const Timing& one, const Timing& other) {
  std::vector<double> ratios;
  for (size_t at = 0; at < one.rounds.size(); ++at) ratios.push_back(one.rounds[at] / other.rounds[at]);
  return median_of(std::move(ratios));
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Timing time_rounds(const std::function<void()>& body, Rounds rounds) {
  int calls = calls_per_round(body, rounds);
  std::vector<double> seconds;
  for (int i = 0; i < rounds.count; ++i) seconds.push_back(time_round(body, calls));
  return summarise(std::move(seconds));
}

std::vector<Timing> time_alternating(const std::vector<std::function<void()>>& bodies, Rounds rounds) {
  std::vector<int> calls;
  for (const auto& body : bodies) calls.push_back(calls_per_round(body, rounds));
  std::vector<std::vector<double>> seconds(bodies.size());
  for (int i = 0; i < rounds.count; ++i)
    for (size_t each = 0; each < bodies.size(); ++each) seconds[each].push_back(time_round(bodies[each], calls[each]));
  std::vector<Timing> timings;
  for (auto& list : seconds) timings.push_back(summarise(std::move(list)));
  return timings;
}

std::pair<Timing, Timing> time_against(const std::function<void()>& one, const std::function<void()>& other,
                                       Rounds rounds) {
  std::vector<Timing> timings = time_alternating({one, other}, rounds);
  return {timings[0], timings[1]};
}

}  // namespace tenon::bench
