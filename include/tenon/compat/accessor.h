// Elements of a tensor by indices, as C++ loops read and write them.
#pragma once

#include <tenon/compat/types.h>

namespace at {

template <typename T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict;
};

// Sizes and strides are the tensor's: it must live as long. a[i][j] is an element of a TensorAccessor<T, 2>.
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const Index* sizes, const Index* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](Index at) const {
    if constexpr (N == 1)
      return (data_[at * strides_[0]]);
    else
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + at * strides_[0], sizes_ + 1, strides_ + 1);
  }
  Index size(Index dim) const { return sizes_[dim]; }
  Index stride(Index dim) const { return strides_[dim]; }
  c10::ArrayRef<Index> sizes() const { return {sizes_, N}; }
  c10::ArrayRef<Index> strides() const { return {strides_, N}; }
  T* data() const { return data_; }

 private:
  T* data_;
  const Index *sizes_, *strides_;
};

// The same with sizes and strides of its own, so that it may be copied elsewhere.
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  GenericPackedTensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t dim = 0; dim < N; ++dim) {
      sizes_[dim] = static_cast<Index>(sizes[dim]);
      strides_[dim] = static_cast<Index>(strides[dim]);
    }
  }
  decltype(auto) operator[](Index at) const { return TensorAccessor<T, N, Traits, Index>(data_, sizes_, strides_)[at]; }
  Index size(Index dim) const { return sizes_[dim]; }
  Index stride(Index dim) const { return strides_[dim]; }
  T* data() const { return data_; }

 private:
  T* data_;
  Index sizes_[N], strides_[N];
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;

}  // namespace at
