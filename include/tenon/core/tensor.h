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

#include <iosfwd>
#include <tuple>

namespace tenon {

class Generator;
class TensorIndex;  // core/indexing.h
template <typename T, size_t N>
class TensorAccessor;  // core/accessor.h

class Tensor : public TensorBase {
 public:
  using TensorBase::TensorBase;
  Tensor() = default;
  explicit Tensor(TensorBase handle) : TensorBase(std::move(handle)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // A variable is given another tensor; the elements that an index names are written.
  //
  //   Tensor same = x;
  //   x[1][2] = 3;
  //   x[0] = ones({3});
  //   double written = same[1][2].item<double>();  // 3
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  const Tensor& operator=(const Tensor& values) &&;
  const Tensor& operator=(Tensor&& values) &&;
  const Tensor& operator=(const Scalar& value) &&;

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
  // `autograd::register_hook`, which see.
  //
  //   Tensor v = ones({3}).set_requires_grad();
  //   v.register_hook([](const Tensor& gradient) { return gradient.clamp(-1, 1); });
  template <typename F>
  auto register_hook(F hook) const;
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

  // The values, dtype, and what else is not the usual; core/print.h says how.
  //
  //   std::string text = x.description() + " " + x.str();
  std::string str() const;

#include <tenon/generated/tensor_methods.h>

  Tensor operator[](int64_t index) const;
  // By what core/indexing.h names: `x.index({Slice(), 0, None, mask})`.
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor index(std::span<const TensorIndex> indices) const;
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const;
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const;
  const Tensor& index_put_(std::span<const TensorIndex> indices, const Tensor& values) const;
  // Elements in memory, for loops of one's own; core/accessor.h has the body.
  //
  //   float last = x.accessor<float, 2>()[1][2];
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const;
  // One dimension.
  //
  //   Tensor flat = x.view(-1), same = x.reshape(-1);
  template <std::integral T>
  Tensor view(T size) const {
    return view(SymInts{SymInt(size)});
  }
  template <std::integral T>
  Tensor reshape(T size) const {
    return reshape(SymInts{SymInt(size)});
  }
  // All dimensions turned around; the last two.
  //
  //   Tensor turned = x.T(), same = x.mT();  // [3, 2]
  Tensor T() const;
  Tensor mT() const;
  // Of whole tensors; the functions of dispatch/numbers.h.
  //
  //   bool same = x.equal(x.clone()), near = x.allclose(x + 1e-7);
  bool equal(const Tensor& other) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  const Tensor& operator+=(const Tensor& other) const;
  const Tensor& operator-=(const Tensor& other) const;
  const Tensor& operator*=(const Tensor& other) const;
  const Tensor& operator/=(const Tensor& other) const;
  const Tensor& operator+=(const Scalar& other) const;
  const Tensor& operator-=(const Scalar& other) const;
  const Tensor& operator*=(const Scalar& other) const;
  const Tensor& operator/=(const Scalar& other) const;
  const Tensor& operator%=(const Tensor& other) const;
  const Tensor& operator&=(const Tensor& other) const;
  const Tensor& operator|=(const Tensor& other) const;
  const Tensor& operator^=(const Tensor& other) const;
  const Tensor& operator%=(const Scalar& other) const;
  const Tensor& operator&=(const Scalar& other) const;
  const Tensor& operator|=(const Scalar& other) const;
  const Tensor& operator^=(const Scalar& other) const;

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
// The same, with its bits taken for elements of `dtype`; strides and offset count those.
Tensor make_view(const Tensor& base, const SymInts& sizes, const SymInts& strides, const SymInt& offset, Dtype dtype);
// A tensor with no data on a real device's behalf; keys must include Fake or Meta.
Tensor make_without_data(const SymInts& sizes, const SymInts& strides, Dtype dtype, Device device, KeySet keys);
}  // namespace core

// Wraps a tensor around foreign memory, which must outlive it.
//
//   std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
//   Tensor rows = from_blob(numbers.data(), {2, 3});
//   Tensor columns = from_blob(numbers.data(), {3, 2}, {1, 3}, [](void*) { /* nobody looks any more */ });
//
// The dtype is that of the elements, unless the options say otherwise. Memory that is const must not be written through
// the tensor.
Tensor from_blob(void* data, const Ints& sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, const Ints& sizes, const Ints& strides, std::function<void(void*)> deleter,
                 const TensorOptions& options = {});
template <typename T>
concept ElementType = requires { DtypeOf<T>::value; };
template <ElementType T>
Tensor from_blob(const T* data, const Ints& sizes, const Ints& strides, std::function<void(void*)> deleter,
                 TensorOptions options = {}) {
  if (!options.dtype) options.dtype = DtypeOf<T>::value;
  return from_blob(static_cast<void*>(const_cast<T*>(data)), sizes, strides, std::move(deleter), options);
}
template <ElementType T>
Tensor from_blob(const T* data, const Ints& sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, core::contiguous_strides(sizes.span()), nullptr, options);
}
template <ElementType T>
Tensor from_blob(const T* data, const Ints& sizes, std::function<void(void*)> deleter,
                 const TensorOptions& options = {}) {
  return from_blob(data, sizes, core::contiguous_strides(sizes.span()), std::move(deleter), options);
}

// A tensor of these values.
//
//   Tensor reals = tensor({1.5, 2.5});               // float32
//   Tensor whole = tensor({1, 2}), flag = tensor({true});  // int64, bool
//   Tensor one = tensor(3.0);                        // of no dimensions
//   Tensor same = tensor(std::vector<double>{1, 2}, kFloat64);
//   Tensor list = tensor(std::vector<float>{1, 2});
//   Tensor square = tensor({{1, 2}, {3, 4}}), cube = tensor({{{1.0}, {2.0}}, {{3.0}, {4.0}}});  // [2, 2], [2, 2, 1]
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
template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  std::conditional_t<std::is_integral_v<T>, std::vector<int64_t>, std::vector<double>> wide(values.begin(),
                                                                                            values.end());
  TensorOptions given = options;
  if (std::is_floating_point_v<T> && !given.dtype) given.dtype = kFloat32;
  return core::tensor_from(wide.data(), static_cast<int64_t>(wide.size()), std::is_integral_v<T> ? kInt64 : kFloat64,
                           false, given);
}
namespace core {
// The elements of nested lists one after the other, and the sizes, which must be the same everywhere.
Tensor shaped(const Tensor& flat, const Ints& sizes);
[[noreturn]] void ragged_list(size_t expected, size_t given);
template <typename T>
void flatten_list(std::initializer_list<T> values, size_t depth, Ints& sizes, std::vector<T>& flat) {
  if (sizes.size() == depth) sizes.push_back(static_cast<int64_t>(values.size()));
  if (sizes[depth] != static_cast<int64_t>(values.size()))
    ragged_list(static_cast<size_t>(sizes[depth]), values.size());
  flat.insert(flat.end(), values.begin(), values.end());
}
template <typename L, typename T>
void flatten_list(std::initializer_list<std::initializer_list<L>> lists, size_t depth, Ints& sizes,
                  std::vector<T>& flat) {
  if (sizes.size() == depth) sizes.push_back(static_cast<int64_t>(lists.size()));
  if (sizes[depth] != static_cast<int64_t>(lists.size())) ragged_list(static_cast<size_t>(sizes[depth]), lists.size());
  for (const auto& list : lists) flatten_list(list, depth + 1, sizes, flat);
}
template <typename T, typename L>
Tensor tensor_of_lists(std::initializer_list<L> lists, const TensorOptions& options) {
  Ints sizes;
  std::vector<T> flat;
  flatten_list(lists, 0, sizes, flat);
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<int64_t> wide(flat.begin(), flat.end());
    TensorOptions given = options;
    if (!given.dtype) given.dtype = kBool;
    return shaped(tensor(wide, given), sizes);
  } else {
    return shaped(tensor(flat, options), sizes);
  }
}
}  // namespace core
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options = {}) {
  return core::tensor_of_lists<T>(rows, options);
}
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
              const TensorOptions& options = {}) {
  return core::tensor_of_lists<T>(planes, options);
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
Tensor operator~(const Tensor& a);                   // bits, or the opposite of bools
Tensor operator%(const Tensor& a, const Tensor& b);  // the sign of the divisor
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);
Tensor operator%(const Tensor& a, const Scalar& b);
Tensor operator&(const Tensor& a, const Scalar& b);
Tensor operator|(const Tensor& a, const Scalar& b);
Tensor operator^(const Tensor& a, const Scalar& b);
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

// As `str()`.
//
//   fmt::print("{}\n", x);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tenon

template <>
struct fmt::formatter<tenon::Tensor> : fmt::formatter<fmt::string_view> {
  auto format(const tenon::Tensor& tensor, format_context& context) const -> format_context::iterator;
};
