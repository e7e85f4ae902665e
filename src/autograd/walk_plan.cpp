#include "autograd/walk_plan.h"

#include <queue>

namespace tenon::autograd {
namespace {

std::atomic<uint64_t> walks{0};

}  // namespace

// A node that another walk has claimed (on another thread, or around this one) stands in a table.
bool WalkPlan::number(Node* node) {
  uint64_t free = 0;
  uint32_t next = count_;
  if (node->walk_.compare_exchange_strong(free, serial_, std::memory_order_acq_rel)) {
    node->place_ = next;
    claimed_.push_back(node);
  } else if (free == serial_ || !others_.emplace(node, next).second) {
    return false;
  }
  ++count_;
  return true;
}

WalkPlan::WalkPlan(const Walk& walk) : serial_(++walks) {
  // In depth, without recursion; a node gets its place when all that it leads to has one.
  std::vector<std::pair<Node*, size_t>> path;
  std::vector<uint32_t> place;  // by number: position in `entries`
  for (const Edge& root : walk.roots) {
    if (!number(root.node.get())) continue;
    path.emplace_back(root.node.get(), 0);
    while (!path.empty()) {
      auto& [node, at] = path.back();
      if (at == node->next_edges().size()) {
        uint32_t numbered = find(node);
        if (place.size() <= numbered) place.resize(numbered + 1);
        place[numbered] = static_cast<uint32_t>(entries.size());
        entries.push_back({node});
        path.pop_back();
        continue;
      }
      Node* next = node->next_edges()[at++].node.get();
      if (next && number(next)) path.emplace_back(next, 0);
    }
  }
  for (Node* node : claimed_) node->place_ = place[node->place_];
  for (auto& [node, number] : others_) number = place[number];

  if (!walk.captures.empty()) {
    selective = true;
    for (Entry& entry : entries) entry.runs = false;
    for (const Edge& edge : walk.captures) {
      uint32_t at = find(edge.node.get());
      if (at == kNone) continue;
      (walk.accumulate ? entries[at].runs : entries[at].captured) = true;
    }
    for (Entry& entry : entries)
      for (const Edge& edge : entry.node->next_edges())
        if (edge.valid() && wants(edge.node.get())) {
          entry.runs = true;
          break;
        }
  }
  for (const Entry& entry : entries) {
    if (!entry.runs) continue;
    for (const Edge& edge : entry.node->next_edges())
      if (edge.valid()) ++entries[find(edge.node.get())].missing;
  }
}

WalkPlan::~WalkPlan() {
  for (Node* node : claimed_) node->walk_.store(0, std::memory_order_release);
}

namespace {

// Visits nodes whose gradients have all come; `waiting` says which of those comes next.
template <typename Waiting, typename Push, typename Pop>
std::vector<uint32_t> visit_all(const WalkPlan& plan, Waiting& waiting, Push push, Pop pop) {
  std::vector<uint32_t> missing, order;
  order.reserve(plan.entries.size());
  for (const WalkPlan::Entry& entry : plan.entries) missing.push_back(entry.missing);
  auto is_wanted = [&](uint32_t at) { return plan.entries[at].runs || plan.entries[at].captured; };
  // Those that wait for nothing are roots: others come when their last gradient does.
  for (uint32_t at = 0; at < plan.entries.size(); ++at)
    if (missing[at] == 0 && is_wanted(at)) push(at);
  while (!waiting.empty()) {
    uint32_t at = pop();
    order.push_back(at);
    if (!plan.entries[at].runs) continue;
    for (const Edge& edge : plan.entries[at].node->next_edges()) {
      if (!edge.valid()) continue;
      uint32_t next = plan.find(edge.node.get());
      if (--missing[next] == 0 && is_wanted(next)) push(next);
    }
  }
  return order;
}

}  // namespace

std::vector<uint32_t> WalkPlan::in_depth() const {
  std::vector<uint32_t> waiting;
  return visit_all(
      *this, waiting, [&](uint32_t at) { waiting.push_back(at); },
      [&] {
        uint32_t at = waiting.back();
        waiting.pop_back();
        return at;
      });
}

std::vector<uint32_t> WalkPlan::in_order() const {
  std::priority_queue<std::pair<uint64_t, uint32_t>> waiting;
  return visit_all(
      *this, waiting, [&](uint32_t at) { waiting.emplace(entries[at].node->sequence(), at); },
      [&] {
        uint32_t at = waiting.top().second;
        waiting.pop();
        return at;
      });
}

}  // namespace tenon::autograd
