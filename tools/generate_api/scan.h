// Finds the rows `op("…schema…")` in C++ source text. It reads tokens, not C++: comments, preprocessor lines, character
// and string literals (raw ones too) are understood, everything else is punctuation and names.
#pragma once

#include <tenon/schema/schema.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::generate_api {

struct Row {
  std::string file;
  int line = 0;        // of the `op`
  std::string family;  // of the `OPS(family)` block before it; empty outside
  schema::Schema schema;
  bool pointwise = false;     // the next call is `.pointwise(`
  bool no_inplace = false;    // `.no_inplace(` among the row's calls
  bool with_inplace = false;  // `.with_inplace(` among them
  // Of a comment on the line before the `op`:
  // `// Example: …`: its code, for a row whose example cannot be composed from its schema (see example.h); it stands
  // for all forms of the operator.
  std::string example;
  bool for_graphs = false;      // `// For graphs alone.`: it has no C++ function
  bool in_place_alone = false;  // `// In place alone.`: its in-place form has one

  std::string place() const;  // "file:line"
};

// The rows of one source, in order. A row that is not a schema is an Error that begins with its file:line.
std::vector<Row> scan(const std::string& file, std::string_view text);

}  // namespace tenon::generate_api
