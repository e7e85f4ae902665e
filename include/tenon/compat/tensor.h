// `at::Tensor`: a tensor with libtorch's methods and types. It is a `tenon::Tensor` without members of its own, so one
// becomes the other at no cost. The operators' methods and functions are written by tools/generate_api from the rows.
#pragma once

#include <tenon/autograd/meta.h>
#include <tenon/compat/accessor.h>
#include <tenon/compat/checks.h>
#include <tenon/compat/types.h>
#include <tenon/generated/ops.h>

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
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  int64_t get_device() const { return device().index(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return false; }
  bool is_quantized() const { return false; }
  bool is_complex() const { return false; }
  bool is_signed() const { return tenon::traits(Base::dtype()).is_signed; }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return Base::is_contiguous(); }
  bool is_same(const Tensor& other) const { return is(other); }
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
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return Base::contiguous(); }
  Tensor set_data(const Tensor& other) const { return self() = other; }

#include <tenon/generated/compat_methods.h>

  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) const;

  Tensor operator[](int64_t at) const { return Base::operator[](at); }
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
inline Tensor operator-(const Tensor& a) { return -static_cast<const tenon::Tensor&>(a); }
inline Tensor operator~(const Tensor& a) { return ~static_cast<const tenon::Tensor&>(a); }
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << (tensor.defined() ? tensor.str() : "[ Tensor (undefined) ]");
}

// ---- Factories that no row has ------------------------------------------------------------------------------------

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

// ---- Indices --------------------------------------------------------------------------------------------------------

namespace indexing {

struct TensorIndex {
  enum class Kind : uint8_t { NewDimension, AllOthers, Number, Range, Elements } kind;
  SymInt number;
  indexing::Slice slice;
  at::Tensor tensor;
  TensorIndex(std::nullopt_t) : kind(Kind::NewDimension) {}
  TensorIndex(EllipsisIndexType) : kind(Kind::AllOthers) {}
  TensorIndex(const char* dots) : kind(Kind::AllOthers) {
    TORCH_CHECK_VALUE(std::string_view(dots) == "...", "expected \"...\" to represent an ellipsis index, got ", dots);
  }
  template <std::integral T>
  TensorIndex(T at) : kind(Kind::Number), number(at) {}
  TensorIndex(SymInt at) : kind(Kind::Number), number(std::move(at)) {}
  TensorIndex(indexing::Slice range) : kind(Kind::Range), slice(std::move(range)) {}
  TensorIndex(at::Tensor list) : kind(Kind::Elements), tensor(std::move(list)) {}
};

// The view that numbers, slices and new dimensions give, and the tensors among the indices by its dimensions.
struct Indexed {
  tenon::Tensor view;
  std::vector<std::optional<tenon::Tensor>> tensors;
  bool any = false;
};
inline Indexed apply(const tenon::Tensor& self, std::initializer_list<TensorIndex> indices) {
  int64_t taken = 0, dim = 0;
  for (const TensorIndex& index : indices)
    taken += index.kind != TensorIndex::Kind::NewDimension && index.kind != TensorIndex::Kind::AllOthers;
  Indexed made{self, {}, false};
  for (const TensorIndex& index : indices) switch (index.kind) {
      case TensorIndex::Kind::NewDimension:
        made.view = made.view.unsqueeze(dim++);
        made.tensors.emplace_back();
        break;
      case TensorIndex::Kind::AllOthers:
        for (int64_t rest = self.dim() - taken; rest > 0; --rest, ++dim) made.tensors.emplace_back();
        break;
      case TensorIndex::Kind::Number: made.view = made.view.select(dim, index.number); break;
      case TensorIndex::Kind::Range:
        made.view = made.view.slice(dim++, index.slice.start, index.slice.stop, index.slice.step);
        made.tensors.emplace_back();
        break;
      case TensorIndex::Kind::Elements:
        made.tensors.emplace_back(compat::base(index.tensor));
        made.any = true;
        ++dim;
        break;
    }
  return made;
}

}  // namespace indexing

inline Tensor Tensor::index(std::initializer_list<indexing::TensorIndex> indices) const {
  indexing::Indexed made = indexing::apply(*this, indices);
  return made.any ? tenon::index(made.view, made.tensors) : made.view;
}
inline Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value) const {
  indexing::Indexed made = indexing::apply(*this, indices);
  if (made.any)
    tenon::index_put_(made.view, made.tensors, value);
  else
    made.view.copy_(value);
  return self();
}
inline Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) const {
  return index_put_(indices, Tensor(tenon::full({}, value, tenon::TensorOptions(tenon::Dtype(dtype())))));
}

// ---- Checks of arguments ------------------------------------------------------------------------------------------

using CheckedFrom = const char*;
struct TensorArg {
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

}  // namespace at

// Elements of libtorch's 16-bit types.
template <>
struct tenon::DtypeOf<c10::Half> {
  static constexpr tenon::Dtype value = tenon::Dtype::Float16;
};
template <>
struct tenon::DtypeOf<c10::BFloat16> {
  static constexpr tenon::Dtype value = tenon::Dtype::BFloat16;
};
