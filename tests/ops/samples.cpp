#include "ops/samples.h"

#include <tenon/loop/evaluate.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

namespace tenon::test {
namespace {

using dispatch::Value;
using Random = std::mt19937_64;

double extreme(Random& random, Dtype dtype, bool combined) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double largest = dtype == Dtype::Float16 ? 65504 : dtype == Dtype::Float64 ? 1e300 : 3e38;
  double smallest = dtype == Dtype::Float16 ? 6e-8 : dtype == Dtype::Float64 ? 1e-310 : 1e-40;
  const double choices[] = {NAN,  infinity, -infinity, 0.0,      -0.0,      1,    -1,  0.5,
                            -2.5, largest,  -largest,  smallest, -smallest, 88.5, -104};
  return choices[random() % (combined ? 9 : std::size(choices))];
}

double real(Random& random, Dtype dtype, Values values) {
  double unit = static_cast<double>(random() >> 11) * std::ldexp(1, -53);
  bool negative = random() % 2 == 0;
  switch (values) {
    case Values::Extreme: return extreme(random, dtype, false);
    case Values::NotFinite: return extreme(random, dtype, true);
    case Values::Ordinary: return random() % 8 == 0 ? std::round(unit * 6 - 3) : unit * 6 - 3;
    case Values::Near: return (negative ? -1 : 1) * (0.3 + 0.6 * unit);
    case Values::Positive: return 0.4 + unit;
    case Values::AboveOne: return 1.2 + unit;
  }
  return 0;
}

int64_t integer(Random& random, Dtype dtype, Values values) {
  if (dtype == Dtype::Bool) return static_cast<int64_t>(random() % 2);
  if (values != Values::Extreme) return static_cast<int64_t>(random() % 11) - (traits(dtype).is_signed ? 5 : 0);
  int64_t bits = size_of(dtype) * 8;
  int64_t largest =
      traits(dtype).is_signed ? static_cast<int64_t>(~uint64_t{0} >> (65 - bits)) : (int64_t{1} << bits) - 1;
  const int64_t choices[] = {
      0, 1, 2, traits(dtype).is_signed ? -1 : 3, largest, traits(dtype).is_signed ? -largest - 1 : largest - 1, 17};
  return choices[random() % std::size(choices)];
}

void fill(const Tensor& storage, Values values, Random& random) {
  int64_t count = storage.numel().plain();
  for (int64_t at = 0; at < count; ++at) {
    loop::Number number = is_floating(storage.dtype()) ? loop::Number::of(real(random, storage.dtype(), values))
                                                       : loop::Number::of(integer(random, storage.dtype(), values));
    loop::store_element(storage.raw_data(), storage.dtype(), at, loop::round_to(number, storage.dtype()));
  }
}

// A one-dimensional tensor with a storage of its own, of the elements that a geometry reaches.
Tensor make_storage(int64_t elements, Dtype dtype) {
  const int64_t sizes[] = {elements}, strides[] = {1};
  return core::allocate(sizes, strides, dtype, kCPU);
}

SymInts symbolic(std::span<const int64_t> list) {
  SymInts result;
  for (int64_t each : list) result.push_back(each);
  return result;
}

std::string_view text(Placement placement) {
  constexpr std::string_view names[] = {"contiguous", "transposed", "sliced", "expanded", "offset"};
  return names[static_cast<size_t>(placement)];
}
std::string_view text(Pairing pairing) {
  constexpr std::string_view names[] = {"same", "row", "column", "wider", "0-d", "other dtype"};
  return names[static_cast<size_t>(pairing)];
}

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
    Random random(seed_++);
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

Ints without(Ints shape, int64_t dim) {
  if (shape.empty()) return shape;
  shape.erase(shape.begin() + (dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim));
  return shape;
}

using Indices = std::vector<std::optional<Tensor>>;

// Indices for the recipe's shape, and the sizes of what they pick; `distinct` if no element is to be picked twice.
std::pair<Indices, Ints> some_indices(Maker& m, bool distinct) {
  const Ints& shape = m.recipe.shape;
  if (shape.empty()) return {{m.tensor({}, kInt64)}, {}};
  auto pick = [&](size_t dim, Ints sizes) {
    int64_t count = 1;
    for (int64_t& size : sizes) {
      if (shape[dim] == 0) size = 0;
      count *= size;
    }
    if (distinct) return m.distinct(count, shape[dim]);
    return m.indices(sizes, shape[dim], m.even() ? kInt64 : kInt32);
  };
  Ints rest(shape);
  switch (shape.size() == 1 ? 0 : m.recipe.variant % 3) {
    case 0: {
      Tensor index = pick(0, {4});
      rest[0] = index.sizes()[0];
      return {{index}, rest};
    }
    case 1: {
      Tensor index = pick(shape.size() - 1, distinct ? Ints{3} : Ints{2, 3});
      rest.erase(rest.end() - 1);
      for (int64_t size : index.sizes()) rest.push_back(size);
      Indices list(shape.size());
      list.back() = index;
      return {list, rest};
    }
    default: {
      Tensor first = pick(0, distinct ? Ints{2} : Ints{2, 1}),
             second = pick(shape.size() - 1, distinct ? Ints{2} : Ints{3});
      if (distinct && first.sizes()[0] != second.sizes()[0]) first = second = m.numbers({1}, [](int64_t) { return 0; });
      if (std::find(shape.begin(), shape.end(), 0) != shape.end())
        first = second = m.numbers({0}, [](int64_t) { return 0; });
      Ints both = distinct || first.numel().plain() == 0 ? Ints(first.sizes()) : Ints{2, 3};
      Indices list(shape.size());
      list.front() = first;
      list.back() = second;
      Ints result = both;
      for (size_t dim = 1; dim + 1 < shape.size(); ++dim) result.push_back(shape[dim]);
      return {list, result};
    }
  }
}

Overrides pick_rule(Maker& m) { return {{"indices", some_indices(m, false).first}}; }

Overrides put_rule(Maker& m) {
  bool accumulate = m.recipe.variant % 4 == 1;
  auto [indices, sizes] = some_indices(m, !accumulate);
  if (m.recipe.variant % 5 == 4 && !sizes.empty()) sizes[0] = 1;
  return {{"indices", indices}, {"values", m.tensor(sizes)}, {"accumulate", accumulate}};
}

Overrides split_sizes_rule(Maker& m) {
  int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1), first = size / 3;
  return {
      {"split_sizes", Ints{first, 0, size - first}}, {"split_size", Ints{first, 0, size - first}}, {"dim", m.dim()}};
}

