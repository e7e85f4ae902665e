// Calls by name: `ns::name` with several overloads is a packet, and the arguments say which one is meant.
#pragma once

#include <tenon/dispatch/operator.h>

#include <initializer_list>

namespace tenon::dispatch {

struct Keyword {
  std::string_view name;
  Value value;
};

// The value of an argument's default.
Value default_value(const schema::Argument& argument);

// Arguments in the schema's order, defaults filled; an Error that says which one is missing, unknown or of another
// kind.
Values bind_arguments(const schema::Schema& schema, std::span<const Value> args,
                      std::span<const Keyword> keywords = {});

// The overloads of "ns::name", the one without an overload name first.
std::vector<const Operator*> overloads_of(std::string_view packet);
// The first that takes these arguments; an Error that tells for each overload why not.
const Operator& resolve_overload(std::string_view packet, std::span<const Value> args,
                                 std::span<const Keyword> keywords = {});

// "ns::name" (any overload) or "ns::name.overload".
Results call_by_name(std::string_view name, std::span<const Value> args, std::span<const Keyword> keywords = {});
inline Results call_by_name(std::string_view name, std::initializer_list<Value> args,
                            std::initializer_list<Keyword> keywords = {}) {
  return call_by_name(name, std::span<const Value>(args), std::span<const Keyword>(keywords));
}

}  // namespace tenon::dispatch
