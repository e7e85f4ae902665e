// Mutation and views turned into values.
//
// A functional tensor stands for a value: a tensor of the layers below, which is never written to. Tensors that look
// into the same memory share a `FunctionalStorage`, which holds the value of the whole; each remembers by which views
// it came from it. Writing to one computes a new value, puts it back into the whole by the inverse of the views, and
// leaves the others to be made anew when they are next read.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/dispatch/operator.h>

#include <memory>
#include <vector>

namespace tenon::aot {

struct FunctionalStorage final : public Counted {
  Tensor value;            // of the whole, in the layers below
  SymInts strides;         // of the whole, as eager has it; those of a new value may be others
  int64_t generation = 0;  // counts writes
};

// One view of a chain: the operator and its arguments; the first argument is the tensor viewed.
struct ViewLink {
  const dispatch::Operator* op = nullptr;
  std::vector<dispatch::Value> args;
  bool grad_enabled = true;  // grad mode when it was made
};

struct FunctionalSlot final : public TensorSlot {
  ~FunctionalSlot() override;

  Ref<FunctionalStorage> storage;
  Tensor parent;     // what it views; undefined if it is the whole
  ViewLink link;     // how it views it
  Tensor value;      // up to date if `generation` is the storage's
  size_t links = 0;  // from the whole to it
  int64_t generation = 0;

  // The links from the whole on. Each slot keeps its own alone, so that a view of a view of … costs what a view costs.
  std::vector<const ViewLink*> chain() const;
};

// A functional tensor that stands for `value`, a fake.
Tensor to_functional(const Tensor& value);
// Null if the tensor is not functional.
FunctionalSlot* functional_slot(const Tensor& tensor);
// The value that a functional tensor stands for now.
Tensor from_functional(const Tensor& tensor);
bool was_written(const Tensor& tensor);
// The same with the strides that the tensor shows, as eager would have left it: a value written through a view is
// dense, and becomes a view of the whole again.
Tensor from_functional_as_shown(const Tensor& tensor);
// Whether `view` was made from `base`, directly or by way of other views.
bool is_view_of(const Tensor& view, const Tensor& base);

// While one lives, results of factories are functional too.
class FunctionalMode {
 public:
  FunctionalMode() : include_(KeySet{DispatchKey::Functionalize}) {}

 private:
  dispatch::IncludeKeys include_;
};

}  // namespace tenon::aot
