// `TensorBase`: the handle of a tensor and what it has of itself, for files that call no operators.
//
// `Tensor` (tensor.h) adds the methods of every operator, which are written from the rows and change whenever a row is
// added. A `Tensor` is a `TensorBase` and nothing else besides, so functions that only look at a tensor or write into
// its memory take a `const TensorBase&`, include this header, and are not compiled again for a new row.
//
// Sizes are plain numbers, or symbolic in a fake tensor: then `sizes()` pins them to what they are at capture, and
// `sym_sizes()` does not. `size(d)`, `stride(d)` and `numel()` give `SymInt`s, plain or not.
//
//   auto bytes = [](const TensorBase& tensor) { return tensor.numel() * tensor.element_size(); };
//   SymInt held = bytes(x);
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/dispatch_key.h>
#include <tenon/core/dtype.h>
#include <tenon/core/float8.h>
#include <tenon/core/lists.h>
#include <tenon/core/scalar.h>
#include <tenon/core/storage.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tenon {

class Tensor;

// Of a tensor to be made; what is not said has its default: float32 on the CPU.
//
//   Tensor count = zeros({2}, kInt64);
//   Tensor there = zeros({2}, TensorOptions(kFloat64, kCPU));
struct TensorOptions {
  std::optional<Dtype> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
  std::optional<bool> pin_memory;

  TensorOptions() = default;
  TensorOptions(Dtype element) : dtype(element) {}
  TensorOptions(Device place) : device(place) {}
  TensorOptions(Dtype element, Device place) : dtype(element), device(place) {}
};

namespace core {
[[noreturn]] void no_such_dimension(size_t at, size_t count);
}  // namespace core

// The sizes or strides of a tensor. Unlike any span they can be compared, with each other and with a vector, and a
// dimension that is not there is an IndexError.
//
//   IntSpan shape = x.sizes();
//   bool same = shape == y.sizes() && shape == std::vector<int64_t>{2, 3};
//   int64_t rows = shape[0];
struct IntSpan : std::span<const int64_t> {
  using span::span;
  IntSpan(std::span<const int64_t> numbers) : span(numbers) {}
  const int64_t& operator[](size_t at) const {
    if (at >= size()) [[unlikely]]
      core::no_such_dimension(at, size());
    return data()[at];
  }
  friend bool operator==(IntSpan a, IntSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
};

// How often the data behind a tensor has been written; shared by views and `detach`.
class Version final : public Counted {
 public:
  std::atomic<int64_t> count{0};
};

// Symbolic sizes, in place of plain ones.
struct SymGeometry {
  SymInts sizes, strides;
  SymInt offset;
};

// What other rooms attach to a tensor.
class TensorSlot {
 public:
  virtual ~TensorSlot() = default;
};

class TensorImpl final : public Counted {
 public:
  Ref<Storage> storage;
  int64_t offset = 0;  // in elements
  Ints sizes, strides;
  // When set, `offset` above is meaningless, and `sizes` and `strides` hold what was pinned, if anything was.
  std::unique_ptr<SymGeometry> symbolic;
  Dtype dtype = Dtype::Float32;
  Device device;
  KeySet keys;
  Ref<Version> version;                    // null in an inference tensor
  std::unique_ptr<TensorSlot> autograd;    // autograd room
  std::unique_ptr<TensorSlot> functional;  // aot room: what a functional tensor stands for
  std::unique_ptr<TensorSlot> marks;       // capture room: dynamic and static marks
  std::unique_ptr<TensorSlot> batched;     // autograd room: the entries of a tensor inside of vmap
  // A capture that met this tensor by itself wants to know when a variable that held it is given another one: perhaps
  // it is the variable that the captured function reads.
  std::atomic<bool> watched{false};
  std::atomic<uint32_t> rebinds{0};

