// `at::Tensor`: a tensor with libtorch's methods and types. It is a `tenon::Tensor` without members of its own, so one
// becomes the other at no cost. The operators' methods and functions are written by tools/generate_api from the rows.
#pragma once

#include <tenon/autograd/detach.h>
#include <tenon/autograd/meta.h>
#include <tenon/compat/accessor.h>
#include <tenon/compat/checks.h>
#include <tenon/compat/types.h>
#include <tenon/core/generators.h>
#include <tenon/core/indexing.h>
#include <tenon/core/random.h>
#include <tenon/dispatch/numbers.h>
#include <tenon/generated/ops.h>

#include <iostream>
#include <sstream>

namespace at {

using namespace c10;
using tenon::Generator;
using tenon::Ints;
using tenon::OptionalInts;
using tenon::SymInts;

class Tensor;
using TensorList = ArrayRef<Tensor>;

// Between the types of the two, either way.
namespace compat {
// As the class that it derives from; a conversion by name, for one by constructor would find two of them.
const tenon::Tensor& base(const Tensor& tensor);
Ints plain(IntArrayRef list);
OptionalInts plain(const OptionalIntArrayRef& list);
std::vector<tenon::Tensor> plain(TensorList list);
std::optional<tenon::Tensor> plain(const std::optional<Tensor>& tensor);
std::vector<std::optional<tenon::Tensor>> plain(const std::vector<std::optional<Tensor>>& list);
std::optional<SymInts> plain(const std::optional<SizesArg>& list);
std::optional<tenon::Dtype> plain(const std::optional<ScalarType>& type);
std::vector<Tensor> wrap(const std::vector<tenon::Tensor>& list);
Tensor finish(const TensorOptions& options, Tensor made);
// The result becomes the content of `out`, as what the `_out` form of an operator computed.
Tensor& write_out(const Tensor& out, const Tensor& result, const char* name);
}  // namespace compat

namespace indexing {

constexpr std::nullopt_t None = std::nullopt;
struct EllipsisIndexType {};
constexpr EllipsisIndexType Ellipsis{};
struct Slice {
  std::optional<SymInt> start, stop;
  SymInt step = 1;
  Slice() = default;
  Slice(std::optional<SymInt> first, std::optional<SymInt> end = std::nullopt, std::optional<SymInt> by = std::nullopt)
      : start(std::move(first)), stop(std::move(end)), step(by.value_or(SymInt(1))) {}
};
struct TensorIndex;

}  // namespace indexing

class Tensor : public tenon::Tensor {
 public:
  using Base = tenon::Tensor;
  Tensor() = default;
  Tensor(const tenon::Tensor& tensor) : Base(tensor) {}
  Tensor(tenon::Tensor&& tensor) : Base(std::move(tensor)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  // A variable becomes another tensor; what a call returned (`x[0]`, `x.slice(…)`) is written into.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  const Tensor& operator=(const Tensor& values) && { return copy_(values); }
  const Tensor& operator=(Tensor&& values) && { return copy_(values); }
  const Tensor& operator=(const Scalar& value) && { return fill_(value); }

  // Plain numbers, where Tenon gives symbols.
  int64_t size(int64_t dim) const { return Base::size(dim).plain(); }
  int64_t stride(int64_t dim) const { return Base::stride(dim).plain(); }
  int64_t numel() const { return Base::numel().plain(); }
  IntArrayRef sizes() const { return Base::sizes(); }
  IntArrayRef strides() const { return Base::strides(); }
  int64_t ndimension() const { return dim(); }
  int64_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel() * element_size()); }
  SymInt sym_size(int64_t dim) const { return Base::size(dim); }
  SymInt sym_numel() const { return Base::numel(); }

