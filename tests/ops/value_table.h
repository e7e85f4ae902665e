// The value tables of tests/data, written by tools/reference: what NumPy says that an operator gives.
#pragma once

#include <tenon/dispatch/operator.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::value_table {

struct Case {
  std::string op;                                         // "add.Tensor"
  std::string where;                                      // "pointwise.txt:12"
  std::map<std::string, std::string> arguments;           // by name, as text
  std::string expected;                                   // a tensor: the first result
  std::string closeness;                                  // "exact", "ulp 4", "within 1e-6 …", "shape"
  std::vector<std::pair<std::string, std::string>> more;  // further results: of several, or of a list
};

inline std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

inline std::vector<Case> load_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  TENON_CHECK(file.good(), "[value table] cannot read {}", path.string());
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      cases.push_back({line, fmt::format("{}:{}", path.filename().string(), number), {}, {}, {}, {}});
      continue;
    }
    TENON_CHECK(!cases.empty(), "[value table] {}:{}: expected an operator first", path.string(), number);
    std::string text = trimmed(line);
    size_t equals = text.find(" = ");
    Case& last = cases.back();
    if (text.starts_with("->") && last.expected.empty())
      last.expected = trimmed(text.substr(2));
    else if (text.starts_with("->"))
      last.more.emplace_back(trimmed(text.substr(2)), "");
    else if (equals != std::string::npos)
      last.arguments[text.substr(0, equals)] = text.substr(equals + 3);
    else
      (last.more.empty() ? last.closeness : last.more.back().second) = text;
  }
  return cases;
}

// The cases of every table in the folder, by operator.
inline std::map<std::string, std::vector<Case>> load_folder(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<Case>> by_operator;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt")
      for (Case& each : load_file(entry.path())) by_operator[each.op].push_back(std::move(each));
  return by_operator;
}

inline Ints parse_ints(std::string_view text) {
  Ints numbers;
  std::istringstream stream{std::string(text)};
  for (std::string word; std::getline(stream, word, ',');) numbers.push_back(std::stoll(word));
  return numbers;
}

inline void write_element(const Tensor& tensor, int64_t at, const std::string& text) {
  switch (tensor.dtype()) {
    case Dtype::Bool: tensor.data<bool>()[at] = text != "0"; break;
    case Dtype::UInt8: tensor.data<uint8_t>()[at] = static_cast<uint8_t>(std::stoll(text)); break;
    case Dtype::Int8: tensor.data<int8_t>()[at] = static_cast<int8_t>(std::stoll(text)); break;
    case Dtype::Int16: tensor.data<int16_t>()[at] = static_cast<int16_t>(std::stoll(text)); break;
    case Dtype::Int32: tensor.data<int32_t>()[at] = static_cast<int32_t>(std::stoll(text)); break;
    case Dtype::Int64: tensor.data<int64_t>()[at] = std::stoll(text); break;
    case Dtype::Float8E4M3FN:
    case Dtype::Float8E5M2: fail("[value table] there are no values of {}", name(tensor.dtype()));
    case Dtype::Float16: tensor.data<Half>()[at] = to_half(std::strtod(text.c_str(), nullptr)); break;
    case Dtype::BFloat16: tensor.data<BFloat16>()[at] = to_bfloat16(std::strtod(text.c_str(), nullptr)); break;
    case Dtype::Float32: tensor.data<float>()[at] = std::strtof(text.c_str(), nullptr); break;
    case Dtype::Float64: tensor.data<double>()[at] = std::strtod(text.c_str(), nullptr); break;
  }
}

// The place of the element with that row-major number.
inline int64_t place_of(int64_t position, const Tensor& tensor) {
  int64_t place = 0;
  for (size_t dim = tensor.sizes().size(); dim-- > 0;) {
    place += position % tensor.sizes()[dim] * tensor.strides()[dim];
    position /= tensor.sizes()[dim];
  }
  return place;
}

// "float32[2,3]{1,4} 1 2 3 4 5 6"
inline Tensor parse_tensor(const std::string& text) {
  size_t open = text.find('['), close = text.find(']');
  TENON_CHECK(open != std::string::npos && close != std::string::npos, "[value table] expected a tensor, got '{}'",
              text);
  std::optional<Dtype> dtype = dtype_from_name(text.substr(0, open));
  TENON_CHECK(dtype, "[value table] unknown dtype in '{}'", text);
  Ints sizes = parse_ints(std::string_view(text).substr(open + 1, close - open - 1));
  Ints strides = core::contiguous_strides(sizes.span());
  size_t values = close + 1;
  if (values < text.size() && text[values] == '{') {
    size_t end = text.find('}');
    strides = parse_ints(std::string_view(text).substr(values + 1, end - values - 1));
    values = end + 1;
  }
  Tensor tensor = core::allocate(sizes, strides, *dtype, kCPU);
  std::istringstream stream(text.substr(values));
  int64_t count = 0, expected = tensor.numel().plain();
  for (std::string word; stream >> word; ++count) {
    TENON_CHECK(count < expected, "[value table] too many elements in '{}'", text);
    write_element(tensor, place_of(count, tensor), word);
  }
  TENON_CHECK(count == expected, "[value table] expected {} elements, got {} in '{}'", expected, count, text);
  return tensor;
}

