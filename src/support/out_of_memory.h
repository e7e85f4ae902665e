// Memory that runs out, as an Error.
//
// What the library's own code asks `operator new` for and does not get is a `NoMemory` (core/wrapped_allocations.cpp),
// and so are texts that cannot be made (format_texts.cpp). The standard library's code outside of headers (files,
// threads) throws `std::bad_alloc` still. Where the library is entered from outside (an operator is called, a compiled
// function, a walk, a file) both become a `MemoryError` that names what was asked for; everything in between only has
// to be safe against exceptions.
#pragma once

#include <tenon/support/error.h>
#include <tenon/support/function_ref.h>

#include <new>

namespace tenon::support {

// Nobody has said yet what the memory was for.
class NoMemory final : public MemoryError {
  using MemoryError::MemoryError;
};
[[noreturn]] void raise_no_memory();

// Throws a MemoryError. A text takes memory too: where there is none left for it, the error is one that was made
// before.
[[noreturn]] void raise_out_of_memory(FunctionRef<std::string()> text);

// Throws the exception at hand again; one that says no more than that there is no memory as "[who] out of memory".
//
//   void step() try { ... } catch (...) { support::rethrow_named("step"); }
[[noreturn]] void rethrow_named(const char* who);

}  // namespace tenon::support