  ScalarType scalar_type() const { return Base::dtype(); }
  ScalarType dtype() const { return Base::dtype(); }
  Device device() const { return Base::device(); }
  Layout layout() const { return Layout::Strided; }
  DeprecatedTypeProperties type() const { return {scalar_type(), device()}; }
  MemoryFormat suggest_memory_format(bool = false) const { return Base::suggested_format(); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  int64_t get_device() const { return device().index(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return false; }
  bool is_quantized() const { return false; }
  bool is_complex() const { return false; }
  bool is_signed() const { return tenon::traits(Base::dtype()).is_signed; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const { return Base::is_contiguous(format); }
  bool is_same(const Tensor& other) const { return is(other); }
  bool is_alias_of(const Tensor& other) const { return is_same_storage(other); }
  bool has_storage() const { return defined(); }
  int64_t use_count() const { return static_cast<int64_t>(impl()->use_count()); }
  int64_t _version() const { return version(); }

  void* data_ptr() const { return raw_data(); }
  void* mutable_data_ptr() const { return raw_data(); }
  const void* const_data_ptr() const { return raw_data(); }
  template <typename T>
  T* data_ptr() const {
    using Plain = std::remove_const_t<T>;
    if (CppTypeToScalarType<Plain>::value != scalar_type())
      tenon::core::wrong_data_type(*this, CppTypeToScalarType<Plain>::value);
    return static_cast<T*>(raw_data());
  }
  template <typename T>
  T* data() const {
    return data_ptr<T>();
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <typename T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return data_ptr<const std::remove_const_t<T>>();
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N, " dims but tensor has ", dim());
    return TensorAccessor<T, N>(data_ptr<T>(), sizes().data(), strides().data());
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor() const {
    return packed_accessor64<T, N, Traits>();
  }

  Scalar item() const { return Base::item(); }
  template <typename T>
  T item() const {
    return Scalar(Base::item()).to<T>();
  }

  // Autograd.
  Tensor& requires_grad_(bool wanted = true) const {
    set_requires_grad(wanted);
    return self();
  }
  Tensor grad() const { return Base::grad(); }
  Tensor& mutable_grad() const {
    // The slot holds a tensor of the base class, which has the same members.
    return static_cast<Tensor&>(tenon::autograd::ensure_meta(*this).grad);
  }
  Tensor data() const { return Base::detach(); }
  Tensor variable_data() const { return Base::detach(); }
  Tensor tensor_data() const { return Base::detach(); }
  void backward(const Tensor& gradient = {}, std::optional<bool> keep_graph = std::nullopt,
                bool create_graph = false) const {
    const Base& given = gradient;
    Base::backward(given.defined() ? std::optional<tenon::Tensor>(given) : std::nullopt,
                   keep_graph.value_or(create_graph), create_graph);
  }
  void reset() { *this = Tensor(); }
  Tensor& detach_() const {
    tenon::detach_(*this);
    return self();
  }
  // The hook may return nothing, or the gradient that takes the place of the one it got.
  template <typename F>
  auto register_hook(F hook) const {
    return Base::register_hook([hook = std::move(hook)](const tenon::Tensor& gradient) {
      if constexpr (std::is_void_v<decltype(hook(Tensor(gradient)))>) {
        hook(Tensor(gradient));
        return tenon::Tensor();
      } else {
        return tenon::Tensor(compat::base(hook(Tensor(gradient))));
      }
    });
  }
  void print() const { std::cerr << "[" << type().toString() << " " << sizes() << "]\n"; }

  // Conversions.
  Tensor to(ScalarType type, bool = false, bool copy = false) const {
    Tensor made = Base::to(tenon::Dtype(type));
    return copy && made.is(*this) ? Tensor(made.Base::clone()) : made;
  }
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false) const {
    TORCH_CHECK(!options.has_device() || options.device() == device(), "to(): there is no way from ", device(), " to ",
                options.device(), " yet");
    return to(options.has_dtype() ? options.dtype() : scalar_type(), non_blocking, copy);
  }
  Tensor to(const Device& place, ScalarType type, bool non_blocking = false, bool copy = false) const {
    return to(TensorOptions(place).dtype(type), non_blocking, copy);
  }
  Tensor to(const Device& place) const { return to(TensorOptions(place)); }
  Tensor to(DeviceType place) const { return to(Device(place)); }
  Tensor to(const Tensor& other) const { return to(other.options()); }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor cpu() const { return to(Device(kCPU)); }
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const { return Base::contiguous(format); }
  void set_data(const Tensor& other) const { tenon::autograd::set_data(*this, other); }
  bool equal(const Tensor& other) const { return Base::equal(other); }
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const {
    return Base::allclose(other, rtol, atol, equal_nan);
  }

#include <tenon/generated/compat_methods.h>

  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& value) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) const;

