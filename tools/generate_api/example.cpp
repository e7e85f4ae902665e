#include "example.h"

#include <tenon/support/error.h>

namespace tenon::generate_api {

using schema::Argument;
using schema::Kind;
using schema::Schema;
using schema::Type;

namespace {

struct Rule {
  std::string_view name;  // "argument", or "operator.argument"
  std::string_view text;
};

// Where the type does not say what fits. Those of an operator come before those of a name.
constexpr Rule kTensors[] = {
    {"addmm.self", "ones({2})"},
    {"bmm.self", "ones({4, 2, 3})"},
    {"bmm.mat2", "ones({4, 3, 2})"},
    {"dot.self", "ones({3})"},
    {"dot.tensor", "ones({3})"},
    {"fill.value", "ones({})"},
    {"fill_.value", "ones({})"},
    {"linear.weight", "ones({4, 3})"},
    {"matmul.other", "ones({3, 2})"},
    {"nll_loss.target", "zeros({2}, kInt64)"},
    {"cross_entropy_loss.target", "zeros({2}, kInt64)"},
    {"select_scatter.src", "ones({3})"},
    {"condition", "x > y"},
    {"index", "zeros({2, 3}, kInt64)"},
    {"mat1", "x"},
    {"mat2", "ones({3, 2})"},
    {"vec", "ones({3})"},
    {"out", "out"},
};
constexpr Rule kOthers[] = {
    {"empty_strided.stride", "{3, 1}"},
    {"expand.size", "{4, 2, 3}"},
    {"permute.dims", "{1, 0}"},
    {"reshape.shape", "{3, 2}"},
    {"sum_to_size.size", "{1, 3}"},
    {"view.size", "{3, 2}"},
    {"dim", "0"},
    {"dim0", "0"},
    {"dim1", "1"},
    {"end", "6"},
    {"high", "10"},
    {"index", "0"},
    {"low", "0"},
    {"m", "2"},
    {"n", "3"},
    {"start", "0"},
    {"steps", "5"},
};

template <size_t count>
std::string_view find(const Rule (&rules)[count], const Schema& schema, const std::string& argument) {
  for (const Rule& rule : rules)
    if (rule.name == schema.name + "." + argument || rule.name == argument) return rule.text;
  return {};
}

std::string tensor(const Schema& schema, const std::string& argument, bool first) {
  if (std::string_view text = find(kTensors, schema, argument); !text.empty()) return std::string(text);
  // These know whole numbers only.
  if (schema.name.starts_with("bitwise_")) return "ones({2, 3}, kInt64)";
  return first ? "x" : "y";
}

std::string list(const Type& element, const std::string& name) {
  switch (element.kind) {
    case Kind::Tensor: return "{x, y}";
    case Kind::Int: return name.starts_with("dim") ? "Ints{0}" : "Ints{2, 3}";
    case Kind::SymInt: return "{2, 3}";
    case Kind::Bool: return "{true}";
    default: return "{}";
  }
}

}  // namespace

std::string example_argument(const Schema& schema, const Argument& argument, bool first) {
  const Type& type = argument.type;
  if (type.kind == Kind::Tensor) return tensor(schema, argument.name, first);
  if (std::string_view text = find(kOthers, schema, argument.name);
      !text.empty() && (!type.is_list() || text[0] == '{'))
    return std::string(text);
  switch (type.kind) {
    case Kind::Int:
    case Kind::SymInt: return "1";
    case Kind::Float: return "0.5";
    case Kind::Bool: return "false";
    case Kind::Str: return "\"mean\"";
    case Kind::Scalar: return "2";
    case Kind::ScalarType: return "kFloat64";
    case Kind::Device: return "kCPU";
    case Kind::Layout: return "Layout::Strided";
    case Kind::MemoryFormat: return "MemoryFormat::Contiguous";
    case Kind::Generator: return "default_generator()";
    case Kind::List: return list(type.element[0], argument.name);
    case Kind::Optional:
      return type.element[0].is_list() && type.element[0].element[0].kind == Kind::Int
                 ? list(type.element[0].element[0], argument.name)
                 : "std::nullopt";
    case Kind::Tensor: break;
  }
  return {};
}

}  // namespace tenon::generate_api
