// How the types and defaults of schemas are written in the C++ API.
#pragma once

#include <tenon/schema/schema.h>

#include <string>

namespace tenon::generate_api {

std::string parameter_type(const schema::Type& type);  // "const std::optional<Tensor>&"
// By value; several are a std::tuple, none is void.
std::string return_type(const std::vector<schema::Argument>& returns);
// An Error if the name is none that the C++ API has.
std::string default_text(const schema::Argument& argument);
// The expression that boxes the parameter `name`.
std::string boxed(const schema::Type& type, const std::string& name);
// The name, with `_` behind it if C++ or the generated code uses it otherwise.
std::string safe_name(const std::string& name);

}  // namespace tenon::generate_api
