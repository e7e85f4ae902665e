// Random valid kernels with matching data, for comparing ways to run a kernel with each other.
//
//   RandomKernel random = make_random_kernel(seed, options);
//   RunResult expected = run(random, [&](const Launch& launch) { interpret(random.kernel, launch); });
//   RunResult actual = run(random, [&](const Launch& launch) { entry(launch.buffers, …); });
//   EXPECT_EQ(difference(random, expected, actual), "");
//
// Every output says how closely it is determined: a value that went through a math function is only stored, never
// computed with, so that errors are not amplified.
#pragma once

#include <tenon/loop/kernel.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tenon::loop {

struct RandomOptions {
  // Which operations may be used on which dtype (comparisons: of the operands; casts: of the result).
  std::function<bool(OpCode, Dtype)> allow = [](OpCode, Dtype) { return true; };
  std::function<bool(Dtype)> allow_dtype = [](Dtype) { return true; };  // of buffers and values; float32 is always used
  bool reductions = true;
  bool gathers = true;  // BindIndex and Check
  bool random_bits = true;
  bool temporaries = true;
  bool special_values = true;  // NaN, infinities, zeros of both signs and subnormals in float buffers
  double math_range = 50;      // arguments of math functions are clamped to [-math_range, math_range]
  int operations = 8;          // per loop body, about
};

enum class Tolerance {
  Exact,    // bit for bit; any NaN equals any NaN
  Equal,    // 0 equals -0
  FewUlps,  // one math function: 4 ulp, and the rounding of each side
};

struct RandomOutput {
  int buffer;
  Tolerance tolerance = Tolerance::Exact;
  Dtype computed = Dtype::Float32;  // the dtype before the store
};

struct RandomKernel {
  Kernel kernel;
  std::vector<std::vector<std::byte>> buffers;  // contents before the run
  std::vector<int64_t> integers;
  std::vector<uint64_t> scalars;
  std::vector<RandomOutput> outputs;
};

RandomKernel make_random_kernel(uint64_t seed, const RandomOptions& options = {});

struct RunResult {
  std::vector<std::vector<std::byte>> buffers;
  int64_t failed = -1;
};

// Runs on copies of the buffers, the parallel loop cut into `pieces`.
RunResult run(const RandomKernel& random, const std::function<void(const Launch&)>& execute, int pieces = 1);

// The first disagreement, with the kernel's text; empty if there is none.
std::string difference(const RandomKernel& random, const RunResult& expected, const RunResult& actual);

}  // namespace tenon::loop

#include "random_kernel_inline.h"
