#include "low_memory/failing_allocator.h"

#include "support/at_fork.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace tenon::low_memory {
namespace {

std::atomic<bool> armed{false};
std::atomic<pid_t> only{0};  // the thread whose allocations fail; 0: all
std::atomic<int64_t> count{0}, failures{0}, live{0};
int64_t first_failing = 0, last_failing = 0;
constexpr int kFrames = 30;
void* stack[kFrames];  // of a failure, the last one unless others came at the same time
int frames = 0;
std::atomic_flag stack_is_busy;

// The code of one file.
struct Code {
  uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    auto at = reinterpret_cast<uintptr_t>(address);
    return begin <= at && at < end;
  }
};

// Of the program, which comes first, and of what it alone uses; and of libraries that allocate on behalf of others.
struct Known {
  Code program, solver;
  Code standard_library, formatter;

  bool is_test(const void* address) const { return program.holds(address) || solver.holds(address); }
  bool is_for_others(const void* address) const { return standard_library.holds(address) || formatter.holds(address); }
};
const Known known = [] {
  Known found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* into = static_cast<Known*>(data);
        Code code;
        for (int at = 0; at < info->dlpi_phnum; ++at) {
          const auto& part = info->dlpi_phdr[at];
          if (part.p_type == PT_LOAD && (part.p_flags & PF_X))
            code = {info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
        }
        if (!into->program.end) into->program = code;
        const std::string_view name(info->dlpi_name);
        if (name.find("libstdc++") != name.npos) into->standard_library = code;
        if (name.find("libfmt") != name.npos) into->formatter = code;
        if (name.find("libz3") != name.npos) into->solver = code;
        return 0;
      },
      &found);
  return found;
}();

// Whether the allocation at hand is one that fails. (Who asks is looked at for those alone: it takes long.)
bool fails(const void* caller) {
  if (!armed.load(std::memory_order_relaxed) || known.is_test(caller) || support::NoFork::held()) return false;
  if (const pid_t one = only.load(std::memory_order_relaxed); one != 0 && one != gettid()) return false;
  const int64_t number = count++;
  if (number < first_failing || number >= last_failing) return false;
  void* now[kFrames];
  const int depth = backtrace(now, kFrames);
  int asks = 0;
  while (asks < depth && now[asks] != caller) ++asks;
  while (asks < depth && known.is_for_others(now[asks])) ++asks;
  if (asks < depth && known.is_test(now[asks])) return false;
  if (!stack_is_busy.test_and_set(std::memory_order_acquire)) {
    std::copy(now, now + depth, stack);
    frames = depth;
    stack_is_busy.clear(std::memory_order_release);
  }
  ++failures;
  return true;
}

}  // namespace

Failing::Failing(int64_t first, int64_t length, Who who) {
  void* here[1];
  (void)backtrace(here, 1);  // it allocates, the first time
  first_failing = first;
  last_failing = first + length;
  count = failures = 0;
  only = who == Who::ThisThread ? gettid() : 0;
  armed = true;
}
Failing::~Failing() { armed = false; }

int64_t Failing::counted() { return count; }
int64_t Failing::failed() { return failures; }
std::string Failing::where() {
  std::string names;
  while (stack_is_busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  const std::vector<void*> callers(stack, stack + frames);
  stack_is_busy.clear(std::memory_order_release);
  for (size_t at = 2; at < callers.size(); ++at) {
    Dl_info found{};
    if (!dladdr(callers[at], &found) || !found.dli_sname || known.program.holds(callers[at])) continue;
    int status = 0;
    char* readable = abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &status);
    std::string name = status == 0 ? readable : found.dli_sname;
    std::free(readable);
    name = name.substr(0, name.find('('));
    if (name.starts_with("std::") || name.starts_with("operator new")) continue;
    names += (names.empty() ? "" : " < ") + name;
  }
  return names;
}

int64_t live_allocations() { return live; }

}  // namespace tenon::low_memory

// For programs that this is loaded into, which find it by name: see tests/main.cpp.
extern "C" void tenon_fail_allocations(int64_t first, int64_t length) {
  static std::optional<tenon::low_memory::Failing> failing;
  failing.reset();
  if (length > 0) failing.emplace(first, length, tenon::low_memory::Who::ThisThread);
}
extern "C" const char* tenon_failed_allocation() {
  static std::string text;
  text = tenon::low_memory::Failing::where();
  return text.c_str();
}

namespace {

void* allocate(size_t bytes, const void* caller) {
  using namespace tenon::low_memory;
  void* data = fails(caller) ? nullptr : std::malloc(bytes ? bytes : 1);
  if (data) ++live;
  return data;
}

void* allocate_or_throw(size_t bytes, const void* caller) {
  void* data = allocate(bytes, caller);
  if (!data) throw std::bad_alloc();
  return data;
}

void release(void* data) {
  if (data) --tenon::low_memory::live;
  std::free(data);
}

}  // namespace

// The forms for arrays call these; those with an alignment stay as they are.
void* operator new(size_t bytes) { return allocate_or_throw(bytes, __builtin_return_address(0)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, __builtin_return_address(0));
}
void operator delete(void* data) noexcept { release(data); }
void operator delete(void* data, size_t) noexcept { release(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { release(data); }

// The memory of tensors.
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  static const auto real = reinterpret_cast<void* (*)(size_t, size_t)>(dlsym(RTLD_NEXT, "aligned_alloc"));
  return tenon::low_memory::fails(__builtin_return_address(0)) ? nullptr : real(alignment, bytes);
}
