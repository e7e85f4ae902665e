#include "random_kernel.h"

#include <tenon/core/half.h>
#include <tenon/core/philox.h>
#include <tenon/loop/builder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tenon::loop {
namespace {

using sym::Expr;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t run_kernel(const Kernel& kernel, std::vector<void*> buffers, std::vector<int64_t> integers = {},
                   std::vector<uint64_t> scalars = {}) {
  int64_t failed = -1;
  interpret(kernel, {buffers.data(), integers.data(), scalars.data(), 0, parallel_extent(kernel, integers), &failed});
  return failed;
}

// Where the condition does not hold nothing is read, nothing checked, and the value is 0.
TEST(Interpret, LoadsHaveConditions) {
  Builder b("conditional");
  const Expr n = b.integer("n");
  const int x = b.buffer("x", kFloat32, BufferRole::In, n - 1), out = b.buffer("out", kFloat32, BufferRole::Out, n);
  b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) {
    const Lane first = b.index(i) == 0.0;
    b.store(out, i,
            b.choose(
                first, [&] { return b.constant(7.0, kFloat32); },
                [&] {
                  const Lane value = b.load(x, i - 1);
                  b.check(value < 100.0, "too large");
                  // What is read at any rate is not read again.
                  EXPECT_EQ(b.when(b.index(i) > 1.0, [&] { return b.load(x, i - 1); }).id(), value.id());
                  return value;
                }));
  });
  const Kernel kernel = b.finish();
  EXPECT_THAT(to_string(kernel), HasSubstr("load x[i0 - 1] if %"));
  EXPECT_EQ(to_string(parse(to_string(kernel))), to_string(kernel));
  float in[] = {1, 2}, result[3] = {};
  EXPECT_EQ(run_kernel(kernel, {in, result}, {3}), -1);
  EXPECT_THAT(result, ElementsAre(7, 1, 2));
  in[1] = 200;
  EXPECT_EQ(run_kernel(kernel, {in, result}, {3}), 0);
}

Kernel softmax() {
  Builder b("softmax");
  const Expr n = b.integer("n"), m = b.integer("m");
  const int x = b.buffer("x", kFloat32, BufferRole::In, n * m), out = b.buffer("out", kFloat32, BufferRole::Out, n * m);
  b.loop(n, {.parallel = true}, [&](Expr i) {
    Lane largest, total;
    b.loop(m, {.vector = true, .reduction = true},
           [&](Expr j) { largest = b.reduce(ReduceKind::Max, b.load(x, i * m + j)); });
    b.loop(m, {.vector = true, .reduction = true},
           [&](Expr j) { total = b.reduce(ReduceKind::Sum, exp(b.load(x, i * m + j) - largest)); });
    b.loop(m, {.vector = true}, [&](Expr j) { b.store(out, i * m + j, exp(b.load(x, i * m + j) - largest) / total); });
  });
  return b.finish();
}

TEST(Interpret, SoftmaxOfRows) {
  const Kernel kernel = softmax();
  constexpr int64_t kRows = 3, kColumns = 7;
  std::vector<float> x(kRows * kColumns), out(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i));
  EXPECT_EQ(run_kernel(kernel, {x.data(), out.data()}, {kRows, kColumns}), -1);
  for (int64_t i = 0; i < kRows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < kColumns; ++j) total += std::exp(static_cast<double>(x[i * kColumns + j]));
    for (int64_t j = 0; j < kColumns; ++j) {
      EXPECT_NEAR(out[i * kColumns + j], std::exp(static_cast<double>(x[i * kColumns + j])) / total, 1e-7);
    }
  }
}

