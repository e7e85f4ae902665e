// `c10::IValue`: a value of any kind, with libtorch's questions and lists. It is a `tenon::AnyValue` without members of
// its own.
#pragma once

#include <tenon/compat/tensor.h>
#include <tenon/dispatch/any_value.h>

#include <map>
#include <string>

namespace c10 {

class IValue;
template <typename T>
class List;

namespace compat {
template <typename T>
T unpack(const tenon::AnyValue& value);
template <typename T>
tenon::AnyValue pack(const T& item);
}  // namespace compat

class IValue : public tenon::AnyValue {
 public:
  using tenon::AnyValue::AnyValue;
  IValue() = default;
  IValue(const tenon::AnyValue& value) : AnyValue(value) {}
  IValue(tenon::AnyValue&& value) : AnyValue(std::move(value)) {}
  IValue(const at::Tensor& tensor) : AnyValue(at::compat::base(tensor)) {}
  IValue(const std::optional<at::Tensor>& tensor) : AnyValue(at::compat::plain(tensor)) {}
  IValue(const Scalar& number)
      : AnyValue(number.isFloatingPoint() ? AnyValue(number.toDouble())
                 : number.isBoolean()     ? AnyValue(number.toBool())
                                          : AnyValue(number.toLong())) {}
  IValue(IntArrayRef list) : AnyValue(list_of(list)) {}
  IValue(ArrayRef<double> list) : AnyValue(list_of(list)) {}
  IValue(SymIntArrayRef list) : AnyValue(list_of(list)) {}
  IValue(const SymInts& list) : AnyValue(list_of(list)) {}
  IValue(at::TensorList list) : AnyValue(list_of(list)) {}
  template <typename T>
    requires(!std::is_base_of_v<tenon::AnyValue, T>)
  IValue(const std::vector<T>& list) : AnyValue(list_of(list)) {}

  at::Tensor toTensor() const { return tensor(); }
  const SymInt& toSymInt() const { return sym_int(); }
  SymFloat toSymFloat() const { return sym_float(); }
  bool isSymInt() const { return is_int(); }
  Scalar toScalar() const { return is_real() ? Scalar(real()) : is_bool() ? Scalar(boolean()) : Scalar(integer()); }
  bool isScalar() const { return is_real() || is_bool() || is_int(); }
  std::string_view toStringView() const { return string(); }
  std::vector<int64_t> toIntVector() const { return vector_of<int64_t>(); }
  std::vector<double> toDoubleVector() const { return vector_of<double>(); }
  std::vector<SymInt> toSymIntVector() const { return vector_of<SymInt>(); }
  std::vector<at::Tensor> toTensorVector() const { return vector_of<at::Tensor>(); }
  inline c10::List<int64_t> toIntList() const;
  inline c10::List<double> toDoubleList() const;
  inline c10::List<bool> toBoolList() const;
  inline c10::List<at::Tensor> toTensorList() const;
  inline c10::List<IValue> toList() const;
  template <typename T>
  std::optional<T> toOptional() const {
    return is_none() ? std::nullopt : std::optional<T>(compat::unpack<T>(*this));
  }
  template <typename T>
  T to() const {
    return compat::unpack<T>(*this);
  }

 private:
  template <typename Items>
  static AnyValue::List list_of(const Items& items) {
    AnyValue::List made;
    for (const auto& item : items) made.push_back(compat::pack(item));
    return made;
  }
  template <typename T>
  std::vector<T> vector_of() const {
    std::vector<T> made;
    for (const AnyValue& each : list()) made.push_back(compat::unpack<T>(each));
    return made;
  }
};
static_assert(sizeof(IValue) == sizeof(tenon::AnyValue));

namespace compat {
template <typename T>
T unpack(const tenon::AnyValue& value) {
  if constexpr (std::is_base_of_v<tenon::AnyValue, T>)
    return value;
  else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>)
    return value.is_none() ? T() : T(value.tensor());
  else if constexpr (std::is_base_of_v<tenon::Tensor, T>)
    return value.tensor();
  else if constexpr (std::is_same_v<T, SymInt>)
    return value.sym_int();
  else if constexpr (std::is_same_v<T, SymFloat>)
    return value.sym_float();
  else if constexpr (std::is_same_v<T, bool>)
    return value.boolean();
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value.integer());
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value.real());
  else if constexpr (std::is_same_v<T, std::string>)
    return value.string();
  else if constexpr (requires { typename T::value_type; })
    return [&] {
      T made;
      for (const tenon::AnyValue& each : value.list()) made.push_back(unpack<typename T::value_type>(each));
      return made;
    }();
  else
    static_assert(std::is_same_v<T, void>, "an IValue holds tensors, numbers, strings, lists and dictionaries of them");
}
template <typename T>
tenon::AnyValue pack(const T& item) {
  if constexpr (std::is_base_of_v<tenon::Tensor, T>)
    return tenon::AnyValue(at::compat::base(item));
  else
    return static_cast<const tenon::AnyValue&>(IValue(item));
}
}  // namespace compat

