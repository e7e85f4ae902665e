// One call of an operator as the backward graph remembers it: everything but the tensors' data.
#pragma once

#include <tenon/ops/row.h>

namespace tenon::autograd {

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
};

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

// From the base on.
std::vector<const ViewStep*> steps_of(const ViewStep* last);

}  // namespace tenon::autograd
