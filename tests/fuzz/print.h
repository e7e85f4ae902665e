// Pieces of text that both printers use.
#pragma once

#include "fuzz/program.h"

#include <string_view>

namespace tenon::fuzz {

// Every place where `word` stands alone.
std::string replace_word(const std::string& text, std::string_view word, const std::string& by);
// The expression of an operation, with its operands.
std::string expression(const Statement& statement);
// "v1, v2"
std::string names(const std::vector<int>& values);

}  // namespace tenon::fuzz
