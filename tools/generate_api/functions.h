// The C++ functions that a row gives, taken apart.
#pragma once

#include "scan.h"

#include <string>
#include <vector>

namespace tenon::generate_api {

struct Parameter {
  std::string type, name;
  std::string default_value;       // empty: none
  std::vector<std::string> boxed;  // the Values that it becomes; four of a TensorOptions
  std::string example;             // what stands for it in an example
  bool in_example = false;         // … though it has a default
};

struct Function {
  std::string name, result;
  std::vector<Parameter> parameters;
  std::vector<size_t> call_order;  // parameters in the schema's order
  schema::Schema schema;
  bool method = false;
};

// The function, and the in-place and out forms where the row has them.
std::vector<Function> make_functions(const Row& row);

// The same functions and methods with libtorch's types, as inline calls of these.
struct Compat {
  std::string methods;    // compat_methods.h, included inside `class at::Tensor`
  std::string functions;  // compat_functions.h, included inside `namespace at`
};
Compat generate_compat(const std::vector<Row>& rows);

}  // namespace tenon::generate_api
