// `Value`: one boxed argument or result of an operator.
//
// A value borrows: made from a tensor, a list or a string, it refers to the caller's object for as long as the call
// lasts, and costs no count and no allocation. Made from a temporary, which may end before the call begins, it owns.
// Keeping one beyond the call is `own()`, which gives a value that holds what it shows. Results of operators are owned.
// While `CheckBorrows` is on, a copy that a kernel made of an argument and that is read after the call is an Error.
#pragma once

#include <tenon/core/random.h>
#include <tenon/core/tensor.h>

#include <atomic>
#include <bit>
#include <complex>
#include <string>
#include <string_view>

namespace tenon::dispatch {

namespace detail {
extern std::atomic<bool> borrows_checked;
}

// While one lives, on every thread, copies of borrowed values know the call in which they were made, and reading one
// after it is an Error that names the operator. On from the start in builds without NDEBUG (debug, sanitizers), or with
// TENON_CHECK_BORROWS=1 in the environment; off with 0.
class CheckBorrows {
 public:
  explicit CheckBorrows(bool on = true) : before_(detail::borrows_checked.exchange(on)) {}
  ~CheckBorrows() { detail::borrows_checked = before_; }
  CheckBorrows(const CheckBorrows&) = delete;

 private:
  bool before_;
};

// What a value refers to instead of holding it.
template <typename T>
concept Borrowed = std::same_as<T, SymInt> || std::same_as<T, SymFloat> || std::same_as<T, SymBool> ||
                   std::same_as<T, Scalar> || std::same_as<T, std::string> || std::same_as<T, Ints> ||
                   std::same_as<T, OptionalInts> || std::same_as<T, SymInts> || std::same_as<T, std::vector<Tensor>> ||
                   std::same_as<T, std::vector<std::optional<Tensor>>> || std::same_as<T, std::vector<double>>;

class Value {
 public:
  enum class Tag : uint8_t {
    None,
    Tensor,
    Int,
    Real,
    Bool,
    String,
    Dtype,
    Device,
    Layout,
    MemoryFormat,
    Generator,
    Tensors,
    OptionalTensors,
    Ints,
    SymInts,
    Reals,
    Bools,
    Complex,
  };

  Value() : integer_(0) {}
  Value(std::nullopt_t) : Value() {}
  Value(const Tensor& tensor)  // borrows
      : tag_(Tag::Tensor), borrowed_tensor_(tensor.defined()), tensor_(Ref<TensorImpl>::adopt(tensor.impl())) {}
  Value(Tensor&& tensor) : tag_(Tag::Tensor), tensor_(std::move(tensor)) {}  // owns
  Value(const std::optional<Tensor>& tensor);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T number) : tag_(Tag::Int), integer_(static_cast<int64_t>(number)) {}
  Value(bool flag) : tag_(Tag::Bool), integer_(flag) {}
  Value(double number) : tag_(Tag::Real), real_(number) {}
  Value(std::complex<double> number)
      : tag_(Tag::Complex), real_(number.real()), count_(std::bit_cast<int64_t>(number.imag())) {}
  Value(const SymInt& number);
  Value(const SymFloat& number);
  Value(const SymBool& flag);
  Value(const Scalar& number);
  Value(std::string_view text) : tag_(Tag::String), pointer_(text.data()), count_(static_cast<int64_t>(text.size())) {}
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(const std::string& text) : Value(std::string_view(text)) {}
  Value(tenon::Dtype dtype) : tag_(Tag::Dtype), integer_(static_cast<int64_t>(dtype)) {}
  Value(tenon::Device device);
  Value(tenon::Layout layout) : tag_(Tag::Layout), integer_(static_cast<int64_t>(layout)) {}
  Value(tenon::MemoryFormat format) : tag_(Tag::MemoryFormat), integer_(static_cast<int64_t>(format)) {}
  Value(tenon::Generator& generator) : tag_(Tag::Generator), pointer_(&generator) {}
  Value(const std::vector<Tensor>& list) : Value(std::span<const Tensor>(list)) {}
  Value(std::span<const Tensor> list);
  Value(const std::vector<std::optional<Tensor>>& list);
  Value(const tenon::Ints& list) : Value(list.span()) {}
  Value(std::span<const int64_t> list);
  Value(const tenon::OptionalInts& list);
  Value(const tenon::SymInts& list) : Value(list.span()) {}
  Value(std::span<const SymInt> list);
  Value(const std::vector<double>& list);
  Value(const std::vector<bool>& list);  // owns a copy
  template <typename T>
  Value(const std::optional<T>& maybe) : Value(maybe ? Value(*maybe) : Value()) {}
  // From a temporary: owns.
  template <typename T>
    requires Borrowed<std::remove_const_t<T>>
  Value(T&& temporary) : Value(std::as_const(temporary)) {
    if (is_borrowed()) *this = own();
  }
  template <typename T>
  Value(std::optional<T>&& maybe) : Value(maybe ? Value(*std::move(maybe)) : Value()) {}

  Value(const Value& other) : Value() { copy_from(other); }
  Value(Value&& other) noexcept : Value() { move_from(other); }
  Value& operator=(const Value& other) {
    if (this != &other) {
      clear();
      copy_from(other);
    }
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    if (this != &other) {
      clear();
      move_from(other);
    }
    return *this;
  }
  ~Value() { clear(); }

  // A value that outlives the call.
  Value own() const;

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  bool is_tensor() const { return tag_ == Tag::Tensor; }
  bool is_tensors() const { return tag_ == Tag::Tensors; }
  bool is_number() const { return tag_ == Tag::Int || tag_ == Tag::Real || tag_ == Tag::Bool; }

