// Loads object files into the process. Code is never writable and executable at once. A symbol that an object leaves
// open must be in the table of `runtime_symbols`.
#pragma once

#include <tenon/loop/kernel.h>

#include <memory>
#include <string>

namespace tenon::codegen {

// The name of the one function that every object defines.
constexpr const char* kEntryName = "tenon_kernel";

struct LoadedCode {
  loop::EntryPoint entry = nullptr;
  std::shared_ptr<void> owner;  // unloads the code when nobody holds it any more
};

// The object's entry point. An object that cannot be linked: nullptr, and `error` says why.
LoadedCode load_object_code(const std::string& object, std::string* error);
// How many objects are loaded.
int64_t loaded_object_count();

}  // namespace tenon::codegen