  Tensor operator[](int64_t at) const { return Base::operator[](at); }
  // By a plain number, which fits both a size and a list of sizes.
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const { return split(SymInt(size), dim); }
  // The elements that a mask or positions name, or the one of a number without dimensions.
  Tensor operator[](const Tensor& at) const;
  Tensor& operator+=(const Tensor& other) { return Base::operator+=(other), *this; }
  Tensor& operator-=(const Tensor& other) { return Base::operator-=(other), *this; }
  Tensor& operator*=(const Tensor& other) { return Base::operator*=(other), *this; }
  Tensor& operator/=(const Tensor& other) { return Base::operator/=(other), *this; }
  Tensor& operator+=(const Scalar& other) { return Base::operator+=(other), *this; }
  Tensor& operator-=(const Scalar& other) { return Base::operator-=(other), *this; }
  Tensor& operator*=(const Scalar& other) { return Base::operator*=(other), *this; }
  Tensor& operator/=(const Scalar& other) { return Base::operator/=(other), *this; }

  std::string toString() const { return description(); }

 private:
  Tensor& self() const { return const_cast<Tensor&>(*this); }
};
static_assert(sizeof(Tensor) == sizeof(tenon::Tensor));

// ---- Between the two ----------------------------------------------------------------------------------------------

namespace compat {
inline Ints plain(IntArrayRef list) { return Ints(std::span<const int64_t>(list)); }
inline OptionalInts plain(const OptionalIntArrayRef& list) {
  return list ? OptionalInts(plain(*list)) : OptionalInts();
}
inline const tenon::Tensor& base(const Tensor& tensor) { return tensor; }
inline std::vector<tenon::Tensor> plain(TensorList list) {
  std::vector<tenon::Tensor> made;
  for (const Tensor& tensor : list) made.push_back(base(tensor));
  return made;
}
inline std::optional<tenon::Tensor> plain(const std::optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? std::optional<tenon::Tensor>(base(*tensor)) : std::nullopt;
}
inline std::vector<std::optional<tenon::Tensor>> plain(const std::vector<std::optional<Tensor>>& list) {
  std::vector<std::optional<tenon::Tensor>> made;
  for (const auto& each : list) made.push_back(plain(each));
  return made;
}
inline std::optional<SymInts> plain(const std::optional<SizesArg>& list) {
  return list ? std::optional<SymInts>(*list) : std::nullopt;
}
inline std::optional<tenon::Dtype> plain(const std::optional<ScalarType>& type) {
  return type ? std::optional<tenon::Dtype>(*type) : std::nullopt;
}
inline std::vector<Tensor> wrap(const std::vector<tenon::Tensor>& list) { return {list.begin(), list.end()}; }
inline Tensor finish(const TensorOptions& options, Tensor made) {
  if (options.requires_grad()) made.set_requires_grad();
  return made;
}
inline Tensor& write_out(const Tensor& out, const Tensor& result, const char* name) {
  TORCH_CHECK(canCast(result.scalar_type(), out.scalar_type()), name, ": result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  // An empty tensor grows to what is written.
  if (out.numel() == 0 && result.numel() != 0)
    tenon::autograd::set_data(out, tenon::empty_like(result, tenon::TensorOptions(tenon::Dtype(out.dtype()))));
  TORCH_CHECK(out.sizes() == result.sizes(), name, ": expected an output of sizes ", result.sizes(), ", got ",
              out.sizes());
  out.copy_(result);
  return const_cast<Tensor&>(out);
}
}  // namespace compat

#include <tenon/generated/compat_functions.h>

#define TENON_COMPAT_OPERATOR_(sign)                                                       \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) {                          \
    return static_cast<const tenon::Tensor&>(a) sign static_cast<const tenon::Tensor&>(b); \
  }                                                                                        \
  inline Tensor operator sign(const Tensor& a, const tenon::Tensor& b) {                   \
    return static_cast<const tenon::Tensor&>(a) sign b;                                    \
  }                                                                                        \
  inline Tensor operator sign(const tenon::Tensor& a, const Tensor& b) {                   \
    return a sign static_cast<const tenon::Tensor&>(b);                                    \
  }                                                                                        \
  inline Tensor operator sign(const Tensor& a, const Scalar& b) {                          \
    return static_cast<const tenon::Tensor&>(a) sign static_cast<const tenon::Scalar&>(b); \
  }
