// The passes, each a file of its name; `freeze.cpp` is their list. A pass gives another graph with the same inputs and
// results, and says what it did, and what it left alone and why.
#pragma once

#include "constants.h"

namespace tenon::freezing {

// What is computed twice, by the same operator from the same values, is computed once.
Graph share_values(const Graph& graph, const Parameters& parameters, Notes& notes);
// Multiplying and adding what is constant for each channel, a batch norm among others, becomes part of the weight and
// bias of the convolution or product before it.
Graph fold_channels(const Graph& graph, const Parameters& parameters, Notes& notes);
// Products of one operand with several constant matrices of one size become one.
Graph stack_products(const Graph& graph, const Parameters& parameters, Notes& notes);

}  // namespace tenon::freezing
