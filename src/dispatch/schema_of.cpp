#include <tenon/dispatch/function.h>

#include "support/out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::dispatch::detail {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// At commas outside of quotes and brackets.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char letter = text[at];
    if (quote) {
      if (letter == '\\' && at + 1 < text.size())
        part += text[at++];
      else if (letter == quote)
        quote = 0;
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
    } else if (letter == '[') {
      ++depth;
    } else if (letter == ']') {
      --depth;
    } else if (letter == ',' && depth == 0) {
      parts.emplace_back(trim(part));
      part.clear();
      continue;
    }
    part += text[at];
  }
  if (!trim(part).empty() || !parts.empty()) parts.emplace_back(trim(part));
  return parts;
}

struct Named {
  std::string name, rest;  // `rest`: "=default"
  bool keyword_only = false;
};

std::vector<Named> parse_names(std::string_view where, std::string_view names) {
  std::vector<Named> named;
  bool keyword_only = false;
  for (const std::string& part : split(names)) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    TENON_CHECK_VALUE(!part.starts_with("**"),
                      "[{}] varkwargs are not supported: '{}' in the names; name every argument", where, part);
    TENON_CHECK_VALUE(!part.starts_with("*"), "[{}] varargs are not supported: '{}' in the names; take a list", where,
                      part);
    size_t equals = part.find('=');
    named.push_back({std::string(trim(part.substr(0, equals))), equals == std::string::npos ? "" : part.substr(equals),
                     keyword_only});
  }
  return named;
}

std::vector<Named> parse_names(std::string_view where, const SchemaOptions& options, size_t count) {
  std::vector<Named> named = parse_names(where, options.names);
  if (options.names.empty())
    for (size_t at = 0; at < count; ++at) named.push_back({fmt::format("arg{}", at), "", false});
  TENON_CHECK_VALUE(named.size() == count, "[{}] the function has {} parameters, but {} names were given: \"{}\"",
                    where, count, named.size(), options.names);
  return named;
}

schema::Type normal(schema::Type type) {
  if (type.kind == schema::Kind::SymInt) type.kind = schema::Kind::Int;
  type.length.reset();
  for (schema::Type& element : type.element) element = normal(element);
  return type;
}

schema::Type parse_type(const std::string& text) { return schema::parse("f(" + text + " x) -> ()").arguments[0].type; }

}  // namespace

schema::Schema build_schema(std::string_view qualified_name, const FunctionTypes& types, const SchemaOptions& options) {
  std::string_view where = qualified_name.empty() ? "schema_of" : qualified_name;
  std::vector<Named> named = parse_names(where, options, types.arguments.size());
  std::vector<std::string> missing;
  for (const std::string& mutated : options.mutates)
    if (std::none_of(named.begin(), named.end(), [&](const Named& each) { return each.name == mutated; }))
      missing.push_back("'" + mutated + "'");
  std::vector<std::string> known;
  for (const Named& each : named) known.push_back(each.name);
  TENON_CHECK_VALUE(missing.empty(), "[{}] {{{}}} in mutates_args were not found among the arguments ({})", where,
                    fmt::join(missing, ", "), fmt::join(known, ", "));
  std::vector<std::string> arguments, returns;
  bool star = false;
  for (size_t at = 0; at < named.size(); ++at) {
    bool mutated = std::find(options.mutates.begin(), options.mutates.end(), named[at].name) != options.mutates.end();
    std::string plain = types.arguments[at]("");
    TENON_CHECK_VALUE(!mutated || parse_type(plain).is_tensor_like(),
                      "[{}] only tensors, optional tensors and lists of tensors can be mutated: '{}' is {}", where,
                      named[at].name, plain);
    if (named[at].keyword_only && !std::exchange(star, true)) arguments.emplace_back("*");
    arguments.push_back(types.arguments[at](mutated ? fmt::format("(a{}!)", at) : "") + " " + named[at].name +
                        named[at].rest);
  }
  for (TypeTextFunction text : types.returns) returns.push_back(text(""));
  std::string name(qualified_name.empty() ? "f" : qualified_name);
  std::string result = returns.size() == 1 ? returns[0] : fmt::format("({})", fmt::join(returns, ", "));
  schema::Schema schema = schema::parse(fmt::format("{}({}) -> {}", name, fmt::join(arguments, ", "), result));
  if (qualified_name.empty()) schema.name.clear();
  return schema;
}

void check_names(const schema::Schema& schema, std::string_view names) {
  std::string where = schema.qualified_name();
  std::vector<Named> named = parse_names(where, names);
  bool same = named.size() == schema.arguments.size();
  for (size_t at = 0; same && at < named.size(); ++at)
    same = named[at].name == schema.arguments[at].name && named[at].keyword_only == schema.arguments[at].keyword_only;
  TENON_CHECK_VALUE(same, "[{}] expected the signature to match the schema {}, but the names are \"{}\"", where,
                    schema.str(), names);
  for (const Named& each : named)
    TENON_CHECK_VALUE(each.rest.empty(),
                      "[{}] default arguments stand in the schema where there is one: '{}{}' in the names beside {}",
                      where, each.name, each.rest, schema.str());
}

void check_signature(const schema::Schema& schema, const FunctionTypes& types, std::string_view what) try {
  std::vector<std::string> arguments, returns;
  for (TypeTextFunction text : types.arguments) arguments.push_back(text(""));
  for (TypeTextFunction text : types.returns) returns.push_back(text(""));
  auto refuse = [&](const std::string& why) {
    fail<ValueError>("[{}] expected the signature to match the schema {}, but {} has the types ({}) -> ({}): {}",
                     schema.qualified_name(), schema.str(), what, fmt::join(arguments, ", "), fmt::join(returns, ", "),
                     why);
  };
  if (arguments.size() != schema.arguments.size())
    refuse(fmt::format("{} parameters, expected {}", arguments.size(), schema.arguments.size()));
  for (size_t at = 0; at < arguments.size(); ++at)
    if (normal(parse_type(arguments[at])) != normal(schema.arguments[at].type))
      refuse(fmt::format("parameter {} is {}, expected {} for '{}'", at, arguments[at], schema.arguments[at].type.str(),
                         schema.arguments[at].name));
  if (returns.size() != schema.returns.size())
    refuse(fmt::format("{} results, expected {}", returns.size(), schema.returns.size()));
  for (size_t at = 0; at < returns.size(); ++at)
    if (normal(parse_type(returns[at])) != normal(schema.returns[at].type))
      refuse(fmt::format("result {} is {}, expected {}", at, returns[at], schema.returns[at].type.str()));
} catch (...) {
  support::rethrow_named("library");
}

Value list_of_scalars(const std::vector<Scalar>& list) {
  auto all = [&](Scalar::Kind kind) {
    return std::all_of(list.begin(), list.end(), [&](const Scalar& each) { return each.kind() == kind; });
  };
  if (!list.empty() && all(Scalar::Kind::Bool)) {
    std::vector<bool> flags;
    for (const Scalar& each : list) flags.push_back(each.to_bool());
    return Value(flags);
  }
  if (all(Scalar::Kind::Int)) {
    std::vector<SymInt> numbers;
    for (const Scalar& each : list) numbers.push_back(each.integer());
    return Value(std::span<const SymInt>(numbers)).own();
  }
  std::vector<double> numbers;
  for (const Scalar& each : list) numbers.push_back(each.to_double());
  return Value(numbers).own();
}

}  // namespace tenon::dispatch::detail
