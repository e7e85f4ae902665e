#include "kernels/at_end.h"

extern "C" {
// The names are the linker's.
extern void* __dso_handle;
int __real___cxa_atexit(void (*destroy)(void*), void* object, void* library);
__attribute__((visibility("hidden"))) int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }
}

namespace tenon::kernels {

void at_end(void (*what)()) {
  auto call = [](void* function) { reinterpret_cast<void (*)()>(function)(); };
  __real___cxa_atexit(call, reinterpret_cast<void*>(what), &__dso_handle);
}

}  // namespace tenon::kernels
