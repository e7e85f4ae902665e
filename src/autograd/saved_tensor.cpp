#include "autograd/layers.h"
#include "support/at_fork.h"
#include "support/thread_context.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/saved.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/dispatch/operator.h>
#include <tenon/generated/ops.h>

#include <array>
#include <mutex>

namespace tenon::autograd {
namespace {

const SavedTensorHooks* hooks() {
  return support::thread_context.get<const SavedTensorHooks>(support::ContextSlot::SavedTensorHooks);
}

const std::string* why_no_hooks() {
  return support::thread_context.get<const std::string>(support::ContextSlot::NoSavedHooks);
}

bool dropping() { return support::thread_context.drops_saved_tensors; }

constexpr KeySet kPlainKeys{DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta, DispatchKey::ADInplaceOrView,
                            DispatchKey::Autograd};

// An ordinary tensor needs no operator to be looked at anew; one that a layer below watches (tracing,
// functionalization) must be seen by it.
bool is_plain(const Tensor& tensor) {
  return (tensor.impl()->keys - kPlainKeys).empty() && dispatch::thread_keys().include.empty();
}

// Whether it may be given another history: all but leaves that require grad, which may not be changed in place.
bool may_be_rebased(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return !meta || !meta->requires_grad || meta->grad_fn;
}

// The same data with this history.
Tensor attach(const Tensor& data, const Edge& history) {
  Tensor attached = detach_below(data);
  // (The other result of `min`, positions, is an integer: it has none, though its node has one.)
  if (!history.valid() || !is_floating(data.dtype())) return attached;
  AutogradMeta& meta = ensure_meta(attached);
  if (dynamic_cast<const AccumulateGrad*>(history.node.get())) {
    meta.requires_grad = true;
    meta.accumulator = WeakRef<Node>(history.node);
  } else {
    meta.grad_fn = history.node;
    meta.output_nr = history.input_nr;
  }
  return attached;
}

}  // namespace

SavedTensorHooksGuard::SavedTensorHooksGuard(SavedTensorHooks installed)
    : hooks_(std::move(installed)), before_(hooks()) {
  if (const std::string* why = why_no_hooks()) throw RuntimeError(*why);
  support::thread_context.set(support::ContextSlot::SavedTensorHooks, &hooks_);
}
SavedTensorHooksGuard::~SavedTensorHooksGuard() {
  support::thread_context.set(support::ContextSlot::SavedTensorHooks, before_);
}

DisableSavedTensorHooks::DisableSavedTensorHooks(std::string why) : why_(std::move(why)), before_(why_no_hooks()) {
  if (hooks()) throw RuntimeError(why_);
  support::thread_context.set(support::ContextSlot::NoSavedHooks, &why_);
}
DisableSavedTensorHooks::~DisableSavedTensorHooks() {
  support::thread_context.set(support::ContextSlot::NoSavedHooks, before_);
}

DropSavedTensors::DropSavedTensors(bool on) : before_(std::exchange(support::thread_context.drops_saved_tensors, on)) {}
DropSavedTensors::~DropSavedTensors() { support::thread_context.drops_saved_tensors = before_; }

Tensor detach_below(const Tensor& tensor) {
  if (is_plain(tensor))
    return core::make_view(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
  dispatch::ExcludeKeys below(kAutogradAndAbove);
  return detach(tensor);
}

namespace {

// Threads may save one tensor at a time.
std::mutex& lock_of(const Tensor& tensor) {
  static auto& locks = *new std::array<support::ForkSafe<std::mutex>, 16>;
  return locks[(reinterpret_cast<uintptr_t>(tensor.impl()) >> 7) % locks.size()];
}

}  // namespace

Ref<SavedOriginal> share_original(const Tensor& tensor) {
  AutogradMeta& meta = *meta_of(tensor);
  std::lock_guard lock(lock_of(tensor));
  if (Ref<SavedOriginal> known = meta.saved.lock()) return known;
  auto made = make_ref<SavedOriginal>(tensor);
  meta.saved = WeakRef<SavedOriginal>(made);
  return made;
}

void let_go_of_original(const Tensor& tensor, bool is_detached) {
  AutogradMeta* meta = meta_of(tensor);
  if (!meta) return;
  Tensor dropped;  // behind the lock
  std::lock_guard lock(lock_of(tensor));
  Ref<SavedOriginal> original = meta->saved.lock();
  if (!original) return;
  original->history = meta->grad_fn ? Edge{meta->grad_fn, meta->output_nr} : Edge{};
  original->is_very_one = false;
  original->is_detached = is_detached;
  dropped = std::exchange(original->tensor, detach_below(tensor));
  meta->saved = {};
}

const Tensor& SavedTensor::content() const { return original_ ? original_->tensor : tensor_; }

void SavedTensor::drop() {
  if (packed_) return;
  tensor_ = Tensor();
  original_ = nullptr;
}

SavedTensor SavedTensor::input(const Tensor& tensor) {
  SavedTensor saved;
  if (!tensor.defined() || dropping()) return saved;
  saved.kind_ = Kind::Input;
  if (hooks()) {
    saved.tensor_ = tensor;
    saved.history_ = gradient_edge(tensor);
  } else if (!is_plain(tensor) || !may_be_rebased(tensor)) {
    saved.tensor_ = tensor;
  } else if (const AutogradMeta* meta = meta_of(tensor); meta && !meta->view) {
    saved.original_ = share_original(tensor);
  } else {
    // A view holds its base, which may come to depend on the node without the view's knowing. (And of a tensor that
    // autograd knows nothing of, others may be reading just that.)
    saved.tensor_ = detach_below(tensor);
    saved.history_ = gradient_edge(tensor);
    if (saved.history_.valid()) saved.kind_ = Kind::Copy;
  }
  saved.pack();
  return saved;
}

SavedTensor SavedTensor::output(const Tensor& tensor) {
  SavedTensor saved;
  if (!tensor.defined() || dropping()) return saved;
  saved.kind_ = Kind::Output;
  saved.tensor_ = detach_below(tensor);
  saved.pack();
  return saved;
}

SavedTensor SavedTensor::copy(Tensor detached, Edge history) {
  SavedTensor saved;
  if (dropping()) return saved;
  saved.kind_ = Kind::Copy;
  saved.tensor_ = std::move(detached);
  saved.history_ = std::move(history);
  saved.pack();
  return saved;
}

SavedTensor SavedTensor::standing_for(Tensor tensor) {
  SavedTensor saved;
  if (!tensor.defined()) return saved;
  saved.kind_ = Kind::Input;
  saved.tensor_ = std::move(tensor);
  return saved;
}

SavedTensor SavedTensor::asked_for(std::function<Tensor()> reader) {
  SavedTensor saved;
  saved.kind_ = Kind::Input;
  auto packed = std::make_shared<Packed>();
  packed->unpack = [reader = std::move(reader)](const std::any&) { return reader(); };
  saved.packed_ = std::move(packed);
  saved.as_read_ = true;
  return saved;
}

void SavedTensor::pack() {
  if (const Tensor& kept = content(); kept.impl()->version) {
    versioned_ = true;
    version_ = kept.version();
  }
  const SavedTensorHooks* installed = hooks();
  if (!installed) return;
  auto packed = std::make_shared<Packed>();
  {
    // What the hook computes is no part of the graph, and is not packed again.
    NoGrad off;
    packed->content = installed->pack(tensor_);
  }
  TENON_CHECK(!versioned_ || tensor_.version() == version_,
              "[pack] A saved tensor pack hook is modifying its input in place. Give a changed copy instead");
  packed->unpack = installed->unpack;
  packed->may_give_history = installed->may_give_history;
  packed_ = std::move(packed);
  tensor_ = Tensor();
}

Tensor SavedTensor::unpack(std::string_view for_node, const std::function<Edge()>& history) const {
  if (kind_ == Kind::Undefined) return {};
  if (packed_) {
    Tensor tensor = packed_->unpack(packed_->content);
    TENON_CHECK(tensor.defined(),
                "[backward] Output of saved tensor unpack_hook expected to be a Tensor, got an undefined one for {}",
                for_node);
    if (!grad_enabled() || as_read_ || (packed_->may_give_history && tensor.requires_grad())) return tensor;
    return attach(tensor, kind_ == Kind::Output ? history() : history_);
  }
  const Tensor& kept = content();
  if (versioned_)
    TENON_CHECK(kept.version() == version_,
                "[backward] one of the variables needed for gradient computation has been modified by an inplace "
                "operation: for {} it is {} at "
                "version {}, expected version {}",
                for_node, kept.description(), kept.version(), version_);
  if (original_)
    TENON_CHECK(!original_->is_detached,
                "[backward] Trying to use a saved tensor that has been detached in-place, by detach_(): {} reads it. "
                "Use detach(), which gives another tensor",
                for_node);
  // Without recording, history is of no use.
  if (!grad_enabled()) return kept;
  if (original_) return original_->is_very_one ? kept : attach(kept, original_->history);
  return kind_ == Kind::Input ? kept : attach(kept, kind_ == Kind::Output ? history() : history_);
}

void SavedTensor::reset() { *this = SavedTensor(); }

}  // namespace tenon::autograd