Overrides repeat_rule(Maker& m) {
  Ints repeats(m.recipe.shape);
  for (int64_t& each : repeats) each = 2;
  if (!m.even()) repeats.insert(repeats.begin(), 3);
  if (!repeats.empty()) repeats.back() = m.recipe.variant % 3;
  return {{"repeats", repeats}, {"dims", repeats}};
}

// Where the schema does not say what fits together.
const std::map<std::string, Overrides (*)(Maker&)>& special_rules() {
  static const std::map<std::string, Overrides (*)(Maker&)> rules = {
      {"mm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5);
         return Overrides{{"self", m.tensor({m.size(0, 3), inner})}, {"mat2", m.tensor({inner, m.size(2, 4)})}};
       }},
      {"addmm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5), rows = m.size(0, 3), columns = m.size(2, 4);
         return Overrides{{"self", m.tensor(m.even() ? Ints{columns} : Ints{rows, 1})},
                          {"mat1", m.tensor({rows, inner})},
                          {"mat2", m.tensor({inner, columns})}};
       }},
      {"bmm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5);
         return Overrides{{"self", m.tensor({2, m.size(0, 3), inner})}, {"mat2", m.tensor({2, inner, m.size(2, 4)})}};
       }},
      {"dot",
       [](Maker& m) { return Overrides{{"self", m.tensor({m.size(0, 3)})}, {"tensor", m.tensor({m.size(0, 3)})}}; }},
      {"mv",
       [](Maker& m) {
         return Overrides{{"self", m.tensor({m.size(0, 3), m.size(1, 5)})}, {"vec", m.tensor({m.size(1, 5)})}};
       }},
      {"matmul",
       [](Maker& m) {
         int64_t inner = m.size(1, 5), rows = m.size(0, 3);
         const std::pair<Ints, Ints> shapes[] = {{{rows, inner}, {inner, 4}},
                                                 {{2, rows, inner}, {inner, 4}},
                                                 {{inner}, {inner, 4}},
                                                 {{2, rows, inner}, {2, inner, 4}},
                                                 {{2, 1, rows, inner}, {3, inner, 4}}};
         auto& [a, b] = shapes[m.recipe.variant % 5];
         return Overrides{{"self", m.tensor(a)}, {"other", m.tensor(b)}};
       }},
      {"linear",
       [](Maker& m) {
         Ints shape = m.rank() > 0 ? m.recipe.shape : Ints{5};
         return Overrides{{"input", m.tensor(shape)},
                          {"weight", m.tensor({4, shape.back()})},
                          {"bias", m.even() ? Value(m.tensor({4})) : Value()}};
       }},
      {"view", [](Maker& m) { return Overrides{{"size", Value(m.even() ? Ints{-1} : Ints{1, -1, 1})}}; }},
      {"reshape",
       [](Maker& m) {
         return Overrides{{"shape", Value(m.even() ? Ints{-1} : Ints{m.size(m.recipe.shape.size() - 1, 1), -1})}};
       }},
      {"empty_strided",
       [](Maker& m) {
         Ints strides;
         int64_t step = 1;
         for (int64_t size : m.recipe.shape) {
           strides.push_back(step);
           step *= std::max<int64_t>(1, size);
         }
         return Overrides{{"stride", strides}};
       }},
      {"expand",
       [](Maker& m) {
         Ints shape = m.recipe.shape, wider = shape;
         if (!shape.empty()) shape[0] = 1;
         wider.insert(wider.begin(), 2);
         return Overrides{{"self", m.tensor(shape)}, {"size", Value(wider)}};
       }},
      {"sum_to_size",
       [](Maker& m) {
         Ints wider = m.recipe.shape, size = m.recipe.shape;
         wider.insert(wider.begin(), 2);
         if (!m.even() && !size.empty()) size[0] = 1;
         return Overrides{{"self", m.tensor(wider)}, {"size", Value(size)}};
       }},
      {"permute",
       [](Maker& m) {
         Ints dims;
         for (int64_t dim = 0; dim < m.rank(); ++dim)
           dims.push_back(m.even() ? m.rank() - 1 - dim : (dim + 1) % m.rank());
         return Overrides{{"dims", Value(dims)}};
       }},
      {"slice",
       [](Maker& m) {
         return m.even() ? Overrides{{"start", Value(int64_t{1})}, {"end", Value(int64_t{-1})}}
                         : Overrides{
                               {"dim", Value(int64_t{-1})}, {"start", Value(int64_t{-5})}, {"step", Value(int64_t{2})}};
       }},
      {"slice_scatter",
       [](Maker& m) {
         Ints part = m.recipe.shape;
         if (part.empty()) return Overrides{};
         int64_t last = part.back();
         part.back() = m.even() ? std::max<int64_t>(0, last - 1) : last / 2;
         return Overrides{{"src", m.tensor(part)},
                          {"dim", Value(int64_t{-1})},
                          {"start", Value(int64_t{1})},
                          {"end", Value()},
                          {"step", Value(int64_t{m.even() ? 1 : 2})}};
       }},
      {"select_scatter", [](Maker& m) { return Overrides{{"src", m.tensor(without(m.recipe.shape, m.dim()))}}; }},
      {"cat",
       [](Maker& m) {
         Ints longer = m.recipe.shape, shorter = m.recipe.shape;
         if (!longer.empty()) {
           size_t dim = m.even() ? longer.size() - 1 : 0;
           longer[dim] += 3;
           shorter[dim] = 1;
         }
         Dtype second = m.recipe.pairing == Pairing::Dtype ? kFloat64 : m.recipe.dtype;
         return Overrides{{"tensors", Value(std::vector<Tensor>{m.tensor(m.recipe.shape), m.tensor(longer, second),
                                                                m.tensor(shorter)})}};
       }},
      {"gather",
       [](Maker& m) {
         Ints shape = m.recipe.shape;
         if (m.even() && !shape.empty() && shape.back() > 0) shape.back() += 2;
         return Overrides{{"index", m.indices(shape, m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1),
                                              m.even() ? kInt64 : kInt32)}};
       }},
      {"index",
       [](Maker& m) {
         if (m.recipe.variant % 4 != 3 || m.rank() == 0) return pick_rule(m);
         return Overrides{
             {"indices",
              Indices{m.tensor(m.recipe.variant % 8 == 3 ? m.recipe.shape : Ints{m.recipe.shape[0]}, kBool)}}};
       }},
      {"_index", pick_rule},
      {"index_put", put_rule},
      {"_index_put", put_rule},
      {"index_select",
       [](Maker& m) {
         int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1);
         return Overrides{{"index", m.rank() == 0 ? m.numbers({}, [](int64_t) { return 0; })
                                                  : m.indices({size == 0 ? 0 : 4}, size)}};
       }},
      {"index_add",
       [](Maker& m) {
         Ints shape = m.recipe.shape;
         int64_t size = m.size(m.even() ? shape.size() - 1 : 0, 1);
         if (!shape.empty()) shape[m.even() ? shape.size() - 1 : 0] = size == 0 ? 0 : 4;
         return Overrides{
             {"index", m.rank() == 0 ? m.numbers({}, [](int64_t) { return 0; }) : m.indices({size == 0 ? 0 : 4}, size)},
             {"source", m.tensor(shape)}};
       }},
      {"hardtanh", [](Maker&) { return Overrides{{"min_val", -0.5}, {"max_val", 0.625}}; }},
      {"split", [](Maker&) { return Overrides{{"split_size", int64_t{2}}}; }},
      {"split_with_sizes", split_sizes_rule},
      {"chunk", [](Maker& m) { return Overrides{{"chunks", int64_t{m.even() ? 2 : 3}}}; }},
      {"narrow",
       [](Maker& m) {
         int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1);
         return Overrides{{"start", int64_t{size > 1 ? (m.even() ? 1 : -2) : 0}},
                          {"length", std::min<int64_t>(1, size)}};
       }},
      {"unflatten", [](Maker& m) { return Overrides{{"sizes", m.even() ? Ints{-1, 1} : Ints{1, m.size(0, 1), 1}}}; }},
      {"diagonal",
       [](Maker& m) {
         return Overrides{{"offset", int64_t{m.recipe.variant % 3 - 1}},
                          {"dim1", int64_t{m.even() ? 0 : -1}},
                          {"dim2", int64_t{m.even() ? -1 : 0}}};
       }},
      {"diagonal_scatter",
       [](Maker& m) {
         if (m.rank() < 2) return Overrides{};
         int64_t offset = m.recipe.variant % 3 - 1, rows = m.recipe.shape.front(), columns = m.recipe.shape.back();
         Ints part = m.recipe.shape;
         part.erase(part.begin());
         part.back() =
             std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
         return Overrides{{"src", m.tensor(part)}, {"offset", offset}, {"dim1", int64_t{0}}, {"dim2", int64_t{-1}}};
       }},
      {"stack",
       [](Maker& m) {
         Dtype second = m.recipe.pairing == Pairing::Dtype ? kFloat64 : m.recipe.dtype;
         return Overrides{{"tensors", std::vector<Tensor>{m.tensor(m.recipe.shape), m.tensor(m.recipe.shape, second),
                                                          m.tensor(m.recipe.shape)}}};
       }},
      {"repeat", repeat_rule},
      {"tile", repeat_rule},
      {"repeat_interleave",
       [](Maker& m) {
         return Overrides{{"repeats", int64_t{m.recipe.variant % 4}},
                          {"dim", m.recipe.variant % 3 == 2 ? Value() : Value(m.dim())}};
       }},
      {"flip",
       [](Maker& m) {
         return Overrides{{"dims", m.rank() == 0  ? Ints{}
                                   : m.even()     ? Ints{-1}
                                   : m.rank() > 1 ? Ints{0, -1}
                                                  : Ints{0}}};
       }},
      {"roll",
       [](Maker& m) {
         return m.recipe.variant % 3 == 0 || m.rank() == 0 ? Overrides{{"shifts", Ints{2}}}
                                                           : Overrides{{"shifts", Ints{-3}}, {"dims", Ints{m.dim()}}};
       }},
      {"_roll", [](Maker& m) { return Overrides{{"shift", int64_t{m.even() ? 2 : -3}}}; }},
      {"tril", [](Maker& m) { return Overrides{{"diagonal", int64_t{m.recipe.variant % 5 - 2}}}; }},
      {"triu", [](Maker& m) { return Overrides{{"diagonal", int64_t{m.recipe.variant % 5 - 2}}}; }},
      {"_repeated_positions", [](Maker& m) { return Overrides{{"repeats", m.indices({m.size(0, 3)}, 4)}}; }},
      {"_unique2", [](Maker& m) { return Overrides{{"return_inverse", m.even()}, {"return_counts", !m.even()}}; }},
      {"unique", [](Maker& m) { return Overrides{{"return_inverse", m.even()}, {"return_counts", true}}; }},
      {"eye", [](Maker& m) { return Overrides{{"n", m.size(0, 3)}, {"m", m.size(1, 4)}, {"dtype", m.recipe.dtype}}; }},
      {"linspace",
       [](Maker& m) {
         return Overrides{{"start", -1.5}, {"end", int64_t{4}}, {"steps", m.size(0, 1)}, {"dtype", m.recipe.dtype}};
       }},
      {"randint",
       [](Maker& m) { return Overrides{{"low", int64_t{m.even() ? 0 : 2}}, {"high", int64_t{m.even() ? 100 : 3}}}; }},
      {"nll_loss",
       [](Maker& m) {
         int64_t rows = m.size(0, 3), classes = std::max<int64_t>(1, m.size(1, 5));
         return Overrides{{"self", m.tensor({rows, classes})},
                          {"target", m.indices({rows}, classes)},
                          {"weight", m.even() ? Value() : Value(m.tensor({classes}))},
                          {"reduction", Value(int64_t{m.recipe.variant % 3})},
                          {"ignore_index", Value(int64_t{m.recipe.variant % 4 == 2 ? 0 : -100})}};
       }},
      {"cross_entropy_loss",
       [](Maker& m) {
         int64_t rows = m.size(0, 3), classes = std::max<int64_t>(1, m.size(1, 5));
         return Overrides{
             {"self", m.tensor({rows, classes})},
             {"target", m.recipe.variant % 4 == 3 && is_floating(m.recipe.dtype) ? m.tensor({rows, classes})
                                                                                 : m.indices({rows}, classes)},
             {"weight", m.even() ? Value() : Value(m.tensor({classes}))},
             {"reduction", Value(int64_t{m.recipe.variant % 3})},
             {"label_smoothing", Value(m.recipe.variant % 4 > 1 ? 0.1 : 0.0)}};
       }},
      {"arange",
       [](Maker& m) {
         if (m.even())
           return Overrides{{"start", Value(int64_t{-2})},
                            {"end", Value(m.size(0, 4))},
                            {"step", Value(int64_t{1 + m.recipe.variant / 2 % 2})},
                            {"dtype", Value(m.recipe.dtype)}};
         return Overrides{
             {"start", Value(0.5)}, {"end", Value(0.5 + static_cast<double>(m.size(0, 4)))}, {"step", Value(0.75)}};
       }},
  };
  return rules;
}

