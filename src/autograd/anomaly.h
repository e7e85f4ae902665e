// What anomaly mode asks of nodes and of the engine.
#pragma once

#include <tenon/autograd/anomaly.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/node.h>

#include <span>

namespace tenon::autograd {

// Where the user's program is, for a node that is made now; `inside`: the node that a walk is running, or null.
std::string forward_line(const Node* inside);
// A warning that names the forward line of a node that has thrown.
void tell_of_failure(const Node& node);
// An Error if a gradient that leaves the node has a nan.
void refuse_nan(const Node& node, std::span<const Tensor> leaving);

}  // namespace tenon::autograd
