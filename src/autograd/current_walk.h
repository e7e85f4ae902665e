// What a node may ask of the walk that runs it.
#pragma once

#include <tenon/autograd/node.h>

namespace tenon::autograd {

// Whether the walk on this thread needs a gradient to go along this edge; true outside a walk.
bool walk_wants(const Edge& edge);

// Whether the walk on this thread runs this node for the last time, and frees what it saved: nobody asked to retain the
// graph. False outside a walk.
bool walk_frees(const Node& node);

// A tensor that retains its gradient gets one.
void keep_gradient(const Tensor& tensor, const Tensor& gradient);

}  // namespace tenon::autograd