// The same for one overload.
const std::map<std::string, Overrides (*)(Maker&)>& overload_rules() {
  static const std::map<std::string, Overrides (*)(Maker&)> rules = {
      {"split.sizes", split_sizes_rule},
      {"div.Tensor_mode",
       [](Maker& m) {
         return Overrides{{"rounding_mode", m.recipe.variant % 3 == 0
                                                ? Value()
                                                : Value(std::string_view(m.even() ? "floor" : "trunc"))}};
       }},
      {"clamp.Tensor",
       [](Maker& m) {
         Ints row = m.rank() > 0 ? Ints{m.recipe.shape.back()} : Ints{};
         return Overrides{{"min", m.recipe.variant % 4 == 1 ? Value() : Value(m.tensor(row))},
                          {"max", m.recipe.variant % 4 == 2 ? Value() : Value(m.tensor(m.recipe.shape))}};
       }},
      {"masked_fill.Tensor", [](Maker& m) { return Overrides{{"value", m.tensor({})}}; }},
      {"scatter.src",
       [](Maker& m) {
         Tensor index = m.rotated(m.recipe.shape, m.dim());
         Ints wider = m.recipe.shape;
         if (m.recipe.variant % 3 == 1 && !wider.empty()) wider[0] += 1;
         return Overrides{{"index", index}, {"src", m.tensor(wider)}};
       }},
      {"movedim.int",
       [](Maker& m) { return Overrides{{"source", m.dim()}, {"destination", int64_t{m.even() ? 0 : -1}}}; }},
      {"movedim.intlist",
       [](Maker& m) {
         return m.rank() < 2 ? Overrides{{"source", Ints{0}}, {"destination", Ints{0}}}
                             : Overrides{{"source", Ints{0, -1}}, {"destination", Ints{-1, m.even() ? 0 : 1}}};
       }},
      {"repeat_interleave.self_Tensor",
       [](Maker& m) {
         size_t dim = m.even() && m.rank() > 0 ? m.recipe.shape.size() - 1 : 0;
         return Overrides{{"repeats", m.indices({m.size(dim, 1)}, 4)}, {"dim", m.dim()}};
       }},
  };
  return rules;
}