  // Each raises an Error that names both kinds if the value is of another.
  const Tensor& tensor() const {
    if (tag_ != Tag::Tensor) [[unlikely]]
      wrong_kind("a Tensor");
    check_alive();
    return tensor_;
  }
  Tensor take_tensor() {  // moves an owned tensor out
    if (tag_ != Tag::Tensor) [[unlikely]]
      wrong_kind("a Tensor");
    check_alive();
    return borrowed_tensor_ ? tensor_ : std::move(tensor_);
  }
  std::optional<Tensor> optional_tensor() const;
  SymInt sym_int() const;
  SymFloat sym_float() const;  // of a Real, Int or Bool
  SymBool sym_bool() const;
  int64_t integer() const;  // these three pin a symbolic number
  double real() const;      // of a Real, Int or Bool
  bool boolean() const;
  // A number that is not plain.
  bool is_symbolic() const { return is_number() && count_ == kSymbolic; }
  Scalar scalar() const;
  std::complex<double> complex() const;  // of any number
  std::string_view string() const;
  tenon::Dtype dtype() const;
  tenon::Device device() const;
  tenon::MemoryFormat memory_format() const;
  tenon::Generator& generator() const;
  std::span<const Tensor> tensors() const;
  std::span<const std::optional<Tensor>> optional_tensors() const;
  tenon::Ints ints() const;  // pins symbolic numbers
  tenon::SymInts sym_ints() const;
  std::span<const double> reals() const;
  std::vector<bool> bools() const;

  // Calls `visit(const Tensor&)` for every tensor inside.
  template <typename Visit>
  void each_tensor(Visit&& visit) const;
  // The same value with every tensor replaced; owned.
  Value map_tensors(const std::function<Tensor(const Tensor&)>& replace) const;

  std::string str() const;
  static std::string_view name(Tag tag);

 private:
  static constexpr int64_t kSymbolic = 1;  // in `count_` of a number

  // All of them on a value without contents, or leaving one.
  void copy_from(const Value& other) {
    if (other.tag_ == Tag::Tensor) {
      borrowed_tensor_ = other.borrowed_tensor_;
      new (&tensor_) Tensor(borrowed_tensor_ ? Ref<TensorImpl>::adopt(other.tensor_.impl()) : other.tensor_.ref());
    } else {
      integer_ = other.integer_;
    }
    tag_ = other.tag_;
    count_ = other.count_;
    owner_ = other.owner_;
    call_slot_ = other.call_slot_;
    call_number_ = other.call_number_;
    if (detail::borrows_checked.load(std::memory_order_relaxed)) [[unlikely]]
      note_call();
  }
  void move_from(Value& other) noexcept {
    if (other.tag_ == Tag::Tensor) {
      borrowed_tensor_ = std::exchange(other.borrowed_tensor_, false);
      new (&tensor_) Tensor(std::move(other.tensor_));
      other.tensor_.~Tensor();
      other.integer_ = 0;
    } else {
      integer_ = other.integer_;
    }
    tag_ = std::exchange(other.tag_, Tag::None);
    count_ = std::exchange(other.count_, 0);
    owner_ = std::move(other.owner_);
    call_slot_ = std::exchange(other.call_slot_, uint16_t{0});
    call_number_ = other.call_number_;
  }
  void clear() {
    if (tag_ == Tag::Tensor) {
      if (borrowed_tensor_) const_cast<Ref<TensorImpl>&>(tensor_.ref()).detach();
      tensor_.~Tensor();
      integer_ = 0;
      borrowed_tensor_ = false;
    }
    tag_ = Tag::None;
    call_slot_ = 0;
    if (owner_) owner_ = nullptr;
  }
  [[noreturn]] void wrong_kind(std::string_view expected) const;
  bool is_borrowed() const;
  void note_call();
  void check_alive() const {
    if (call_slot_ != 0) [[unlikely]]
      check_call();
  }
  void check_call() const;

  Tag tag_ = Tag::None;
  bool borrowed_tensor_ = false;
  uint16_t call_slot_ = 0;    // of the call in which this copy of a borrowed value was made (borrows.h); 0: unknown
  uint32_t call_number_ = 0;  // which call of that slot
  union {
    int64_t integer_;  // Int (plain), Bool, Dtype, Device, Layout, MemoryFormat
    double real_;
    const void* pointer_;  // String, lists, Generator; symbolic numbers: a SymInt, SymFloat or SymBool
    Tensor tensor_;        // counted only if not borrowed
  };
  int64_t count_ = 0;   // of a list or string; of a Complex, the bits of the imaginary part
  Ref<Counted> owner_;  // what keeps `pointer_` alive in an owned value
};

using Values = SmallVector<Value, 8>;
using Results = SmallVector<Value, 2>;

template <typename Visit>
void Value::each_tensor(Visit&& visit) const {
  if (tag_ == Tag::Tensor) {
    visit(tensor());
  } else if (tag_ == Tag::Tensors) {
    for (const Tensor& tensor : tensors()) visit(tensor);
  } else if (tag_ == Tag::OptionalTensors) {
    for (const std::optional<Tensor>& tensor : optional_tensors())
      if (tensor) visit(*tensor);
  }
}

// Reads a value as a C++ parameter type, as kernels written as ordinary functions take them.
template <typename T>
T from_value(const Value& value);

}  // namespace tenon::dispatch