TEST(Interpret, RunsTheGivenIterationsOfAParallelLoop) {
  const Kernel kernel = softmax();
  std::vector<float> x(4 * 2, 1.0f), out(x.size(), -1.0f);
  void* buffers[] = {x.data(), out.data()};
  const int64_t integers[] = {4, 2};
  EXPECT_EQ(parallel_extent(kernel, integers), 4);
  int64_t failed = -1;
  interpret(kernel, {buffers, integers, nullptr, 1, 3, &failed});
  EXPECT_THAT(out, ElementsAre(-1, -1, 0.5, 0.5, 0.5, 0.5, -1, -1));
}

TEST(Interpret, AKernelWithoutParallelLoopIgnoresTheRange) {
  Builder b("k");
  const int out = b.buffer("out", kInt32, BufferRole::Out);
  b.loop(b.pool().constant(3), {}, [&](Expr i) { b.store(out, i, b.index(i * 2 + 1)); });
  const Kernel kernel = b.finish();
  EXPECT_EQ(parallel_extent(kernel, {}), 1);
  std::vector<int32_t> values(3);
  void* buffers[] = {values.data()};
  int64_t failed = -1;
  interpret(kernel, {buffers, nullptr, nullptr, 7, 7, &failed});
  EXPECT_THAT(values, ElementsAre(1, 3, 5));
}

TEST(Interpret, AnEmptyReductionGivesTheIdentity) {
  Builder b("k");
  const int out = b.buffer("out", kFloat64, BufferRole::Out);
  const Expr n = b.integer("n"), zero = b.pool().constant(0);
  Lane total, largest;
  b.loop(n, {.reduction = true}, [&](Expr i) {
    total = b.reduce(ReduceKind::Sum, cast(b.index(i), kFloat64));
    largest = b.reduce(ReduceKind::Max, cast(b.index(i), kFloat64));
  });
  b.store(out, zero, total);
  b.store(out, zero + 1, largest);
  const Kernel kernel = b.finish();
  std::vector<double> values(2);
  run_kernel(kernel, {values.data()}, {0});
  EXPECT_THAT(values, ElementsAre(0, -HUGE_VAL));
  run_kernel(kernel, {values.data()}, {5});
  EXPECT_THAT(values, ElementsAre(10, 4));
}

TEST(Interpret, NestedReductionsStartAfreshEachTime) {
  Builder b("k");
  const int out = b.buffer("out", kInt64, BufferRole::Out);
  const Expr three = b.pool().constant(3);
  Lane total;
  b.loop(three, {.reduction = true}, [&](Expr i) {
    Lane inner;
    b.loop(i + 1, {.reduction = true}, [&](Expr j) { inner = b.reduce(ReduceKind::Sum, b.index(j + 1)); });
    total = b.reduce(ReduceKind::Product, inner);
  });
  b.store(out, b.pool().constant(0), total);
  std::vector<int64_t> values(1);
  run_kernel(b.finish(), {values.data()});
  EXPECT_THAT(values, ElementsAre(1 * 3 * 6));
}

TEST(Interpret, GathersThroughABoundIndex) {
  Builder b("gather");
  const Expr n = b.integer("n"), size = b.integer("size");
  const int at = b.buffer("at", kInt64, BufferRole::In, n), table = b.buffer("table", kFloat32, BufferRole::In, size);
  const int out = b.buffer("out", kFloat32, BufferRole::Out, n);
  b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) {
    const Lane raw = b.load(at, i), count = b.index(size);
    b.check(raw >= 0.0, "negative");
    b.check(raw < count, "too large");
    const Expr place = b.bind_index(maximum(minimum(raw, count - 1.0), number(raw, 0)));
    b.store(out, i, b.load(table, place));
  });
  const Kernel kernel = b.finish();
  std::vector<float> values{10, 11, 12}, result(4);
  std::vector<int64_t> good{2, 0, 1, 2}, large{2, 3, 1, 2}, both{9, 3, -1, 2};
  EXPECT_EQ(run_kernel(kernel, {good.data(), values.data(), result.data()}, {4, 3}), -1);
  EXPECT_THAT(result, ElementsAre(12, 10, 11, 12));
  EXPECT_EQ(run_kernel(kernel, {large.data(), values.data(), result.data()}, {4, 3}), 1);
  EXPECT_EQ(run_kernel(kernel, {both.data(), values.data(), result.data()}, {4, 3}), 0) << "the smallest number";
  EXPECT_EQ(kernel.checks[0], "negative");
}

