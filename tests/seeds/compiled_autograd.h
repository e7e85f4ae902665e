// What the cases of compiled autograd share: running a function eagerly and with its walks captured, and counting.
#pragma once

#include "../unit/capture/testing.h"

#include <tenon/aot/export.h>
#include <tenon/autograd/function.h>

#include <gmock/gmock.h>

#include <functional>

namespace tenon::testing {

using ::testing::HasSubstr;
using Tensors = std::vector<Tensor>;

inline int64_t captures() { return counter("compiled_autograd_captures").value(); }
inline int64_t compiles() { return counter("compiled_autograd_compiles").value(); }
inline void reset_walk_counters() {
  counter("compiled_autograd_captures").reset();
  counter("compiled_autograd_compiles").reset();
}

struct Counts {
  int64_t captures, compiles;
  Counts(int count) : captures(count), compiles(count) {}
  Counts(int captured, int compiled) : captures(captured), compiles(compiled) {}
};

inline void expect_equal(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t at = 0; at < expected.size(); ++at) {
    ASSERT_EQ(found[at].defined(), expected[at].defined()) << "result " << at;
    if (!expected[at].defined()) continue;
    EXPECT_LE(difference(found[at], expected[at]), 1e-5) << "result " << at;
  }
}

// Runs the function eagerly and with its walks captured, from the same seed: the results agree, and there were so many
// captures and compiles.
inline void check_output_and_recompiles(const std::function<Tensors()>& fn, Counts counts = 1,
                                        compiled_autograd::Options options = {.fullgraph = true},
                                        bool compile_fn = false) {
  compiled_autograd::reset();
  manual_seed(123);
  Tensors expected = fn();
  reset_walk_counters();
  manual_seed(123);
  Tensors actual;
  {
    compiled_autograd::Enable on(options);
    actual = compile_fn ? compile(fn)() : fn();
  }
  expect_equal(actual, expected);
  EXPECT_EQ(captures(), counts.captures);
  EXPECT_EQ(compiles(), counts.compiles);
}

// Cases begin and end with nothing compiled, and with nothing logged.
class TestCompiledAutograd : public ::testing::Test {
 protected:
  TestCompiledAutograd() { clear(); }
  ~TestCompiledAutograd() override { clear(); }

 private:
  static void clear() {
    compiled_autograd::reset();
    reset_walk_counters();
    set_logs("");
  }
};

// The gradients of a model's parameters.
inline void add_gradients(Tensors& to, const nn::Module& model) {
  for (const Tensor& parameter : model.parameters()) to.push_back(parameter.grad());
}

inline Tensor leaf(const Ints& sizes) { return randn(SymInts(sizes.span())).set_requires_grad(); }

// 0, 1, 2, …, a leaf.
inline Tensor counted(int64_t count) { return arange(count, kFloat32).set_requires_grad(); }

}  // namespace tenon::testing
