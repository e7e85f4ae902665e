// Matrix products of operands that are padded to aligned sizes (`should_pad` in schedule.h says which, and why).
#pragma once

#include <tenon/graph/graph.h>

namespace tenon::schedule {

graph::Graph pad_products(const graph::Graph& graph);

}  // namespace tenon::schedule
