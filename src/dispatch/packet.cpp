#include "registry.h"

#include <tenon/dispatch/packet.h>

#include <algorithm>

namespace tenon::dispatch {
namespace {

using schema::Kind;

// `long`, `int` and `float` as defaults name dtypes by their C names.
std::optional<Dtype> dtype_named(std::string_view name) {
  for (int at = 0; at < kDtypeCount; ++at)
    if (kDtypeTraits[at].name == name) return static_cast<Dtype>(at);
  constexpr std::pair<std::string_view, Dtype> kOther[] = {{"float", kFloat32}, {"double", kFloat64},
                                                           {"half", kFloat16},  {"long", kInt64},
                                                           {"int", kInt32},     {"short", kInt16}};
  for (const auto& [other, dtype] : kOther)
    if (other == name) return dtype;
  return std::nullopt;
}

Value named_value(const schema::Argument& argument, const std::string& name, const schema::Type& type) {
  if (type.kind == Kind::ScalarType) {
    std::optional<Dtype> dtype = dtype_named(name);
    TENON_CHECK(dtype, "[schema] there is no dtype '{}' (the default of '{}')", name, argument.name);
    return Value(*dtype);
  }
  if (type.kind == Kind::Device) return Value(parse_device(name));
  if (type.kind == Kind::MemoryFormat)
    return Value(name == "preserve_format" ? MemoryFormat::Preserve : MemoryFormat::Contiguous);
  if (type.kind == Kind::Layout) return Value(Layout::Strided);
  // Reductions of losses: Mean is 1, Sum 2.
  if (type.kind == Kind::Int || type.kind == Kind::SymInt) return Value(name == "Mean" ? 1 : name == "Sum" ? 2 : 0);
  fail("[schema] the default '{}' of '{}' has no value", name, argument.name);
}

bool fits(const schema::Type& type, const Value& value) {
  using Tag = Value::Tag;
  if (type.is_optional()) return value.is_none() || fits(type.element[0], value);
  switch (type.kind) {
    case Kind::Tensor: return value.tag() == Tag::Tensor;
    case Kind::Int:
    case Kind::SymInt: return value.tag() == Tag::Int;
    case Kind::Float: return value.tag() == Tag::Real || value.tag() == Tag::Int;
    case Kind::Bool: return value.tag() == Tag::Bool;
    case Kind::Str: return value.tag() == Tag::String;
    case Kind::Scalar: return value.is_number();
    case Kind::ScalarType: return value.tag() == Tag::Dtype;
    case Kind::Device: return value.tag() == Tag::Device;
    case Kind::Layout: return value.tag() == Tag::Layout;
    case Kind::MemoryFormat: return value.tag() == Tag::MemoryFormat;
    case Kind::Generator: return value.tag() == Tag::Generator;
    case Kind::Complex: return value.tag() == Tag::Complex || value.is_number();
    case Kind::Optional: return false;
    case Kind::List: break;
  }
  const schema::Type& element = type.element[0];
  if (element.kind == Kind::Tensor) return value.tag() == Tag::Tensors;
  if (element.is_optional()) return value.tag() == Tag::OptionalTensors || value.tag() == Tag::Tensors;
  if (element.kind == Kind::Int || element.kind == Kind::SymInt)
    // A single number stands for a list of fixed length.
    return value.tag() == Tag::Ints || value.tag() == Tag::SymInts || (type.length && value.tag() == Tag::Int);
  if (element.kind == Kind::Float) return value.tag() == Tag::Reals;
  if (element.kind == Kind::Bool) return value.tag() == Tag::Bools;
  if (element.kind == Kind::Scalar)
    return value.tag() == Tag::Ints || value.tag() == Tag::SymInts || value.tag() == Tag::Reals ||
           value.tag() == Tag::Bools;
  return false;
}

// The value as the type wants it: a number repeated to a list, a list of tensors as one of optional tensors.
Value adapt(const schema::Type& type, const Value& value) {
  if (type.is_optional()) return value.is_none() ? value : adapt(type.element[0], value);
  if (!type.is_list()) return value;
  if (value.tag() == Value::Tag::Int) {
    std::vector<SymInt> list(static_cast<size_t>(type.length.value_or(1)), value.sym_int());
    return Value(std::span<const SymInt>(list)).own();
  }
  if (type.element[0].is_optional() && value.tag() == Value::Tag::Tensors) {
    std::vector<std::optional<Tensor>> list(value.tensors().begin(), value.tensors().end());
    return Value(list).own();
  }
  return value;
}

// Why the arguments do not fit; empty: they do, and `bound` holds them.
std::string try_bind(const schema::Schema& schema, std::span<const Value> args, std::span<const Keyword> keywords,
                     Values& bound) {
  size_t positional = 0;
  for (const schema::Argument& argument : schema.arguments) positional += !argument.keyword_only;
  if (args.size() > positional)
    return fmt::format("takes {} positional arguments, {} were given", positional, args.size());
  for (const Keyword& keyword : keywords)
    if (schema.argument_index(keyword.name) < 0) return fmt::format("has no argument '{}'", keyword.name);
  for (size_t at = 0; at < schema.arguments.size(); ++at) {
    const schema::Argument& argument = schema.arguments[at];
    const Value* given = at < args.size() ? &args[at] : nullptr;
    for (const Keyword& keyword : keywords) {
      if (keyword.name != argument.name) continue;
      if (given) return fmt::format("argument '{}' was given twice", argument.name);
      given = &keyword.value;
    }
    if (!given) {
      if (!argument.default_value)
        return fmt::format("argument '{}' ({}) is missing", argument.name, argument.type.str());
      bound.push_back(default_value(argument));
      continue;
    }
    if (!fits(argument.type, *given))
      return fmt::format("argument '{}': expected {}, got {}", argument.name, argument.type.str(), given->str());
    bound.push_back(adapt(argument.type, *given));
  }
  return {};
}

}  // namespace

Value default_value(const schema::Argument& argument) {
  TENON_CHECK(argument.default_value, "[schema] argument '{}' has no default", argument.name);
  const schema::Type& type = argument.type.is_optional() ? argument.type.element[0] : argument.type;
  Value plain = std::visit(
      [&](const auto& content) -> Value {
        using Content = std::remove_cvref_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, schema::NoneDefault>)
          return Value();
        else if constexpr (std::is_same_v<Content, schema::NameDefault>)
          return named_value(argument, content.name, type);
        else if constexpr (std::is_same_v<Content, std::string>)
          return type.kind == Kind::Device ? Value(parse_device(content)) : Value(std::string_view(content)).own();
        else if constexpr (std::is_same_v<Content, std::vector<int64_t>>)
          return Value(std::span<const int64_t>(content)).own();
        else
          return Value(content).own();
      },
      *argument.default_value);
  if (plain.tag() == Value::Tag::Int && type.kind == Kind::Float) return Value(plain.real());
  if (plain.tag() == Value::Tag::Int && type.is_list()) return adapt(type, plain);
  return plain;
}

