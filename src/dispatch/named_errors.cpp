#include "named_errors.h"

#include <fmt/format.h>

namespace tenon::dispatch {

std::string named(const Operator& op, std::span<const Value> args, std::string_view text) {
  if (size_t end = text.find("] "); text.starts_with('[') && end != text.npos) text.remove_prefix(end + 2);
  text = text.substr(0, text.find("\n  called with "));
  std::vector<std::string> given;
  for (const Value& value : args) given.push_back(value.str());
  return fmt::format("[{}] {}\n  called with ({})", op.brief_name(), text, fmt::join(given, ", "));
}

void raise_out_of_memory(const Operator& op, std::span<const Value> args, std::string_view text) {
  support::raise_out_of_memory([&] { return named(op, args, text); });
}

}  // namespace tenon::dispatch
