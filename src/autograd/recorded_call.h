// One call of an operator as the backward graph remembers it: everything but the tensors' data.
#pragma once

#include <tenon/ops/row.h>

namespace tenon::autograd {

class NodeVisitor;

struct ArgumentShape {
  bool given = false;  // false: None, or not a tensor
  SymInts sizes;
  SymInts strides;  // of what a view of storage looks into
  Dtype dtype = Dtype::Float32;
  std::vector<SymInts> list;  // of a tensor list
  std::vector<Dtype> list_dtypes;
};

struct RecordedCall final : public Counted {
  RecordedCall(const ops::Row& its_row, std::span<const dispatch::Value> values);

  const ops::Row* row;
  dispatch::Values arguments;         // owned; tensors are None
  std::vector<ArgumentShape> shapes;  // one per argument
  uint64_t operation;                 // its number

  size_t argument_index(std::string_view name) const;  // an InternalError if there is none
  Ref<RecordedCall> copy() const;
  void visit(NodeVisitor& visitor);

 private:
  RecordedCall(const RecordedCall& other);
};

// The call that makes a view of `base` by its geometry alone.
Ref<RecordedCall> recorded_by_places(const Tensor& base, const SymInts& sizes, const SymInts& strides,
                                     const SymInt& storage_offset);

// A view row applied to a tensor: one step from a base to a view.
struct ViewStep final : public Counted {
  ViewStep(Ref<RecordedCall> its_call, Ref<ViewStep> before) : call(std::move(its_call)), previous(std::move(before)) {}

  Ref<RecordedCall> call;
  Ref<ViewStep> previous;  // null: applied to the base

  // The same view of another tensor of the base's sizes, whatever its strides.
  Tensor replay(const Tensor& base) const;
  // `base` with the view's elements replaced.
  Tensor scatter(const Tensor& base, const Tensor& view) const;

 protected:
  void release_resources() override;
};

// How a view that autograd follows is made of its base: by the steps that made it, or by places in memory where those
// are not known, or no longer fit because the base was given another shape.
Ref<ViewStep> chain_of(const Tensor& view);
// From the base on.
std::vector<const ViewStep*> steps_of(const ViewStep* last);
// The same way from the base to `view`, each step of which can be gone back: through a view that shows one element
// several times (expand, unfold) it is one step by places in memory.
Ref<ViewStep> with_inverse(const Tensor& base, const Tensor& view, const Ref<ViewStep>& chain);

}  // namespace tenon::autograd
