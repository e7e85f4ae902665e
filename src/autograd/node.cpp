#include <tenon/autograd/engine.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/visit.h>

#include "autograd/anomaly.h"
#include "autograd/current_walk.h"
#include "autograd/operation.h"
#include "dispatch/profile_ranges.h"
#include "support/thread_context.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

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
  for (const Entry& entry : current)
    if (Tensor replaced = entry.hook(gradient); replaced.defined()) gradient = std::move(replaced);
}

int64_t TensorHooks::add(TensorHook hook, uint64_t kind) {
  int64_t id = entries.empty() ? 0 : entries.back().id + 1;
  entries.push_back({id, std::move(hook), kind});
  return id;
}

namespace {

std::atomic<int64_t> hook_ids{0};

}  // namespace

const Node::Hooks& Node::no_hooks() {
  static const Hooks& none = *new Hooks;
  return none;
}

Node::Hooks& Node::own_hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

int64_t Node::add_pre_hook(PreHook hook, uint64_t kind) {
  return own_hooks().before.emplace_back(HookEntry<PreHook>{hook_ids++, std::move(hook), kind}).id;
}

int64_t Node::add_post_hook(PostHook hook, uint64_t kind) {
  return own_hooks().after.emplace_back(HookEntry<PostHook>{hook_ids++, std::move(hook), kind}).id;
}

void Node::remove_hook(int64_t id) {
  if (!hooks_) return;
  std::erase_if(hooks_->before, [&](const auto& each) { return each.id == id; });
  std::erase_if(hooks_->after, [&](const auto& each) { return each.id == id; });
}

bool Node::visit(NodeVisitor&) { return false; }

void Node::visit_inputs(NodeVisitor& visitor) {
  for (InputMeta& meta : inputs_) {
    visitor.fixed(static_cast<uint64_t>(meta.sizes.size()) << 40 | static_cast<uint64_t>(meta.dtype) << 32 |
                  static_cast<uint64_t>(meta.device.type) << 16 |
                  static_cast<uint64_t>(static_cast<uint16_t>(meta.device.index)));
    for (SymInt& size : meta.sizes) visitor.number(size);
  }
}

void Node::redirect(const std::function<Edge(const Edge&)>& to) {
  for (Edge& edge : next_edges_)
    if (edge.valid()) edge = to(edge);
}

void Node::copy_structure(const Node& from) {
  inputs_ = from.inputs_;
  next_edges_ = from.next_edges_;
}

const std::string& Node::made_at() const {
  static const auto& nowhere = *new std::string;
  return made_at_ ? *made_at_ : nowhere;
}

namespace {

std::unique_ptr<const std::string> line_of_program() {
  if (!anomaly_enabled()) [[likely]]
    return nullptr;
  return std::make_unique<const std::string>(forward_line(current_node()));
}

}  // namespace

Node::Node(std::string_view name)
    : name_(name),
      sequence_(next_sequence()),
      operation_(sequence_),
      thread_(dispatch::current_thread()),
      made_at_(line_of_program()) {}
Node::Node(std::string_view name, uint64_t operation)
    : name_(name),
      sequence_(next_sequence()),
      operation_(operation),
      thread_(dispatch::current_thread()),
      made_at_(line_of_program()) {}
Node::Node(std::string_view name, Leaf)
    : name_(name),
      sequence_(std::numeric_limits<uint64_t>::max()),
      operation_(sequence_),
      thread_(dispatch::current_thread()) {}

uint32_t Node::add_input(const Tensor& tensor) {
  inputs_.emplace_back(tensor.sym_sizes(), tensor.dtype(), tensor.device());
  return static_cast<uint32_t>(inputs_.size() - 1);
}
uint32_t Node::add_input(InputMeta meta) {
  inputs_.push_back(std::move(meta));
  return static_cast<uint32_t>(inputs_.size() - 1);
}

bool Node::wants(size_t edge) const {
  if (edge >= next_edges_.size() || !next_edges_[edge].valid()) return false;
  return walk_wants(next_edges_[edge]);
}

void Node::add_tensor_hooks(uint32_t input_nr, Ref<TensorHooks> hooks) {
  own_hooks().of_tensors.emplace_back(input_nr, std::move(hooks));
}

void Node::set_retained(uint32_t input_nr, WeakRef<TensorImpl> tensor) {
  drop_retained(input_nr);
  own_hooks().retained.emplace_back(input_nr, std::move(tensor));
}

void Node::drop_retained(uint32_t input_nr) {
  if (hooks_) std::erase_if(hooks_->retained, [&](const auto& entry) { return entry.first == input_nr; });
}

void Node::run_tensor_hooks(std::vector<Tensor>& gradients) {
  if (!hooks_) return;
  for (const auto& [nr, hooks] : hooks_->of_tensors) {
    TENON_CHECK(hooks->entries.empty() || !is_partial(nr, gradients),
                "[register_hook] a hook is set on a result of {} from which another result of the same call was "
                "computed, and the gradient goes through both: compute the second one in a call of its own, or set the "
                "hook inside the function",
                name());
    // (Of several operations, this one's would not have run.)
    if (gradients[nr].defined() || !is_compound()) hooks->run(gradients[nr]);
  }
  for (const auto& [nr, weak] : hooks_->retained) {
    Ref<TensorImpl> impl = weak.lock();
    if (!impl) continue;
    Tensor gradient = whole_gradient(nr, gradients);
    if (!gradient.defined()) continue;
    keep_gradient(Tensor(impl), gradient);
  }
}

void keep_gradient(const Tensor& tensor, const Tensor& gradient) {
  AutogradMeta& meta = ensure_meta(tensor);
  meta.grad = meta.grad.defined() ? meta.grad + gradient : gradient;
}

void Node::drop_references() {
  next_edges_.clear();
  hooks_.reset();
}

namespace {

// Nodes whose references are to be dropped. The first few take no memory: a chain has one waiting at a time, however
// long it is. Where there is no memory for more, `add` says so.
class Waiting {
 public:
  using Entry = std::pair<Node*, WeakRef<Node>>;
  bool add(Node* node, WeakRef<Node>& memory) {
    try {
      entries_.reserve(entries_.size() + 1);
    } catch (...) {
      return false;
    }
    entries_.emplace_back(node, std::move(memory));
    return true;
  }
  std::optional<Entry> take() {
    if (entries_.empty()) return std::nullopt;
    Entry last = std::move(entries_.back());
    entries_.pop_back();
    return last;
  }

 private:
  SmallVector<Entry, 16> entries_;
};

}  // namespace

// A node's references are dropped by the outermost release on this thread; those that this makes unreachable wait in
// its list. A plain pointer is thread-local, for static tensors die after the thread's other objects.
void Node::release_resources() {
  support::OwnCode own;
  thread_local Waiting* waiting = nullptr;
  // A weak reference keeps the memory; the adopted handle gives its count back unused.
  Ref<Node> self = Ref<Node>::adopt(this);
  WeakRef<Node> memory(self);
  self.detach();
  if (waiting) {
    if (!waiting->add(this, memory)) drop_references();
    return;
  }
  Waiting list;
  waiting = &list;
  drop_references();
  while (std::optional<Waiting::Entry> next = list.take()) next->first->drop_references();
  waiting = nullptr;
}

}  // namespace tenon::autograd
