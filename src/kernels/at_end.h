// What the library does when the process ends.
//
// Its static objects are never destroyed, and neither are LLVM's, which is linked into it: the program's own static
// objects, its `atexit` handlers and threads that nobody waits for may compute until the very end, and many of those
// objects are made at the first use, so that they would go before what still needs them. The linker turns the calls
// that register destructors into calls of a function that does nothing (`--wrap=__cxa_atexit`, in CMakeLists.txt).
#pragma once

namespace tenon::kernels {

// Called when the static objects of the program are gone, the last that was asked for first.
void at_end(void (*what)());

}  // namespace tenon::kernels
