#include "passes.h"
#include "products.h"
#include "schedule/rewrite.h"

#include <tenon/generated/ops.h>

#include <fmt/format.h>

#include <map>
#include <memory>

namespace tenon::freezing {

using schedule::Instead;
using schedule::Values;
namespace {

// Products that can be one: of one operand, with weights of one size, all with a bias or none.
struct Stack {
  std::vector<Product> products;
};

Decision can_join(const Graph& graph, const Product& a, const Product& b) {
  if ((a.bias == graph::kNoValue) != (b.bias == graph::kNoValue))
    return Decision::forbid("one has a bias, one has not");
  const Tensor &left = graph.meta(a.weight), &right = graph.meta(b.weight);
  if (!left.size(1).same(right.size(1)))
    return Decision::forbid("widths {} and {} differ", left.size(1).str(), right.size(1).str());
  return Decision::allow();
}

// [products, rows, channels] in one call; each product is a slice of it, with the strides that it had.
Tensor stacked(const Stack& stack, const Values& now) {
  std::vector<Tensor> weights, biases;
  for (const Product& product : stack.products) {
    Tensor weight = now(product.weight);
    weights.push_back(weight);
    if (product.bias != graph::kNoValue)
      biases.push_back(expand(reshape(now(product.bias), SymInts{1, -1}), SymInts{1, weight.size(1)}));
  }
  auto count = static_cast<int64_t>(weights.size());
  Tensor input = now(stack.products[0].input);
  Tensor each = expand(unsqueeze(input, 0), SymInts{count, input.size(0), input.size(1)});
  Tensor weight = tenon::stack(weights, 0);
  return biases.empty() ? bmm(each, weight) : baddbmm(tenon::stack(biases, 0), each, weight);
}

// Weights that others read too would be kept twice. Slices of one matrix that all become part of the stack are not.
void leave_out_shared(const Graph& graph, const Mask& constants, Stack& stack, Notes& notes) {
  if (stack.products.size() < 2) return;
  std::map<ValueId, size_t> members;
  for (const Product& product : stack.products) ++members[viewed_by(graph, product.weight)];
  std::erase_if(stack.products, [&](const Product& product) {
    size_t readers = count_readers(graph, constants, product.weight);
    if (readers <= members[viewed_by(graph, product.weight)]) return false;
    notes.push_back(fmt::format("not stacked: {}: its weight is read {} times, and would be kept twice",
                                name_of(graph, product.result), readers));
    return true;
  });
}

}  // namespace

Graph stack_products(const Graph& original, const Parameters& parameters, Notes& notes) {
  Graph graph = original;
  Mask constants = find_constants(graph, parameters);
  put_constants_first(graph, constants);
  std::vector<Stack> stacks;
  for (const Node& node : graph.nodes) {
    Decision why = Decision::allow();
    std::optional<Product> product = product_of(graph, constants, node, why);
    if (!product || product->is_convolution) continue;
    Stack* joined = nullptr;
    std::string refused;
    for (Stack& stack : stacks) {
      const Product& first = stack.products[0];
      if (first.input != product->input) continue;
      Decision join = can_join(graph, first, *product);
      if (join) joined = &stack;
      if (!join)
        refused = fmt::format("not stacked: {} and {}: {}", name_of(graph, first.result),
                              name_of(graph, product->result), join.why());
    }
    if (joined)
      joined->products.push_back(*product);
    else
      stacks.push_back({{*product}});
    if (!joined && !refused.empty()) notes.push_back(refused);
  }
  Instead instead;
  for (Stack& stack : stacks) {
    leave_out_shared(graph, constants, stack, notes);
    if (stack.products.size() < 2) continue;
    std::vector<std::string> names;
    auto made = std::make_shared<Tensor>();
    for (size_t at = 0; at < stack.products.size(); ++at) {
      names.push_back(name_of(graph, stack.products[at].result));
      instead[stack.products[at].result] = [stack, made, at](const Values& now) {
        if (!made->defined()) *made = stacked(stack, now);
        return select(*made, 0, static_cast<int64_t>(at));
      };
    }
    notes.push_back(fmt::format("stacked: {}", fmt::join(names, ", ")));
  }
  return instead.empty() ? original : schedule::rewrite(graph, instead);
}

}  // namespace tenon::freezing
