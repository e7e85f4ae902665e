#include "types.h"

#include <tenon/support/error.h>

#include <cmath>

namespace tenon::schema {

namespace {

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text += (i ? separator : "") + parts[i];
  return text;
}

// The shortest digits that read back as the same double; with a point or an exponent, so that it stays a float.
std::string print_float(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string print_string(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < ' ' || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text + "\"";
}

struct PrintDefault {
  std::string operator()(const NoneDefault&) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return print_float(value); }
  std::string operator()(const std::string& value) const { return print_string(value); }
  std::string operator()(const NameDefault& value) const { return value.name; }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::vector<std::string> parts;
    for (const T value : values) parts.push_back((*this)(value));
    return "[" + join(parts, ", ") + "]";
  }
};

std::string print_alias(const Alias& alias) {
  std::string text = "(" + join(alias.before, "|");
  if (alias.write) text += "!";
  if (alias.after != alias.before) text += " -> " + join(alias.after, "|");
  return text + ")";
}

// The alias stands after the base type, inside lists and optionals: `Tensor(a!)?[]`.
std::string print_type(const Type& type, const std::optional<Alias>& alias) {
  switch (type.kind) {
    case Kind::Optional: return print_type(type.element[0], alias) + "?";
    case Kind::List:
      return print_type(type.element[0], alias) + (type.length ? fmt::format("[{}]", *type.length) : "[]");
    default: break;
  }
  for (const auto& [name, kind] : kBaseTypes) {
    if (kind == type.kind) return std::string(name) + (alias ? print_alias(*alias) : "");
  }
  TENON_ASSERT(false, "kind {}", static_cast<int>(type.kind));
}

std::string print_argument(const Argument& argument) {
  std::string text = print_type(argument.type, argument.alias);
  if (!argument.name.empty()) text += " " + argument.name;
  if (argument.default_value) text += "=" + std::visit(PrintDefault(), *argument.default_value);
  return text;
}

}  // namespace

std::string Type::str() const { return print_type(*this, std::nullopt); }

std::string Schema::qualified_name() const {
  return (ns.empty() ? "" : ns + "::") + name + (overload.empty() ? "" : "." + overload);
}

std::string Schema::str() const {
  std::vector<std::string> parts;
  bool keyword_only = false;
  for (const Argument& argument : arguments) {
    if (argument.keyword_only && !keyword_only) parts.push_back("*");
    keyword_only |= argument.keyword_only;
    parts.push_back(print_argument(argument));
  }
  const std::string head = qualified_name() + "(" + join(parts, ", ") + ") -> ";
  if (returns.size() == 1 && returns[0].name.empty()) return head + print_argument(returns[0]);
  parts.clear();
  for (const Argument& result : returns) parts.push_back(print_argument(result));
  return head + "(" + join(parts, ", ") + ")";
}

}  // namespace tenon::schema
