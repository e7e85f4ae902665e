#include "json.h"

#include <tenon/support/error.h>

#include <charconv>
#include <cmath>

namespace tenon::opcheck {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = any();
    skip();
    if (at_ != text_.size()) wrong("the end");
    return value;
  }

 private:
  [[noreturn]] void wrong(std::string_view expected) const {
    fail<ValueError>("[json] expected {} at character {}, got '{}'", expected, at_, text_.substr(at_, 12));
  }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char letter) {
    skip();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  Json any() {
    skip();
    if (at_ >= text_.size()) wrong("a value");
    if (text_[at_] == '{') return object();
    if (text_[at_] == '[') return array();
    if (text_[at_] == '"') return Json(string());
    Json made;
    if (word("null")) return made;
    if (word("true")) return made.content = true, made;
    if (word("false")) return made.content = false, made;
    return number();
  }
  Json object() {
    take('{');
    Json::Object entries;
    if (take('}')) return Json(std::move(entries));
    do {
      skip();
      std::string key = string();
      if (!take(':')) wrong("':'");
      entries.emplace_back(std::move(key), any());
    } while (take(','));
    if (!take('}')) wrong("'}'");
    return Json(std::move(entries));
  }
  Json array() {
    take('[');
    Json::Array list;
    if (take(']')) return Json(std::move(list));
    do list.push_back(any());
    while (take(','));
    if (!take(']')) wrong("']'");
    return Json(std::move(list));
  }
  Json number() {
    double value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) wrong("a value");
    at_ = static_cast<size_t>(end - text_.data());
    return Json(value);
  }
  std::string string() {
    if (at_ >= text_.size() || text_[at_] != '"') wrong("a string");
    std::string made;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        made += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) break;
      switch (text_[at_]) {
        case 'n': made += '\n'; break;
        case 't': made += '\t'; break;
        case 'r': made += '\r'; break;
        case 'u': made += unicode(); break;
        default: made += text_[at_];
      }
    }
    if (at_ >= text_.size()) wrong("'\"'");
    ++at_;
    return made;
  }
  // Four digits in base 16; ends on the last of them.
  std::string unicode() {
    unsigned code = 0;
    std::string_view digits = text_.substr(at_ + 1, 4);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || end != digits.data() + 4) wrong("four digits of base 16");
    at_ += 4;
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\')
      made += std::string("\\") + letter;
    else if (letter == '\n')
      made += "\\n";
    else if (static_cast<unsigned char>(letter) < 0x20)
      made += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    else
      made += letter;
  }
  return made + "\"";
}

template <typename T>
const T& get(const Json& json, std::string_view expected) {
  const T* found = std::get_if<T>(&json.content);
  if (!found) fail<ValueError>("[json] expected {}, got {}", expected, json.str(-1));
  return *found;
}

}  // namespace

const std::string& Json::text() const { return get<std::string>(*this, "a string"); }
double Json::number() const { return get<double>(*this, "a number"); }
const Json::Array& Json::array() const { return get<Array>(*this, "a list"); }
const Json::Object& Json::object() const { return get<Object>(*this, "an object"); }

const Json* Json::find(std::string_view key) const {
  const Object* entries = std::get_if<Object>(&content);
  if (!entries) return nullptr;
  for (const auto& [name, value] : *entries)
    if (name == key) return &value;
  return nullptr;
}

std::string Json::str(int indent) const {
  if (std::holds_alternative<std::nullptr_t>(content)) return "null";
  if (const bool* flag = std::get_if<bool>(&content)) return *flag ? "true" : "false";
  if (const double* number = std::get_if<double>(&content))
    return *number == std::floor(*number) && std::fabs(*number) < 1e15 ? std::to_string(static_cast<int64_t>(*number))
                                                                       : fmt::format("{}", *number);
  if (const std::string* text = std::get_if<std::string>(&content)) return quoted(*text);
  bool one_line = indent < 0;
  int inner = one_line ? -1 : indent + 1;
  std::string line = one_line ? "" : "\n" + std::string(static_cast<size_t>(inner) * 2, ' ');
  std::string last = one_line ? "" : "\n" + std::string(static_cast<size_t>(indent) * 2, ' ');
  std::string body;
  if (const Array* list = std::get_if<Array>(&content)) {
    for (const Json& each : *list) body += (body.empty() ? "" : ",") + line + each.str(inner);
    return "[" + body + (body.empty() ? "" : last) + "]";
  }
  for (const auto& [key, value] : std::get<Object>(content))
    body += (body.empty() ? "" : ",") + line + quoted(key) + (one_line ? ":" : ": ") + value.str(inner);
  return "{" + body + (body.empty() ? "" : last) + "}";
}

Json parse_json(std::string_view text) { return Parser(text).whole(); }

}  // namespace tenon::opcheck
