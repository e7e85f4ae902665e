// The smallest set of edges that separates a source from a sink (Dinic's algorithm).
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::aot {

class FlowNetwork {
 public:
  static constexpr int64_t kUnlimited = int64_t{1} << 60;
  explicit FlowNetwork(size_t nodes) : edges_of_(nodes) {}
  void add_edge(size_t from, size_t to, int64_t capacity);
  // After it, `before_cut` tells which nodes are on the source's side of the minimum cut that lies nearest to the sink.
  int64_t run(size_t source, size_t sink);
  bool before_cut(size_t node) const { return !reaches_sink_[node]; }

 private:
  struct Edge {
    size_t to;
    int64_t capacity;
  };
  bool find_levels(size_t source, size_t sink);
  int64_t push(size_t node, size_t sink, int64_t limit);
  void find_sink_side(size_t sink);

  std::vector<Edge> edges_;  // edge i and its reverse i ^ 1
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<int> level_;
  std::vector<bool> reaches_sink_;
  std::vector<size_t> next_;
};

}  // namespace tenon::aot
