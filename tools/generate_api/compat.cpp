#include "functions.h"

#include <tenon/support/error.h>

#include <fmt/format.h>

#include <algorithm>
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

// Sizes, plain or symbolic: libtorch has a name of its own for functions that take symbols.
bool takes_sizes(const Function& function) {
  for (const Parameter& parameter : function.parameters)
    if (parameter.type == "const SymInts&" || parameter.type == "const std::optional<SymInts>&" ||
        parameter.type == "const SymInt&" || parameter.type == "SymInt")
      return true;
  return false;
}

// Lists among several results (`histogramdd`) would have to be copied apart; they are not spelled.
bool has_spelling(const Function& function) {
  return !(function.result.starts_with("std::tuple") && function.result.find("vector<Tensor>") != std::string::npos);
}

// An operator that computes one new tensor from others, which can therefore be written elsewhere.
bool computes_one(const Function& function) {
  if (function.result != "Tensor" || function.schema.is_mutable() || function.schema.returns[0].alias) return false;
  bool tensors = false;
  for (const Parameter& parameter : function.parameters) {
    if (parameter.type == "const TensorOptions&") return false;
    tensors |= parameter.type.find("Tensor") != std::string::npos;
  }
  return tensors;
}

}  // namespace

Compat generate_compat(const std::vector<Row>& rows) {
  Compat made;
  made.methods = made.functions = "// Written by tools/generate_api from the rows of the operators. Do not edit.\n";
  for (const Row& row : rows) {
    const std::vector<Function> functions = make_functions(row);
    auto is_out = [](const Function& each) {
      return !writes_first(each) && each.schema.is_mutable() && each.result == "Tensor";
    };
    const bool has_out = std::any_of(functions.begin(), functions.end(), is_out);
    for (const Function& function : functions) {
      if (!has_spelling(function)) continue;
      bool in_place = writes_first(function);
      bool out = is_out(function);
      if (function.method && !kByHand.contains(function.name)) {
        std::string call = call_of(function, "tenon::Tensor::" + function.name, 1);
        auto add = [&](const std::string& name) {
          made.methods +=
              fmt::format("{} {}({}) const {{ {} }}\n", in_place ? "Tensor&" : function.result, name,
                          parameters_of(function, 1), in_place ? call + "; return self();" : "return " + call + ";");
        };
        add(function.name);
        if (takes_sizes(function)) add(function.name + "_symint");
      }
      std::string parameters = parameters_of(function, 0), call = call_of(function, "tenon::" + function.name, 0);
      if (in_place || out) {
        // What is written comes first in both, and is handed back.
        const std::string& first = function.parameters[0].name;
        made.functions += fmt::format("inline Tensor& {}({}) {{ {}; return const_cast<Tensor&>({}); }}\n",
                                      function.name, parameters, call, first);
        continue;
      }
      auto add = [&](const std::string& name) {
        made.functions += fmt::format("inline {} {}({}) {{ return {}; }}\n", function.result, name, parameters, call);
      };
      add(function.name);
      if (takes_sizes(function)) add(function.name + "_symint");
      // Rows without an `_out` form compute, and write what they computed.
      if (!has_out && computes_one(function))
        made.functions += fmt::format(
            "inline Tensor& {0}_out(const Tensor& out, {1}) {{ return compat::write_out(out, {2}, \"{0}\"); }}\n",
            function.name, parameters, call);
    }
  }
  return made;
}

}  // namespace tenon::generate_api
