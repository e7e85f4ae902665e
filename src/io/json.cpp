#include "io/json.h"

#include <tenon/support/error.h>

#include <optional>
#include <set>

namespace tenon::io {
namespace {

constexpr int kDeepest = 100;  // a loop in a loop of a saved function is about ten

// How many bytes follow the first one of a character; nothing if none begins so.
std::optional<size_t> bytes_after(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xC2 && lead < 0xE0) return 1;
  if (lead >= 0xE0 && lead < 0xF0) return 2;
  if (lead >= 0xF0 && lead < 0xF5) return 3;
  return std::nullopt;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    std::optional<size_t> more = bytes_after(static_cast<unsigned char>(text[at]));
    if (!more || at + *more >= text.size()) return false;
    for (size_t next = 1; next <= *more; ++next)
      if ((static_cast<unsigned char>(text[at + next]) & 0xC0) != 0x80) return false;
    at += *more + 1;
  }
  return true;
}

void append_utf8(std::string& text, uint32_t code) {
  auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = any(0);
    skip_space();
    if (at_ != text_.size()) refuse("the end");
    return value;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    fail<ValueError>("at byte {}: expected {}", at_, expected);
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool take(char letter) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  void need(char letter) {
    if (!take(letter)) refuse(std::string("'") + letter + "'");
  }

  Json any(int depth) {
    if (depth > kDeepest) refuse("less nesting");
    skip_space();
    if (at_ >= text_.size()) refuse("a value");
    switch (text_[at_]) {
      case '{': return {object(depth)};
      case '[': return {list(depth)};
      case '"': return {text()};
      default: return {number()};
    }
  }

  Json::Object object(int depth) {
    Json::Object entries;
    std::set<std::string> names;
    need('{');
    if (take('}')) return entries;
    do {
      skip_space();
      std::string name = text();
      if (!names.insert(name).second) refuse("another name than '" + name + "', which there is already");
      need(':');
      entries.push_back({std::move(name), any(depth + 1)});
    } while (take(','));
    need('}');
    return entries;
  }

  Json::List list(int depth) {
    Json::List items;
    need('[');
    if (take(']')) return items;
    do {
      items.push_back(any(depth + 1));
    } while (take(','));
    need(']');
    return items;
  }

  int64_t number() {
    size_t start = at_;
    bool negative = text_[at_] == '-';
    if (negative) ++at_;
    int64_t value = 0;
    size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        refuse("a smaller number");
    if (at_ == first || (text_[first] == '0' && at_ - first > 1)) {
      at_ = start;
      refuse("an object, a list, a text or a whole number");
    }
    return negative ? -value : value;
  }

  uint32_t four_digits() {
    uint32_t code = 0;
    for (int digit = 0; digit < 4; ++digit, ++at_) {
      char letter = at_ < text_.size() ? text_[at_] : ' ';
      size_t value = std::string_view("0123456789abcdefABCDEF").find(letter);
      if (value == std::string_view::npos) refuse("four hexadecimal digits");
      code = code * 16 + static_cast<uint32_t>(value < 16 ? value : value - 6);
    }
    return code;
  }

  void escape(std::string& result) {
    if (at_ >= text_.size()) refuse("an escape");
    char letter = text_[at_++];
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (size_t found = kLetters.find(letter); found != std::string_view::npos) {
      result += kMeanings[found];
      return;
    }
    if (letter != 'u') refuse("an escape");
    uint32_t code = four_digits();
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
      if (text_.substr(at_, 2) != "\\u") refuse("the second half of a pair");
      at_ += 2;
      uint32_t low = four_digits();
      if (low < 0xDC00 || low >= 0xE000) refuse("the second half of a pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      refuse("a character");
    }
    append_utf8(result, code);
  }

  std::string text() {
    if (at_ >= text_.size() || text_[at_] != '"') refuse("a text in quotes");
    ++at_;
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      char letter = text_[at_];
      if (static_cast<unsigned char>(letter) < ' ') refuse("no control character");
      ++at_;
      if (letter == '\\')
        escape(result);
      else
        result += letter;
    }
    if (at_ >= text_.size()) refuse("'\"'");
    ++at_;
    if (!is_utf8(result)) refuse("UTF-8");
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Json parse_json(std::string_view text) { return Parser(text).whole(); }

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\')
      result += std::string("\\") + letter;
    else if (static_cast<unsigned char>(letter) < ' ')
      result += fmt::format("\\u{:04x}", static_cast<int>(letter));
    else
      result += letter;
  }
  return result + "\"";
}

namespace {

void print(const Json& json, std::string& text) {
  if (const int64_t* number = json.number()) {
    text += std::to_string(*number);
  } else if (const std::string* words = json.text()) {
    text += json_text(*words);
  } else if (const Json::List* list = json.list()) {
    text += '[';
    for (const Json& each : *list) {
      if (&each != list->data()) text += ',';
      print(each, text);
    }
    text += ']';
  } else {
    text += '{';
    for (const Json::Member& each : *json.object()) {
      if (&each != json.object()->data()) text += ',';
      text += json_text(each.name) + ':';
      print(each.value, text);
    }
    text += '}';
  }
}

}  // namespace

std::string json_text(const Json& json) {
  std::string text;
  print(json, text);
  return text;
}

}  // namespace tenon::io
