#include "ops/samples.h"

#include <cmath>
#include <limits>

#include "ops/sample_maker.h"

#include <fmt/format.h>

namespace tenon::test {
namespace {

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
  const std::string full_name = row.schema.name + "." + row.schema.overload;
  const Rules* tables[] = {&overload_rules(), &image_rules(), &below_rules(), &matrix_rules(), &family_rules()};
  const auto* table = std::find_if(std::begin(tables), std::end(tables),
                                   [&](const Rules* rules) { return rules->contains(full_name); });
  auto rule = special_rules().find(row.schema.name);
  if (table != std::end(tables))
    overrides = (*table)->at(full_name)(maker);
  else if (rule != special_rules().end())
    overrides = rule->second(maker);
  // A copy of a view takes what the view takes, and so does what becomes one.
  else if (row.schema.name.ends_with("_copy") || row.moves_self) {
    rule = special_rules().find(row.schema.name.substr(0, row.schema.name.size() - (row.moves_self ? 1 : 5)));
    if (rule != special_rules().end()) overrides = rule->second(maker);
  }
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
  for (int dtype = 0; dtype < kComputedDtypeCount; ++dtype) {
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
