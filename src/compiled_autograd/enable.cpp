#include <tenon/compiled_autograd/enable.h>
#include <tenon/support/log.h>

#include "cache.h"
#include "support/at_fork.h"
#include "support/out_of_memory.h"

#include <cstdlib>

namespace tenon::compiled_autograd {
namespace {

// What is compiled with the same options is shared by all scopes, and by all threads.
class Caches {
 public:
  std::shared_ptr<Cache> of(const Options& options) {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Cache>& cache = caches_[{options.backend.name(), options.backend.serial(), options.fullgraph,
                                             options.dynamic, options.cuda_graphs}];
    if (!cache) cache = std::make_shared<Cache>(options);
    return cache;
  }
  void reset() {
    decltype(caches_) gone;  // kernels are unloaded without the lock
    std::lock_guard lock(mutex_);
    ++generation_;
    gone.swap(caches_);
  }
  uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }

  static Caches& all() {
    static auto* caches = new Caches;
    return *caches;
  }

 private:
  support::ForkSafe<std::mutex> mutex_;
  std::atomic<uint64_t> generation_{0};
  std::map<std::tuple<std::string, uint64_t, bool, Dynamic, bool>, std::shared_ptr<Cache>> caches_;
};

autograd::EngineInterceptor interceptor(Options options) {
  // The switch is read once: what is turned on in the middle tells of walks that start after it.
  bool verbose = log_enabled(LogTopic::CompiledAutograd);
  uint64_t generation = Caches::all().generation();
  std::shared_ptr<Cache> known = Caches::all().of(options);
  return [options = std::move(options), cache = std::move(known), generation,
          verbose](const autograd::Walk& walk) mutable {
    if (uint64_t now = Caches::all().generation(); now != generation) {
      cache = Caches::all().of(options);
      generation = now;
    }
    return cache->run(walk, verbose);
  };
}

[[maybe_unused]] const bool registered = [] {
  capture::set_walk_compiler([](const CompileOptions& options) -> std::shared_ptr<void> {
    return std::make_shared<Enable>(
        Options{.backend = options.backend, .fullgraph = false, .dynamic = options.dynamic});
  });
  const char* everywhere = std::getenv("TENON_COMPILED_AUTOGRAD");
  if (everywhere && *everywhere && std::string_view(everywhere) != "0") {
    // Threads share it, so it looks the cache up at every walk.
    static const autograd::EngineInterceptor shared = [](const autograd::Walk& walk) {
      return Caches::all().of({})->run(walk, log_enabled(LogTopic::CompiledAutograd));
    };
    autograd::set_default_interceptor(&shared);
  }
  return true;
}();

}  // namespace

Enable::Enable(Options options) try : walks_(interceptor(std::move(options))) {
} catch (...) {
  support::rethrow_named("compiled_autograd");
}
Disable::Disable() : walks_([](const autograd::Walk&) { return std::optional<std::vector<Tensor>>(); }) {}

void reset() { Caches::all().reset(); }

}  // namespace tenon::compiled_autograd
