#include "channel_steps.h"
#include "passes.h"
#include "products.h"

#include <tenon/generated/ops.h>

#include <fmt/format.h>

namespace tenon::freezing {

using schedule::Instead;
using schedule::Values;
namespace {

// How many of the steps can become part of the product: the last one gives what the product gives, and computes
// something, or is a cast or view behind one that does.
size_t foldable_steps(const Graph& graph, const Product& product, const std::vector<ChannelStep>& steps) {
  Dtype dtype = graph.meta(product.result).dtype();
  size_t count = 0;
  bool computes = false;
  for (size_t at = 0; at < steps.size(); ++at) {
    computes |= steps[at].computes();
    if (computes && graph.meta(steps[at].result).dtype() == dtype) count = at + 1;
  }
  return count;
}

Tensor scaled_bias(const Tensor& bias, const Scaling& by, const SymInt& channels, Dtype wide) {
  Tensor result = bias.defined() ? reshape(bias.to(wide), SymInts{-1}) : Tensor();
  if (result.defined() && by.scale.defined()) result = result * by.scale;
  if (by.shift.defined()) result = result.defined() ? result + by.shift : by.shift;
  // One number for all channels.
  bool repeats = result.defined() && !result.size(0).same(channels);
  return repeats ? reshape(expand(result, SymInts{channels}), SymInts{channels}) : result;
}

Tensor folded(const Product& product, const std::vector<ChannelStep>& steps, const Graph& graph, const Values& now) {
  Tensor weight = now(product.weight), bias = product.bias == graph::kNoValue ? Tensor() : now(product.bias);
  Dtype dtype = weight.dtype(), wide = compute_dtype(dtype);
  Scaling by = scaling_of(steps, now, wide);
  const SymInt channels = weight.size(product.is_convolution ? 0 : 1);
  bias = scaled_bias(bias, by, channels, wide);
  if (bias.defined()) bias = bias.to(dtype);
  if (by.scale.defined()) {
    SymInts along{1, -1};
    if (product.is_convolution) {
      along = SymInts(static_cast<size_t>(weight.dim()), SymInt(1));
      along[0] = -1;
    }
    weight = (weight.to(wide) * view(by.scale, along)).to(dtype);
  }
  std::optional<Tensor> added = bias.defined() ? std::optional(bias) : std::nullopt;
  if (product.is_convolution) {
    auto numbers = [&](size_t at) { return std::get<dispatch::Value>(product.node->args[at]).sym_ints(); };
    return convolution(now(product.input), weight, added, numbers(3), numbers(4), numbers(5), false, numbers(7),
                       std::get<dispatch::Value>(product.node->args[8]).sym_int());
  }
  Tensor result = added ? addmm(*added, now(product.input), weight) : mm(now(product.input), weight);
  for (const ChannelStep& step : steps)
    if (step.kind == ChannelStep::Kind::View) result = view(result, graph.meta(step.result).sym_sizes());
  return result;
}

}  // namespace

Graph fold_channels(const Graph& original, const Parameters& parameters, Notes& notes) {
  Graph graph = original;
  Mask constants = find_constants(graph, parameters);
  put_constants_first(graph, constants);
  Instead instead;
  for (const Node& node : graph.nodes) {
    Decision is_product = Decision::allow();
    std::optional<Product> product = product_of(graph, constants, node, is_product);
    if (!product && is_product) continue;
    // Channels are dimension 1 of images, counted from the end as everywhere here.
    int64_t channel = ops::role_of(*node.op) == ops::Role::Convolution ? 1 - graph.meta(node.outputs[0]).dim() : -1;
    ChannelSteps found = channel_steps(graph, constants, node.outputs[0], channel);
    size_t computing = 0;
    for (const ChannelStep& step : found.steps) computing += step.computes() ? 1 : 0;
    if (computing == 0) continue;
    std::string what = name_of(graph, node.outputs[0]);
    auto refuse = [&](const std::string& why) {
      notes.push_back(fmt::format("not folded into {}: {}: {}", what, name_of(graph, found.steps.front().result), why));
    };
    if (!product) {
      refuse(is_product.why());
      continue;
    }
    if (Dtype dtype = graph.meta(product->result).dtype(); !is_floating(dtype)) {
      refuse(fmt::format("{} is exact as it is", name(dtype)));
      continue;
    }
    size_t count = foldable_steps(graph, *product, found.steps);
    if (count == 0) {
      refuse(fmt::format("the result would be {} instead of {}", name(graph.meta(product->result).dtype()),
                         name(graph.meta(found.steps.back().result).dtype())));
      continue;
    }
    if (size_t readers = count_readers(graph, constants, product->weight); readers > 1) {
      refuse(fmt::format("its weight is read {} times, and would be kept twice", readers));
      continue;
    }
    std::vector<ChannelStep> steps(found.steps.begin(), found.steps.begin() + static_cast<ptrdiff_t>(count));
    std::vector<std::string> words;
    for (const ChannelStep& step : steps)
      if (step.computes()) words.emplace_back(step.node->op->schema().name);
    notes.push_back(fmt::format("folded into {}: {}", what, fmt::join(words, ", ")));
    instead[steps.back().result] = [product = *product, steps, &graph](const Values& now) {
      return folded(product, steps, graph, now);
    };
  }
  return instead.empty() ? original : schedule::rewrite(graph, instead);
}

}  // namespace tenon::freezing
