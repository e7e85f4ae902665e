#include "support/out_of_memory.h"

#include <fmt/format.h>

namespace tenon::support {
namespace {

// Copies share its text, so that throwing one allocates nothing.
const MemoryError& made_before = *new MemoryError("[allocate] out of memory");

}  // namespace

void raise_out_of_memory(FunctionRef<std::string()> text) {
  try {
    throw MemoryError(text());
  } catch (const std::bad_alloc&) {
    throw MemoryError(made_before);
  }
}

void raise_out_of_memory(const char* who) {
  raise_out_of_memory([&] { return fmt::format("[{}] out of memory", who); });
}

}  // namespace tenon::support