TEST(Interpret, AccessesOutsideOfTheExtentAreCaught) {
  Builder b("k");
  const Expr n = b.integer("n");
  const int x = b.buffer("x", kFloat32, BufferRole::In, n), out = b.buffer("out", kFloat32, BufferRole::Out, n);
  b.loop(n, {}, [&](Expr i) { b.store(out, i, b.load(x, i + 1)); });
  const Kernel kernel = b.finish();
  std::vector<float> values(4), result(4);
  try {
    run_kernel(kernel, {values.data(), result.data()}, {3});
    ADD_FAILURE() << "expected an InternalError";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("`%0 = load x[i0 + 1] : f32` accesses element 3 of 3"));
  }
}

TEST(Interpret, ParametersAreConverted) {
  Builder b("k");
  const int out = b.buffer("out", kFloat64, BufferRole::Out);
  const int p = b.scalar("p", kFloat32), q = b.scalar("q", kInt64), r = b.scalar("r", kBool);
  const Expr zero = b.pool().constant(0);
  b.store(out, zero, b.parameter(p));
  b.store(out, zero + 1, b.parameter(q));
  b.store(out, zero + 2, b.parameter(r));
  std::vector<double> values(3);
  run_kernel(b.finish(), {values.data()}, {}, {std::bit_cast<uint64_t>(0.1), std::bit_cast<uint64_t>(int64_t{-3}), 1});
  EXPECT_THAT(values, ElementsAre(static_cast<double>(0.1f), -3, 1));
}

TEST(Interpret, HalvesAreRoundedByStores) {
  Builder b("k");
  const int x = b.buffer("x", kFloat16, BufferRole::In), out = b.buffer("out", kFloat16, BufferRole::Out);
  const int exact = b.buffer("exact", kFloat32, BufferRole::Out),
            rounded = b.buffer("rounded", kFloat32, BufferRole::Out);
  const Expr zero = b.pool().constant(0);
  const Lane third = b.load(x, zero) / 3.0;
  b.store(out, zero, third);
  b.store(exact, zero, third);
  b.store(rounded, zero, cast(third, kFloat16));
  Half input = to_half(1.0f), output;
  float full = 0, cut = 0;
  run_kernel(b.finish(), {&input, &output, &full, &cut});
  EXPECT_EQ(full, 1.0f / 3.0f);
  EXPECT_EQ(cut, to_float(to_half(1.0f / 3.0f)));
  EXPECT_EQ(output, to_half(1.0f / 3.0f));
  EXPECT_NE(full, cut);
}

TEST(Interpret, RandomBitsArePhilox) {
  Builder b("k");
  const int out = b.buffer("out", kInt64, BufferRole::Out);
  const int seed = b.scalar("seed", kInt64), offset = b.scalar("offset", kInt64);
  b.loop(b.pool().constant(9), {},
         [&](Expr i) { b.store(out, i, b.random_bits(b.parameter(seed), b.parameter(offset), i)); });
  std::vector<int64_t> words(9);
  run_kernel(b.finish(), {words.data()}, {}, {0x1234567890abcdefull, 42});
  for (uint64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(words[i], static_cast<int64_t>(
                            philox4x32({static_cast<uint32_t>(i / 4), 0, 42, 0}, {0x90abcdef, 0x12345678})[i % 4]));
  }
}

