#include "products.h"

namespace tenon::freezing {
namespace {

using ops::Role;

bool is_one(const graph::Argument& argument) {
  const auto* number = std::get_if<dispatch::Value>(&argument);
  if (!number || !number->is_number()) return false;
  Scalar scalar = number->scalar();
  return !scalar.is_symbolic() && scalar.to_double() == 1;
}

// One row: [n], [1, n], or a single number.
bool is_row(const Tensor& meta) {
  SymInts sizes = meta.sym_sizes();
  for (size_t dim = 0; dim + 1 < sizes.size(); ++dim)
    if (sizes[dim].maybe_constant() != 1) return false;
  return true;
}

}  // namespace

std::optional<Product> product_of(const Graph& graph, const Mask& constants, const Node& node, Decision& why) {
  auto value = [&](size_t at) {
    const auto* id = std::get_if<ValueId>(&node.args[at]);
    return id ? *id : graph::kNoValue;
  };
  auto is_constant = [&](ValueId id) { return id != graph::kNoValue && constants[static_cast<size_t>(id)]; };
  Product product{&node};
  why = Decision::allow();
  const Role role = ops::role_of(*node.op);
  switch (role) {
    case Role::Convolution:
      product.is_convolution = true;
      product.input = value(0);
      product.weight = value(1);
      product.bias = value(2);
      break;
    case Role::Product:
      product.input = value(0);
      product.weight = value(1);
      break;
    case Role::AddedProduct:
      product.bias = value(0);
      product.input = value(1);
      product.weight = value(2);
      break;
    default: return std::nullopt;
  }
  const bool is_batch = !product.is_convolution && graph.meta(product.weight).dim() == 3;
  product.result = node.outputs[0];
  if (is_batch || is_constant(product.result)) return std::nullopt;
  if (!is_constant(product.weight))
    why = Decision::forbid("its weight is no constant");
  else if (product.bias != graph::kNoValue && !is_constant(product.bias))
    why = Decision::forbid("its bias is no constant");
  else if (product.is_convolution && std::get<dispatch::Value>(node.args[6]).boolean())
    why = Decision::forbid("it is transposed");
  else if (role == Role::AddedProduct && (!is_one(node.args[3]) || !is_one(node.args[4])))
    why = Decision::forbid("its alpha or beta is not 1");
  else if (role == Role::AddedProduct && !is_row(graph.meta(product.bias)))
    why = Decision::forbid("its bias is {}, no row", graph.meta(product.bias).description());
  return why ? std::optional(product) : std::nullopt;
}

size_t count_readers(const Graph& graph, const Mask& constants, ValueId constant) {
  ValueId base = viewed_by(graph, constant);
  size_t count = 0;
  for (const Node& node : graph.nodes) {
    if (!node.outputs.empty() && constants[static_cast<size_t>(node.outputs[0])]) continue;
    bool reads = false;
    graph::each_reference(
        node, [&](ValueId id) { reads |= constants[static_cast<size_t>(id)] && viewed_by(graph, id) == base; });
    if (reads) ++count;
  }
  return count;
}

}  // namespace tenon::freezing
