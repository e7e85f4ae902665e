// Names of libtorch for the part of it that custom operators are written in, so that such sources compile here:
// `torch::Tensor`, `torch::autograd::Function`, `TORCH_LIBRARY`, `c10::IValue`, `c10::List`, `c10::Dict`.
#pragma once

#include <tenon/autograd/function.h>
#include <tenon/dispatch/library.h>
#include <tenon/generated/ops.h>

#include <cassert>

namespace c10 {

using tenon::Device;
using tenon::Scalar;
using tenon::SymInt;
using IValue = tenon::AnyValue;
template <typename T>
using optional = std::optional<T>;
inline constexpr std::nullopt_t nullopt = std::nullopt;

namespace compat {
template <typename T>
T unpack(const IValue& value) {
  if constexpr (std::is_same_v<T, IValue>)
    return value;
  else if constexpr (std::is_same_v<T, tenon::Tensor>)
    return value.tensor();
  else if constexpr (std::is_same_v<T, bool>)
    return value.boolean();
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value.integer());
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value.real());
  else
    return value.string();
}
// The words of a failed TORCH_CHECK, one after the other; without any, the condition.
template <typename... Words>
std::string check_message(const char* condition, const Words&... words) {
  std::string text;
  ((text += fmt::format("{}", words)), ...);
  return text.empty() ? fmt::format("expected {} to be true", condition) : text;
}
}  // namespace compat

// A list whose elements are all of one type.
template <typename T>
class List {
 public:
  List() = default;
  List(std::initializer_list<T> items) { content_.assign(items.begin(), items.end()); }
  List(const IValue& value) : content_(value.list()) {}
  size_t size() const { return content_.size(); }
  bool empty() const { return content_.empty(); }
  T get(size_t at) const { return compat::unpack<T>(content_.at(at)); }
  T operator[](size_t at) const { return get(at); }
  void push_back(const T& item) { content_.emplace_back(item); }
  operator IValue() const { return IValue(content_); }

 private:
  IValue::List content_;
};

// A dictionary, in order of insertion.
template <typename K, typename V>
class Dict {
 public:
  Dict() = default;
  Dict(const IValue& value) : content_(value.dict()) {}
  size_t size() const { return content_.dict().size(); }
  bool empty() const { return size() == 0; }
  bool contains(const K& key) const { return content_.find(IValue(key)) != nullptr; }
  V at(const K& key) const {
    const IValue* found = content_.find(IValue(key));
    TENON_CHECK(found, "[Dict] there is no key {}", IValue(key).str());
    return compat::unpack<V>(*found);
  }
  // A key that exists keeps its value.
  void insert(const K& key, const V& value) {
    if (!contains(key)) content_.dict().push_back({IValue(key), IValue(value)});
  }
  operator IValue() const { return content_; }

 private:
  IValue content_ = IValue(IValue::Dict());
};

}  // namespace c10

namespace at {
using namespace tenon;
using ScalarType = tenon::Dtype;
}  // namespace at

namespace torch {
using namespace tenon;
using tenon::Tensor;
using tenon::TensorOptions;
using ScalarType = tenon::Dtype;
using Library = tenon::dispatch::Library;
inline constexpr tenon::Dtype kFloat = tenon::kFloat32, kDouble = tenon::kFloat64, kLong = tenon::kInt64,
                              kInt = tenon::kInt32;

namespace autograd {
using tenon::autograd::AutogradContext;
using tenon::autograd::Function;
using Variable = tenon::Tensor;
using variable_list = std::vector<tenon::Tensor>;
}  // namespace autograd

using NoGradGuard = tenon::NoGrad;
using AutoGradMode = tenon::autograd::SetGradMode;
}  // namespace torch

#define TORCH_LIBRARY(ns, m) TENON_LIBRARY(ns, m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) TENON_LIBRARY_FRAGMENT(ns, m)
#define TORCH_LIBRARY_IMPL(ns, key, m) TENON_LIBRARY_IMPL(ns, key, m)
#define TORCH_CHECK(condition, ...) \
  TENON_CHECK(condition, "{}", ::c10::compat::check_message(#condition __VA_OPT__(, ) __VA_ARGS__))