TENON_COMPAT_OPERATOR_(+)
TENON_COMPAT_OPERATOR_(-)
TENON_COMPAT_OPERATOR_(*)
TENON_COMPAT_OPERATOR_(/)
TENON_COMPAT_OPERATOR_(==)
TENON_COMPAT_OPERATOR_(!=)
TENON_COMPAT_OPERATOR_(<)
TENON_COMPAT_OPERATOR_(<=)
TENON_COMPAT_OPERATOR_(>)
TENON_COMPAT_OPERATOR_(>=)
TENON_COMPAT_OPERATOR_(&)
TENON_COMPAT_OPERATOR_(|)
TENON_COMPAT_OPERATOR_(^)
#undef TENON_COMPAT_OPERATOR_
#define TENON_COMPAT_OPERATOR_(sign)                                                       \
  inline Tensor operator sign(const Scalar& a, const Tensor& b) {                          \
    return static_cast<const tenon::Scalar&>(a) sign static_cast<const tenon::Tensor&>(b); \
  }
TENON_COMPAT_OPERATOR_(+)
TENON_COMPAT_OPERATOR_(-)
TENON_COMPAT_OPERATOR_(*)
TENON_COMPAT_OPERATOR_(/)
#undef TENON_COMPAT_OPERATOR_
// The number before the tensor: the same comparison, seen from the other side.
#define TENON_COMPAT_OPERATOR_(sign, mirrored) \
  inline Tensor operator sign(const Scalar& a, const Tensor& b) { return b mirrored a; }
TENON_COMPAT_OPERATOR_(==, ==)
TENON_COMPAT_OPERATOR_(!=, !=)
TENON_COMPAT_OPERATOR_(<, >)
TENON_COMPAT_OPERATOR_(<=, >=)
TENON_COMPAT_OPERATOR_(>, <)
TENON_COMPAT_OPERATOR_(>=, <=)
#undef TENON_COMPAT_OPERATOR_
inline Tensor operator-(const Tensor& a) { return -static_cast<const tenon::Tensor&>(a); }
inline Tensor operator~(const Tensor& a) { return ~static_cast<const tenon::Tensor&>(a); }
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << (tensor.defined() ? tensor.str() : "[ Tensor (undefined) ]");
}

// ---- Factories that no row has ------------------------------------------------------------------------------------

template <typename T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options = {}) {
  return compat::finish(options, tenon::tensor(rows, options));
}
template <typename T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
              const TensorOptions& options = {}) {
  return compat::finish(options, tenon::tensor(planes, options));
}
template <typename T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return compat::finish(options, tenon::tensor(values, options));
}
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return compat::finish(options, tenon::tensor(value, options));
}
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  TensorOptions chosen = options.has_dtype() ? options : options.dtype(CppTypeToScalarType<T>::value);
  return compat::finish(options, tenon::tensor(std::vector<double>(values.begin(), values.end()), chosen));
}
template <typename T>
  requires std::is_arithmetic_v<T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return compat::finish(options, tenon::from_blob(data, compat::plain(sizes), options));
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  return compat::finish(options,
                        tenon::from_blob(data, compat::plain(sizes), compat::plain(strides), [](void*) {}, options));
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  Ints plain = compat::plain(sizes);
  return compat::finish(options,
                        tenon::from_blob(data, plain, tenon::core::contiguous_strides(plain.span()), deleter, options));
}

// Where libtorch takes a layout in the place of options.
inline Tensor empty_like(const Tensor& self, MemoryFormat format) { return empty_like(self, TensorOptions(), format); }
inline Tensor zeros_like(const Tensor& self, MemoryFormat format) { return zeros_like(self, TensorOptions(), format); }
inline Tensor ones_like(const Tensor& self, MemoryFormat format) { return ones_like(self, TensorOptions(), format); }

// Numbers in the place of tensors.
inline Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return tenon::where(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return tenon::where(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return tenon::where(condition, self, other);
}
inline std::vector<Tensor> split(const Tensor& self, int64_t size, int64_t dim = 0) { return self.split(size, dim); }
inline bool equal(const Tensor& self, const Tensor& other) { return self.equal(other); }
inline bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                     bool equal_nan = false) {
  return self.allclose(other, rtol, atol, equal_nan);
}
inline ScalarType result_type(const Tensor& a, const Tensor& b) { return (a.new_empty({}) + b.new_empty({})).dtype(); }
inline MaybeOwned<Tensor> borrow_from_optional_tensor(const std::optional<Tensor>& maybe) {
  return maybe ? MaybeOwned<Tensor>::borrowed(*maybe) : MaybeOwned<Tensor>();
}
inline Tensor rand(const SizesArg& size, Generator& generator, const TensorOptions& options = {}) {
  return compat::finish(options, tenon::rand(static_cast<const SymInts&>(size), generator, options));
}
inline Tensor randn(const SizesArg& size, Generator& generator, const TensorOptions& options = {}) {
  return compat::finish(options, tenon::randn(static_cast<const SymInts&>(size), generator, options));
}
namespace detail {
inline Generator& getDefaultCPUGenerator() { return tenon::default_generator(); }
}  // namespace detail

