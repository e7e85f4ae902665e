// What runs in the place of a frozen graph, and the constants that it holds.
//
// Every constant knows the parameters that it was computed from, and every call compares those parameters with the
// tensors that they were: the same tensor, written as often as then. Where one is another, the units that read it run
// again, compiled as they are, and a new set of constants takes the place of the old one, whole. A call uses one set
// from beginning to end.
#pragma once

#include "split.h"
#include "support/at_fork.h"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <variant>

namespace tenon::freezing {

// Runs a graph on real tensors, given the values of its symbols; and what makes such a function.
using GraphFunction =
    std::function<std::vector<dispatch::Value>(std::span<const Tensor> inputs, std::span<const int64_t> symbols)>;
using GraphCompiler = std::function<GraphFunction(const Graph& graph)>;

class Frozen;

// A tensor as it was when constants were computed from it. What counts its writes stays with it, and is held beside it:
// then a call that compares hundreds of them looks at none of the tensors themselves.
struct Seen {
  WeakRef<TensorImpl> tensor;
  Ref<Version> writes;  // null: of an inference tensor nobody counts them
  int64_t count = 0;

  Seen() = default;
  explicit Seen(const Tensor& now);
  bool holds(const TensorImpl& now) const {
    return tensor.address() == &now && (!writes || writes->count.load(std::memory_order_relaxed) == count);
  }
};

struct Constants {
  const Frozen* owner = nullptr;
  std::vector<Tensor> tensors;
  std::vector<Seen> seen;    // by input; of those that are no parameters: nothing
  std::vector<Tensor> kept;  // by input: a parameter that is read at every call, if it may be held
};
using ConstantsRef = std::shared_ptr<const Constants>;

class Frozen {
 public:
  // `may_hold`: by input, whether a parameter that is read at every call may be held on to.
  Frozen(Split split, const Parameters& parameters, std::vector<bool> may_hold, Notes notes,
         const GraphCompiler& compiler);

  // Takes the inputs of the whole graph. Under `UseConstants`, parameters may be undefined: they have not changed.
  std::vector<dispatch::Value> run(std::span<const Tensor> inputs, std::span<const int64_t> symbols);
  // Computes all constants again at the next call.
  void refresh();
  // Whether an input is a parameter: after a call, what is computed from it is there.
  bool is_parameter(size_t input) const { return input < is_parameter_.size() && is_parameter_[input]; }
  // Whether an input may be undefined, if it has not changed: nothing needs the tensor itself.
  bool may_stand(size_t input) const {
    return is_parameter(input) && (!split_.reads[input] || (input < may_hold_.size() && may_hold_[input]));
  }
  // From now on a parameter may come as what `erased` makes of it, which stands for what it was.
  void give_up(std::span<const Tensor> inputs, std::span<const Tensor> erased);

  // Null before the first call.
  ConstantsRef current() const;
  // What the frozen graph takes, in order: an input of the whole graph, or a tensor that is there by now.
  using Taken = std::variant<int32_t, Tensor>;
  std::vector<Taken> takes(const Constants& constants) const;
  const Graph& graph() const { return split_.frozen; }
  const Notes& notes() const { return notes_; }
  // "%constant0: float32[32, 3, 3, 3] 5f0c… from %conv_weight, %bn_weight"
  std::vector<std::string> describe_constants() const;

 private:
  bool fits(const Constants& constants, std::span<const Tensor> inputs) const;
  ConstantsRef fold(std::span<const Tensor> inputs, std::span<const int64_t> symbols);

  Split split_;
  Notes notes_;
  std::vector<bool> is_parameter_;  // by input
  std::vector<bool> may_hold_;
  std::vector<int32_t> parameters_;
  GraphFunction run_frozen_;
  std::vector<GraphFunction> run_units_;
  std::vector<bool> is_slice_;                   // by result: it lies in memory that others share
  mutable support::ForkSafe<std::mutex> mutex_;  // of the pointer
  std::mutex folding_;                           // one at a time, inside of `Undivided`
  ConstantsRef constants_;
};

// While one lives, their frozen function uses these constants on this thread: its parameters are what they were. May be
// null.
class UseConstants {
 public:
  explicit UseConstants(const ConstantsRef& constants);
  ~UseConstants();
  UseConstants(const UseConstants&) = delete;
  UseConstants& operator=(const UseConstants&) = delete;

 private:
  const ConstantsRef* before_;
};

}  // namespace tenon::freezing
