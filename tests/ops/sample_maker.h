// What the rules of samples work with: the recipe at hand, and tensors made by it.
#pragma once

#include <tenon/loop/evaluate.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "ops/samples.h"

namespace tenon::test {

using dispatch::Value;

// An argument; lists are copied, because a `Value` only borrows them.
struct Owned {
  template <typename T>
  Owned(T given) : value(Value(given).own()) {}
  Value value;
};
using Overrides = std::map<std::string, Owned>;

// Makes the arguments of one sample.
class Maker {
 public:
  Maker(const ops::Row& row, const Recipe& wanted) : recipe(wanted) {
    // Whether a sum of very large numbers overflows depends on the order of additions.
    bool combines =
        row.kind == ops::Kind::Reduction || row.kind == ops::Kind::Opaque || row.kind == ops::Kind::Composite;
    if (combines && wanted.values == Values::Extreme && is_floating(wanted.dtype)) recipe.values = Values::NotFinite;
    // By name, so that a new row does not change the samples of the others.
    seed_ = 1469598103934665603ull;
    for (char letter : row.schema.qualified_name() + wanted.str())
      seed_ = (seed_ ^ static_cast<uint64_t>(letter)) * 1099511628211ull;
  }

  Recipe recipe;
  int64_t size(size_t dim, int64_t otherwise) const {
    return dim < recipe.shape.size() ? recipe.shape[dim] : otherwise;
  }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t size : recipe.shape) count *= size;
    return count;
  }
  int64_t rank() const { return static_cast<int64_t>(recipe.shape.size()); }
  int64_t dim() const { return recipe.variant % 2 == 0 ? -1 : 0; }
  bool even() const { return recipe.variant % 2 == 0; }

  Tensor tensor(const Ints& shape, std::optional<Dtype> dtype = {}) {
    return make_tensor(shape, dtype.value_or(recipe.dtype), recipe.placement, recipe.values, seed_++);
  }
  // Whole numbers in [0, bound).
  Tensor indices(const Ints& shape, int64_t bound, Dtype dtype = kInt64) {
    Tensor made = make_tensor(shape, dtype, recipe.placement, Values::Ordinary, seed_++);
    Tensor storage =
        core::make_view(made, SymInts{core::reach(made.sizes(), made.strides())}, SymInts{1}, made.storage_offset());
    std::mt19937_64 random(seed_++);
    for (int64_t at = 0; at < storage.numel().plain(); ++at)
      loop::store_element(
          storage.raw_data(), dtype, at,
          loop::Number::of(bound > 0 ? static_cast<int64_t>(random() % static_cast<uint64_t>(bound)) : 0));
    return made;
  }

  // Whole numbers that the function gives for each row-major position.
  Tensor numbers(const Ints& shape, const std::function<int64_t(int64_t)>& number, Dtype dtype = kInt64) {
    Tensor made = make_tensor(shape, dtype, Placement::Contiguous, Values::Ordinary, seed_++);
    for (int64_t at = 0; at < made.numel().plain(); ++at)
      loop::store_element(made.raw_data(), dtype, at, loop::Number::of(number(at)));
    return made;
  }
  // Different numbers in [0, bound), as many as fit.
  Tensor distinct(int64_t count, int64_t bound) {
    int64_t fits = std::min(count, bound);
    return numbers({fits},
                   [&](int64_t at) { return (at * (bound % 3 == 0 ? 2 : 3) + 1) % std::max<int64_t>(1, bound); });
  }
  // Of that shape: along `dim` every position once.
  Tensor rotated(const Ints& shape, int64_t dim) {
    int64_t along = dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim, inner = 1;
    for (size_t d = static_cast<size_t>(along) + 1; d < shape.size(); ++d) inner *= shape[d];
    int64_t size = shape.empty() ? 1 : shape[static_cast<size_t>(along)];
    return numbers(shape,
                   [&](int64_t at) { return (at / std::max<int64_t>(1, inner) + 1) % std::max<int64_t>(1, size); });
  }

  std::optional<Value> generic(const schema::Argument& argument, bool first_tensor) {
    const std::string& name = argument.name;
    schema::Type type = argument.type;
    if (type.is_optional()) {
      bool given = type.element[0].kind == schema::Kind::List || type.element[0].kind == schema::Kind::Scalar ||
                   !argument.default_value;
      if (!given || recipe.variant % 4 == 3) return Value();
      type = schema::Type(type.element[0]);
    }
    switch (type.kind) {
      case schema::Kind::Tensor: return Value(first_tensor ? tensor(recipe.shape) : other(name)).own();
      case schema::Kind::Scalar: return scalar(name);
      case schema::Kind::Int:
        if (name == "dim" || name == "dim0") return Value(dim());
        if (name == "dim1") return Value(int64_t{even() ? 0 : -1});
        return from_default(argument);
      case schema::Kind::SymInt:
        if (name == "index") return Value(int64_t{even() ? 0 : -1});
        return from_default(argument);
      case schema::Kind::Bool:
        if (name == "keepdim") return Value(recipe.variant / 2 % 2 == 1);
        return from_default(argument);
      case schema::Kind::ScalarType:
        if (argument.type.is_optional()) return Value();
        return Value(recipe.variant % 3 == 0 ? kFloat64 : recipe.variant % 3 == 1 ? kInt32 : kFloat16);
      case schema::Kind::List: {
        schema::Kind element = type.element[0].kind;
        if (element == schema::Kind::SymInt && name == "size") return Value(recipe.shape).own();
        if (element == schema::Kind::Int && name == "dim") {
          if (rank() == 0 || recipe.variant % 4 == 2) return Value(Ints{}).own();
          return Value(recipe.variant % 4 == 1 && rank() > 1 ? Ints{0, -1} : Ints{recipe.variant % 8 < 4 ? -1 : 0})
              .own();
        }
        return from_default(argument);
      }
      default: return from_default(argument);
    }
  }

 private:
  static std::optional<Value> from_default(const schema::Argument& argument) {
    if (!argument.default_value) return argument.type.is_optional() ? std::optional<Value>(Value()) : std::nullopt;
    return std::visit(
        [&](const auto& value) -> std::optional<Value> {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, schema::NoneDefault>)
            return Value();
          else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
            return Value(Ints(value)).own();
          else if constexpr (std::is_same_v<T, schema::NameDefault>)
            return value.name == "contiguous_format" ? Value(MemoryFormat::Contiguous) : Value();
          else
            return Value(value).own();
        },
        *argument.default_value);
  }

  Value scalar(const std::string& name) const {
    bool real = is_floating(recipe.dtype) ? recipe.variant % 3 != 2
                                          : recipe.variant % 3 == 1 && name != "alpha" && name != "beta";
    if (name == "alpha" || name == "beta") return real ? Value(1.5) : Value(int64_t{2});
    if (name == "min" || name == "max")
      return real ? Value(name == "min" ? -0.5 : 0.625) : Value(int64_t{name == "min" ? 1 : 3});
    const double choices[] = {1.5, -0.75, 3, 0.5};
    return real ? Value(choices[recipe.variant % 4]) : Value(int64_t{recipe.variant % 2 == 0 ? 3 : 2});
  }

  Tensor other(const std::string& name) {
    Ints shape = recipe.shape;
    Dtype dtype = recipe.dtype;
    switch (recipe.pairing) {
      case Pairing::Same: break;
      case Pairing::Row: shape = rank() > 0 ? Ints{recipe.shape.back()} : Ints{}; break;
      case Pairing::Column:
        if (rank() > 0) shape.back() = 1;
        break;
      case Pairing::Wider: shape.insert(shape.begin(), 2); break;
      case Pairing::ZeroDim: shape = {}; break;
      case Pairing::Dtype:
        dtype = dtype == kFloat32 ? kFloat16 : dtype == kInt32 ? kUInt8 : dtype == kFloat16 ? kBFloat16 : kFloat32;
        break;
    }
    if (name == "condition" || name == "mask") return tensor(shape, kBool);
    if (name == "index")
      return indices(recipe.shape, rank() > 0 ? *std::min_element(recipe.shape.begin(), recipe.shape.end()) : 1);
    return tensor(shape, dtype);
  }

  uint64_t seed_;
};

// By operator name, and by name and overload: arguments where the schema does not say what fits together.
using Rules = std::map<std::string, Overrides (*)(Maker&)>;
const Rules& special_rules();
const Rules& overload_rules();
const Rules& image_rules();  // by name and overload
const Rules& below_rules();  // likewise
const Rules& matrix_rules();
const Rules& family_rules();

}  // namespace tenon::test
