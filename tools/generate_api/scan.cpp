#include "scan.h"

#include "tokens.h"

#include <tenon/support/error.h>

namespace tenon::generate_api {

namespace {

// `op` before `(` and a string begins a row, unless it is a member or a variable being declared.
bool begins_row(const std::vector<Token>& tokens, size_t i) {
  if (!tokens[i].is("op") || i + 2 >= tokens.size()) return false;
  if (!tokens[i + 1].is("(") || tokens[i + 2].kind != Token::Kind::String) return false;
  if (i == 0) return true;
  const Token& before = tokens[i - 1];
  if (before.is(".") || before.is("->")) return false;
  return before.kind != Token::Kind::Name || before.is("return");
}

bool is_call(const std::vector<Token>& tokens, size_t i, std::string_view name) {
  return i + 2 < tokens.size() && tokens[i].is(".") && tokens[i + 1].is(name) && tokens[i + 2].is("(");
}

// Reads the calls after the row's own bracket up to its `;`.
void read_calls(const std::vector<Token>& tokens, size_t i, Row& row) {
  int depth = 0;
  for (; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.is("(") || token.is("[") || token.is("{")) ++depth;
    if (token.is(")") || token.is("]") || token.is("}")) --depth;
    if (depth < 0) break;
    if (depth == 0 && token.is(";")) return;
    if (depth == 0 && is_call(tokens, i, "pointwise")) row.pointwise = true;
    if (depth == 0 && is_call(tokens, i, "no_inplace")) row.no_inplace = true;
    if (depth == 0 && is_call(tokens, i, "with_inplace")) row.with_inplace = true;
  }
  fail("{}: expected `;` after the row of `{}`", row.place(), row.schema.qualified_name());
}

std::string_view line_before(std::string_view text, int line) {
  if (line <= 1) return {};
  size_t begin = 0;
  for (int at = 1; at < line - 1; ++at) begin = text.find('\n', begin) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// What the comment on the line before a row says to the generator.
void read_comment(std::string_view before, Row& row) {
  constexpr std::string_view kMark = "// Example: ";
  const size_t mark = before.find(kMark);
  if (mark != std::string_view::npos) row.example = before.substr(mark + kMark.size());
  row.for_graphs = before.ends_with("// For graphs alone.");
  row.in_place_alone = before.ends_with("// In place alone.");
}

}  // namespace

std::string Row::place() const { return fmt::format("{}:{}", file, line); }

std::vector<Row> scan(const std::string& file, std::string_view text) {
  const std::vector<Token> tokens = tokenize(file, text);
  std::vector<Row> rows;
  std::string family;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool block = tokens[i].is("OPS") && i + 3 < tokens.size() && tokens[i + 1].is("(") && tokens[i + 3].is(")");
    if (block) family = tokens[i + 2].text;
    if (!begins_row(tokens, i)) continue;
    Row row;
    row.file = file;
    row.line = tokens[i].line;
    row.family = family;
    read_comment(line_before(text, row.line), row);
    std::string literal;
    size_t next = i + 2;
    for (; next < tokens.size() && tokens[next].kind == Token::Kind::String; ++next) literal += tokens[next].text;
    if (next >= tokens.size() || !tokens[next].is(")")) {
      fail("{}: expected `op(\"…\")` with nothing but a schema in quotes", row.place());
    }
    try {
      row.schema = schema::parse(literal);
    } catch (const Error& error) {
      fail("{}: {}", row.place(), error.what());
    }
    read_calls(tokens, next + 1, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::generate_api