inline Scalar parse_scalar(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  if (text.find_first_of(".enai") != std::string::npos) return std::strtod(text.c_str(), nullptr);
  return int64_t{std::stoll(text)};
}

inline dispatch::Value parse_value(const std::string& text, const schema::Type& type) {
  using schema::Kind;
  if (text == "None") return {};
  switch (type.kind) {
    case Kind::Optional: return parse_value(text, type.element[0]);
    case Kind::Tensor: return dispatch::Value(parse_tensor(text)).own();
    case Kind::Int: return parse_scalar(text).to_int();
    case Kind::SymInt: return parse_scalar(text).to_int();
    case Kind::Float: return parse_scalar(text).to_double();
    case Kind::Bool: return parse_scalar(text).to_bool();
    case Kind::Str: return dispatch::Value(std::string_view(text)).own();
    case Kind::Scalar: return dispatch::Value(parse_scalar(text)).own();
    case Kind::ScalarType: {
      std::optional<Dtype> dtype = dtype_from_name(text);
      TENON_CHECK(dtype, "[value table] unknown dtype '{}'", text);
      return *dtype;
    }
    case Kind::List: break;
    default: fail("[value table] cannot read '{}' as {}", text, type.str());
  }
  if (type.element[0].kind == Kind::Optional) {
    std::vector<std::optional<Tensor>> tensors;
    for (size_t start = 0; start != std::string::npos;) {
      size_t bar = text.find(" | ", start);
      std::string each = text.substr(start, bar == std::string::npos ? bar : bar - start);
      tensors.push_back(each == "None" ? std::nullopt : std::optional<Tensor>(parse_tensor(each)));
      start = bar == std::string::npos ? bar : bar + 3;
    }
    return dispatch::Value(tensors).own();
  }
  if (type.element[0].kind == Kind::Tensor) {
    std::vector<Tensor> tensors;
    for (size_t start = 0; start != std::string::npos;) {
      size_t bar = text.find(" | ", start);
      tensors.push_back(parse_tensor(text.substr(start, bar == std::string::npos ? bar : bar - start)));
      start = bar == std::string::npos ? bar : bar + 3;
    }
    return dispatch::Value(tensors).own();
  }
  if (type.element[0].kind == Kind::Float) {
    std::vector<double> numbers;
    std::istringstream stream(text.substr(1, text.size() - 2));
    for (std::string word; std::getline(stream, word, ',');) numbers.push_back(std::strtod(word.c_str(), nullptr));
    return dispatch::Value(numbers).own();
  }
  if (type.element[0].kind == Kind::Bool) {
    std::vector<bool> flags;
    std::istringstream stream(text.substr(1, text.size() - 2));
    for (std::string word; std::getline(stream, word, ',');) flags.push_back(word == "True");
    return dispatch::Value(flags).own();
  }
  Ints numbers = parse_ints(std::string_view(text).substr(1, text.size() - 2));
  return dispatch::Value(numbers).own();
}

inline dispatch::Value default_of(const schema::Argument& argument) {
  TENON_CHECK(argument.default_value, "[value table] the argument '{}' is missing", argument.name);
  return std::visit(
      [&](const auto& value) -> dispatch::Value {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, schema::NoneDefault>)
          return {};
        else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
          return dispatch::Value(Ints(value)).own();
        else if constexpr (std::is_same_v<T, schema::NameDefault>)
          return value.name == "contiguous_format" ? dispatch::Value(MemoryFormat::Contiguous) : dispatch::Value();
        else
          return dispatch::Value(value).own();
      },
      *argument.default_value);
}

// Fresh arguments of a call, in the order of the schema.
inline dispatch::Values arguments_of(const Case& each, const schema::Schema& schema) {
  dispatch::Values values;
  size_t used = 0;
  for (const schema::Argument& argument : schema.arguments) {
    auto found = each.arguments.find(argument.name);
    used += found != each.arguments.end();
    values.push_back(found == each.arguments.end() ? default_of(argument) : parse_value(found->second, argument.type));
  }
  TENON_CHECK(used == each.arguments.size(), "[value table] {}: {} has no such argument", each.where, schema.str());
  return values;
}