Values bind_arguments(const schema::Schema& schema, std::span<const Value> args, std::span<const Keyword> keywords) {
  Values bound;
  std::string problem = try_bind(schema, args, keywords, bound);
  TENON_CHECK(problem.empty(), "[{}] {}: {}", schema.qualified_name(), problem, schema.str());
  return bound;
}

std::vector<const Operator*> overloads_of(std::string_view packet) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  std::vector<const Operator*> list;
  if (auto found = registry.packets.find(packet); found != registry.packets.end())
    list.assign(found->second.begin(), found->second.end());
  else if (auto one = registry.operators.find(packet); one != registry.operators.end())
    list.push_back(one->second.get());
  std::sort(list.begin(), list.end(), [](const Operator* a, const Operator* b) { return a->name() < b->name(); });
  return list;
}

const Operator& resolve_overload(std::string_view packet, std::span<const Value> args,
                                 std::span<const Keyword> keywords) {
  std::vector<const Operator*> overloads = overloads_of(packet);
  TENON_CHECK(!overloads.empty(), "[operator] there is no operator '{}'", packet);
  std::string reasons;
  for (const Operator* op : overloads) {
    Values bound;
    std::string problem = try_bind(op->schema(), args, keywords, bound);
    if (problem.empty()) return *op;
    reasons += fmt::format("\n  {}: {}", op->schema().str(), problem);
  }
  fail("[{}] failed to match any schema:{}", packet, reasons);
}

Results call_by_name(std::string_view name, std::span<const Value> args, std::span<const Keyword> keywords) {
  InsideCall inside;  // what a name leads to stays until the call is over
  const Operator* exact = name.find('.') == std::string_view::npos ? nullptr : find_operator_or_null(name);
  const Operator& op = exact ? *exact : resolve_overload(name, args, keywords);
  return call_boxed(op, bind_arguments(op.schema(), args, keywords));
}

}  // namespace tenon::dispatch