Recipe recipe_of(Ints shape, Dtype dtype, Placement placement, int variant, Pairing pairing = Pairing::Same,
                 Values values = Values::Ordinary) {
  return {std::move(shape), dtype, placement, pairing, values, variant};
}

}  // namespace

Tensor make_tensor(const Ints& shape, Dtype dtype, Placement placement, Values values, uint64_t seed) {
  Random random(seed);
  Ints strides = core::contiguous_strides(shape.span());
  int64_t offset = 0;
  switch (placement) {
    case Placement::Contiguous: break;
    case Placement::Offset: offset = 3; break;
    case Placement::Transposed: {
      int64_t step = 1;
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        strides[dim] = step;
        step *= std::max<int64_t>(1, shape[dim]);
      }
      break;
    }
    case Placement::Sliced: {
      int64_t step = 2;
      for (size_t dim = shape.size(); dim-- > 0;) {
        strides[dim] = step;
        step *= std::max<int64_t>(1, shape[dim]) + 1;
      }
      offset = 1;
      break;
    }
    case Placement::Expanded:
      if (!shape.empty()) strides[0] = 0;
      break;
  }
  Tensor storage = make_storage(offset + core::reach(shape.span(), strides.span()), dtype);
  fill(storage, values, random);
  return core::make_view(storage, symbolic(shape.span()), symbolic(strides.span()), offset);
}

