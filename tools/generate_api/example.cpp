#include "example.h"

#include <tenon/support/error.h>

#include <algorithm>

namespace tenon::generate_api {

using schema::Argument;
using schema::Kind;
using schema::Schema;
using schema::Type;

namespace {

struct Rule {
  std::string_view name;  // "argument", or "operator.argument", where the in-place form counts as the operator
  std::string_view text;
};

// Where the type does not say what fits. Those of an operator come before those of a name.
constexpr Rule kTensors[] = {
    {"addmm.self", "ones({2, 2})"},
    {"baddbmm.self", "ones({4, 2, 2})"},
    {"batch1", "ones({4, 2, 3})"},
    {"batch2", "ones({4, 3, 2})"},
    {"bmm.self", "ones({4, 2, 3})"},
    {"bmm.mat2", "ones({4, 3, 2})"},
    {"conv1d.input", "ones({1, 2, 4})"},
    {"conv1d.weight", "ones({3, 2, 3})"},
    {"conv2d.weight", "ones({3, 2, 3, 3})"},
    {"conv3d.weight", "ones({3, 2, 3, 3, 3})"},
    {"conv_transpose1d.input", "ones({1, 2, 4})"},
    {"conv_transpose1d.weight", "ones({2, 3, 3})"},
    {"conv_transpose2d.weight", "ones({2, 3, 3, 3})"},
    {"conv_transpose3d.weight", "ones({2, 3, 3, 3, 3})"},
    {"convolution.input", "ones({1, 2, 4, 4})"},
    {"convolution.weight", "ones({3, 2, 3, 3})"},
    {"cross_entropy_loss.target", "zeros({2}, kInt64)"},
    {"diagonal_scatter.src", "ones({2})"},
    {"dot.self", "ones({3})"},
    {"dot.tensor", "ones({3})"},
    {"embedding.indices", "zeros({4}, kInt64)"},
    {"fill.value", "ones({})"},
    {"index_add.index", "zeros({2}, kInt64)"},
    {"index_select.index", "zeros({2}, kInt64)"},
    {"linear.weight", "ones({4, 3})"},
    {"bucketize.boundaries", "ones({3})"},
    {"masked_fill.value", "ones({})"},
    {"masked_scatter.source", "ones({6})"},
    {"matmul.other", "ones({3, 2})"},
    {"nll_loss.target", "zeros({2}, kInt64)"},
    {"one_hot.self", "zeros({2, 3}, kInt64)"},
    {"outer.self", "ones({3})"},
    {"outer.vec2", "ones({2})"},
    {"rad2deg.self", "x"},
    {"scaled_dot_product_attention.value", "ones({1, 2, 3, 4})"},
    {"select_scatter.src", "ones({3})"},
    {"unfold_backward.grad_in", "ones({2, 3, 1})"},
    {"condition", "x > y"},
    {"index", "zeros({2, 3}, kInt64)"},
    {"key", "ones({1, 2, 3, 4})"},
    {"mask", "x > y"},
    {"mat1", "x"},
    {"mat2", "ones({3, 2})"},
    {"out", "out"},
    {"query", "ones({1, 2, 3, 4})"},
    {"repeats", "ones({6}, kInt64)"},
    {"vec", "ones({3})"},
};
constexpr Rule kNumbers[] = {
    {"dim", "0"}, {"dim0", "0"}, {"dim1", "1"}, {"end", "6"}, {"high", "10"}, {"index", "0"},
    {"low", "0"}, {"m", "2"},    {"min", "0"},  {"n", "3"},   {"start", "0"}, {"steps", "5"},
};
constexpr Rule kLists[] = {
    {"adaptive_max_pool3d.output_size", "{2, 2, 2}"},
    {"convolution.padding", "{0, 0}"},
    {"convolution.stride", "{1, 1}"},
    {"dilation", "{1, 1}"},
    {"empty_strided.stride", "{3, 1}"},
    {"expand.size", "{4, 2, 3}"},
    {"permute.dims", "{1, 0}"},
    {"reshape.shape", "{3, 2}"},
    {"roll.shifts", "{1}"},
    {"split.split_size", "{1, 1}"},
    {"split_with_sizes.split_sizes", "{1, 1}"},
    {"sum_to_size.size", "{1, 3}"},
    {"unflatten.sizes", "{2, 1}"},
    {"view.size", "{3, 2}"},
    {"destination", "Ints{1, 0}"},
    {"indices", "{zeros({2}, kInt64)}"},
    {"output_padding", "{0, 0}"},
    {"scale_factors", "std::vector<double>{2, 2}"},
    {"source", "Ints{0, 1}"},
};
// Given although they have a default: without one of its limits this operator has nothing to do.
constexpr std::string_view kGiven[] = {"clamp.min"};

std::string base_name(const Schema& schema) {
  return schema.name.ends_with('_') ? schema.name.substr(0, schema.name.size() - 1) : schema.name;
}

template <size_t count>
std::string_view find(const Rule (&rules)[count], const Schema& schema, const std::string& argument) {
  for (const Rule& rule : rules)
    if (rule.name == base_name(schema) + "." + argument || rule.name == argument) return rule.text;
  return {};
}

std::string tensor(const Schema& schema, const std::string& argument, bool first) {
  if (std::string_view text = find(kTensors, schema, argument); !text.empty()) return std::string(text);
  // These know whole numbers only, these images.
  if (schema.name.starts_with("bitwise_")) return "ones({2, 3}, kInt64)";
  if (first && schema.name.find("2d") != std::string::npos) return "ones({1, 2, 4, 4})";
  if (first && schema.name.find("3d") != std::string::npos) return "ones({1, 2, 4, 4, 4})";
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

bool example_gives(const Schema& schema, const Argument& argument) {
  return std::find(std::begin(kGiven), std::end(kGiven), base_name(schema) + "." + argument.name) != std::end(kGiven);
}

std::string example_argument(const Schema& schema, const Argument& argument, bool first) {
  const Type& type = argument.type;
  const Type& plain = type.is_optional() ? type.element[0] : type;
  if (type.kind == Kind::Tensor) return tensor(schema, argument.name, first);
  if (plain.is_list()) {
    if (std::string_view text = find(kLists, schema, argument.name); !text.empty()) return std::string(text);
    // Of an optional list, only one of dimensions is worth giving.
    return type.is_list() || plain.element[0].kind == Kind::Int ? list(plain.element[0], argument.name)
                                                                : "std::nullopt";
  }
  if (std::string_view text = find(kNumbers, schema, argument.name); !text.empty()) return std::string(text);
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
    default: return "std::nullopt";
  }
}

}  // namespace tenon::generate_api
