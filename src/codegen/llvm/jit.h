// Loads object files into the process. Code is never writable and executable at once. A symbol that an object leaves
// open must be in the table of `runtime_symbols`.
#pragma once

#include <tenon/loop/kernel.h>

#include <string>

namespace tenon::codegen {

// The name of the one function that every object defines.
constexpr const char* kEntryName = "tenon_kernel";

// The object's entry point; it stays valid for the life of the process. An object that cannot be linked: nullptr, and
// `error` says why.
loop::EntryPoint load_entry_point(const std::string& object, std::string* error);

}  // namespace tenon::codegen
