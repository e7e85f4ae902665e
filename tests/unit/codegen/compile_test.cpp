// Generated code against the interpreter, on kernels written by hand and on random ones, at every vector width.
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/loop/builder.h>
#include <tenon/support/counters.h>

#include "../loop/random_kernel.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::codegen {
namespace {

using loop::BufferRole;
using loop::Builder;
using loop::Kernel;
using loop::Lane;
using loop::Launch;
using loop::RandomKernel;
using loop::RunResult;
using sym::Expr;

class AtWidth : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    set_isa(GetParam());
    if (isa_bits() != GetParam()) GTEST_SKIP() << "this machine has no vectors of " << GetParam() << " bits";
    set_cache_folder("");
  }
  void TearDown() override { set_isa(0); }
};
INSTANTIATE_TEST_SUITE_P(Widths, AtWidth, testing::Values(512, 256, 128));

RunResult run_compiled(const RandomKernel& random, int pieces) {
  CompiledKernelRef compiled = compile(loop::parse(loop::to_string(random.kernel)));
  return loop::run(
      random, [&](const Launch& l) { compiled->entry(l.buffers, l.integers, l.scalars, l.begin, l.end, l.failed); },
      pieces);
}

TEST_P(AtWidth, AddsTwoBuffersOfEveryLength) {
  Builder b("add");
  int x = b.buffer("x", kFloat32, BufferRole::In), y = b.buffer("y", kFloat32, BufferRole::In);
  int out = b.buffer("out", kFloat32, BufferRole::Out);
  Expr n = b.integer("n", {0, 1000});
  b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) { b.store(out, i, b.load(x, i) + b.load(y, i)); });
  CompiledKernelRef compiled = compile(b.finish());
  for (int64_t length = 0; length < 200; ++length) {
    std::vector<float> a(200), c(200), result(201, -1.0f);
    for (size_t i = 0; i < 200; ++i) a[i] = static_cast<float>(i) * 0.5f, c[i] = 1000.0f / static_cast<float>(i + 1);
    void* buffers[] = {a.data(), c.data(), result.data()};
    int64_t failed = -1;
    compiled->entry(buffers, &length, nullptr, 0, length, &failed);
    for (size_t i = 0; i < 201; ++i)
      ASSERT_EQ(result[i], static_cast<int64_t>(i) < length ? a[i] + c[i] : -1.0f) << i << " of " << length;
    EXPECT_EQ(failed, -1);
  }
}

TEST_P(AtWidth, RandomKernelsAgreeWithTheInterpreter) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomKernel random = loop::make_random_kernel(seed);
    RunResult expected = loop::run(random, [&](const Launch& launch) { loop::interpret(random.kernel, launch); });
    RunResult actual = run_compiled(random, 1 + static_cast<int>(seed % 3));
    ASSERT_EQ(loop::difference(random, expected, actual), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tenon::codegen
