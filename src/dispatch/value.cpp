#include <tenon/dispatch/value.h>

#include <fmt/format.h>

namespace tenon::dispatch {
namespace {

template <typename T>
struct Box final : Counted {
  T content;
  explicit Box(T initial) : content(std::move(initial)) {}
};

}  // namespace

Value::Value(const std::optional<Tensor>& tensor) : integer_(0) {
  if (tensor) *this = Value(*tensor);
}

Value::Value(const SymInt& number) : tag_(Tag::Int), integer_(0) {
  if (number.is_symbolic()) {
    pointer_ = &number;
    count_ = kSymbolic;
  } else {
    integer_ = number.plain();
  }
}

Value::Value(const SymFloat& number) : tag_(Tag::Real), real_(0) {
  if (number.is_symbolic()) {
    pointer_ = &number;
    count_ = kSymbolic;
  } else {
    real_ = number.plain();
  }
}

Value::Value(const SymBool& flag) : tag_(Tag::Bool), integer_(0) {
  if (flag.is_symbolic()) {
    pointer_ = &flag;
    count_ = kSymbolic;
  } else {
    integer_ = bool(flag);
  }
}

Value::Value(const Scalar& number) : integer_(0) {
  switch (number.kind()) {
    case Scalar::Kind::Bool:
      // The scalar has no SymBool to borrow.
      if (number.is_symbolic())
        *this = Value(number.sym_bool()).own();
      else
        *this = Value(number.to_bool());
      break;
    case Scalar::Kind::Int: *this = Value(number.integer()); break;
    case Scalar::Kind::Real: *this = Value(number.real_number()); break;
  }
}

Value::Value(tenon::Device device)
    : tag_(Tag::Device), integer_(static_cast<int64_t>(device.type) * 256 + static_cast<uint8_t>(device.index)) {}

Value::Value(std::span<const Tensor> list)
    : tag_(Tag::Tensors), pointer_(list.data()), count_(static_cast<int64_t>(list.size())) {}
Value::Value(const std::vector<std::optional<Tensor>>& list)
    : tag_(Tag::OptionalTensors), pointer_(list.data()), count_(static_cast<int64_t>(list.size())) {}
Value::Value(std::span<const int64_t> list)
    : tag_(Tag::Ints), pointer_(list.data()), count_(static_cast<int64_t>(list.size())) {}
Value::Value(const tenon::OptionalInts& list) : integer_(0) {
  if (list.has_value()) *this = Value(*list);
}
Value::Value(std::span<const SymInt> list)
    : tag_(Tag::SymInts), pointer_(list.data()), count_(static_cast<int64_t>(list.size())) {}
Value::Value(const std::vector<double>& list)
    : tag_(Tag::Reals), pointer_(list.data()), count_(static_cast<int64_t>(list.size())) {}
Value::Value(const std::vector<bool>& list) : tag_(Tag::Bools), integer_(0) {
  auto box = make_ref<Box<std::vector<bool>>>(list);
  pointer_ = &box->content;
  count_ = static_cast<int64_t>(list.size());
  owner_ = box;
}

bool Value::is_borrowed() const {
  switch (tag_) {
    case Tag::Tensor: return borrowed_tensor_;
    case Tag::Int:
    case Tag::Real:
    case Tag::Bool: return count_ == kSymbolic && !owner_;
    case Tag::String:
    case Tag::Tensors:
    case Tag::OptionalTensors:
    case Tag::Ints:
    case Tag::SymInts:
    case Tag::Reals: return !owner_;
    default: return false;
  }
}

Value Value::own() const {
  Value owned(*this);
  auto keep = [&owned]<typename T>(T content) {
    auto box = make_ref<Box<T>>(std::move(content));
    if constexpr (requires { box->content.data(); })
      owned.pointer_ = box->content.data();
    else
      owned.pointer_ = &box->content;
    owned.owner_ = box;
  };
  check_alive();
  owned.call_slot_ = 0;
  if (owner_) return owned;
  switch (tag_) {
    case Tag::Tensor:
      if (borrowed_tensor_) owned = Value(Tensor(tensor_));
      break;
    case Tag::Int:
      if (count_ == kSymbolic) keep(*static_cast<const SymInt*>(pointer_));
      break;
    case Tag::Real:
      if (count_ == kSymbolic) keep(*static_cast<const SymFloat*>(pointer_));
      break;
    case Tag::Bool:
      if (count_ == kSymbolic) keep(*static_cast<const SymBool*>(pointer_));
      break;
    case Tag::String: keep(std::string(string())); break;
    case Tag::Tensors: keep(std::vector<Tensor>(tensors().begin(), tensors().end())); break;
    case Tag::OptionalTensors:
      keep(std::vector<std::optional<Tensor>>(optional_tensors().begin(), optional_tensors().end()));
      break;
    case Tag::Ints: {
      auto* first = static_cast<const int64_t*>(pointer_);
      keep(std::vector<int64_t>(first, first + count_));
      break;
    }
    case Tag::SymInts: {
      auto* first = static_cast<const SymInt*>(pointer_);
      keep(std::vector<SymInt>(first, first + count_));
      break;
    }
    case Tag::Reals: keep(std::vector<double>(reals().begin(), reals().end())); break;
    default: break;
  }
  return owned;
}

std::string_view Value::name(Tag tag) {
  constexpr std::string_view kNames[] = {"None",      "Tensor", "int",      "float",        "bool",      "str",
                                         "dtype",     "Device", "Layout",   "MemoryFormat", "Generator", "Tensor[]",
                                         "Tensor?[]", "int[]",  "SymInt[]", "float[]",      "bool[]",    "complex"};
  return kNames[static_cast<int>(tag)];
}

void Value::wrong_kind(std::string_view expected) const {
  fail<TypeError>("[value] expected {}, got {}", expected, str());
}

std::optional<Tensor> Value::optional_tensor() const {
  return is_none() ? std::nullopt : std::optional<Tensor>(tensor());
}

SymInt Value::sym_int() const {
  // A memory format reads as its number, as kernels take it.
  if (tag_ == Tag::Bool && count_ == kSymbolic) return to_int(sym_bool());
  if (tag_ == Tag::Bool || tag_ == Tag::MemoryFormat) return integer_;
  if (tag_ != Tag::Int) wrong_kind("an int");
  check_alive();
  return count_ == kSymbolic ? *static_cast<const SymInt*>(pointer_) : SymInt(integer_);
}

int64_t Value::integer() const { return int64_t(sym_int()); }

SymFloat Value::sym_float() const {
  check_alive();
  if (tag_ == Tag::Real) return count_ == kSymbolic ? *static_cast<const SymFloat*>(pointer_) : SymFloat(real_);
  if (tag_ != Tag::Int && tag_ != Tag::Bool) wrong_kind("a float");
  return sym_int();
}

SymBool Value::sym_bool() const {
  if (tag_ != Tag::Bool) wrong_kind("a bool");
  check_alive();
  return count_ == kSymbolic ? *static_cast<const SymBool*>(pointer_) : SymBool(integer_ != 0);
}

double Value::real() const {
  if (tag_ == Tag::Real && count_ != kSymbolic) return real_;
  return double(sym_float());
}

bool Value::boolean() const {
  if (tag_ == Tag::Bool && count_ != kSymbolic) return integer_ != 0;
  return bool(sym_bool());
}

Scalar Value::scalar() const {
  if (tag_ == Tag::Real) return count_ == kSymbolic ? Scalar(sym_float()) : Scalar(real_);
  if (tag_ == Tag::Bool) return count_ == kSymbolic ? Scalar(sym_bool()) : Scalar(integer_ != 0);
  if (tag_ != Tag::Int) wrong_kind("a number");
  return sym_int();
}

std::string_view Value::string() const {
  if (tag_ != Tag::String) wrong_kind("a str");
  check_alive();
  return {static_cast<const char*>(pointer_), static_cast<size_t>(count_)};
}

tenon::Dtype Value::dtype() const {
  if (tag_ != Tag::Dtype) wrong_kind("a dtype");
  return static_cast<tenon::Dtype>(integer_);
}

tenon::Device Value::device() const {
  if (tag_ != Tag::Device) wrong_kind("a Device");
  return tenon::Device(static_cast<DeviceType>(integer_ / 256), static_cast<int8_t>(integer_ % 256));
}

tenon::MemoryFormat Value::memory_format() const {
  if (tag_ != Tag::MemoryFormat) wrong_kind("a MemoryFormat");
  return static_cast<tenon::MemoryFormat>(integer_);
}

tenon::Generator& Value::generator() const {
  if (tag_ != Tag::Generator) wrong_kind("a Generator");
  return *const_cast<tenon::Generator*>(static_cast<const tenon::Generator*>(pointer_));
}

std::span<const Tensor> Value::tensors() const {
  if (tag_ != Tag::Tensors) wrong_kind("a list of tensors");
  check_alive();
  return {static_cast<const Tensor*>(pointer_), static_cast<size_t>(count_)};
}

std::span<const std::optional<Tensor>> Value::optional_tensors() const {
  if (tag_ != Tag::OptionalTensors) wrong_kind("a list of optional tensors");
  check_alive();
  return {static_cast<const std::optional<Tensor>*>(pointer_), static_cast<size_t>(count_)};
}

tenon::Ints Value::ints() const {
  check_alive();
  if (tag_ == Tag::Ints)
    return std::span<const int64_t>(static_cast<const int64_t*>(pointer_), static_cast<size_t>(count_));
  if (tag_ != Tag::SymInts) wrong_kind("a list of ints");
  tenon::Ints list;
  for (const SymInt& number : sym_ints()) list.push_back(int64_t(number));
  return list;
}

tenon::SymInts Value::sym_ints() const {
  check_alive();
  if (tag_ == Tag::SymInts) {
    auto* first = static_cast<const SymInt*>(pointer_);
    return tenon::SymInts(first, first + count_);
  }
  if (tag_ != Tag::Ints) wrong_kind("a list of ints");
  return tenon::SymInts(std::span<const int64_t>(static_cast<const int64_t*>(pointer_), static_cast<size_t>(count_)));
}

std::span<const double> Value::reals() const {
  if (tag_ != Tag::Reals) wrong_kind("a list of floats");
  check_alive();
  return {static_cast<const double*>(pointer_), static_cast<size_t>(count_)};
}

std::complex<double> Value::complex() const {
  if (tag_ != Tag::Complex) return real();
  return {real_, std::bit_cast<double>(count_)};
}

std::vector<bool> Value::bools() const {
  if (tag_ != Tag::Bools) wrong_kind("a list of bools");
  return *static_cast<const std::vector<bool>*>(pointer_);
}

Value Value::map_tensors(const std::function<Tensor(const Tensor&)>& replace) const {
  switch (tag_) {
    case Tag::Tensor: return Value(tensor().defined() ? replace(tensor_) : Tensor());
    case Tag::Tensors: {
      std::vector<Tensor> list;
      for (const Tensor& tensor : tensors()) list.push_back(replace(tensor));
      return Value(list).own();
    }
    case Tag::OptionalTensors: {
      std::vector<std::optional<Tensor>> list;
      for (const auto& tensor : optional_tensors())
        list.push_back(tensor ? std::optional<Tensor>(replace(*tensor)) : std::nullopt);
      return Value(list).own();
    }
    default: return own();
  }
}

std::string Value::str() const {
  switch (tag_) {
    case Tag::None: return "None";
    case Tag::Tensor: return tensor().description();
    case Tag::Int:
    case Tag::Real:
    case Tag::Bool: return scalar().str();
    case Tag::Complex: return fmt::format("{}{:+}j", complex().real(), complex().imag());
    case Tag::String: return fmt::format("\"{}\"", string());
    case Tag::Dtype: return std::string(tenon::name(dtype()));
    case Tag::Device: return device().str();
    case Tag::Layout: return "strided";
    case Tag::MemoryFormat: return std::string(tenon::name(memory_format()));
    case Tag::Generator: return "generator";
    case Tag::Ints:
    case Tag::SymInts: return tenon::str(sym_ints());
    case Tag::Reals: return fmt::format("[{}]", fmt::join(reals(), ", "));
    case Tag::Bools: {
      std::vector<std::string> words;
      for (bool flag : bools()) words.push_back(flag ? "true" : "false");
      return fmt::format("[{}]", fmt::join(words, ", "));
    }
    case Tag::Tensors:
    case Tag::OptionalTensors: {
      std::vector<std::string> words;
      if (tag_ == Tag::Tensors)
        for (const Tensor& tensor : tensors()) words.push_back(tensor.description());
      else
        for (const auto& tensor : optional_tensors()) words.push_back(tensor ? tensor->description() : "None");
      return fmt::format("[{}]", fmt::join(words, ", "));
    }
  }
  return {};
}

}  // namespace tenon::dispatch