// ---- Indices --------------------------------------------------------------------------------------------------------

namespace indexing {

struct TensorIndex {
  tenon::TensorIndex index;
  TensorIndex(std::nullopt_t) : index(tenon::None) {}
  TensorIndex(EllipsisIndexType) : index(tenon::Ellipsis) {}
  TensorIndex(const char* dots) : index(tenon::Ellipsis) {
    TORCH_CHECK_VALUE(std::string_view(dots) == "...", "expected \"...\" to represent an ellipsis index, got ", dots);
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  TensorIndex(T at) : index(static_cast<int64_t>(at)) {}
  // true: a dimension of one element; false: of none.
  template <std::same_as<bool> T>
  TensorIndex(T flag) : index(tenon::full({}, flag, tenon::TensorOptions(tenon::kBool))) {}
  TensorIndex(SymInt at) : index(std::move(at)) {}
  TensorIndex(const indexing::Slice& range)
      : index(tenon::Slice(end_of(range.start), end_of(range.stop), range.step)) {}
  TensorIndex(const at::Tensor& list) : index(compat::base(list)) {}

 private:
  static tenon::Slice::End end_of(const std::optional<SymInt>& at) {
    return at ? tenon::Slice::End(*at) : tenon::Slice::End(tenon::None);
  }
};

}  // namespace indexing

namespace compat {
inline std::vector<tenon::TensorIndex> plain(ArrayRef<indexing::TensorIndex> indices) {
  std::vector<tenon::TensorIndex> made;
  for (const indexing::TensorIndex& each : indices) made.push_back(each.index);
  return made;
}
}  // namespace compat

inline Tensor Tensor::index(ArrayRef<indexing::TensorIndex> indices) const {
  return Base::index(std::span<const tenon::TensorIndex>(compat::plain(indices)));
}
inline Tensor Tensor::index(std::initializer_list<indexing::TensorIndex> indices) const {
  return index(ArrayRef<indexing::TensorIndex>(indices));
}
inline Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& value) const {
  Base::index_put_(std::span<const tenon::TensorIndex>(compat::plain(indices)), value);
  return self();
}
inline Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value) const {
  return index_put_(ArrayRef<indexing::TensorIndex>(indices), value);
}
inline Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) const {
  return index_put_(indices, Tensor(tenon::full({}, value, tenon::TensorOptions(tenon::Dtype(dtype())))));
}
inline Tensor Tensor::operator[](const Tensor& at) const { return index({indexing::TensorIndex(at)}); }

// ---- Checks of arguments ------------------------------------------------------------------------------------------

