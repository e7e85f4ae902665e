// What is made of a captured graph.
#pragma once

#include <tenon/capture/compiled_function.h>

namespace tenon::capture {

aot::Compiled compile_with(const Backend& backend, const graph::Graph& graph, const std::vector<bool>& requires_grad, bool grad_enabled);

}  // namespace tenon::capture
