// A call of an operator as an example for its comment. tools/examples makes a test of it, where `x` and `y` are float32
// tensors [2, 3] and `out` is one to be written.
#pragma once

#include <tenon/schema/schema.h>

#include <string>

namespace tenon::generate_api {

// What stands for an argument in a call. `first`: it is the first tensor of the call.
std::string example_argument(const schema::Schema& schema, const schema::Argument& argument, bool first);

// Whether the argument is given although it has a default.
bool example_gives(const schema::Schema& schema, const schema::Argument& argument);

}  // namespace tenon::generate_api
