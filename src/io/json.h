// JSON as far as headers of files need it: objects, lists, texts and whole numbers. Everything else is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon::io {

struct Json {
  struct Member;
  using List = std::vector<Json>;
  using Object = std::vector<Member>;  // in order; no name twice
  std::variant<int64_t, std::string, List, Object> value;

  // Null if it is something else.
  const int64_t* number() const;
  const std::string* text() const;
  const List* list() const;
  const Object* object() const;
};

struct Json::Member {
  std::string name;
  Json value;
};

// Here, because whoever looks into the variant needs to know what a Member is.
inline const int64_t* Json::number() const { return std::get_if<int64_t>(&value); }
inline const std::string* Json::text() const { return std::get_if<std::string>(&value); }
inline const Json::List* Json::list() const { return std::get_if<List>(&value); }
inline const Json::Object* Json::object() const { return std::get_if<Object>(&value); }

// A ValueError with the position of the fault, "at byte 12: expected ':'".
Json parse_json(std::string_view text);
// In quotes, with escapes.
std::string json_text(std::string_view text);
// Without spaces; `parse_json` gives the same value.
std::string json_text(const Json& json);

}  // namespace tenon::io