TEST(Interpret, ASiblingLoopReadsWhatWasStored) {
  Builder b("k");
  const int out = b.buffer("out", kInt32, BufferRole::Out), t = b.buffer("t", kInt32, BufferRole::Temporary);
  const Expr n = b.integer("n");
  b.loop(n, {.vector = true}, [&](Expr i) { b.store(t, i, b.index(i) * b.index(i)); });
  b.loop(n, {.vector = true}, [&](Expr i) { b.store(out, i, b.load(t, n - i - 1)); });
  std::vector<int32_t> result(4), temporary(4);
  run_kernel(b.finish(), {result.data(), temporary.data()}, {4});
  EXPECT_THAT(result, ElementsAre(9, 4, 1, 0));
}

// The same program after a detour through text, and cut into pieces, computes the same bits.
TEST(Interpret, RandomKernelsDoNotChangeThroughText) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    RandomKernel random = make_random_kernel(seed);
    const RunResult expected = run(random, [&](const Launch& launch) { interpret(random.kernel, launch); });
    const Kernel again = parse(to_string(random.kernel));
    const RunResult actual = run(random, [&](const Launch& launch) { interpret(again, launch); }, 3);
    EXPECT_EQ(expected.buffers, actual.buffers);
    EXPECT_EQ(difference(random, expected, actual), "");
  }
}

// `difference` sees what it should: a changed output, input or check.
TEST(RandomKernels, DifferencesAreFound) {
  int found = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RandomKernel random = make_random_kernel(seed);
    const RunResult expected = run(random, [&](const Launch& launch) { interpret(random.kernel, launch); });
    RunResult changed = expected;
    changed.failed = expected.failed + 1;
    EXPECT_NE(difference(random, expected, changed), "");
    changed = expected;
    changed.buffers[0][0] ^= std::byte{1};
    EXPECT_NE(difference(random, expected, changed), "") << "the first buffer is an input";
    changed = expected;
    for (std::byte& byte : changed.buffers[static_cast<size_t>(random.outputs[0].buffer)]) byte ^= std::byte{0x35};
    found += difference(random, expected, changed) != "";
  }
  EXPECT_GE(found, 35);
}

TEST(RandomKernels, UseEverything) {
  std::vector<int> uses(static_cast<size_t>(OpCode::Count_)), dtypes(kDtypeCount);
  int parallel = 0, vector = 0, empty = 0;
  const std::function<void(const Block&)> count = [&](const Block& block) {
    for (const Statement& statement : block) {
      if (const Op* op = std::get_if<Op>(&statement)) {
        ++uses[static_cast<size_t>(op->code)];
      } else {
        const Loop& loop = *std::get<1>(statement);
        parallel += loop.parallel;
        vector += loop.vector;
        count(loop.body);
      }
    }
  };
  for (uint64_t seed = 0; seed < 800; ++seed) {
    const RandomKernel random = make_random_kernel(seed);
    count(random.kernel.body);
    for (const Buffer& buffer : random.kernel.buffers) ++dtypes[static_cast<size_t>(buffer.dtype)];
    empty += parallel_extent(random.kernel, random.integers) == 0;
  }
  for (size_t i = 0; i < uses.size(); ++i) EXPECT_GT(uses[i], 0) << traits(static_cast<OpCode>(i)).name;
  for (size_t i = 0; i < dtypes.size(); ++i) EXPECT_GT(dtypes[i], 0) << name(static_cast<Dtype>(i));
  EXPECT_GT(parallel, 100);
  EXPECT_GT(vector, 100);
  EXPECT_GT(empty, 0);
}

TEST(RandomKernels, ObeyTheirOptions) {
  RandomOptions options;
  options.allow = [](OpCode code, Dtype) { return !traits(code).transcendental && code != OpCode::Div; };
  options.reductions = options.gathers = options.random_bits = options.temporaries = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = to_string(make_random_kernel(seed, options).kernel);
    for (const char* absent : {" div ", " exp ", " pow ", "reduction", "bind ", "random %", "temporary"}) {
      EXPECT_THAT(text, ::testing::Not(HasSubstr(absent)));
    }
  }
}

}  // namespace
}  // namespace tenon::loop
