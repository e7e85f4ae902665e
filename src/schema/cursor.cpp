#include "cursor.h"

#include <tenon/support/error.h>

#include <algorithm>

namespace tenon::schema {

namespace {

// Not <cctype>: those depend on the locale.
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

}  // namespace

void Cursor::skip_space() {
  while (offset_ < text_.size() && is_space(text_[offset_])) ++offset_;
}

bool Cursor::at_end() {
  skip_space();
  return raw_end();
}

char Cursor::peek() {
  skip_space();
  return raw_peek();
}

size_t Cursor::position() {
  skip_space();
  return offset_;
}

bool Cursor::take(std::string_view token) {
  skip_space();
  if (text_.substr(offset_, token.size()) != token) return false;
  offset_ += token.size();
  return true;
}

void Cursor::expect(std::string_view token, std::string_view hint) {
  if (!take(token)) error(fmt::format("expected `{}` {}, got {}", token, hint, here()));
}

bool Cursor::at_name() { return is_name_start(peek()); }

std::string_view Cursor::name(std::string_view what) {
  if (!at_name()) error(fmt::format("expected {}, got {}", what, here()));
  const size_t begin = offset_;
  while (offset_ < text_.size() && is_name_part(text_[offset_])) ++offset_;
  return text_.substr(begin, offset_ - begin);
}

std::string_view Cursor::number() {
  skip_space();
  const size_t begin = offset_;
  while (offset_ < text_.size()) {
    const char c = text_[offset_];
    const bool sign = c == '+' || c == '-';
    const bool after_exponent = offset_ > begin && (text_[offset_ - 1] == 'e' || text_[offset_ - 1] == 'E');
    if (!(is_name_part(c) || c == '.' || (sign && (offset_ == begin || after_exponent)))) break;
    ++offset_;
  }
  return text_.substr(begin, offset_ - begin);
}

std::string Cursor::here() {
  if (at_end()) return "the end of the text";
  size_t end = offset_ + 1;
  if (is_name_part(text_[offset_])) {
    while (end < text_.size() && is_name_part(text_[end])) ++end;
  }
  const char first = text_[offset_];
  if (first < ' ' || first > '~') return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(first));
  return fmt::format("`{}`", text_.substr(offset_, std::min(end - offset_, size_t{64})));
}

void Cursor::error(size_t position, const std::string& message) const {
  // A window of a long text, so that the marked line fits a terminal.
  constexpr size_t kBefore = 80, kWidth = 160;
  const size_t begin = position > kBefore ? position - kBefore : 0;
  std::string shown(text_.substr(begin, kWidth));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  const char* left = begin > 0 ? "…" : "";
  const char* right = begin + kWidth < text_.size() ? "…" : "";
  const size_t indent = position - begin + (begin > 0 ? 1 : 0);
  fail("[schema] column {}: {}\n  {}{}{}\n  {}^", position + 1, message, left, shown, right, std::string(indent, ' '));
}

}  // namespace tenon::schema
