// From a functional graph to a plan: the list of passes stands in `compile_graph`.
//
//   decompose    composites become their parts
//   identities   operators that change nothing go
//   in place     inputs that the graph writes are updated where they lie, if nothing reads the old value afterwards
//   fuse         values are grouped into kernels; what stays inside one needs no memory
//   nests        what the loops of each group compute: axes, stages, accesses
//   schedule     how they run: order, tiles, threads, lanes; the cheapest of the legal ways
//   take over    a result gets the memory of a value that dies in its kernel
//   emit         nest and schedule become loop kernels
//   compile      all kernels at once, in parallel
//   plan         allocation, launches and calls in order; memory goes on to the next result, or back, as values die
#pragma once

#include <tenon/graph/graph.h>
#include <tenon/runtime/plan.h>
#include <tenon/support/decision.h>

#include <memory>

namespace tenon::schedule {

struct Options {
  bool fuse = true;                // false: one kernel per operator, as the oracle of fusion
  bool pad_products = false;       // operands of matrix products are padded where `should_pad` says so
  bool scalar_parameters = false;  // numbers are passed to kernels at run time instead of being part of them
};

// The graph must be functional: no operator writes to its arguments. Guards that lowering needs are recorded in its
// environment.
std::shared_ptr<const runtime::Plan> compile_graph(const graph::Graph& graph, const Options& options = {});

// Whether the product a·b (of matrices, or of batches of them) is worth computing of operands whose rows have been made
// as long as a whole number of vector registers, with zeros: where the size that is summed over is known, is no such
// number, and is long enough that the few zeros cost less than the ends of rows. The sums are the same, in another
// order.
Decision should_pad(const Tensor& a, const Tensor& b);

// Composites, and opaque operators whose kernel does not take these arguments, replaced by their parts.
graph::Graph decompose(const graph::Graph& graph);

}  // namespace tenon::schedule
