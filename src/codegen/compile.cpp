#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>

#include "codegen/debug_files.h"
#include "codegen/llvm/backend.h"
#include "load/object.h"
#include "support/at_fork.h"

#include <tenon/support/counters.h>
#include <tenon/support/log.h>
#include <tenon/support/parallel.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unordered_map>

namespace tenon::codegen {
namespace {

// The kernels of this process. What nobody holds is unloaded, oldest first, beyond the latest few thousand: a program
// that compiles for ever must not run out of mappings.
class Table {
 public:
  CompiledKernelRef find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : found->second.lock();
  }

  // The one that is there, if another thread was faster.
  CompiledKernelRef add(const std::string& key, CompiledKernelRef made) {
    CompiledKernelRef dropped;  // unloaded outside the lock
    std::lock_guard lock(mutex_);
    std::weak_ptr<const CompiledKernel>& place = by_key_[key];
    if (CompiledKernelRef there = place.lock()) return there;
    place = made;
    latest_.push_back(made);
    if (latest_.size() > kLatest) {
      dropped = std::move(latest_.front());
      latest_.pop_front();
    }
    if (by_key_.size() > 2 * swept_) {
      std::erase_if(by_key_, [](const auto& each) { return each.second.expired(); });
      swept_ = std::max(by_key_.size(), kLatest);
    }
    return made;
  }

  void clear() {
    std::deque<CompiledKernelRef> dropped;
    std::lock_guard lock(mutex_);
    by_key_.clear();
    dropped.swap(latest_);
  }

 private:
  static constexpr size_t kLatest = 4096;
  support::ForkSafe<std::mutex> mutex_;
  std::unordered_map<std::string, std::weak_ptr<const CompiledKernel>> by_key_;
  std::deque<CompiledKernelRef> latest_;
  size_t swept_ = kLatest;  // entries after the last sweep
};

// Never destroyed: kernels may run while the process ends.
Table& table() {
  static Table* made = new Table;
  return *made;
}

struct Job {
  loop::Kernel kernel;
  std::string text, key;
  CompiledKernelRef result;
  std::exception_ptr error;
};

// What a launch must know of the kernel.
void describe(CompiledKernel& made, loop::Kernel kernel) {
  made.name = kernel.name;
  made.pool = kernel.pool;
  made.integers = kernel.integers;
  made.shape = launch_shape(kernel);
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.role == loop::BufferRole::Scratch)
      made.scratch.push_back(max(kernel.pool->constant(0), buffer.extent) * size_of(buffer.dtype));
  made.checks = kernel.checks;
  made.kernel = std::move(kernel);
}

// From the disk or from LLVM. Two threads that ask for one kernel at the same time both make it; the first to finish
// wins.
CompiledKernelRef build(Job& job, int bits) {
  static Counter& generated = counter("kernels_generated");
  static Counter& cached = counter("kernels_from_cache");
  support::NoFork llvm_holds_locks;
  const auto start = std::chrono::steady_clock::now();
  auto made = std::make_shared<CompiledKernel>();
  std::string problem;
  if (std::optional<std::string> object = load_object(job.key)) {
    load::LoadedCode loaded = load::load_object_code(*object, &problem);
    if (loaded.entry) {
      made->entry = loaded.entry;
      made->code = std::move(loaded.owner);
      made->from_cache = true;
      cached.add();
    } else {
      warn_once("object cache link",
                fmt::format("an object from the cache does not link and is made again: {}", problem));
    }
  }
  if (!made->entry) {
    const bool debug = debug_files_wanted();
    GeneratedObject generated_object = generate_object(job.kernel, {bits}, debug);
    generated.add();
    load::LoadedCode loaded = load::load_object_code(generated_object.object, &problem);
    TENON_ASSERT(loaded.entry, "{}\n{}", problem, job.text);
    made->entry = loaded.entry;
    made->code = std::move(loaded.owner);
    store_object(job.key, generated_object.object);
    if (debug)
      write_debug_files(job.kernel.name, job.key, job.text, generated_object.llvm_ir, generated_object.assembly);
  }
  made->compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  describe(*made, std::move(job.kernel));
  made->text = std::move(job.text);
  TENON_LOG(Kernels, "{} {} in {:.2f} ms\n{}", made->name, made->from_cache ? "loaded" : "compiled", made->compile_ms,
            made->text);
  return table().add(job.key, std::move(made));
}

}  // namespace

std::vector<CompiledKernelRef> compile_all(std::vector<loop::Kernel> kernels) {
  const int bits = isa_bits();
  const std::string target = target_description();
  std::vector<CompiledKernelRef> results(kernels.size());
  std::vector<Job> jobs;
  std::vector<size_t> job_of(kernels.size());
  std::unordered_map<std::string, size_t> job_by_key;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::string text = loop::to_string(kernels[i]);
    std::string key = target + "\n" + text;
    if ((results[i] = table().find(key))) continue;
    auto [at, fresh] = job_by_key.try_emplace(key, jobs.size());
    job_of[i] = at->second;
    if (fresh) jobs.push_back({std::move(kernels[i]), std::move(text), std::move(key), nullptr, nullptr});
  }

  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      try {
        jobs[i].result = build(jobs[i], bits);
      } catch (...) {
        jobs[i].error = std::current_exception();
      }
    }
  };
  // Threads of their own, not the pool's: compiling is long and uneven, and may happen while the pool is busy.
  std::vector<std::thread> helpers;
  const size_t threads = std::min(jobs.size(), static_cast<size_t>(num_threads()));
  helpers.reserve(threads);
  try {
    for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  } catch (const std::exception& error) {
    // The system gives no more threads, or there is no memory for one: those that there are do it all.
    TENON_LOG(Kernels, "{} threads compile, {} were wanted: {}", helpers.size() + 1, threads, error.what());
  }
  work();
  for (std::thread& helper : helpers) helper.join();

  for (const Job& job : jobs)
    if (job.error) std::rethrow_exception(job.error);
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i]) results[i] = jobs[job_of[i]].result;
  return results;
}

CompiledKernelRef compile(loop::Kernel kernel) {
  std::vector<loop::Kernel> one;
  one.push_back(std::move(kernel));
  return compile_all(std::move(one))[0];
}

std::string portable_object(const loop::Kernel& kernel, int bits) {
  support::NoFork llvm_holds_locks;
  return generate_object(kernel, {.bits = bits, .portable = true}, false).object;
}

void forget_loaded_kernels() { table().clear(); }
int64_t loaded_kernel_count() { return load::loaded_object_count(); }

const CompiledKernel* compiled_from(const load::Kernel& kernel) { return dynamic_cast<const CompiledKernel*>(&kernel); }

}  // namespace tenon::codegen
