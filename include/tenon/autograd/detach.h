// Tensors taken out of their history, and what counts their changes.
#pragma once

#include <tenon/core/tensor.h>

#include <optional>

namespace tenon {

// The tensor forgets how it was computed and becomes a leaf that does not require grad. Returns it. An Error for a
// view: others may look into the same memory.
//
//   Tensor w = ones({3}).set_requires_grad(), y = w * 2;
//   detach_(y);
//   bool forgotten = y.is_leaf() && !y.requires_grad();
Tensor detach_(const Tensor& self);

namespace autograd {

// Gives the tensor the memory, sizes, strides and dtype of another one. It keeps its history and its version: autograd
// does not notice.
//
//   Tensor w = ones({3}).set_requires_grad();
//   autograd::set_data(w, zeros({5}));
void set_data(const Tensor& self, const Tensor& source);

// Counts one change, as an in-place operator does: backward refuses what was saved before.
//
//   Tensor a = ones({3});
//   autograd::increment_version(a);
//   autograd::set_version(a, a.version() - 1);
void increment_version(const Tensor& tensor);
// An Error if the number is negative.
void set_version(const Tensor& tensor, int64_t version);

// When it dies, the tensor has the version that it had: changes in between were of no matter to what was saved.
//
//   Tensor a = ones({3});
//   autograd::PreserveVersion unchanged(a);
//   a.add_(1);
class PreserveVersion {
 public:
  explicit PreserveVersion(Tensor tensor) : tensor_(std::move(tensor)), version_(tensor_.version()) {}
  ~PreserveVersion() { set_version(tensor_, version_); }
  PreserveVersion(const PreserveVersion&) = delete;
  PreserveVersion& operator=(const PreserveVersion&) = delete;

 private:
  Tensor tensor_;
  int64_t version_;
};

}  // namespace autograd
}  // namespace tenon
