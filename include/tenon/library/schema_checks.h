// Questions about schemas that registrations ask.
#pragma once

#include <tenon/schema/schema.h>

namespace tenon::library {

// Returns something, writes to nothing, and aliases nothing: what a gradient formula can be registered for.
inline bool is_functional_operator(const schema::Schema& schema) {
  return schema.is_functional() && !schema.returns.empty();
}

// A list of tensors or of optional tensors, itself optional or not.
inline bool is_tensorlist_like(const schema::Type& type) {
  const schema::Type& plain = type.is_optional() ? type.element[0] : type;
  return plain.is_list() && plain.is_tensor_like();
}

}  // namespace tenon::library
