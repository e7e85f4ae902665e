// Gradients that lie as their leaves do, so that nobody has to copy them.
#pragma once

#include <tenon/graph/graph.h>

namespace tenon::aot {

// An output (a·b)ᵀ of a backward graph, which nothing else reads, becomes bᵀ·aᵀ: the same numbers, and dense.
void make_gradients_dense(graph::Graph& backward);

}  // namespace tenon::aot