// Floats as integers in the order of their values: neighbours differ by 1, and both zeros are 0.
template <typename Bits>
int64_t ordered(Bits bits) {
  using Signed = std::make_signed_t<Bits>;
  auto number = static_cast<int64_t>(static_cast<Signed>(bits));
  constexpr int64_t sign = std::numeric_limits<Signed>::min();
  return number < 0 ? sign - number : number;
}

struct Read {
  double value = 0;
  int64_t integer = 0;  // the integer, or the float's place in order
};

inline Read read_element(const Tensor& tensor, int64_t at) {
  switch (tensor.dtype()) {
    case Dtype::Bool: return {0, tensor.data<bool>()[at]};
    case Dtype::UInt8: return {0, tensor.data<uint8_t>()[at]};
    case Dtype::Int8: return {0, tensor.data<int8_t>()[at]};
    case Dtype::Int16: return {0, tensor.data<int16_t>()[at]};
    case Dtype::Int32: return {0, tensor.data<int32_t>()[at]};
    case Dtype::Int64: return {0, tensor.data<int64_t>()[at]};
    case Dtype::Float8E4M3FN:
    case Dtype::Float8E5M2: fail("[value table] there are no values of {}", name(tensor.dtype()));
    case Dtype::Float16: {
      Half half = tensor.data<Half>()[at];
      return {static_cast<double>(to_float(half)), ordered(half.bits)};
    }
    case Dtype::BFloat16: {
      BFloat16 half = tensor.data<BFloat16>()[at];
      return {static_cast<double>(to_float(half)), ordered(half.bits)};
    }
    case Dtype::Float32: {
      float value = tensor.data<float>()[at];
      return {static_cast<double>(value), ordered(std::bit_cast<uint32_t>(value))};
    }
    case Dtype::Float64: {
      double value = tensor.data<double>()[at];
      return {value, ordered(std::bit_cast<uint64_t>(value))};
    }
  }
  return {};
}

// What is wrong with a result; nothing if it is as the table says.
inline std::string difference(const Tensor& result, const Case& each) {
  Tensor expected = parse_tensor(each.expected);
  if (result.description() != expected.description())
    return fmt::format("expected {}, got {}", expected.description(), result.description());
  std::istringstream closeness(each.closeness);
  std::string kind;
  closeness >> kind;
  if (kind == "shape") return "";
  TENON_CHECK(kind == "exact" || kind == "ulp" || kind == "within", "[value table] {}: unknown closeness '{}'",
              each.where, each.closeness);
  int64_t allowed = 0;
  if (kind == "ulp") closeness >> allowed;
  const int64_t count = expected.numel().plain();
  for (int64_t position = 0; position < count; ++position) {
    double bound = 0;
    if (kind == "within") closeness >> bound;
    Read got = read_element(result, place_of(position, result)), wanted = read_element(expected, position);
    bool good = got.integer == wanted.integer;
    if (is_floating(result.dtype())) {
      if (std::isnan(wanted.value) || std::isnan(got.value)) {
        good = std::isnan(wanted.value) == std::isnan(got.value);
      } else if (kind == "within") {
        good |= std::abs(got.value - wanted.value) <= bound;
      } else if (std::isinf(wanted.value) == std::isinf(got.value)) {
        good |= std::abs(got.integer - wanted.integer) <= allowed;
      }
      if (!good)
        return fmt::format("element {}: expected {} ({}), got {}", position, wanted.value, each.closeness.substr(0, 40),
                           got.value);
    } else if (!good) {
      return fmt::format("element {}: expected {}, got {}", position, wanted.integer, got.integer);
    }
  }
  return "";
}

// The same for all results of a call; tensors of a list count one by one.
inline std::string difference(std::span<const dispatch::Value> results, const Case& each) {
  std::vector<Tensor> tensors;
  for (const dispatch::Value& result : results)
    result.each_tensor([&](const Tensor& tensor) { tensors.push_back(tensor); });
  if (each.more.empty() && tensors.size() == 1) return difference(tensors[0], each);
  if (tensors.size() != each.more.size() + 1)
    return fmt::format("expected {} tensors, got {}", each.more.size() + 1, tensors.size());
  std::string first = difference(tensors[0], each);
  if (!first.empty()) return first;
  for (size_t at = 0; at < each.more.size(); ++at) {
    Case single{each.op, each.where, {}, each.more[at].first, each.more[at].second, {}};
    std::string wrong = difference(tensors[at + 1], single);
    if (!wrong.empty()) return fmt::format("result {}: {}", at + 1, wrong);
  }
  return "";
}

}  // namespace tenon::value_table
