// A place in the text of a schema: peeks, takes, and fails with the column and a marked line. All of the parser's
// errors are made here, so that they have one form:
//
//   [schema] column 3: unknown type specifier `double`. Use `float`
//     f(double x) -> Tensor
//       ^
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::schema {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  // Both skip white space first.
  bool at_end();
  char peek();  // '\0' at the end
  size_t position();
  // Takes `token` if it comes next.
  bool take(std::string_view token);
  // Takes `token` or fails, saying what it was needed for.
  void expect(std::string_view token, std::string_view hint);

  // A letter or '_' and then letters, digits and '_'.
  bool at_name();
  std::string_view name(std::string_view what);
  // The characters from here that could belong to a number.
  std::string_view number();
  // What stands here, for error messages: a name, a number or one character, in backquotes; or "the end of the text".
  std::string here();

  // The next character as it is, with no white space skipped; '\0' at the end.
  char raw_peek() const { return offset_ < text_.size() ? text_[offset_] : '\0'; }
  bool raw_end() const { return offset_ >= text_.size(); }
  char raw_take() { return text_[offset_++]; }

  // `position` is an offset from 0; the message names the column from 1.
  [[noreturn]] void error(size_t position, const std::string& message) const;
  [[noreturn]] void error(const std::string& message) { error(position(), message); }

 private:
  void skip_space();

  std::string_view text_;
  size_t offset_ = 0;
};

}  // namespace tenon::schema
