// What the steps of opaque calls run.
#pragma once

#include "fusion.h"

namespace tenon::schedule {

using LibraryCall = decltype(runtime::CallStep::run);

// The row's own kernel, with the node's arguments: tensors and evaluated numbers in their places.
LibraryCall row_call(const ops::Row& row, const Node& node);
// A product that applies max(x, 0) to its result.
LibraryCall product_with_relu(const Node& node);
// A call through the dispatcher; its results take their slots as they are.
LibraryCall custom_call(const Node& node);
// A check that what a custom operator gave looks like its fake: the rest of the plan relies on those sizes and strides,
// which are passed as integers.
LibraryCall like_fakes(const Node& node, std::vector<Dtype> dtypes, std::vector<size_t> ranks);

// Numbers among the arguments that are passed as integers, beside plain ones and lists of them.
bool is_symbolic_real(const dispatch::Value& value);
bool is_symbolic_bool(const dispatch::Value& value);

}  // namespace tenon::schedule
