#include "tokens.h"

#include <tenon/support/error.h>

#include <algorithm>

namespace tenon::generate_api {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

class Tokenizer {
 public:
  Tokenizer(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void advance(size_t count) {
    const size_t end = std::min(at_ + count, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
    at_ = end;
  }

  void add(Token::Kind kind, std::string text, int line) { tokens_.push_back({kind, std::move(text), line}); }

  void step() {
    const char c = peek();
    if (c == '\n') fresh_line_ = true;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return advance(1);
    if (c == '/' && peek(1) == '/') return skip_line_comment();
    if (c == '/' && peek(1) == '*') return skip_block_comment();
    if (c == '#' && fresh_line_) return skip_directive();
    fresh_line_ = false;
    if (c == '"') return read_string();
    if (c == '\'') return skip_character();
    if (is_digit(c)) return read_number();
    if (is_name_start(c)) return read_name();
    const bool pair = (c == '-' && peek(1) == '>') || (c == ':' && peek(1) == ':');
    add(Token::Kind::Other, std::string(text_.substr(at_, pair ? 2 : 1)), line_);
    advance(pair ? 2 : 1);
  }

  // A backslash before the line's end carries both on.
  void skip_line_comment() {
    while (at_ < text_.size() && peek() != '\n') advance(peek() == '\\' ? (peek(1) == '\r' ? 3 : 2) : 1);
  }

  void skip_directive() {
    while (at_ < text_.size() && peek() != '\n') {
      if (peek() == '/' && peek(1) == '/') return skip_line_comment();
      if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
      } else {
        advance(peek() == '\\' ? (peek(1) == '\r' ? 3 : 2) : 1);
      }
    }
  }

  void skip_block_comment() {
    const size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) fail("{}:{}: a comment that is never closed", file_, line_);
    advance(end + 2 - at_);
  }

  void skip_character() {
    const int line = line_;
    advance(1);
    while (peek() != '\'') {
      if (at_ >= text_.size() || peek() == '\n') fail("{}:{}: a character literal that is never closed", file_, line);
      advance(peek() == '\\' ? 2 : 1);
    }
    advance(1);
    add(Token::Kind::Other, "'", line);
  }

  void read_number() {
    const size_t begin = at_;
    // A quote between digits separates them.
    while (is_name_part(peek()) || peek() == '.' || (peek() == '\'' && is_name_part(peek(1)))) advance(1);
    add(Token::Kind::Other, std::string(text_.substr(begin, at_ - begin)), line_);
  }

  void read_name() {
    const size_t begin = at_;
    while (is_name_part(peek())) advance(1);
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (peek() == '"') {
      if (name == "R" || name == "u8R" || name == "LR") return read_raw_string();
      if (name == "u8" || name == "L" || name == "u" || name == "U") return read_string();
    }
    add(Token::Kind::Name, std::string(name), line_);
  }

  void read_raw_string() {
    const int line = line_;
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) fail("{}:{}: a raw string that is never opened", file_, line);
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t end = text_.find(close, open);
    if (end == std::string_view::npos) fail("{}:{}: a raw string that is never closed", file_, line);
    add(Token::Kind::String, std::string(text_.substr(open + 1, end - open - 1)), line);
    advance(end + close.size() - at_);
  }

  void read_string() {
    const int line = line_;
    std::string value;
    advance(1);
    while (peek() != '"') {
      if (at_ >= text_.size() || peek() == '\n') fail("{}:{}: a string that is never closed", file_, line);
      if (peek() != '\\') {
        value += peek();
        advance(1);
        continue;
      }
      switch (const char c = peek(1)) {
        case 'n': value += '\n'; break;
        case 't': value += '\t'; break;
        case '"':
        case '\'':
        case '\\': value += c; break;
        case '\n': break;
        default:
          // Other escapes do not occur in schemas; kept as written, so that the schema parser shows them.
          value += '\\';
          value += c;
      }
      advance(2);
    }
    advance(1);
    add(Token::Kind::String, std::move(value), line);
  }

  const std::string& file_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool fresh_line_ = true;  // nothing but white space since the line's beginning
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const std::string& file, std::string_view text) { return Tokenizer(file, text).run(); }

}  // namespace tenon::generate_api
