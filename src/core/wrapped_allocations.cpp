// What the library's own code gets memory by: `operator new`, plain, of arrays and with an alignment; and the errors of
// the standard library, from which ours are derived and which keep their texts in memory of their own. The linker turns
// calls of those into calls of these (`--wrap`, in CMakeLists.txt), which call what was meant, and raise an Error where
// there is no memory. With that, and texts formatted by code of ours (support/format_texts.cpp), no function of ours
// lets a `std::bad_alloc` out, however deep inside it is that a program calls.
#include "support/out_of_memory.h"

#include <cstddef>
#include <new>
#include <string>

namespace {

template <typename Allocate>
auto allocated_by(Allocate allocate) {
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

// The constructors of std::logic_error and std::runtime_error that are given a std::string, as the linker knows them.
#define TENON_LOGIC_ERROR "_ZNSt11logic_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define TENON_RUNTIME_ERROR "_ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

void make_logic_error(void* error, const std::string& text) asm("__real_" TENON_LOGIC_ERROR);
void make_runtime_error(void* error, const std::string& text) asm("__real_" TENON_RUNTIME_ERROR);
TENON_HIDDEN void wrapped_logic_error(void* error, const std::string& text) asm("__wrap_" TENON_LOGIC_ERROR);
TENON_HIDDEN void wrapped_runtime_error(void* error, const std::string& text) asm("__wrap_" TENON_RUNTIME_ERROR);

void wrapped_logic_error(void* error, const std::string& text) {
  allocated_by([&] { make_logic_error(error, text); });
}
void wrapped_runtime_error(void* error, const std::string& text) {
  allocated_by([&] { make_runtime_error(error, text); });
}
