// Memory that runs out, as an Error.
//
// The standard library throws `std::bad_alloc`. Where the library is entered from outside (an operator is called, a
// compiled function, a walk, a file) it becomes a `MemoryError`, and everything in between only has to be safe against
// exceptions.
#pragma once

#include <tenon/support/error.h>
#include <tenon/support/function_ref.h>

#include <new>

namespace tenon::support {

// Throws a MemoryError. A text takes memory too: where there is none left for it, the error is one that was made
// before.
[[noreturn]] void raise_out_of_memory(FunctionRef<std::string()> text);
[[noreturn]] void raise_out_of_memory(const char* who);  // "[backward] out of memory"

//   return support::with_memory_errors("backward", [&] { return start(walk); });
template <typename Work>
decltype(auto) with_memory_errors(const char* who, Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(who);
  }
}

}  // namespace tenon::support
