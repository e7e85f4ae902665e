#include "generate.h"

#include "cpp_types.h"
#include "example.h"
#include "functions.h"

#include <tenon/schema/derive.h>
#include <tenon/support/error.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tenon::generate_api {

using schema::Argument;
using schema::Kind;
using schema::Schema;

namespace {

// dtype, layout, device and pin_memory in a row are one TensorOptions.
bool are_options(const std::vector<Argument>& arguments, size_t first) {
  static constexpr std::pair<const char*, Kind> kOptions[] = {
      {"dtype", Kind::ScalarType}, {"layout", Kind::Layout}, {"device", Kind::Device}, {"pin_memory", Kind::Bool}};
  if (first + 4 > arguments.size()) return false;
  for (size_t i = 0; i < 4; ++i) {
    const Argument& argument = arguments[first + i];
    const bool fits = argument.keyword_only && argument.name == kOptions[i].first && argument.type.is_optional() &&
                      argument.type.element[0].kind == kOptions[i].second;
    // Another default than None would be lost in a TensorOptions that sets something else.
    const bool none = !argument.default_value || std::holds_alternative<schema::NoneDefault>(*argument.default_value);
    if (!fits || !none) return false;
  }
  return true;
}

std::vector<Parameter> make_parameters(const Schema& schema) {
  const std::vector<Argument>& arguments = schema.arguments;
  std::vector<Parameter> parameters;
  bool first = true;  // no tensor so far
  const auto is_named_options = [](const Argument& argument) { return argument.name == "options"; };
  const std::string options =
      std::any_of(arguments.begin(), arguments.end(), is_named_options) ? "options_" : "options";
  for (size_t i = 0; i < arguments.size(); ++i) {
    Parameter parameter;
    if (are_options(arguments, i)) {
      parameter = {"const TensorOptions&", options, "", {}, "{}", false};
      bool all_default = true;
      for (size_t k = i; k < i + 4; ++k) {
        parameter.boxed.push_back(fmt::format("dispatch::Value({}.{})", options, arguments[k].name));
        all_default &= arguments[k].default_value.has_value();
      }
      if (all_default) parameter.default_value = "{}";
      i += 3;
    } else {
      const Argument& argument = arguments[i];
      const std::string name = safe_name(argument.name);
      parameter = {parameter_type(argument.type),
                   name,
                   "",
                   {boxed(argument.type, name)},
                   example_argument(schema, argument, first),
                   example_gives(schema, argument)};
      first &= argument.type.kind != Kind::Tensor || argument.name == "condition";
      if (argument.default_value) parameter.default_value = default_text(argument);
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

// C++ has defaults at the end only; one before a parameter that must be given could never be used.
void drop_unusable_defaults(std::vector<Parameter>& parameters) {
  bool required = false;
  for (size_t i = parameters.size(); i-- > 0;) {
    required |= parameters[i].default_value.empty();
    if (required) parameters[i].default_value.clear();
  }
}

Function make_function(Schema schema) {
  if (schema.ns.empty()) schema.ns = "aten";
  Function function;
  function.name = safe_name(schema.name);
  function.result = return_type(schema.returns);
  function.parameters = make_parameters(schema);
  for (size_t i = 0; i < function.parameters.size(); ++i) function.call_order.push_back(i);
  drop_unusable_defaults(function.parameters);
  function.method = schema::has_self(schema);
  function.schema = std::move(schema);
  return function;
}

// `name_out(out, …)`: the outputs first, where a call reads them.
Function make_out_function(const Schema& functional) {
  Function function = make_function(schema::out_form(functional));
  const size_t outputs = functional.returns.size(), count = function.parameters.size(), inputs = count - outputs;
  function.name = safe_name(functional.name + "_out");
  function.method = false;
  function.parameters = make_parameters(function.schema);
  std::rotate(function.parameters.begin(), function.parameters.begin() + static_cast<ptrdiff_t>(inputs),
              function.parameters.end());
  for (size_t i = 0; i < count; ++i) function.call_order[i] = i < inputs ? outputs + i : i - inputs;
  drop_unusable_defaults(function.parameters);
  return function;
}

}  // namespace

std::vector<Function> make_functions(const Row& row) {
  std::vector<Function> functions;
  if (row.for_graphs) return functions;
  if (!row.in_place_alone) functions.push_back(make_function(row.schema));
  if (row.with_inplace) functions.push_back(make_function(schema::inplace_form(row.schema)));
  if (row.pointwise && !row.no_inplace) {
    if (schema::has_inplace_form(row.schema)) functions.push_back(make_function(schema::inplace_form(row.schema)));
    if (schema::has_out_form(row.schema)) functions.push_back(make_out_function(row.schema));
  }
  return functions;
}

namespace {

enum class Defaults { Shown, Hidden };

std::string parameter_list(const Function& function, size_t first, Defaults defaults) {
  std::string text;
  for (size_t i = first; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    text += (text.empty() ? "" : ", ") + parameter.type + " " + parameter.name;
    if (defaults == Defaults::Shown && !parameter.default_value.empty()) text += " = " + parameter.default_value;
  }
  return text;
}

// A call with what must be given, as a function or as a method.
std::string example_call(const Function& function, bool method) {
  std::string values;
  for (size_t i = method ? 1 : 0; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    if (!parameter.default_value.empty() && !parameter.in_example) break;
    values += (values.empty() ? "" : ", ") + parameter.example;
  }
  // (With `using namespace tenon`, as in the examples, std alone could be either.)
  std::string scope = method ? function.parameters[0].example + "." : function.name == "std" ? "tenon::" : "";
  return scope + function.name + "(" + values + ");";
}

// What the row's comment gives; in the in-place form the operator's name is that form's.
std::string example_of(const Row& row, const Function& function) {
  const std::string name = row.schema.name;
  const bool in_place = function.name == name + "_" && row.example.starts_with(name + "(");
  return in_place ? function.name + row.example.substr(name.size()) : row.example;
}

std::string signature(const Function& function) {
  std::string types;
  for (const Parameter& parameter : function.parameters) types += (types.empty() ? "" : ", ") + parameter.type;
  return function.name + "(" + types + ")";
}

std::string function_body(const Function& function) {
  std::string values;
  for (const size_t index : function.call_order) {
    for (const std::string& value : function.parameters[index].boxed) values += (values.empty() ? "" : ", ") + value;
  }
  const std::string find = fmt::format("static const dispatch::Operator& op = dispatch::find_operator(\"{}\");",
                                       function.schema.qualified_name());
  const std::string args = values.empty() ? "" : fmt::format(" const dispatch::Value args[] = {{{}}};", values);
  return fmt::format("{} {}({}) {{ {}{} return dispatch::call<{}>(op, {}); }}\n", function.result, function.name,
                     parameter_list(function, 0, Defaults::Hidden), find, args, function.result,
                     values.empty() ? "{}" : "args");
}

std::string method_body(const Function& function) {
  std::string names = "*this";
  for (size_t i = 1; i < function.parameters.size(); ++i) names += ", " + function.parameters[i].name;
  return fmt::format("{} Tensor::{}({}) const {{ return tenon::{}({}); }}\n", function.result, function.name,
                     parameter_list(function, 1, Defaults::Hidden), function.name, names);
}

// Refuses what the C++ compiler or the operator table would refuse later, with less to say.
class Duplicates {
 public:
  void add(const Row& row, const Function& function) {
    const std::string name = function.schema.qualified_name();
    refuse(operators_, name, row, function, fmt::format("both define the operator `{}`", name));
    const std::string cpp = signature(function);
    refuse(signatures_, cpp, row, function, fmt::format("both give the C++ function `{}`", cpp));
  }

 private:
  using Seen = std::map<std::string, std::string>;

  static void refuse(Seen& seen, const std::string& key, const Row& row, const Function& function,
                     const std::string& why) {
    const auto [found, fresh] = seen.emplace(key, fmt::format("{}: `{}`", row.place(), function.schema.str()));
    if (!fresh) fail("{}: `{}`\n{}\n  {}", row.place(), function.schema.str(), found->second, why);
  }

  Seen operators_, signatures_;
};

constexpr const char* kNotice =
    "// Written by tools/generate_api from the rows of the operators. Do not edit.\n"
    "// In the examples `x` and `y` are float32 tensors [2, 3], and `out` is one to be written.\n";

Family begin_family(const std::string& name) {
  return {name,
          std::string(kNotice) +
              "#pragma once\n\n#include <tenon/core/random.h>\n#include <tenon/core/tensor.h>\n\n"
              "#include <cstdint>\n#include <limits>\n#include <optional>\n#include <string>\n"
              "#include <string_view>\n#include <tuple>\n#include <vector>\n\nnamespace tenon {\n",
          kNotice + fmt::format("#include <tenon/generated/ops/{}.h>\n\n#include <tenon/dispatch/call.h>\n\n"
                                "namespace tenon {{\n",
                                name)};
}

}  // namespace

Api generate(const std::vector<Row>& rows) {
  Api api;
  api.tensor_methods = std::string(kNotice) + "// Included inside `class Tensor`.\n";
  api.ops_header = std::string(kNotice) + "#pragma once\n\n";
  Duplicates duplicates;
  std::string section;
  for (const Row& row : rows) {
    // The file's name alone: the output must not depend on where the sources lie.
    const std::filesystem::path file = std::filesystem::path(row.file).filename();
    if (api.families.empty() || api.families.back().name != file.stem())
      api.families.push_back(begin_family(file.stem().string()));
    Family& family = api.families.back();
    const std::string title =
        "\n// " + (row.family.empty() ? file.string() : row.family + " (" + file.string() + ")") + "\n";
    if (title != section) {
      section = title;
      api.tensor_methods += title;
      family.header += title;
      family.source += title;
    }
    std::vector<Function> functions;
    try {
      functions = make_functions(row);
    } catch (const Error& error) {
      fail("{}: {}", row.place(), error.what());
    }
    for (const Function& function : functions) {
      duplicates.add(row, function);
      const auto head = [&](bool method) {
        // A name that begins with _ is for other operators.
        const std::string example = !row.example.empty()             ? example_of(row, function)
                                    : function.name.starts_with("_") ? ""
                                                                     : example_call(function, method);
        return "// " + function.schema.str() + (example.empty() ? "" : "\n//   " + example) + "\n" + function.result +
               " " + function.name + "(";
      };
      family.header += head(false) + parameter_list(function, 0, Defaults::Shown) + ");\n";
      family.source += function_body(function);
      if (!function.method) continue;
      api.tensor_methods += head(true) + parameter_list(function, 1, Defaults::Shown) + ") const;\n";
      family.source += method_body(function);
    }
  }
  for (Family& family : api.families) {
    family.header += "\n}  // namespace tenon\n";
    family.source += "\n}  // namespace tenon\n";
    api.ops_header += fmt::format("#include <tenon/generated/ops/{}.h>\n", family.name);
  }
  return api;
}

bool write_if_changed(const std::string& path, const std::string& content) {
  if (std::ifstream old(path, std::ios::binary); old) {
    std::ostringstream text;
    text << old.rdbuf();
    if (text.str() == content) return false;
  }
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << content;
  file.close();
  std::error_code failure;
  if (file) std::filesystem::rename(temporary, path, failure);
  if (!file || failure) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    fail("cannot write {}{}", path, failure ? ": " + failure.message() : "");
  }
  return true;
}

}  // namespace tenon::generate_api
