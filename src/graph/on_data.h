// Running a graph on real tensors.
#pragma once

#include <tenon/graph/graph.h>

namespace tenon::graph {

// The symbols of such a run: the caller's, with room for what the graph binds. Without any, `interpret` takes a run for
// one on fakes.
inline std::vector<int64_t> symbols_on_data(const Graph& graph, std::span<const int64_t> given) {
  std::vector<int64_t> symbols(given.begin(), given.end());
  symbols.resize(std::max(symbols.size(), static_cast<size_t>(graph.env->pool().symbol_count())));
  return symbols;
}

}  // namespace tenon::graph
