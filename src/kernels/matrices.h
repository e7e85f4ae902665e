// Batches of matrices in kernels: each is read as float64, by rows, computed on, and written back, rounded once.
#pragma once

#include "kernels/strided.h"
#include "support/checked.h"

#include <tenon/core/tensor_fwd.h>

#include <vector>

namespace tenon::kernels {

// A tensor [..., rows, columns], [..., rows] or [...], by how many of its dimensions belong to an entry of the batch.
// The batch may be larger than the tensor's: it is broadcast.
class Entries {
 public:
  Entries(const TensorBase& tensor, size_t own, std::span<const int64_t> batch) : tensor_(&tensor), batch_(batch) {
    const auto sizes = tensor.sizes(), strides = tensor.strides();
    const size_t outer = sizes.size() - own;
    for (size_t dim = 0; dim < batch.size(); ++dim) {
      const bool there = dim + outer >= batch.size();
      const size_t at = dim + outer - batch.size();
      steps_.push_back(there && sizes[at] != 1 ? strides[at] : 0);
    }
    rows = own > 0 ? sizes[outer] : 1;
    columns = own > 1 ? sizes[outer + 1] : 1;
    row_step_ = own > 0 ? strides[outer] : 0;
    column_step_ = own > 1 ? strides[outer + 1] : 0;
  }

  int64_t rows = 1, columns = 1;
  size_t count() const { return static_cast<size_t>(rows * columns); }

  void read(int64_t which, double* to) const {
    with_type([&]<typename T>() {
      const T* from = tensor_->data<T>() + offset_of(which, batch_, steps_);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          *to++ = static_cast<double>(widen(from[row * row_step_ + column * column_step_]));
    });
  }
  std::vector<double> read(int64_t which) const {
    std::vector<double> matrix(count());
    read(which, matrix.data());
    return matrix;
  }
  void write(int64_t which, const double* from) const {
    with_type([&]<typename T>() {
      T* to = tensor_->data<T>() + offset_of(which, batch_, steps_);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          to[row * row_step_ + column * column_step_] = narrow<T>(static_cast<decltype(widen(T()))>(*from++));
    });
  }
  void write(int64_t which, double number) const { write(which, &number); }

 private:
  template <typename Body>
  void with_type(Body&& body) const {
    switch (tensor_->dtype()) {
      case Dtype::Float32: return body.template operator()<float>();
      case Dtype::Float64: return body.template operator()<double>();
      case Dtype::Float16: return body.template operator()<Half>();
      case Dtype::BFloat16: return body.template operator()<BFloat16>();
      case Dtype::Int32: return body.template operator()<int32_t>();
      case Dtype::Int64: return body.template operator()<int64_t>();
      default: fail("[kernels] expected matrices of numbers, got {}", tensor_->description());
    }
  }
  const TensorBase* tensor_;
  std::span<const int64_t> batch_;
  Ints steps_;
  int64_t row_step_ = 0, column_step_ = 0;
};

// The sizes in front of an entry's own dimensions.
inline std::span<const int64_t> batch_of(const TensorBase& tensor, size_t own) {
  return tensor.sizes().first(tensor.sizes().size() - own);
}

// `work(which)` for each entry; `each`: about how many operations one takes.
template <typename Work>
void for_each_entry(std::span<const int64_t> batch, int64_t each, Work&& work) {
  parallel_for(checked::element_count(batch), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, each)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t which = begin; which < end; ++which) work(which);
               });
}

}  // namespace tenon::kernels
