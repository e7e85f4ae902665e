#include "max_flow.h"

#include <algorithm>
#include <queue>

namespace tenon::aot {

void FlowNetwork::add_edge(size_t from, size_t to, int64_t capacity) {
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

bool FlowNetwork::find_levels(size_t source, size_t sink) {
  level_.assign(edges_of_.size(), -1);
  level_[source] = 0;
  std::queue<size_t> waiting({source});
  while (!waiting.empty()) {
    size_t node = waiting.front();
    waiting.pop();
    for (size_t at : edges_of_[node])
      if (edges_[at].capacity > 0 && level_[edges_[at].to] < 0) {
        level_[edges_[at].to] = level_[node] + 1;
        waiting.push(edges_[at].to);
      }
  }
  return level_[sink] >= 0;
}

int64_t FlowNetwork::push(size_t node, size_t sink, int64_t limit) {
  if (node == sink) return limit;
  for (size_t& at = next_[node]; at < edges_of_[node].size(); ++at) {
    size_t edge = edges_of_[node][at];
    if (edges_[edge].capacity <= 0 || level_[edges_[edge].to] != level_[node] + 1) continue;
    int64_t pushed = push(edges_[edge].to, sink, std::min(limit, edges_[edge].capacity));
    if (pushed == 0) continue;
    edges_[edge].capacity -= pushed;
    edges_[edge ^ 1].capacity += pushed;
    return pushed;
  }
  return 0;
}

int64_t FlowNetwork::run(size_t source, size_t sink) {
  int64_t total = 0;
  while (find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (int64_t pushed = push(source, sink, kUnlimited)) {
      total += pushed;
      if (total >= kUnlimited) break;
    }
    if (total >= kUnlimited) break;
  }
  find_sink_side(sink);
  return total;
}

// Nodes from which the sink can still be reached, walking unfilled edges backwards.
void FlowNetwork::find_sink_side(size_t sink) {
  reaches_sink_.assign(edges_of_.size(), false);
  reaches_sink_[sink] = true;
  std::queue<size_t> waiting({sink});
  while (!waiting.empty()) {
    size_t node = waiting.front();
    waiting.pop();
    for (size_t at : edges_of_[node]) {
      size_t from = edges_[at].to;
      if (edges_[at ^ 1].capacity > 0 && !reaches_sink_[from]) {
        reaches_sink_[from] = true;
        waiting.push(from);
      }
    }
  }
}

}  // namespace tenon::aot
