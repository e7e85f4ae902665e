// Loads a compiled kernel, an object file (ELF, x86-64), into the process. Code is never writable and executable at
// once. A symbol that an object leaves open must be in the table of `runtime_symbols`.
#pragma once

#include <tenon/load/kernel.h>

#include <string_view>

namespace tenon::load {

// The name of the one function that every object defines.
constexpr const char* kEntryName = "tenon_kernel";

struct LoadedCode {
  EntryPoint entry = nullptr;
  std::shared_ptr<void> owner;  // unloads the code when nobody holds it any more
};

// The object's entry point. An object that cannot be linked: nullptr, and `error` says why. What the object says about
// itself is checked before it is believed; that it does nothing bad when it runs is the caller's trust.
LoadedCode load_object_code(std::string_view object, std::string* error);
// How many objects are loaded.
int64_t loaded_object_count();

}  // namespace tenon::load
