#include <tenon/support/call_site.h>

#include <fmt/format.h>

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <mutex>

#include "support/at_fork.h"

namespace tenon {
namespace {

struct Registered {
  support::ForkSafe<std::mutex> mutex;
  Symbolizer symbolizer;
};

Registered& registered() {
  static auto* instance = new Registered;  // static objects may compile while the process ends
  return *instance;
}

// A stretch of memory that holds code of a file.
struct Code {
  std::string file;
  bool is_program = false;  // else a library
  uintptr_t base = 0;       // what offsets in the file are relative to
  uintptr_t begin = 0, end = 0;

  bool contains(uintptr_t address) const { return begin <= address && address < end; }
};

Code code_at(uintptr_t address) {
  struct Search {
    uintptr_t address;
    Code found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& [wanted, found] = *static_cast<Search*>(data);
        for (int at = 0; at < info->dlpi_phnum; ++at) {
          const ElfW(Phdr)& part = info->dlpi_phdr[at];
          if (part.p_type != PT_LOAD) continue;
          found.begin = info->dlpi_addr + part.p_vaddr;
          found.end = found.begin + part.p_memsz;
          if (!found.contains(wanted)) continue;
          found.is_program = info->dlpi_name == nullptr || *info->dlpi_name == '\0';
          found.file = found.is_program ? "/proc/self/exe" : info->dlpi_name;
          found.base = info->dlpi_addr;
          return 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Of our headers, or of the standard library's: not where the user asked.
bool is_passage(const std::string& file) {
  return file.find("include/tenon/") != std::string::npos || file.find("include/c++/") != std::string::npos;
}

bool is_ours(const std::string& function) { return function.starts_with("tenon::") || function.starts_with("std::"); }

}  // namespace

CallSite CallSite::here() {
  static const Code own = code_at(reinterpret_cast<uintptr_t>(&registered));
  struct Walk {
    CallSite site;
    size_t count = 0, seen = 0;
  } walk;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* data) {
        auto& state = *static_cast<Walk*>(data);
        uintptr_t address = _Unwind_GetIP(context);
        constexpr size_t kDeepest = 200;
        if (++state.seen > kDeepest) return _URC_END_OF_STACK;
        if (address == 0 || (!own.is_program && own.contains(address))) return _URC_NO_REASON;
        state.site.addresses_[state.count++] = address;
        return state.count < kFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &walk);
  return walk.site;
}

std::string CallSite::str() const {
  Symbolizer symbolizer;
  {
    std::lock_guard lock(registered().mutex);
    symbolizer = registered().symbolizer;
  }
  if (!symbolizer) return "";
  for (uintptr_t address : addresses_) {
    if (address == 0) break;
    Code code = code_at(address);
    if (code.file.empty()) continue;
    // What is on the stack is where the call returns to: one byte before is the call.
    for (const CodePlace& place : symbolizer(code.file, address - code.base - 1)) {
      if (place.line > 0 && !is_passage(place.file)) return fmt::format("{}:{}", base_name(place.file), place.line);
      // Without lines, or with those of a function of ours that was inlined without a trace, there is the name of the
      // function.
      if (!place.function.empty() && !is_ours(place.function)) return place.function;
    }
  }
  return "";
}

void set_symbolizer(Symbolizer symbolizer) {
  std::lock_guard lock(registered().mutex);
  registered().symbolizer = std::move(symbolizer);
}

}  // namespace tenon
