// The C++ API of the operators, written from their rows: a free function for each, a method if it begins with `Tensor
// self`, and the in-place and out forms of pointwise rows.
#pragma once

#include "scan.h"

#include <string>
#include <vector>

namespace tenon::generate_api {

// The functions of the rows of one source, and the bodies of their methods: a new row rebuilds what uses its family,
// and the bodies of several are compiled at once.
struct Family {
  std::string name;    // of the source, without its folder and ending
  std::string header;  // ops/<name>.h
  std::string source;  // ops_<name>.cpp
};

struct Api {
  std::string tensor_methods;  // tensor_methods.h, included inside `class Tensor`
  std::string ops_header;      // ops.h, which includes the families' headers
  std::vector<Family> families;
};

// Two rows that define the same operator, or whose C++ functions could not be told apart, are an Error that names both.
Api generate(const std::vector<Row>& rows);

// Writes the file unless it has that content already, so that nothing is rebuilt in vain. Says whether it wrote.
bool write_if_changed(const std::string& path, const std::string& content);

}  // namespace tenon::generate_api
