#include "parse_default.h"

#include <tenon/support/error.h>

#include <charconv>
#include <limits>

namespace tenon::schema {

namespace {

bool at_number(Cursor& cursor) {
  const char c = cursor.peek();
  return c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9');
}

// An integer stays one, everything else is a float; "-inf" is one too.
std::variant<int64_t, double> parse_number(Cursor& cursor) {
  const size_t begin = cursor.position();
  const std::string_view text = cursor.number();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  const bool integral = text.find_first_not_of("+-0123456789") == std::string_view::npos;
  const std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);  // from_chars takes no plus sign
  const char* end = digits.data() + digits.size();
  int64_t whole = 0;
  double real = 0;
  const auto [stop, code] =
      integral ? std::from_chars(digits.data(), end, whole) : std::from_chars(digits.data(), end, real);
  if (code == std::errc::result_out_of_range) {
    cursor.error(begin, fmt::format("`{}` does not fit {}", text, integral ? "64 bits" : "a double"));
  }
  if (code != std::errc() || stop != end || digits.starts_with('+')) {
    cursor.error(begin, fmt::format("expected a number, got `{}`", text));
  }
  // from_chars knows "nan" and "infinity" too; without a digit it is not a number of this language.
  if (text.find_first_of("0123456789") == std::string_view::npos) {
    cursor.error(begin, fmt::format("expected a number, got `{}`", text));
  }
  if (integral) return whole;
  return real;
}

double parse_float(Cursor& cursor) {
  if (cursor.at_name()) {
    const size_t begin = cursor.position();
    const std::string_view name = cursor.name("a number");
    if (name == "inf") return std::numeric_limits<double>::infinity();
    cursor.error(begin, fmt::format("expected a number, got `{}`", name));
  }
  if (!at_number(cursor)) cursor.error(fmt::format("expected a number, got {}", cursor.here()));
  const auto number = parse_number(cursor);
  if (const int64_t* whole = std::get_if<int64_t>(&number)) return static_cast<double>(*whole);
  return std::get<double>(number);
}

int64_t parse_int(Cursor& cursor) {
  const size_t begin = cursor.position();
  if (!at_number(cursor)) cursor.error(fmt::format("expected an integer, got {}", cursor.here()));
  const auto number = parse_number(cursor);
  if (!std::holds_alternative<int64_t>(number)) {
    cursor.error(begin, "expected an integer, got a number with a fraction. Make the argument a `float` or a `Scalar`");
  }
  return std::get<int64_t>(number);
}

bool parse_bool(Cursor& cursor) {
  const size_t begin = cursor.position();
  const std::string_view name = cursor.at_name() ? cursor.name("a bool") : std::string_view();
  if (name == "True") return true;
  if (name == "False") return false;
  cursor.error(begin, fmt::format("expected True or False{}", name.empty() ? "" : fmt::format(", got `{}`", name)));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string parse_string(Cursor& cursor) {
  const size_t begin = cursor.position();
  const char quote = cursor.peek();
  if (quote != '"' && quote != '\'') cursor.error(fmt::format("expected a string in quotes, got {}", cursor.here()));
  cursor.raw_take();
  std::string value;
  while (true) {
    if (cursor.raw_end()) cursor.error(begin, "a string that is never closed");
    char c = cursor.raw_take();
    if (c == quote) return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (cursor.raw_end()) cursor.error(begin, "a string that is never closed");
    c = cursor.raw_take();
    switch (c) {
      case 'n': value += '\n'; break;
      case 't': value += '\t'; break;
      case 'r': value += '\r'; break;
      case '\\':
      case '\'':
      case '"': value += c; break;
      case 'x': {
        int code = 0;
        for (int i = 0; i < 2; ++i) {
          const int digit = hex_digit(cursor.raw_peek());
          if (digit < 0) cursor.error(begin, "expected two hexadecimal digits after `\\x` in the string");
          code = code * 16 + digit;
          cursor.raw_take();
        }
        value += static_cast<char>(code);
        break;
      }
      default: cursor.error(begin, "unknown escape in the string. Known are \\n \\t \\r \\\\ \\' \\\" and \\xNN");
    }
  }
}

template <typename T, typename Read>
std::vector<T> parse_list(Cursor& cursor, Read read) {
  cursor.expect("[", "to begin a list");
  std::vector<T> values;
  if (cursor.take("]")) return values;
  do values.push_back(read(cursor));
  while (cursor.take(","));
  cursor.expect("]", "or `,` after an element of a list");
  return values;
}

void check_length(Cursor& cursor, size_t begin, const Type& type, size_t given) {
  // An empty list says "not given" and is possible for every length, as in `int[2] stride=[]`.
  if (!type.length || given == 0 || static_cast<int64_t>(given) == *type.length) return;
  cursor.error(begin, fmt::format("expected {} elements for `{}`, got {}", *type.length, type.str(), given));
}

Default parse_list_default(Cursor& cursor, const Type& type) {
  const size_t begin = cursor.position();
  const Type& element = type.element[0];
  if (cursor.peek() != '[') {
    // One value stands for a list of known length: `int[2] stride=1`.
    if (!type.length || element.is_list()) {
      cursor.error(fmt::format("expected a list in `[` `]` for `{}`, got {}", type.str(), cursor.here()));
    }
    return parse_default(cursor, element);
  }
  switch (element.kind) {
    case Kind::Int:
    case Kind::SymInt: {
      auto values = parse_list<int64_t>(cursor, parse_int);
      check_length(cursor, begin, type, values.size());
      return values;
    }
    case Kind::Float:
    case Kind::Scalar: {
      auto values = parse_list<double>(cursor, parse_float);
      check_length(cursor, begin, type, values.size());
      return values;
    }
    case Kind::Bool: {
      auto values = parse_list<bool>(cursor, parse_bool);
      check_length(cursor, begin, type, values.size());
      return values;
    }
    default:
      cursor.expect("[", "to begin a list");
      if (!cursor.take("]")) cursor.error(fmt::format("the default of `{}` can only be `[]`", type.str()));
      return std::vector<int64_t>();
  }
}

Default parse_scalar_default(Cursor& cursor) {
  if (at_number(cursor)) {
    const auto number = parse_number(cursor);
    if (const int64_t* whole = std::get_if<int64_t>(&number)) return *whole;
    return std::get<double>(number);
  }
  const size_t begin = cursor.position();
  const std::string_view name = cursor.name("a number, True or False");
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "True" || name == "False") return name == "True";
  cursor.error(begin, fmt::format("expected a number, True or False, got `{}`", name));
}

Default parse_int_default(Cursor& cursor) {
  if (!cursor.at_name()) return parse_int(cursor);
  const size_t begin = cursor.position();
  const std::string_view name = cursor.name("an integer");
  // ATen names the reductions of its losses.
  if (name == "Mean" || name == "Sum") return NameDefault{std::string(name)};
  cursor.error(begin, fmt::format("expected an integer, got `{}`", name));
}

}  // namespace

