// The tokens of C++ source, as far as finding rows needs them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::generate_api {

struct Token {
  enum class Kind { Name, String, Other };
  Kind kind;
  std::string text;  // of a String: its value, escapes resolved
  int line;
  bool is(std::string_view expected) const { return kind != Kind::String && text == expected; }
};

// Comments and preprocessor lines give no token; numbers and character literals are Other.
std::vector<Token> tokenize(const std::string& file, std::string_view text);

}  // namespace tenon::generate_api
