// `operator new` of the library's own code: plain, of arrays, and with an alignment. The linker turns calls of it into
// calls of these (`--wrap`, in CMakeLists.txt), which ask what the program has in its place, and raise an Error where
// there is no memory.
#include "support/out_of_memory.h"

#include <cstddef>
#include <new>

namespace {

template <typename Allocate>
void* allocated_by(Allocate allocate) {
  try {
    return allocate();
  } catch (const std::bad_alloc&) {
    tenon::support::raise_no_memory();
  }
}

}  // namespace

#define TENON_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

void* __real__Znwm(size_t bytes);
void* __real__Znam(size_t bytes);
void* __real__ZnwmSt11align_val_t(size_t bytes, std::align_val_t alignment);

TENON_HIDDEN void* __wrap__Znwm(size_t bytes) {
  return allocated_by([=] { return __real__Znwm(bytes); });
}
TENON_HIDDEN void* __wrap__Znam(size_t bytes) {
  return allocated_by([=] { return __real__Znam(bytes); });
}
TENON_HIDDEN void* __wrap__ZnwmSt11align_val_t(size_t bytes, std::align_val_t alignment) {
  return allocated_by([=] { return __real__ZnwmSt11align_val_t(bytes, alignment); });
}

}  // extern "C"
