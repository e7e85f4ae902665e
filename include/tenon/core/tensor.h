// `Tensor`: a strided view of a storage. A handle; copying it shares the tensor.
//
// Sizes are plain numbers, or symbolic in a fake tensor: then `sizes()` pins them to what they are at capture, and
// `sym_sizes()` does not. `size(d)`, `stride(d)` and `numel()` give `SymInt`s, plain or not.
//
//   Tensor w = randn({2, 3}).set_requires_grad();
//   Tensor loss = (x * w).sum();
//   loss.backward();
//   Tensor slope = w.grad();    // x
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/dispatch_key.h>
#include <tenon/core/dtype.h>
#include <tenon/core/half.h>
#include <tenon/core/lists.h>
#include <tenon/core/scalar.h>
#include <tenon/core/storage.h>
#include <tenon/support/error.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

namespace tenon {

class Generator;

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

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other) {
    if (impl_ && impl_->watched.load(std::memory_order_relaxed) && impl_ != other.impl_) core::note_rebind(*impl_);
    impl_ = other.impl_;
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    if (impl_ && impl_->watched.load(std::memory_order_relaxed) && impl_ != other.impl_) core::note_rebind(*impl_);
    impl_ = std::move(other.impl_);
    return *this;
  }
  ~Tensor() = default;

  //   Tensor nothing, same = x;
  //   bool two = x.defined() && !nothing.defined();
  //   bool one = same.is(x) && x.view({3, 2}).is_same_storage(x);
  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  // The same tensor, not equal values.
  bool is(const Tensor& other) const { return impl_ == other.impl_; }
  bool is_same_storage(const Tensor& other) const {
    return given("is_same_storage").storage == other.given("is_same_storage").storage;
  }

  //   Tensor column = x.select(1, 2);                      // [2], every third element from the third on
  //   int64_t rank = column.dim(), rows = column.sizes()[0], step = column.strides()[0];
  //   int64_t first = column.storage_offset();
  //   SymInt all = x.numel(), width = x.size(-1), row = x.stride(0);
  //   SymInts sizes = x.sym_sizes(), strides = x.sym_strides();
  //   SymInt offset = column.sym_storage_offset();
  //   bool plain = x.is_contiguous() && !x.has_symbolic_sizes();
  int64_t dim() const;
  std::span<const int64_t> sizes() const;
  std::span<const int64_t> strides() const;
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

  // Autograd; the bodies belong to that room.
  //
  //   Tensor w = ones({3}).set_requires_grad();
  //   Tensor twice = w * 2;
  //   bool expected = w.requires_grad() && w.is_leaf() && !twice.is_leaf() && twice.output_nr() == 0;
  //   twice.retain_grad();                          // else only leaves keep theirs
  //   twice.sum().backward({}, /*retain_graph=*/true);
  //   Tensor inner = twice.grad();                  // ones
  //   w.set_grad(Tensor());                         // forgets it
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool value = true) const;
  bool is_leaf() const;
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;
  void backward(const std::optional<Tensor>& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  void retain_grad() const;
  int64_t output_nr() const;

  // Reads one element. In a compiled function the number is a symbol; item<double>() and the like pin it,
  // item<SymInt>(), item<SymFloat>() and item<SymBool>() do not.
  //
  //   double sum = x.sum().item<double>();
  //   Scalar same = x.sum().item();
  Scalar item() const;
  template <typename T>
  T item() const {
    return number_as<T>(item());
  }
  // All elements of a tensor of one dimension, each as `item()` gives it.
  //
  //   std::vector<float> row = x[0].tolist<float>();
  std::vector<Scalar> tolist() const;
  template <typename T>
  std::vector<T> tolist() const {
    std::vector<T> numbers;
    for (const Scalar& number : tolist()) numbers.push_back(number_as<T>(number));
    return numbers;
  }

  // "float32[2, 3]"; with values: `str()`.
  //
  //   std::string text = x.description() + " " + x.str();
  std::string description() const;
  std::string str() const;

#include <tenon/generated/tensor_methods.h>

  Tensor operator[](int64_t index) const;
  // One dimension, as in `x.view(-1)`.
  template <std::integral T>
  Tensor view(T size) const {
    return view(SymInts{SymInt(size)});
  }
  const Tensor& operator+=(const Tensor& other) const;
  const Tensor& operator-=(const Tensor& other) const;
  const Tensor& operator*=(const Tensor& other) const;
  const Tensor& operator/=(const Tensor& other) const;
  const Tensor& operator+=(const Scalar& other) const;
  const Tensor& operator-=(const Scalar& other) const;
  const Tensor& operator*=(const Scalar& other) const;
  const Tensor& operator/=(const Scalar& other) const;

 private:
  const TensorImpl& given(const char* asked) const {
    if (!impl_) [[unlikely]]
      core::undefined_tensor(asked);
    return *impl_;
  }
  template <typename T>
  static T number_as(const Scalar& number) {
    if constexpr (std::is_same_v<T, Scalar>)
      return number;
    else if constexpr (std::is_same_v<T, SymInt>)
      return number.is_real() ? tenon::to_int(number.sym_real()) : number.integer();
    else if constexpr (std::is_same_v<T, SymFloat>)
      return number.sym_real();
    else if constexpr (std::is_same_v<T, SymBool>)
      return number.sym_bool();
    else
      return static_cast<T>(number);
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
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::Float32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::Float64;
};

namespace core {
[[noreturn]] void wrong_data_type(const Tensor& tensor, Dtype asked);
// Sizes of a contiguous tensor to its strides.
Ints contiguous_strides(std::span<const int64_t> sizes);
SymInts contiguous_strides(std::span<const SymInt> sizes);
// An uninitialised tensor with these strides (the storage fits exactly).
Tensor allocate(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device);
// A tensor that shares the storage and version of `base`. Sizes may be symbolic if `base` is fake.
Tensor make_view(const Tensor& base, const SymInts& sizes, const SymInts& strides, const SymInt& offset);
// A tensor with no data on a real device's behalf; keys must include Fake or Meta.
Tensor make_without_data(const SymInts& sizes, const SymInts& strides, Dtype dtype, Device device, KeySet keys);
// The number of elements from the storage's start that these strides reach.
int64_t reach(std::span<const int64_t> sizes, std::span<const int64_t> strides);
}  // namespace core

template <typename T>
T* Tensor::data() const {
  if (DtypeOf<T>::value != dtype()) core::wrong_data_type(*this, DtypeOf<T>::value);
  return static_cast<T*>(raw_data());
}

// Wraps a tensor around foreign memory, which must outlive it.
//
//   std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
//   Tensor rows = from_blob(numbers.data(), {2, 3});
//   Tensor columns = from_blob(numbers.data(), {3, 2}, {1, 3}, [](void*) { /* nobody looks any more */ });
Tensor from_blob(void* data, const Ints& sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, const Ints& sizes, const Ints& strides, std::function<void(void*)> deleter,
                 const TensorOptions& options = {});

// A tensor of these values.
//
//   Tensor reals = tensor({1.5, 2.5});               // float32
//   Tensor whole = tensor({1, 2}), flag = tensor({true});  // int64, bool
//   Tensor one = tensor(3.0);                        // of no dimensions
//   Tensor same = tensor(std::vector<double>{1, 2}, kFloat64);
Tensor tensor(const std::vector<double>& values, const TensorOptions& options);
namespace core {
Tensor tensor_from(const void* values, int64_t count, Dtype from, bool zero_dim, const TensorOptions& options);
}
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  if constexpr (std::is_same_v<T, bool>) {
    return core::tensor_from(values.begin(), static_cast<int64_t>(values.size()), kBool, false, options);
  } else if constexpr (std::is_integral_v<T>) {
    std::vector<int64_t> wide(values.begin(), values.end());
    return core::tensor_from(wide.data(), static_cast<int64_t>(wide.size()), kInt64, false, options);
  } else {
    TensorOptions real = options;
    if (!real.dtype) real.dtype = kFloat32;
    std::vector<double> wide(values.begin(), values.end());
    return core::tensor_from(wide.data(), static_cast<int64_t>(wide.size()), kFloat64, false, real);
  }
}
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  Tensor list = tensor({value}, options);
  return core::make_view(list, SymInts{}, SymInts{}, 0);
}

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, const Scalar& b);
Tensor operator-(const Tensor& a, const Scalar& b);
Tensor operator*(const Tensor& a, const Scalar& b);
Tensor operator/(const Tensor& a, const Scalar& b);
Tensor operator+(const Scalar& a, const Tensor& b);
Tensor operator-(const Scalar& a, const Tensor& b);
Tensor operator*(const Scalar& a, const Tensor& b);
Tensor operator/(const Scalar& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator~(const Tensor& a);  // bits, or the opposite of bools
Tensor operator==(const Tensor& a, const Tensor& b);
Tensor operator!=(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator==(const Tensor& a, const Scalar& b);
Tensor operator!=(const Tensor& a, const Scalar& b);
Tensor operator<(const Tensor& a, const Scalar& b);
Tensor operator<=(const Tensor& a, const Scalar& b);
Tensor operator>(const Tensor& a, const Scalar& b);
Tensor operator>=(const Tensor& a, const Scalar& b);

}  // namespace tenon
