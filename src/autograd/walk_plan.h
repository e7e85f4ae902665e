// Which nodes a walk runs. Every node that the roots reach has a number, by which the walk keeps what belongs to it;
// the node knows its number while the walk lasts, so that nothing is looked up.
#pragma once

#include <tenon/autograd/engine.h>

#include <unordered_map>

namespace tenon::autograd {

class WalkPlan {
 public:
  explicit WalkPlan(const Walk& walk);
  ~WalkPlan();
  WalkPlan(const WalkPlan&) = delete;

  struct Entry {
    Node* node;
    uint32_t missing = 0;   // gradients still to come, by edge
    bool runs = true;       // false: nothing that is wanted lies beyond it
    bool captured = false;  // the gradient of one of its inputs is a result of the walk
    bool reached = false;   // the walk has come there
  };

  static constexpr uint32_t kNone = ~0u;
  // The node's number; kNone if the roots do not reach it.
  uint32_t find(const Node* node) const {
    if (node->walk_.load(std::memory_order_relaxed) == serial_) [[likely]]
      return node->place_;
    auto found = others_.find(node);
    return found == others_.end() ? kNone : found->second;
  }
  bool wants(const Node* node) const {
    uint32_t at = find(node);
    return at != kNone ? entries[at].runs || entries[at].captured : !selective;
  }
  // The nodes that run or are captured: in an order that depends on the edges alone, in depth; and in the order in
  // which the engine comes to them.
  std::vector<uint32_t> in_depth() const;
  std::vector<uint32_t> in_order() const;

  std::vector<Entry> entries;  // each after all that it leads to
  bool selective = false;      // only what leads to a capture runs

 private:
  // Gives the node a number; false if it has one.
  bool number(Node* node);

  uint64_t serial_;
  std::vector<Node*> claimed_;
  uint32_t count_ = 0;
  std::unordered_map<const Node*, uint32_t> others_;  // that another walk has claimed
};

}  // namespace tenon::autograd