std::string Recipe::str() const {
  constexpr std::string_view kinds[] = {"", ", extreme", ", not finite", ", near", ", positive", ", above one"};
  return fmt::format("{}[{}], {}, others {}{}, variant {}", name(dtype), fmt::join(shape, ", "), text(placement),
                     text(pairing), kinds[static_cast<size_t>(values)], variant);
}

dispatch::Values Sample::copy() const {
  dispatch::Values copies;
  for (const Value& value : args)
    copies.push_back(value.map_tensors([](const Tensor& tensor) {
      int64_t reach = tensor.storage_offset() + core::reach(tensor.sizes(), tensor.strides());
      Tensor storage = make_storage(reach, tensor.dtype());
      const char* first = static_cast<const char*>(tensor.raw_data()) - tensor.storage_offset() * tensor.element_size();
      if (reach > 0) std::memcpy(storage.raw_data(), first, static_cast<size_t>(reach * tensor.element_size()));
      return core::make_view(storage, symbolic(tensor.sizes()), symbolic(tensor.strides()), tensor.storage_offset());
    }));
  return copies;
}

std::vector<Tensor> Sample::tensors() const {
  std::vector<Tensor> tensors;
  for (const Value& value : args) value.each_tensor([&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

std::string Sample::str() const {
  std::vector<std::string> texts;
  for (const Value& value : args)
    texts.push_back(value.is_tensor() ? fmt::format("{} strides [{}]", value.tensor().description(),
                                                    fmt::join(value.tensor().strides(), ", "))
                                      : value.str());
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::optional<Sample> make_sample(const ops::Row& row, const Recipe& recipe, std::string* why) {
  Maker maker(row, recipe);
  Overrides overrides;
  auto rule = overload_rules().find(row.schema.name + "." + row.schema.overload);
  if (rule != overload_rules().end())
    overrides = rule->second(maker);
  else if (rule = special_rules().find(row.schema.name); rule != special_rules().end())
    overrides = rule->second(maker);
  Sample sample;
  bool first_tensor = true;
  for (const schema::Argument& argument : row.schema.arguments) {
    std::optional<Value> value;
    if (auto found = overrides.find(argument.name); found != overrides.end())
      value = found->second.value;
    else
      value = maker.generic(argument, first_tensor && argument.name != "condition");
    if (!value) {
      if (why) *why = fmt::format("{}: no rule for the argument '{}'", row.schema.str(), argument.name);
      return std::nullopt;
    }
    if (value->is_tensor() && argument.name != "condition") first_tensor = false;
    sample.args.push_back(std::move(*value));
  }
  // Factories have no tensor to take a dtype from.
  int dtype = row.schema.argument_index("dtype");
  bool factory = row.schema.argument_index("size") >= 0 && sample.tensors().empty();
  if (dtype >= 0 && factory) sample.args[static_cast<size_t>(dtype)] = Value(recipe.dtype);
  // Every fifth sample of the others asks for a result dtype.
  else if (dtype >= 0 && recipe.variant % 5 == 4 && sample.args[static_cast<size_t>(dtype)].is_none())
    sample.args[static_cast<size_t>(dtype)] = Value(kFloat64);
  return sample;
}

std::vector<Recipe> short_recipes() {
  using enum Placement;
  return {
      recipe_of({7, 17}, kFloat32, Contiguous, 0),
      recipe_of({7, 17}, kFloat32, Transposed, 1, Pairing::Row),
      recipe_of({3, 33}, kFloat16, Sliced, 2, Pairing::Column),
      recipe_of({33}, kFloat64, Offset, 3),
      recipe_of({3, 17}, kInt32, Contiguous, 4),
      recipe_of({2, 3, 5}, kBFloat16, Contiguous, 5),
      recipe_of({35}, kBool, Contiguous, 6),
      recipe_of({35}, kFloat32, Contiguous, 7, Pairing::Same, Values::Extreme),
  };
}

std::vector<Recipe> all_recipes() {
  using enum Placement;
  std::vector<Recipe> recipes = short_recipes();
  for (int dtype = 0; dtype < kDtypeCount; ++dtype) {
    auto each = static_cast<Dtype>(dtype);
    recipes.push_back(recipe_of({3, 7}, each, Contiguous, dtype));
    recipes.push_back(recipe_of({19}, each, Sliced, dtype + 1, Pairing::Same, Values::Extreme));
    recipes.push_back(recipe_of({5, 3}, each, Transposed, dtype + 3, Pairing::Dtype));
  }
  const Ints shapes[] = {{}, {0}, {3, 0, 2}, {1}, {1, 1}, {3, 1, 5}, {33}, {2, 3, 5}, {2, 3, 4, 5}};
  int variant = 0;
  for (const Ints& shape : shapes) recipes.push_back(recipe_of(shape, kFloat32, Contiguous, variant++));
  for (Placement placement : {Transposed, Sliced, Expanded, Offset})
    for (Pairing pairing : {Pairing::Same, Pairing::Row, Pairing::Column, Pairing::Wider, Pairing::ZeroDim})
      recipes.push_back(recipe_of({3, 5, 7}, kFloat32, placement, variant++, pairing));
  recipes.push_back(recipe_of({}, kInt64, Contiguous, variant++, Pairing::Dtype));
  recipes.push_back(recipe_of({6}, kInt32, Contiguous, variant++, Pairing::ZeroDim));
  return recipes;
}

}  // namespace tenon::test
