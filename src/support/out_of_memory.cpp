#include "support/out_of_memory.h"

#include <fmt/format.h>

namespace tenon::support {
namespace {

// Copies share its text, so that throwing one allocates nothing.
const NoMemory& made_before = *new NoMemory("[allocate] out of memory");

}  // namespace

void raise_no_memory() { throw NoMemory(made_before); }

void raise_out_of_memory(FunctionRef<std::string()> text) {
  try {
    throw MemoryError(text());
  } catch (const std::bad_alloc&) {
    raise_no_memory();
  }
}

void rethrow_named(const char* who) {
  auto text = [who] { return fmt::format("[{}] out of memory", who); };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(text);
  } catch (const NoMemory&) {
    raise_out_of_memory(text);
  }
}

}  // namespace tenon::support
