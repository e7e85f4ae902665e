// `Tensor`: a strided view of a storage. A handle; copying it shares the tensor.
//
// What it has of itself (sizes, dtype, data) is in `TensorBase`; here are gradients, elements and the operators'
// methods.
//
//   Tensor w = randn({2, 3}).set_requires_grad();
//   Tensor loss = (x * w).sum();
//   loss.backward();
//   Tensor slope = w.grad();    // x
#pragma once

#include <tenon/core/tensor_fwd.h>

#include <tuple>

namespace tenon {

class Generator;

class Tensor : public TensorBase {
 public:
  using TensorBase::TensorBase;
  explicit Tensor(TensorBase handle) : TensorBase(std::move(handle)) {}

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

  // The values, and `description()`.
  //
  //   std::string text = x.description() + " " + x.str();
  std::string str() const;

#include <tenon/generated/tensor_methods.h>

  Tensor operator[](int64_t index) const;
  // One dimension.
  //
  //   Tensor flat = x.view(-1);
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
};

namespace core {
// As `allocate_base`.
Tensor allocate(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device);
// A tensor that shares the storage and version of `base`. Sizes may be symbolic if `base` is fake.
Tensor make_view(const Tensor& base, const SymInts& sizes, const SymInts& strides, const SymInt& offset);
// A tensor with no data on a real device's behalf; keys must include Fake or Meta.
Tensor make_without_data(const SymInts& sizes, const SymInts& strides, Dtype dtype, Device device, KeySet keys);
}  // namespace core

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