Default parse_default(Cursor& cursor, const Type& type) {
  const size_t begin = cursor.position();
  if (cursor.at_name()) {
    Cursor ahead = cursor;
    if (ahead.name("a value") == "None") {
      if (!type.is_optional()) {
        cursor.error(begin, fmt::format("`None` is no value of `{0}`. Make the type optional: `{0}?`", type.str()));
      }
      cursor = ahead;
      return NoneDefault();
    }
  }
  switch (type.kind) {
    case Kind::Optional: return parse_default(cursor, type.element[0]);
    case Kind::List: return parse_list_default(cursor, type);
    case Kind::Int:
    case Kind::SymInt: return parse_int_default(cursor);
    case Kind::Float: return parse_float(cursor);
    case Kind::Bool: return parse_bool(cursor);
    case Kind::Str: return parse_string(cursor);
    case Kind::Scalar: return parse_scalar_default(cursor);
    case Kind::Device:
      // "cuda:1" is no name.
      if (cursor.peek() == '"' || cursor.peek() == '\'') return parse_string(cursor);
      [[fallthrough]];
    case Kind::ScalarType:
    case Kind::Layout:
    case Kind::MemoryFormat: return NameDefault{std::string(cursor.name(fmt::format("the name of a {}", type.str())))};
    case Kind::Tensor:
    case Kind::Complex:
    case Kind::Generator: break;
  }
  cursor.error(begin, fmt::format("a `{0}` has no default but `None`, which needs the type `{0}?`", type.str()));
}

}  // namespace tenon::schema
