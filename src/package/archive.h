// Structures to JSON and back: `fields.h` lists the fields of each once, for both directions.
//
// Numbers beyond 2^53 and reals are written as the texts of their bits. Expressions are written as text, and belong to
// the pool of the environment, or of the kernel, inside of which they stand.
#pragma once

#include "io/json.h"

#include <tenon/dispatch/operator.h>
#include <tenon/sym/shape_env.h>

#include <concepts>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::package {

class Writer;
class Reader;

// Sets the pool of the expressions that follow, while it lives.
template <typename Archive>
class InPool {
 public:
  InPool(Archive& archive, sym::ExprPool* pool) : archive_(archive), before_(std::exchange(archive.pool, pool)) {}
  ~InPool() { archive_.pool = before_; }
  InPool(const InPool&) = delete;
  InPool& operator=(const InPool&) = delete;

 private:
  Archive& archive_;
  sym::ExprPool* before_;
};

class Writer {
 public:
  static constexpr bool kReads = false;
  sym::ExprPool* pool = nullptr;

  template <typename T>
  void operator()(const char* name, T& value) {
    object_->push_back({name, to_json(value)});
  }

  template <typename T>
  io::Json to_json(T& value);

 private:
  io::Json::Object* object_ = nullptr;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  sym::ExprPool* pool = nullptr;

  template <typename T>
  void operator()(const char* name, T& value) {
    for (const io::Json::Member& member : *object_)
      if (member.name == name) {
        from_json(member.value, value);
        return;
      }
    refuse(std::string("there is no '") + name + "'");
  }

  template <typename T>
  void from_json(const io::Json& json, T& value);
  [[noreturn]] static void refuse(const std::string& why);

 private:
  const io::Json::Object* object_ = nullptr;
};

// ---- What JSON has no word for ------------------------------------------------------------------------------------

io::Json json_of(int64_t number);
int64_t number_of(const io::Json& json);
const std::string& text_of(const io::Json& json);
const io::Json::List& list_of(const io::Json& json);
const io::Json::Object& object_of(const io::Json& json);
io::Json json_of(const dispatch::Value& value);
dispatch::Value value_of(const io::Json& json);
io::Json json_of(const dispatch::OperatorRef& op);
// An Error that names it if nothing of that schema is registered.
dispatch::OperatorRef operator_of(const io::Json& json);
io::Json json_of(const Ref<sym::ShapeEnv>& env);
Ref<sym::ShapeEnv> env_of(const io::Json& json);
sym::Expr expression_of(const std::string& text, sym::ExprPool* pool);

template <typename T>
concept ListLike = requires(T list) {
  list.size();
  list.begin();
} && !std::same_as<std::remove_const_t<T>, std::string>;

template <typename T>
io::Json Writer::to_json(T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_enum_v<Plain>) {
    return json_of(static_cast<int64_t>(value));
  } else if constexpr (std::is_integral_v<Plain>) {
    return json_of(static_cast<int64_t>(value));
  } else if constexpr (std::same_as<Plain, std::string>) {
    return {std::string(value)};
  } else if constexpr (std::same_as<Plain, sym::Expr>) {
    return {value.defined() ? value.str() : std::string()};
  } else if constexpr (std::same_as<Plain, dispatch::Value> || std::same_as<Plain, dispatch::OperatorRef> ||
                       std::same_as<Plain, Ref<sym::ShapeEnv>>) {
    return json_of(value);
  } else if constexpr (std::same_as<Plain, std::vector<bool>>) {
    io::Json::List list;
    for (bool each : value) list.push_back({int64_t{each}});
    return {std::move(list)};
  } else if constexpr (ListLike<Plain>) {
    io::Json::List list;
    for (auto& each : value) list.push_back(to_json(each));
    return {std::move(list)};
  } else if constexpr (requires { value.has_value(); }) {
    io::Json::List list;
    if (value) list.push_back(to_json(*value));
    return {std::move(list)};
  } else {
    io::Json::Object fields_here;
    io::Json::Object* outer = std::exchange(object_, &fields_here);
    fields(*this, const_cast<Plain&>(value));
    object_ = outer;
    return {std::move(fields_here)};
  }
}

template <typename T>
void Reader::from_json(const io::Json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(number_of(json));
  } else if constexpr (std::is_integral_v<T>) {
    int64_t number = number_of(json);
    if constexpr (sizeof(T) < sizeof number && !std::same_as<T, bool>)
      if (!std::in_range<T>(number)) refuse("a number is too large");
    value = static_cast<T>(number);
  } else if constexpr (std::same_as<T, std::string>) {
    value = text_of(json);
  } else if constexpr (std::same_as<T, sym::Expr>) {
    value = expression_of(text_of(json), pool);
  } else if constexpr (std::same_as<T, dispatch::Value>) {
    value = value_of(json);
  } else if constexpr (std::same_as<T, dispatch::OperatorRef>) {
    value = operator_of(json);
  } else if constexpr (std::same_as<T, Ref<sym::ShapeEnv>>) {
    value = env_of(json);
  } else if constexpr (std::same_as<T, std::vector<bool>>) {
    value.clear();
    for (const io::Json& each : list_of(json)) value.push_back(number_of(each) != 0);
  } else if constexpr (ListLike<T>) {
    value.clear();
    for (const io::Json& each : list_of(json)) from_json(each, value.emplace_back());
  } else if constexpr (requires { value.has_value(); }) {
    value.reset();
    if (const io::Json::List& list = list_of(json); !list.empty()) from_json(list[0], value.emplace());
  } else {
    const io::Json::Object* outer = std::exchange(object_, &object_of(json));
    fields(*this, value);
    object_ = outer;
  }
}

}  // namespace tenon::package
