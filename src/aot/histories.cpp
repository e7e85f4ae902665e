#include "histories.h"

namespace tenon::aot {

EdgeSet edges_behind(std::vector<const autograd::Node*> waiting) {
  EdgeSet edges;
  for (std::set<const autograd::Node*> seen; !waiting.empty();) {
    const autograd::Node* node = waiting.back();
    waiting.pop_back();
    if (!node || !seen.insert(node).second) continue;
    for (const autograd::Edge& edge : node->next_edges()) {
      if (!edge.valid()) continue;
      edges.emplace(edge.node.get(), edge.input_nr);
      waiting.push_back(edge.node.get());
    }
  }
  return edges;
}

}  // namespace tenon::aot