// A list whose elements are all of one type. Copies share it, as libtorch's do.
template <typename T>
class List {
 public:
  using value_type = T;
  // An element that can be read and replaced.
  class Element {
   public:
    Element(tenon::AnyValue& value) : value_(&value) {}
    T get() const { return compat::unpack<T>(*value_); }
    operator T() const { return get(); }
    Element& operator=(const T& item) {
      *value_ = compat::pack(item);
      return *this;
    }

   private:
    tenon::AnyValue* value_;
  };
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = Element;
    explicit Iterator(tenon::AnyValue* at) : at_(at) {}
    Element operator*() const { return Element(*at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    tenon::AnyValue* at_;
  };

  List() = default;
  List(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }
  explicit List(ArrayRef<T> items) {
    for (const T& item : items) push_back(item);
  }
  List(const tenon::AnyValue& value) : content_(std::make_shared<tenon::AnyValue::List>(value.list())) {}
  size_t size() const { return content_->size(); }
  bool empty() const { return content_->empty(); }
  T get(size_t at) const { return compat::unpack<T>(content_->at(at)); }
  T extract(size_t at) const { return get(at); }
  void set(size_t at, const T& item) const { content_->at(at) = compat::pack(item); }
  Element operator[](size_t at) const { return Element(content_->at(at)); }
  Iterator begin() const { return Iterator(content_->data()); }
  Iterator end() const { return Iterator(content_->data() + content_->size()); }
  void reserve(size_t count) const { content_->reserve(count); }
  void clear() const { content_->clear(); }
  void push_back(const T& item) const { content_->push_back(compat::pack(item)); }
  template <typename... Args>
  void emplace_back(Args&&... args) const {
    push_back(T(std::forward<Args>(args)...));
  }
  std::vector<T> vec() const {
    std::vector<T> made;
    for (size_t at = 0; at < size(); ++at) made.push_back(get(at));
    return made;
  }
  operator IValue() const { return tenon::AnyValue(*content_); }
  operator tenon::AnyValue() const { return tenon::AnyValue(*content_); }

 private:
  std::shared_ptr<tenon::AnyValue::List> content_ = std::make_shared<tenon::AnyValue::List>();
};

inline c10::List<int64_t> IValue::toIntList() const { return c10::List<int64_t>(*this); }
inline c10::List<double> IValue::toDoubleList() const { return c10::List<double>(*this); }
inline c10::List<bool> IValue::toBoolList() const { return c10::List<bool>(*this); }
inline c10::List<at::Tensor> IValue::toTensorList() const { return c10::List<at::Tensor>(*this); }
inline c10::List<IValue> IValue::toList() const { return c10::List<IValue>(*this); }

// A dictionary, in order of insertion.
template <typename K, typename V>
class Dict {
 public:
  Dict() = default;
  Dict(const tenon::AnyValue& value) : content_(value.dict()) {}
  size_t size() const { return content_.dict().size(); }
  bool empty() const { return size() == 0; }
  bool contains(const K& key) const { return content_.find(compat::pack(key)) != nullptr; }
  V at(const K& key) const {
    const tenon::AnyValue* found = content_.find(compat::pack(key));
    TENON_CHECK(found, "[Dict] there is no key {}", compat::pack(key).str());
    return compat::unpack<V>(*found);
  }
  // A key that exists keeps its value.
  void insert(const K& key, const V& value) {
    if (!contains(key)) content_.dict().push_back({compat::pack(key), compat::pack(value)});
  }
  void insert_or_assign(const K& key, const V& value) {
    if (const tenon::AnyValue* found = content_.find(compat::pack(key)))
      const_cast<tenon::AnyValue&>(*found) = compat::pack(value);
    else
      insert(key, value);
  }
  operator IValue() const { return content_; }
  operator tenon::AnyValue() const { return content_; }

 private:
  tenon::AnyValue content_ = tenon::AnyValue(tenon::AnyValue::Dict());
};

namespace compat {

// A map of such values that is kept elsewhere, as one of libtorch's.
class SavedData {
 public:
  explicit SavedData(std::map<std::string, tenon::AnyValue>& map) : map_(map) {}
  // The element has the same members as the class that it is seen as.
  IValue& operator[](const std::string& key) { return static_cast<IValue&>(map_[key]); }
  IValue& at(const std::string& key) {
    auto found = map_.find(key);
    TENON_CHECK_INDEX(found != map_.end(), "[saved_data] forward kept nothing under '{}'", key);
    return static_cast<IValue&>(found->second);
  }
  size_t count(const std::string& key) const { return map_.count(key); }
  bool contains(const std::string& key) const { return map_.contains(key); }
  auto find(const std::string& key) { return map_.find(key); }
  auto begin() { return map_.begin(); }
  auto end() { return map_.end(); }
  size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  size_t erase(const std::string& key) { return map_.erase(key); }

 private:
  std::map<std::string, tenon::AnyValue>& map_;
};

}  // namespace compat
}  // namespace c10
