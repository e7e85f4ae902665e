// Convolutions and products of matrices whose weight is constant, as the passes see them.
#pragma once

#include "constants.h"

#include <optional>

namespace tenon::freezing {

struct Product {
  const Node* node = nullptr;
  ValueId result = graph::kNoValue, input = graph::kNoValue, weight = graph::kNoValue;
  ValueId bias = graph::kNoValue;  // none, or one number for each channel
  bool is_convolution = false;     // else the channels are the last dimension, of the weight [inner, channels] too
};

// The node as a product, if it is one; `why` says what it lacks where it nearly is.
std::optional<Product> product_of(const Graph& graph, const Mask& constants, const Node& node, Decision& why);

// How many nodes that compute no constant read the memory of the constant, itself or through views.
size_t count_readers(const Graph& graph, const Mask& constants, ValueId constant);

}  // namespace tenon::freezing