using CheckedFrom = const char*;
struct TensorArg {
  TensorArg(const Tensor& argument, const char* argument_name, int position)
      : tensor(argument), name(argument_name), pos(position) {}
  const Tensor& tensor;
  const char* name;
  int pos;
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};
inline std::ostream& operator<<(std::ostream& out, const TensorArg& argument) {
  return out << "argument #" << argument.pos << " '" << argument.name << "'";
}
inline void checkDim(CheckedFrom from, const TensorArg& t, int64_t dim) {
  TORCH_CHECK(t->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t->dim(), "-dimensional tensor for ",
              t, " (while checking arguments for ", from, ")");
}
inline void checkContiguous(CheckedFrom from, const TensorArg& t) {
  TORCH_CHECK(t->is_contiguous(), "Expected contiguous tensor, but got non-contiguous tensor for ", t,
              " (while checking arguments for ", from, ")");
}
inline void checkAllContiguous(CheckedFrom from, std::initializer_list<TensorArg> list) {
  for (const TensorArg& t : list) checkContiguous(from, t);
}
inline void checkSize(CheckedFrom from, const TensorArg& t, IntArrayRef sizes) {
  TORCH_CHECK(t->sizes().equals(sizes), "Expected tensor of size ", sizes, ", but got tensor of size ", t->sizes(),
              " for ", t, " (while checking arguments for ", from, ")");
}
inline void checkSameSize(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->sizes().equals(b->sizes()), "Expected tensor for ", a, " to have same size as tensor for ", b,
              "; but ", a->sizes(), " does not equal ", b->sizes(), " (while checking arguments for ", from, ")");
}
inline void checkScalarType(CheckedFrom from, const TensorArg& t, ScalarType type) {
  TORCH_CHECK(t->scalar_type() == type, "Expected tensor for ", t, " to have scalar type ", type, "; but got ",
              t->scalar_type(), " instead (while checking arguments for ", from, ")");
}
inline void checkSameType(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->scalar_type() == b->scalar_type(), "Expected tensor for ", a, " to have the same type as tensor for ",
              b, "; but type ", a->scalar_type(), " does not equal ", b->scalar_type(),
              " (while checking arguments for ", from, ")");
}
inline void checkAllSameType(CheckedFrom from, ArrayRef<TensorArg> list) {
  for (const TensorArg& t : list) checkSameType(from, list[0], t);
}
inline void checkAllDefined(CheckedFrom from, ArrayRef<TensorArg> list) {
  for (const TensorArg& t : list)
    TORCH_CHECK(t->defined(), "Expected tensor to be defined: ", t, " (while checking arguments for ", from, ")");
}
inline void checkAllSameGPU(CheckedFrom, ArrayRef<TensorArg>) {}
inline void checkDefined(CheckedFrom from, const TensorArg& t) { checkAllDefined(from, {t}); }
inline void checkAllSameSize(CheckedFrom from, ArrayRef<TensorArg> list) {
  for (const TensorArg& t : list) checkSameSize(from, list[0], t);
}
inline void checkDimRange(CheckedFrom from, const TensorArg& t, int64_t first, int64_t last) {
  TORCH_CHECK(t->dim() >= first && t->dim() < last, "Expected ", first, " to ", last - 1, " dimensions, but got ",
              t->dim(), "-dimensional tensor for ", t, " (while checking arguments for ", from, ")");
}
inline void checkSameDim(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->dim() == b->dim(), "Expected tensor for ", a, " to have the same dimension as tensor for ", b,
              "; but ", a->dim(), " does not equal ", b->dim(), " (while checking arguments for ", from, ")");
}
inline void checkNumel(CheckedFrom from, const TensorArg& t, int64_t numel) {
  TORCH_CHECK(t->numel() == numel, "Expected tensor for ", t, " to have ", numel, " elements; but it actually has ",
              t->numel(), " elements (while checking arguments for ", from, ")");
}
inline void checkSameNumel(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->numel() == b->numel(), "Expected tensor for ", a, " to have same number of elements as tensor for ", b,
              "; but ", a->numel(), " does not equal ", b->numel(), " (while checking arguments for ", from, ")");
}
inline void checkAllSameNumel(CheckedFrom from, ArrayRef<TensorArg> list) {
  for (const TensorArg& t : list) checkSameNumel(from, list[0], t);
}
inline void checkSize(CheckedFrom from, const TensorArg& t, int64_t dim, int64_t size) {
  TORCH_CHECK(t->size(dim) == size, "Expected tensor to have size ", size, " at dimension ", dim, ", but got size ",
              t->size(dim), " for ", t, " (while checking arguments for ", from, ")");
}
inline void checkScalarTypes(CheckedFrom from, const TensorArg& t, ArrayRef<ScalarType> types) {
  TORCH_CHECK(std::find(types.begin(), types.end(), t->scalar_type()) != types.end(), "Expected tensor for ", t,
              " to have one of the following scalar types: ", types, "; but got ", t->scalar_type(),
              " instead (while checking arguments for ", from, ")");
}
inline void checkDeviceType(CheckedFrom from, ArrayRef<Tensor> list, DeviceType type) {
  for (const Tensor& t : list)
    TORCH_CHECK(!t.defined() || t.device() == type, "Expected tensor to have ", Device(type), " DeviceType, but got ",
                t.device(), " (while checking arguments for ", from, ")");
}

}  // namespace at

#define LEGACY_CONTIGUOUS_MEMORY_FORMAT ::c10::MemoryFormat::Contiguous

// Elements of libtorch's 16-bit types.
template <>
struct tenon::DtypeOf<c10::Half> {
  static constexpr tenon::Dtype value = tenon::Dtype::Float16;
};
template <>
struct tenon::DtypeOf<c10::BFloat16> {
  static constexpr tenon::Dtype value = tenon::Dtype::BFloat16;
};
