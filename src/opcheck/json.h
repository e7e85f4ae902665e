// As much JSON as a failures file and the head of a safetensors file need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::opcheck {

struct Json {
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order of the text
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> content = nullptr;

  Json() = default;
  Json(std::string text) : content(std::move(text)) {}
  Json(double number) : content(number) {}
  Json(Array list) : content(std::move(list)) {}
  Json(Object entries) : content(std::move(entries)) {}

  // Each raises a ValueError that says what was found if it is of another kind.
  const std::string& text() const;
  double number() const;
  const Array& array() const;
  const Object& object() const;
  const Json* find(std::string_view key) const;  // null: there is none, or this is no object

  // With two spaces a level; with `indent` < 0 in one line.
  std::string str(int indent = 0) const;
};

// A ValueError names the place, counted in characters, at which the text is no JSON.
Json parse_json(std::string_view text);

}  // namespace tenon::opcheck
