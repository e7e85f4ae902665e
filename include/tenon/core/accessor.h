// Elements of a tensor in memory, by plain indices: for loops of one's own.
//
//   auto rows = x.accessor<float, 2>();
//   float total = 0;
//   for (int64_t row = 0; row < rows.size(0); ++row)
//     for (int64_t column = 0; column < rows.size(1); ++column) total += rows[row][column];
//   rows[0][0] = 5;                                  // x[0][0]
//   bool dense = rows.stride(1) == 1 && rows[0].data() == rows.data();
//
// It looks into the tensor's memory and does not keep it alive. Indices are not checked, and writing through it is not
// seen by autograd.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

template <typename T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  int64_t size(size_t dim) const { return sizes_[dim]; }
  int64_t stride(size_t dim) const { return strides_[dim]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t index) const {
    if constexpr (N == 1)
      return (data_[index * strides_[0]]);
    else
      return TensorAccessor<T, N - 1>(data_ + index * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  static_assert(N > 0, "of a tensor without dimensions, use item() or data()");
  T* data_;
  const int64_t *sizes_, *strides_;
};

template <typename T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const {
  TENON_CHECK(defined() && dim() == static_cast<int64_t>(N), "[accessor] expected a tensor of {} dimensions, got {}", N,
              defined() ? description() : "an undefined one");
  return TensorAccessor<T, N>(data<T>(), sizes().data(), strides().data());
}

}  // namespace tenon
