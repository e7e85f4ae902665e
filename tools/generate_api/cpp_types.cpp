#include "cpp_types.h"

#include <tenon/support/error.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::generate_api {

using schema::Kind;
using schema::Type;

namespace {

struct BaseType {
  Kind kind;
  const char* parameter;
  const char* result;
  const char* list;  // by value
};

constexpr BaseType kBaseTypes[] = {
    {Kind::Tensor, "const Tensor&", "Tensor", "std::vector<Tensor>"},
    {Kind::Int, "int64_t", "int64_t", "Ints"},
    {Kind::SymInt, "const SymInt&", "SymInt", "SymInts"},
    {Kind::Float, "double", "double", "std::vector<double>"},
    {Kind::Bool, "bool", "bool", "std::vector<bool>"},
    {Kind::Str, "std::string_view", "std::string", "std::vector<std::string>"},
    {Kind::Scalar, "const Scalar&", "Scalar", "std::vector<Scalar>"},
    {Kind::ScalarType, "Dtype", "Dtype", "std::vector<Dtype>"},
    {Kind::Device, "Device", "Device", "std::vector<Device>"},
    {Kind::Layout, "Layout", "Layout", "std::vector<Layout>"},
    {Kind::MemoryFormat, "MemoryFormat", "MemoryFormat", "std::vector<MemoryFormat>"},
    // A generator is state that a call advances, so it is never copied.
    {Kind::Generator, "Generator&", "Generator&", "std::vector<Generator*>"},
};

const BaseType& base(Kind kind) {
  const auto* found = std::find_if(std::begin(kBaseTypes), std::end(kBaseTypes),
                                   [&](const BaseType& type) { return type.kind == kind; });
  TENON_ASSERT(found != std::end(kBaseTypes), "kind {}", static_cast<int>(kind));
  return *found;
}

std::string value_type(const Type& type) {
  if (type.is_optional()) {
    return type.element[0].kind == Kind::Generator ? "Generator*"
                                                   : "std::optional<" + value_type(type.element[0]) + ">";
  }
  if (!type.is_list()) return base(type.kind).result;
  const Type& element = type.element[0];
  if (element.is_list() || element.is_optional()) return "std::vector<" + value_type(element) + ">";
  return base(element.kind).list;
}

// Small enough to be passed by value inside an optional.
bool is_small(Kind kind) {
  switch (kind) {
    case Kind::Int:
    case Kind::Float:
    case Kind::Bool:
    case Kind::Str:
    case Kind::ScalarType:
    case Kind::Device:
    case Kind::Layout:
    case Kind::MemoryFormat: return true;
    default: return false;
  }
}

constexpr std::pair<Kind, std::pair<const char*, const char*>> kNames[] = {
    {Kind::Int, {"Mean", "1"}},
    {Kind::Int, {"Sum", "2"}},
    {Kind::SymInt, {"Mean", "1"}},
    {Kind::SymInt, {"Sum", "2"}},
    {Kind::Layout, {"strided", "Layout::Strided"}},
    {Kind::MemoryFormat, {"contiguous_format", "MemoryFormat::Contiguous"}},
    {Kind::MemoryFormat, {"preserve_format", "MemoryFormat::Preserve"}},
    {Kind::Device, {"cpu", "kCPU"}},
    {Kind::Device, {"cuda", "kCUDA"}},
    {Kind::Device, {"meta", "kMeta"}},
    {Kind::ScalarType, {"bool", "kBool"}},
    {Kind::ScalarType, {"uint8", "kUInt8"}},
    {Kind::ScalarType, {"int8", "kInt8"}},
    {Kind::ScalarType, {"int16", "kInt16"}},
    {Kind::ScalarType, {"short", "kInt16"}},
    {Kind::ScalarType, {"int32", "kInt32"}},
    {Kind::ScalarType, {"int", "kInt32"}},
    {Kind::ScalarType, {"int64", "kInt64"}},
    {Kind::ScalarType, {"long", "kInt64"}},
    {Kind::ScalarType, {"float16", "kFloat16"}},
    {Kind::ScalarType, {"half", "kFloat16"}},
    {Kind::ScalarType, {"bfloat16", "kBFloat16"}},
    {Kind::ScalarType, {"float8_e4m3fn", "kFloat8E4M3FN"}},
    {Kind::ScalarType, {"float8_e5m2", "kFloat8E5M2"}},
    {Kind::ScalarType, {"float32", "kFloat32"}},
    {Kind::ScalarType, {"float", "kFloat32"}},
    {Kind::ScalarType, {"float64", "kFloat64"}},
    {Kind::ScalarType, {"double", "kFloat64"}},
};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < ' ' || byte > '~') {
      result += fmt::format("\\{:03o}", byte);  // octal: it ends after three digits, whatever follows
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string repeated(const std::string& element, int64_t count) {
  TENON_CHECK(count <= 64, "expected a list of at most 64 elements for a default of one value, got {}", count);
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i) text += (i ? ", " : "") + element;
  return text + "}";
}

struct PrintDefault {
  const Type& type;  // with no optional around it

