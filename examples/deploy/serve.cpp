// Serves the network that train.cpp saved, from several threads. This program has no compiler, no capture and no
// autograd: it is linked with libtenon_runtime, or contains it, and the network too (tenon package).
//
//   serve [--threads 4] [--requests 200] [waves.tenon]
#include <tenon/package/load_compiled.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "waves.h"
#ifdef WAVES_INSIDE
#include "waves_network.h"
#endif

using namespace tenon;

namespace {

Tensor signals_of(uint64_t first, int64_t count, int64_t length) {
  std::vector<float> all;
  for (int64_t at = 0; at < count; ++at) {
    std::vector<float> one = waves::signal(at % waves::kKinds, first + static_cast<uint64_t>(at), length);
    all.insert(all.end(), one.begin(), one.end());
  }
  Tensor signals = empty({count, 1, length});
  std::copy(all.begin(), all.end(), signals.data<float>());
  return signals;
}

int64_t largest(const float* shares) { return std::max_element(shares, shares + waves::kKinds) - shares; }

int serve(int64_t threads, int64_t requests, const char* path) {
  const auto begin = std::chrono::steady_clock::now();
#ifdef WAVES_INSIDE
  auto classify = tenon::packaged::waves_network<Tensor(Tensor)>();
  (void)path;
#else
  auto classify = load_compiled<Tensor(Tensor)>(path);
#endif
  (void)classify(signals_of(0, 1, waves::kLength));
  const double first_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();

  std::atomic<int64_t> next{0}, served{0}, right{0};
  {
    std::vector<std::jthread> workers;
    for (int64_t thread = 0; thread < threads; ++thread)
      workers.emplace_back([&] {
        for (int64_t request; (request = next++) < requests;) {
          // Requests have other numbers of signals, of other lengths.
          const int64_t count = 1 + request % 9, length = waves::kLength + 16 * (request % 5);
          Tensor shares = classify(signals_of(1'000'000 + 16 * static_cast<uint64_t>(request), count, length));
          for (int64_t at = 0; at < count; ++at)
            right += largest(shares.data<float>() + at * waves::kKinds) == at % waves::kKinds;
          served += count;
        }
      });
  }
  std::printf("serve: signals=%lld right=%.3f\nfirst result after %.1f ms\n", static_cast<long long>(served.load()),
              static_cast<double>(right) / static_cast<double>(served), first_ms);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  int64_t threads = 4, requests = 200;
  const char* path = "waves.tenon";
  for (int at = 1; at < count; ++at) {
    std::string_view word = words[at];
    if (word == "--threads" && at + 1 < count) {
      threads = std::atoll(words[++at]);
    } else if (word == "--requests" && at + 1 < count) {
      requests = std::atoll(words[++at]);
    } else if (word.starts_with("--")) {
      std::fprintf(stderr, "usage: %s [--threads N] [--requests N] [FILE]\n", words[0]);
      return 2;
    } else {
      path = words[at];
    }
  }
  try {
    return serve(threads, requests, path);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
