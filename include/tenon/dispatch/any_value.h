// `AnyValue`: an owned value of any kind, lists and dictionaries included. Where `Value` is an argument of an operator,
// this is what users keep for backward and what a loosely typed backward may return.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/dispatch/value.h>

#include <string>
#include <variant>
#include <vector>

namespace tenon {

namespace detail {
// A template, because it holds what holds it: it is looked into only where both are complete.
template <typename V>
struct EntryOf {
  V key, value;
};
}  // namespace detail

class AnyValue {
 public:
  using Entry = detail::EntryOf<AnyValue>;
  using List = std::vector<AnyValue>;
  using Dict = std::vector<Entry>;  // in order of insertion

  AnyValue() = default;
  AnyValue(std::nullopt_t) {}
  AnyValue(Tensor tensor) : content_(std::move(tensor)) {}
  AnyValue(bool flag) : content_(SymBool(flag)) {}
  AnyValue(SymBool flag) : content_(std::move(flag)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  AnyValue(T number) : content_(SymInt(number)) {}
  AnyValue(SymInt number) : content_(std::move(number)) {}
  template <std::floating_point T>
  AnyValue(T number) : content_(SymFloat(number)) {}
  AnyValue(SymFloat number) : content_(std::move(number)) {}
  AnyValue(std::string text) : content_(std::move(text)) {}
  AnyValue(const char* text) : content_(std::string(text)) {}
  AnyValue(List list) : content_(std::move(list)) {}
  AnyValue(Dict dict) : content_(std::move(dict)) {}
  AnyValue(const std::vector<Tensor>& list);
  template <typename T>
  AnyValue(const std::optional<T>& maybe) {
    if (maybe) *this = AnyValue(*maybe);
  }
  // Of an operator's argument or result.
  explicit AnyValue(const dispatch::Value& value);

  bool is_none() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(content_); }
  bool is_bool() const { return std::holds_alternative<SymBool>(content_); }
  bool is_int() const { return std::holds_alternative<SymInt>(content_); }
  bool is_real() const { return std::holds_alternative<SymFloat>(content_); }
  bool is_string() const { return std::holds_alternative<std::string>(content_); }
  bool is_list() const { return std::holds_alternative<List>(content_); }
  bool is_dict() const { return std::holds_alternative<Dict>(content_); }

  // Each raises an Error that names both kinds if the value is of another.
  const Tensor& tensor() const { return get<Tensor>("a Tensor"); }
  const SymBool& sym_bool() const { return get<SymBool>("a bool"); }
  bool boolean() const { return bool(sym_bool()); }  // this, `integer` and `real` pin a symbolic number
  const SymInt& sym_int() const { return get<SymInt>("an int"); }
  int64_t integer() const { return int64_t(sym_int()); }
  SymFloat sym_float() const { return is_int() ? SymFloat(sym_int()) : get<SymFloat>("a float"); }
  double real() const { return double(sym_float()); }
  const std::string& string() const { return get<std::string>("a str"); }
  const List& list() const { return get<List>("a list"); }
  List& list() { return const_cast<List&>(get<List>("a list")); }
  const Dict& dict() const { return get<Dict>("a dict"); }
  Dict& dict() { return const_cast<Dict&>(get<Dict>("a dict")); }
  // The entry of a dictionary with this key; null if there is none.
  const AnyValue* find(const AnyValue& key) const;

  // The names that libtorch's IValue gives to the same questions, for sources that are written against it.
  bool isNone() const { return is_none(); }
  bool isTensor() const { return is_tensor(); }
  bool isBool() const { return is_bool(); }
  bool isInt() const { return is_int(); }
  bool isDouble() const { return is_real(); }
  bool isString() const { return is_string(); }
  bool isList() const { return is_list(); }
  bool isGenericDict() const { return is_dict(); }
  Tensor toTensor() const { return tensor(); }
  bool toBool() const { return boolean(); }
  int64_t toInt() const { return integer(); }
  double toDouble() const { return real(); }
  const std::string& toStringRef() const { return string(); }
  const AnyValue& toList() const { return *this; }
  const AnyValue& toGenericDict() const { return *this; }

  // The same kind and value; tensors by identity.
  bool operator==(const AnyValue& other) const;
  std::string_view kind() const;
  std::string str() const;

 private:
  template <typename T>
  const T& get(std::string_view expected) const {
    const T* found = std::get_if<T>(&content_);
    if (!found) wrong_kind(expected);
    return *found;
  }
  [[noreturn]] void wrong_kind(std::string_view expected) const;

  std::variant<std::monostate, Tensor, SymBool, SymInt, SymFloat, std::string, List, Dict> content_;
};

}  // namespace tenon