  std::string operator()(const schema::NoneDefault&) const { return "std::nullopt"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const {
    if (value == INT64_MIN) return "INT64_MIN";  // the literal would be a negated number out of range
    return fmt::format("{}", value);
  }
  std::string operator()(double value) const {
    if (std::isinf(value))
      return value < 0 ? "-std::numeric_limits<double>::infinity()" : "std::numeric_limits<double>::infinity()";
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  std::string operator()(const std::string& value) const {
    return type.kind == Kind::Device ? "parse_device(" + quoted(value) + ")" : quoted(value);
  }
  std::string operator()(const schema::NameDefault& value) const {
    for (const auto& [kind, names] : kNames) {
      if (kind == type.kind && value.name == names.first) return names.second;
    }
    fail("the default `{}` of a `{}` has no counterpart in C++", value.name, type.str());
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text;
    for (const T value : values) text += (text.empty() ? "" : ", ") + (*this)(value);
    return "{" + text + "}";
  }
};

}  // namespace

std::string parameter_type(const Type& type) {
  if (type.is_optional()) {
    const Type& element = type.element[0];
    if (element.kind == Kind::Generator) return "Generator*";
    if (element.kind == Kind::Str) return "std::optional<std::string_view>";
    if (element.is_list() && element.element[0].kind == Kind::Int) return "const OptionalInts&";
    return is_small(element.kind) ? value_type(type) : "const " + value_type(type) + "&";
  }
  return type.is_list() ? "const " + value_type(type) + "&" : base(type.kind).parameter;
}

std::string return_type(const std::vector<schema::Argument>& returns) {
  if (returns.empty()) return "void";
  if (returns.size() == 1) return value_type(returns[0].type);
  std::string types;
  for (const schema::Argument& result : returns) types += (types.empty() ? "" : ", ") + value_type(result.type);
  return "std::tuple<" + types + ">";
}

std::string default_text(const schema::Argument& argument) {
  const bool optional = argument.type.is_optional();
  const Type& type = optional ? argument.type.element[0] : argument.type;
  const schema::Default& value = *argument.default_value;
  if (std::holds_alternative<schema::NoneDefault>(value)) {
    return type.kind == Kind::Generator ? "nullptr" : "std::nullopt";
  }
  if (!type.is_list()) return std::visit(PrintDefault{type}, value);
  const bool is_list_text = value.index() >= 6;  // the vectors come last in `Default`
  static_assert(std::is_same_v<std::variant_alternative_t<6, schema::Default>, std::vector<int64_t>>);
  const std::string text = std::visit(PrintDefault{type.element[0]}, value);
  const std::string list = is_list_text ? text : repeated(text, *type.length);
  // Inside an optional, `{}` would be no list at all.
  return optional ? value_type(type) + list : list;
}

std::string boxed(const Type& type, const std::string& name) {
  if (type.is_optional() && type.element[0].kind == Kind::Generator) {
    return fmt::format("({0} ? dispatch::Value(*{0}) : dispatch::Value())", name);
  }
  return fmt::format("dispatch::Value({})", name);
}

std::string safe_name(const std::string& name) {
  static constexpr std::string_view kTaken[] = {
      // Keywords and alternative tokens.
      "alignas",
      "alignof",
      "and",
      "and_eq",
      "asm",
      "auto",
      "bitand",
      "bitor",
      "bool",
      "break",
      "case",
      "catch",
      "char",
      "char16_t",
      "char32_t",
      "char8_t",
      "class",
      "co_await",
      "co_return",
      "co_yield",
      "compl",
      "concept",
      "const",
      "const_cast",
      "consteval",
      "constexpr",
      "constinit",
      "continue",
      "decltype",
      "default",
      "delete",
      "do",
      "double",
      "dynamic_cast",
      "else",
      "enum",
      "explicit",
      "export",
      "extern",
      "false",
      "float",
      "for",
      "friend",
      "goto",
      "if",
      "inline",
      "int",
      "long",
      "mutable",
      "namespace",
      "new",
      "noexcept",
      "not",
      "not_eq",
      "nullptr",
      "operator",
      "or",
      "or_eq",
      "private",
      "protected",
      "public",
      "register",
      "reinterpret_cast",
      "requires",
      "return",
      "short",
      "signed",
      "sizeof",
      "static",
      "static_assert",
      "static_cast",
      "struct",
      "switch",
      "template",
      "this",
      "thread_local",
      "throw",
      "true",
      "try",
      "typedef",
      "typeid",
      "typename",
      "union",
      "unsigned",
      "using",
      "virtual",
      "void",
      "volatile",
      "wchar_t",
      "while",
      "xor",
      "xor_eq",
      // Macros of the standard library.
      "assert",
      "errno",
      "offsetof",
      "stdin",
      "stdout",
      "stderr",
      "linux",
      "unix",
      // Names in the generated bodies.
      "op",
      "args",
      "dispatch",
      "tenon",
  };
  return std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken) ? name + "_" : name;
}

}  // namespace tenon::generate_api
