// Executes rows without the scheduler: every output element is the row's expression at its logical index, over
// contiguous copies of the inputs, through the loop interpreter. No collapsing, vectors or fusion: the oracle of
// lowering.
//
// Composites are traced into their parts, and the parts evaluated one by one. An opaque row without a decomposition
// runs its own kernel on the copies, which still shows a wrong stride.
#pragma once

#include <tenon/dispatch/operator.h>

#include <string>
#include <vector>

namespace tenon::test {

// How close a result of the real thing must be to an evaluated one.
struct Closeness {
  int functions = 0;              // approximate operations: 4 units in the last place each
  bool parts = false;             // of several rows: what a function gave may have been cancelled down since
  bool combines = false;          // sums and products of floats, in any order
  int64_t terms = 1;              // as many as one element combines
  double scale = 0;               // the largest finite number on the way
  std::vector<double> magnitude;  // of a row that is one sum: Σ|x| for each element
  bool exact() const { return functions == 0 && !combines; }
};

struct Evaluated {
  std::vector<Tensor> results;  // contiguous
  Closeness closeness;
};

// Random rows read the default generator's state, and leave it as it is.
Evaluated evaluate(const dispatch::Operator& op, std::span<const dispatch::Value> args);

// Elements in row-major order; shares nothing with `tensor`.
Tensor contiguous_copy(const Tensor& tensor);

// What is different, empty if nothing is: dtype, sizes, then elements. NaNs of any bits are equal.
std::string difference(const Tensor& got, const Tensor& expected);  // exact, zeros of either sign differ
std::string difference(const Tensor& got, const Tensor& expected, const Closeness& closeness);
// Within `relative` of the expected element, or of a part of the largest (at least 1).
std::string difference(const Tensor& got, const Tensor& expected, double relative, double of_largest = 0.01);

}  // namespace tenon::test
