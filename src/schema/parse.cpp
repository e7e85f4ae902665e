#include "cursor.h"
#include "parse_default.h"
#include "types.h"

#include <tenon/support/error.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

namespace tenon::schema {

namespace {

// Types nest as deep as this; real schemas reach 3. It bounds the recursion of everything that walks a type.
constexpr int kMaxDepth = 8;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string type_hint(std::string_view name) {
  for (const auto& [written, hint] : kTypeHints) {
    if (written == name) return std::string(hint);
  }
  for (const auto& [known, kind] : kBaseTypes) {
    if (same_but_for_case(name, known)) return fmt::format("Use `{}`", known);
  }
  std::string all;
  for (const auto& [known, kind] : kBaseTypes) all += fmt::format("{}{}", all.empty() ? "" : ", ", known);
  return fmt::format("Known types are {}", all);
}

Type parse_base_type(Cursor& cursor) {
  const size_t begin = cursor.position();
  const std::string_view name = cursor.name("a type");
  for (const auto& [known, kind] : kBaseTypes) {
    if (name == known) return Type{kind, {}, {}};
  }
  cursor.error(begin, fmt::format("unknown type specifier `{}`. {}", name.substr(0, 64), type_hint(name)));
}

std::vector<std::string> parse_alias_set(Cursor& cursor) {
  std::vector<std::string> set;
  do {
    set.push_back(cursor.take("*") ? "*" : std::string(cursor.name("the name of an alias set or `*`")));
  } while (cursor.take("|"));
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

// After the opening bracket.
Alias parse_alias(Cursor& cursor) {
  Alias alias;
  alias.before = parse_alias_set(cursor);
  alias.write = cursor.take("!");
  alias.after = cursor.take("->") ? parse_alias_set(cursor) : alias.before;
  cursor.expect(")", "to end an alias annotation such as `(a!)` or `(a -> *)`");
  return alias;
}

Type parse_list_suffix(Cursor& cursor, Type element) {
  Type list{Kind::List, {}, {}};
  list.element.push_back(std::move(element));
  if (cursor.take("]")) return list;
  const size_t begin = cursor.position();
  const std::string_view digits = cursor.number();
  int64_t length = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, code] = std::from_chars(digits.data(), end, length);
  if (digits.empty() || code != std::errc() || stop != end || length < 1) {
    cursor.error(begin, "expected `]` or the length of the list, a positive integer");
  }
  list.length = length;
  cursor.expect("]", "after the length of a list");
  return list;
}

// The type and alias of one argument or return.
void parse_type(Cursor& cursor, Argument& argument) {
  const size_t begin = cursor.position();
  Type type = parse_base_type(cursor);
  if (cursor.peek() == '(') {
    if (type.kind != Kind::Tensor) {
      cursor.error(fmt::format("an alias annotation belongs to a Tensor, not to `{}`", type.str()));
    }
    cursor.take("(");
    argument.alias = parse_alias(cursor);
  }
  for (int depth = 0;; ++depth) {
    if (depth > kMaxDepth) cursor.error(begin, fmt::format("a type nested deeper than {}", kMaxDepth));
    if (cursor.take("[")) {
      type = parse_list_suffix(cursor, std::move(type));
    } else if (cursor.peek() == '?') {
      if (type.is_optional()) cursor.error(fmt::format("`{}` is optional already", type.str()));
      cursor.take("?");
      Type optional{Kind::Optional, {}, {}};
      optional.element.push_back(std::move(type));
      type = std::move(optional);
    } else {
      break;
    }
  }
  if (cursor.peek() == '(') {
    cursor.error("an alias annotation follows the base type: `Tensor(a!)[]`, not `Tensor[](a!)`");
  }
  argument.type = std::move(type);
}

Argument parse_argument(Cursor& cursor, bool keyword_only) {
  Argument argument;
  argument.keyword_only = keyword_only;
  parse_type(cursor, argument);
  argument.name = cursor.name(fmt::format("the argument's name after `{}`", argument.type.str()));
  if (cursor.take("=")) argument.default_value = parse_default(cursor, argument.type);
  return argument;
}

std::vector<Argument> parse_arguments(Cursor& cursor) {
  std::vector<Argument> arguments;
  std::unordered_set<std::string> names;
  bool keyword_only = false;
  cursor.expect("(", "after the operator's name");
  if (cursor.take(")")) return arguments;
  do {
    if (cursor.peek() == '*') {
      if (keyword_only) cursor.error("a second `*`. Arguments after the first are keyword-only already");
      cursor.take("*");
      keyword_only = true;
      cursor.expect(",", "and a keyword-only argument after `*`");
    }
    const size_t begin = cursor.position();
    Argument argument = parse_argument(cursor, keyword_only);
    if (!names.insert(argument.name).second) {
      cursor.error(begin,
                   fmt::format("duplicate argument name `{}`. Every argument needs a name of its own", argument.name));
    }
    const bool after_default = !arguments.empty() && arguments.back().default_value && !argument.default_value;
    if (after_default && !keyword_only) {
      cursor.error(begin, fmt::format("`{}` has no default and follows `{}`, which has one. Give it a default, or put "
                                      "`*` before it",
                                      argument.name, arguments.back().name));
    }
    arguments.push_back(std::move(argument));
  } while (cursor.take(","));
  cursor.expect(")", "or `,` after an argument");
  return arguments;
}

Argument parse_return(Cursor& cursor) {
  Argument result;
  parse_type(cursor, result);
  if (cursor.at_name()) result.name = cursor.name("a name");
  if (cursor.peek() == '=') cursor.error("a return has no default");
  return result;
}

std::vector<Argument> parse_returns(Cursor& cursor) {
  std::vector<Argument> returns;
  if (!cursor.take("(")) {
    returns.push_back(parse_return(cursor));
    return returns;
  }
  if (cursor.take(")")) return returns;
  std::unordered_set<std::string> names;
  do {
    const size_t begin = cursor.position();
    returns.push_back(parse_return(cursor));
    const std::string& name = returns.back().name;
    if (!name.empty() && !names.insert(name).second) {
      cursor.error(begin, fmt::format("duplicate name `{}` of a return. Every return needs a name of its own", name));
    }
  } while (cursor.take(","));
  cursor.expect(")", "or `,` after a return");
  return returns;
}

}  // namespace

Schema parse(std::string_view text) {
  Cursor cursor(text);
  Schema schema;
  schema.name = cursor.name("the operator's name");
  if (cursor.take("::")) {
    schema.ns = std::move(schema.name);
    schema.name = cursor.name("the operator's name after `::`");
  }
  if (cursor.take(".")) {
    const size_t begin = cursor.position();
    schema.overload = cursor.name("the name of the overload after `.`");
    if (schema.overload == "default") {
      cursor.error(begin, "`default` is the overload without a name. Leave it out");
    }
  }
  schema.arguments = parse_arguments(cursor);
  if (!cursor.take("->")) {
    cursor.error(
        fmt::format("missing arrow: expected `->` and the returns, got {}. An operator without results "
                    "returns `()`",
                    cursor.here()));
  }
  schema.returns = parse_returns(cursor);
  if (!cursor.at_end()) cursor.error(fmt::format("expected the end of the schema, got {}", cursor.here()));
  return schema;
}

}  // namespace tenon::schema
