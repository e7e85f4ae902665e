// From tensors to a walk: the checks that `backward` and `grad` share in all their forms.
#pragma once

#include <tenon/autograd/engine.h>

namespace tenon::autograd {

// The walk's roots, with their gradients; `what` names the caller in errors.
Walk prepare_walk(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph,
                  bool create_graph, const char* what);
// Where the gradient of an input goes; an Error if it has none.
Edge edge_of_input(const Tensor& input, size_t at, const char* what);
// Of `grad` without `allow_unused`.
void check_used(const Tensor& gradient, size_t at, const std::string& input);
// `backward` with `create_graph` leaves gradients that hold the graph, in the tensors that the graph holds.
void warn_of_ring(bool create_graph);

}  // namespace tenon::autograd
