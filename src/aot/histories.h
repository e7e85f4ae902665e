// The histories that autograd gives to functional tensors while a program is traced.
#pragma once

#include <tenon/autograd/node.h>

#include <set>
#include <vector>

namespace tenon::aot {

using EdgeSet = std::set<std::pair<const autograd::Node*, uint32_t>>;

// All edges that gradients of these nodes take.
EdgeSet edges_behind(std::vector<const autograd::Node*> waiting);

}  // namespace tenon::aot
