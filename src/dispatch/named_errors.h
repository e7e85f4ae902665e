// Errors about sizes and memory, in the words of the operator that was called.
//
// Where a size overflows or memory ends, nobody knows on whose behalf. Whoever runs an operator says so: its name takes
// the place of the one in front, and its arguments are listed. Of operators within operators the outermost is named,
// which is the one that the user wrote.
#pragma once

#include <tenon/dispatch/operator.h>

#include <new>
#include <stdexcept>

#include "support/out_of_memory.h"

namespace tenon::dispatch {

// "[repeat] expected …\n  called with (float32[3], [4611686018427387904])"
std::string named(const Operator& op, std::span<const Value> args, std::string_view text);

// Throws a MemoryError in those words.
[[noreturn]] void raise_out_of_memory(const Operator& op, std::span<const Value> args,
                                      std::string_view text = "[allocate] out of memory");

template <typename Work>
void naming(const Call& call, Work&& work) {
  try {
    work();
  } catch (const OverflowError& error) {
    throw OverflowError(named(call.op, call.args, error.what()));
  } catch (const MemoryError& error) {
    raise_out_of_memory(call.op, call.args, error.what());
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(call.op, call.args);
  } catch (const std::length_error&) {  // of a list that no memory would hold
    raise_out_of_memory(call.op, call.args);
  }
}

}  // namespace tenon::dispatch
