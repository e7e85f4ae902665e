// A generator among the arguments of a row: it may be there in the schema, and must not be given.
#pragma once

#include <tenon/core/random.h>
#include <tenon/dispatch/call.h>

namespace tenon::dispatch::detail {

// Null where none was given.
template <>
struct Reader<Generator*> {
  static Generator* read(const Value& value) { return value.is_none() ? nullptr : &value.generator(); }
};

}  // namespace tenon::dispatch::detail

namespace tenon::ops {

inline void refuse(const Generator* generator, const char* op_name) {
  TENON_CHECK_IMPLEMENTED(
      !generator, "[{}] a Generator of one's own is not supported: manual_seed() sets the one that draws", op_name);
}

}  // namespace tenon::ops
