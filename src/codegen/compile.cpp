#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>

#include "codegen/debug_files.h"
#include "codegen/llvm/backend.h"
#include "codegen/llvm/jit.h"

#include <tenon/support/counters.h>
#include <tenon/support/log.h>
#include <tenon/support/parallel.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace tenon::codegen {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, CompiledKernelRef> by_key;
};

// Never destroyed: kernels may run while the process ends.
Table& table() {
  static Table* made = new Table;
  return *made;
}

CompiledKernelRef find_loaded(const std::string& key) {
  std::lock_guard lock(table().mutex);
  auto found = table().by_key.find(key);
  return found == table().by_key.end() ? nullptr : found->second;
}

struct Job {
  loop::Kernel kernel;
  std::string text, key;
  CompiledKernelRef result;
  std::exception_ptr error;
};

// From the disk or from LLVM. Two threads that ask for one kernel at the same time both make it; the first to finish
// wins.
CompiledKernelRef build(Job& job, int bits) {
  static Counter& generated = counter("kernels_generated");
  static Counter& cached = counter("kernels_from_cache");
  const auto start = std::chrono::steady_clock::now();
  auto made = std::make_shared<CompiledKernel>();
  std::string problem;
  if (std::optional<std::string> object = load_object(job.key)) {
    made->entry = load_entry_point(*object, &problem);
    if (made->entry) {
      made->from_cache = true;
      cached.add();
    } else {
      warn_once("object cache link",
                fmt::format("an object from the cache does not link and is made again: {}", problem));
    }
  }
  if (!made->entry) {
    const bool debug = debug_files_wanted();
    GeneratedObject generated_object = generate_object(job.kernel, bits, debug);
    generated.add();
    made->entry = load_entry_point(generated_object.object, &problem);
    TENON_ASSERT(made->entry, "{}\n{}", problem, job.text);
    store_object(job.key, generated_object.object);
    if (debug)
      write_debug_files(job.kernel.name, job.key, job.text, generated_object.llvm_ir, generated_object.assembly);
  }
  made->compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  made->kernel = std::move(job.kernel);
  made->shape = LaunchShape(made->kernel);
  made->text = std::move(job.text);
  TENON_LOG(Kernels, "{} {} in {:.2f} ms\n{}", made->kernel.name, made->from_cache ? "loaded" : "compiled",
            made->compile_ms, made->text);
  std::lock_guard lock(table().mutex);
  return table().by_key.try_emplace(job.key, std::move(made)).first->second;
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
    if ((results[i] = find_loaded(key))) continue;
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
  for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
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

void forget_loaded_kernels() {
  std::lock_guard lock(table().mutex);
  table().by_key.clear();
}

}  // namespace tenon::codegen
