#include "functions.h"

#include <tenon/support/error.h>

#include <fmt/format.h>

#include <map>
#include <set>

namespace tenon::generate_api {
namespace {

// How a type of the main API is written for libtorch's, and how an argument of that type is handed on.
struct Spelling {
  const char* type;
  const char* handed_on;  // {} is the name
};
const std::map<std::string, Spelling> kSpellings = {
    {"const SymInts&", {"const SizesArg&", "static_cast<const SymInts&>({})"}},
    {"const std::optional<SymInts>&", {"const std::optional<SizesArg>&", "compat::plain({})"}},
    {"const Ints&", {"IntArrayRef", "compat::plain({})"}},
    {"const OptionalInts&", {"const OptionalIntArrayRef&", "compat::plain({})"}},
    {"const std::vector<Tensor>&", {"TensorList", "compat::plain({})"}},
    {"const std::optional<Tensor>&", {"const std::optional<Tensor>&", "compat::plain({})"}},
    {"const std::vector<std::optional<Tensor>>&", {"const std::vector<std::optional<Tensor>>&", "compat::plain({})"}},
    {"std::optional<Dtype>", {"std::optional<ScalarType>", "compat::plain({})"}},
    {"Dtype", {"ScalarType", "{}"}},
    {"const std::optional<Scalar>&", {"const std::optional<tenon::Scalar>&", "{}"}},
    {"const Scalar&", {"const tenon::Scalar&", "{}"}},
};

// Written by hand in compat/tensor.h.
const std::set<std::string> kByHand = {"to", "contiguous", "item", "grad", "data"};

bool writes_first(const Function& function) {
  return !function.schema.arguments.empty() && function.schema.arguments[0].alias &&
         function.schema.arguments[0].alias->write && function.result == "Tensor";
}

std::string type_of(const Parameter& parameter) {
  auto found = kSpellings.find(parameter.type);
  return found == kSpellings.end() ? parameter.type : found->second.type;
}

std::string handed_on(const Parameter& parameter) {
  auto found = kSpellings.find(parameter.type);
  return found == kSpellings.end() ? parameter.name
                                   : fmt::format(fmt::runtime(found->second.handed_on), parameter.name);
}

std::string parameters_of(const Function& function, size_t first) {
  std::string text;
  for (size_t at = first; at < function.parameters.size(); ++at) {
    const Parameter& parameter = function.parameters[at];
    text += (text.empty() ? "" : ", ") + type_of(parameter) + " " + parameter.name;
    std::string given = parameter.default_value;
    if (given.starts_with("k") || given.starts_with("Dtype::")) given = "tenon::" + given;
    if (!given.empty()) text += " = " + given;
  }
  return text;
}

std::string call_of(const Function& function, const std::string& called, size_t first) {
  std::string arguments, options;
  for (size_t at = first; at < function.parameters.size(); ++at) {
    arguments += (arguments.empty() ? "" : ", ") + handed_on(function.parameters[at]);
    if (function.parameters[at].type == "const TensorOptions&") options = function.parameters[at].name;
  }
  std::string call = fmt::format("{}({})", called, arguments);
  if (function.result.find("vector<Tensor>") != std::string::npos) call = fmt::format("compat::wrap({})", call);
  if (!options.empty()) call = fmt::format("compat::finish({}, {})", options, call);
  return call;
}

}  // namespace

Compat generate_compat(const std::vector<Row>& rows) {
  Compat made;
  made.methods = made.functions = "// Written by tools/generate_api from the rows of the operators. Do not edit.\n";
  for (const Row& row : rows)
    for (const Function& function : make_functions(row)) {
      bool in_place = writes_first(function);
      bool out = !in_place && function.schema.is_mutable() && function.result == "Tensor";
      if (function.method && !kByHand.contains(function.name)) {
        std::string call = call_of(function, "tenon::Tensor::" + function.name, 1);
        made.methods +=
            fmt::format("{} {}({}) const {{ {} }}\n", in_place ? "Tensor&" : function.result, function.name,
                        parameters_of(function, 1), in_place ? call + "; return self();" : "return " + call + ";");
      }
      std::string parameters = parameters_of(function, 0), call = call_of(function, "tenon::" + function.name, 0);
      if (in_place || out) {
        // What is written comes first in both, and is handed back.
        const std::string& first = function.parameters[0].name;
        made.functions += fmt::format("inline Tensor& {}({}) {{ {}; return const_cast<Tensor&>({}); }}\n",
                                      function.name, parameters, call, first);
      } else {
        made.functions +=
            fmt::format("inline {} {}({}) {{ return {}; }}\n", function.result, function.name, parameters, call);
      }
    }
  return made;
}

}  // namespace tenon::generate_api
