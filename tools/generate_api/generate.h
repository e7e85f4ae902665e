// The C++ API of the operators, written from their rows: a free function for each, a method if it begins with `Tensor
// self`, and the in-place and out forms of pointwise rows.
#pragma once

#include "scan.h"

#include <string>
#include <vector>

namespace tenon::generate_api {

struct Api {
  std::string tensor_methods;  // tensor_methods.h, included inside `class Tensor`
  std::string ops_header;      // ops.h
  std::string ops_source;      // ops.cpp
};

// Two rows that define the same operator, or whose C++ functions could not be told apart, are an Error that names both.
Api generate(const std::vector<Row>& rows);

// Writes the file unless it has that content already, so that nothing is rebuilt in vain. Says whether it wrote.
bool write_if_changed(const std::string& path, const std::string& content);

}  // namespace tenon::generate_api
