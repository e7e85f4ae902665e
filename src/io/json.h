// JSON as far as headers of files need it: objects, lists, texts and whole numbers. Everything else is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::io {

struct Json {
  using List = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in order; no name twice
  std::variant<int64_t, std::string, List, Object> value;

  const int64_t* number() const { return std::get_if<int64_t>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
  const Object* object() const { return std::get_if<Object>(&value); }
};

// A ValueError with the position of the fault, "at byte 12: expected ':'".
Json parse_json(std::string_view text);
// In quotes, with escapes.
std::string json_text(std::string_view text);

}  // namespace tenon::io
