// What the tests of seed 000 share.
#pragma once

#include "../unit/capture/testing.h"

#include <tenon/fake/dynamic_size.h>
#include <tenon/library/custom_op.h>
#include <tenon/support/counters.h>

namespace tenon::dynamic_shapes {

using testing::error_of;
using testing::same_bits;

inline const CompileOptions kDynamic = {.dynamic = Dynamic::On};
// Values and sizes that come from data stay in the graph.
inline const CompileOptions kUnbacked = {
    .fullgraph = true, .capture_scalar_outputs = true, .capture_dynamic_output_shape_ops = true};

}  // namespace tenon::dynamic_shapes