 protected:
  void release_resources() override;
};

namespace core {
// The user's program gave another tensor to a variable that held this one. (Not what our own code does with its
// variables.)
void note_rebind(TensorImpl& held);
// "[dtype] expected a tensor, got an undefined one"
[[noreturn]] void undefined_tensor(const char* asked);
}  // namespace core

class TensorBase {
 public:
  TensorBase() = default;
  explicit TensorBase(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  TensorBase(const TensorBase&) = default;
  TensorBase(TensorBase&&) noexcept = default;
  TensorBase& operator=(const TensorBase& other) {
    if (impl_ && impl_->watched.load(std::memory_order_relaxed) && impl_ != other.impl_) core::note_rebind(*impl_);
    impl_ = other.impl_;
    return *this;
  }
  TensorBase& operator=(TensorBase&& other) noexcept {
    if (impl_ && impl_->watched.load(std::memory_order_relaxed) && impl_ != other.impl_) core::note_rebind(*impl_);
    impl_ = std::move(other.impl_);
    return *this;
  }
  ~TensorBase() = default;

  //   Tensor nothing, same = x;
  //   bool two = x.defined() && !nothing.defined();
  //   bool one = same.is(x) && x.view({3, 2}).is_same_storage(x);
  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  // The same tensor, not equal values.
  bool is(const TensorBase& other) const { return impl_ == other.impl_; }
  bool is_same_storage(const TensorBase& other) const {
    return given("is_same_storage").storage == other.given("is_same_storage").storage;
  }

  //   Tensor column = x.select(1, 2);                      // [2], every third element from the third on
  //   int64_t rank = column.dim(), rows = column.sizes()[0], step = column.strides()[0];
  //   int64_t first = column.storage_offset();
  //   SymInt all = x.numel(), width = x.size(-1), row = x.stride(0);
  //   SymInts sizes = x.sym_sizes(), strides = x.sym_strides();
  //   SymInt offset = column.sym_storage_offset();
  //   bool plain = x.is_contiguous() && !x.has_symbolic_sizes();
  //   Tensor images = zeros({2, 3, 8, 8}).contiguous(MemoryFormat::ChannelsLast);
  //   bool last = images.is_contiguous(MemoryFormat::ChannelsLast) && !images.is_contiguous();
  //   bool suggested = images.suggested_format() == MemoryFormat::ChannelsLast;
  int64_t dim() const;
  IntSpan sizes() const;
  IntSpan strides() const;
  int64_t storage_offset() const;
  SymInts sym_sizes() const;
  SymInts sym_strides() const;
  SymInt sym_storage_offset() const;
  SymInt size(int64_t dim) const;
  SymInt stride(int64_t dim) const;
  SymInt numel() const;
  bool has_symbolic_sizes() const { return given("has_symbolic_sizes").symbolic != nullptr; }
  // Answered without guards where possible.
  bool is_contiguous() const;
  // Whether it is dense in this order of dimensions. (`Preserve` is no order.)
  bool is_contiguous(MemoryFormat format) const;
  // Which order its strides suggest for what is made of it: that of channels last, or the usual one.
  MemoryFormat suggested_format() const;
  //   bool usual = x.dtype() == kFloat32 && x.device() == kCPU && x.is_floating_point() && !x.is_fake();
  //   int64_t bytes = x.numel().plain() * x.element_size();
  //   x.add_(1);
  //   int64_t writes = x.version();  // 1 more than before
  Dtype dtype() const { return given("dtype").dtype; }
  Device device() const { return given("device").device; }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_fake() const { return given("is_fake").keys.has(DispatchKey::Fake); }
  int64_t version() const;
  int64_t element_size() const { return size_of(dtype()); }

  // The first element; raises for a tensor without data or of another dtype.
  //
  //   x.data<float>()[5] = 7;
  //   std::memset(x.raw_data(), 0, 2 * 3 * sizeof(float));
  template <typename T>
  T* data() const;
  void* raw_data() const;

  // "float32[2, 3]"
  std::string description() const;

 protected:
  const TensorImpl& given(const char* asked) const {
    if (!impl_) [[unlikely]]
      core::undefined_tensor(asked);
    return *impl_;
  }

  Ref<TensorImpl> impl_;
};

// The dtype of a C++ element type.
template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::Bool;
};
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype value = Dtype::UInt8;
};
template <>
struct DtypeOf<int8_t> {
  static constexpr Dtype value = Dtype::Int8;
};
template <>
struct DtypeOf<int16_t> {
  static constexpr Dtype value = Dtype::Int16;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype value = Dtype::Int32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr Dtype value = Dtype::Int64;
};
template <>
struct DtypeOf<Half> {
  static constexpr Dtype value = Dtype::Float16;
};
template <>
struct DtypeOf<BFloat16> {
  static constexpr Dtype value = Dtype::BFloat16;
};
template <>
struct DtypeOf<Float8E4M3FN> {
  static constexpr Dtype value = Dtype::Float8E4M3FN;
};
template <>
struct DtypeOf<Float8E5M2> {
  static constexpr Dtype value = Dtype::Float8E5M2;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::Float32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::Float64;
};

namespace core {
[[noreturn]] void wrong_data_type(const TensorBase& tensor, Dtype asked);
// Sizes of a contiguous tensor to its strides.
Ints contiguous_strides(std::span<const int64_t> sizes);
SymInts contiguous_strides(std::span<const SymInt> sizes);
// Dimensions of an order of channels last from the innermost out; an Error where there are not as many as it wants.
std::span<const size_t> dims_in(MemoryFormat format, size_t rank, std::string_view op_name);
// Strides of a dense tensor in this format, which says an order.
SymInts strides_in(MemoryFormat format, std::span<const SymInt> sizes, std::string_view op_name);
// An uninitialised tensor with these strides (the storage fits exactly).
TensorBase allocate_base(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device);
// The number of elements from the storage's start that these strides reach.
int64_t reach(std::span<const int64_t> sizes, std::span<const int64_t> strides);
}  // namespace core

template <typename T>
T* TensorBase::data() const {
  if (DtypeOf<T>::value != dtype()) core::wrong_data_type(*this, DtypeOf<T>::value);
  return static_cast<T*>(raw_data());
}

}  // namespace tenon
