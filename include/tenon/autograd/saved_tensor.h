// A tensor kept for backward.
//
// It must not keep the graph alive in a ring: a result saved by its own node is kept detached, and gets its history
// back when it is read. It remembers the version of the data: reading after an in-place change is an Error. Hooks may
// pack it away (to another device, to disk, into a recipe for recomputing it) and unpack it when it is needed.
#pragma once

#include <tenon/autograd/node.h>

#include <any>

namespace tenon::autograd {

struct SavedTensorHooks {
  std::function<std::any(const Tensor&)> pack;
  std::function<Tensor(const std::any&)> unpack;
  bool may_give_history = false;  // a tensor from `unpack` that requires grad is read as it is
};

// While it lives, tensors saved on this thread go through the hooks; the innermost wins.
class SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;

 private:
  SavedTensorHooks hooks_;
  const SavedTensorHooks* before_;
};

// While one lives with `on`, nodes keep no tensors: their histories are made for what they tell (who requires grad),
// not to be walked.
class DropSavedTensors {
 public:
  explicit DropSavedTensors(bool on);
  ~DropSavedTensors();
  DropSavedTensors(const DropSavedTensors&) = delete;

 private:
  bool before_;
};

// The same data without history; does not pass through the Autograd key.
Tensor detach_below(const Tensor& tensor);

// A tensor as the nodes that saved it hold it: the very one, as long as its history is the one that it was saved with.
// When that changes, the data with the history from before: the tensor may come to depend on those nodes, and they must
// not hold what holds them.
struct SavedOriginal final : public Counted {
  explicit SavedOriginal(Tensor saved) : tensor(std::move(saved)) {}
  Tensor tensor;
  bool is_very_one = true;
  Edge history;              // from before, if it is not
  bool is_detached = false;  // by detach_()

 protected:
  // The tensor knows this one weakly: its memory may outlive what it holds.
  void release_resources() override {
    tensor = Tensor();
    history = Edge();
  }
};
// The one thing that nodes which save this tensor hold of it; it must have an AutogradMeta.
Ref<SavedOriginal> share_original(const Tensor& tensor);
// The tensor is about to get another history, other data or another shape: nodes that saved it keep what they saved.
void let_go_of_original(const Tensor& tensor, bool is_detached = false);

class SavedTensor {
 public:
  SavedTensor() = default;
  // An argument of the operator.
  static SavedTensor input(const Tensor& tensor);
  // A result of the operator, whose history will be the node that saves it.
  static SavedTensor output(const Tensor& tensor);
  // A copy of what a tensor with this history held.
  static SavedTensor copy(Tensor detached, Edge history);

  // What stands for a saved tensor where a node is repeated: read as it is, or asked for when it is read.
  static SavedTensor standing_for(Tensor tensor);
  static SavedTensor asked_for(std::function<Tensor()> reader);

  bool defined() const { return kind_ != Kind::Undefined; }
  // Whether hooks have packed it away, so that reading it calls the user's code.
  bool is_packed() const { return static_cast<bool>(packed_); }
  // Whether it may be read: nobody has changed it in place.
  bool intact() const { return packed_ || !versioned_ || content().version() == version_; }
  // Gives up the tensor, if it is not packed.
  void drop();
  bool is_output() const { return kind_ == Kind::Output; }
  // `for_node` names the reader in errors; `history` is given to a saved output.
  Tensor unpack(std::string_view for_node, const std::function<Edge()>& history) const;
  void reset();

 private:
  enum class Kind : uint8_t { Undefined, Input, Output, Copy };
  void pack();
  const Tensor& content() const;

  Kind kind_ = Kind::Undefined;
  Tensor tensor_;
  Ref<SavedOriginal> original_;  // in place of `tensor_`
  int64_t version_ = 0;
  bool versioned_ = false;
  bool as_read_ = false;  // what the reader gives has its history already
  Edge history_;          // of a Copy, and of a packed Input
  struct Packed {
    std::any content;
    std::function<Tensor(const std::any&)> unpack;
    bool may_give_history = false;
  };
  std::shared_ptr<const Packed> packed_;
};

}  // namespace tenon::autograd
