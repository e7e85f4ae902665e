#include <tenon/autograd/meta.h>
#include <tenon/autograd/node.h>

#include "autograd/current_walk.h"
#include "autograd/operation.h"
#include "support/thread_context.h"

#include <algorithm>
#include <limits>

namespace tenon::autograd {

uint64_t next_sequence() {
  thread_local uint64_t counter = 0;
  return counter++;
}

InputMeta InputMeta::of(const Tensor& tensor) { return {tensor.sym_sizes(), tensor.dtype(), tensor.device()}; }

std::string InputMeta::str() const { return fmt::format("{}{}", tenon::name(dtype), tenon::str(sizes)); }

void TensorHooks::run(Tensor& gradient) const {
  // A hook may remove itself or add others.
  std::vector<Entry> current = entries;
  for (const Entry& entry : current) {
    if (!gradient.defined()) return;
    if (Tensor replaced = entry.hook(gradient); replaced.defined()) gradient = std::move(replaced);
  }
}

Node::Node(std::string_view name) : name_(name), sequence_(next_sequence()), operation_(sequence_) {}
Node::Node(std::string_view name, uint64_t operation)
    : name_(name), sequence_(next_sequence()), operation_(operation) {}
Node::Node(std::string_view name, Leaf)
    : name_(name), sequence_(std::numeric_limits<uint64_t>::max()), operation_(sequence_) {}

uint32_t Node::add_input(const Tensor& tensor) { return add_input(InputMeta::of(tensor)); }
uint32_t Node::add_input(InputMeta meta) {
  inputs_.push_back(std::move(meta));
  return static_cast<uint32_t>(inputs_.size() - 1);
}

bool Node::wants(size_t edge) const {
  if (edge >= next_edges_.size() || !next_edges_[edge].valid()) return false;
  return walk_wants(next_edges_[edge]);
}

void Node::add_tensor_hooks(uint32_t input_nr, Ref<TensorHooks> hooks) {
  tensor_hooks_.emplace_back(input_nr, std::move(hooks));
}

void Node::set_retained(uint32_t input_nr, WeakRef<TensorImpl> tensor) {
  drop_retained(input_nr);
  retained_.emplace_back(input_nr, std::move(tensor));
}

void Node::drop_retained(uint32_t input_nr) {
  std::erase_if(retained_, [&](const auto& entry) { return entry.first == input_nr; });
}

void Node::run_tensor_hooks(std::vector<Tensor>& gradients) {
  for (const auto& [nr, hooks] : tensor_hooks_) {
    TENON_CHECK(hooks->entries.empty() || !is_partial(nr, gradients),
                "[register_hook] a hook is set on a result of {} from which another result of the same call was "
                "computed, and the gradient goes through both: compute the second one in a call of its own, or set the "
                "hook inside the function",
                name());
    hooks->run(gradients[nr]);
  }
  for (const auto& [nr, weak] : retained_) {
    Ref<TensorImpl> impl = weak.lock();
    if (!impl) continue;
    Tensor gradient = whole_gradient(nr, gradients);
    if (!gradient.defined()) continue;
    AutogradMeta& meta = ensure_meta(Tensor(impl));
    meta.grad = meta.grad.defined() ? meta.grad + gradient : gradient;
  }
}

void Node::drop_references() {
  next_edges_.clear();
  pre_hooks_.clear();
  post_hooks_.clear();
  tensor_hooks_.clear();
  retained_.clear();
}

// A node's references are dropped by the outermost release on this thread; those that this makes unreachable wait in
// its list. A plain pointer is thread-local, for static tensors die after the thread's other objects.
void Node::release_resources() {
  support::OwnCode own;
  thread_local std::vector<std::pair<Node*, WeakRef<Node>>>* waiting = nullptr;
  // A weak reference keeps the memory; the adopted handle gives its count back unused.
  Ref<Node> self = Ref<Node>::adopt(this);
  WeakRef<Node> memory(self);
  self.detach();
  if (waiting) {
    waiting->emplace_back(this, std::move(memory));
    return;
  }
  std::vector<std::pair<Node*, WeakRef<Node>>> list;
  waiting = &list;
  drop_references();
  while (!list.empty()) {
    auto [node, keep] = std::move(list.back());
    list.pop_back();
    node->drop_references();
  }
  waiting = nullptr;
}

}  // namespace tenon::autograd
