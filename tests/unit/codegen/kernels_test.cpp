// Kernels of the shapes that lowering makes, and the corners that random kernels seldom reach, against the interpreter.
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/loop/builder.h>

#include "codegen/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

namespace tenon::codegen {
namespace {

using loop::BufferRole;
using loop::Builder;
using loop::Kernel;
using loop::Lane;
using loop::Launch;
using loop::ReduceKind;
using sym::Expr;

constexpr sym::Range kCount = {0, sym::Range::kMax};

// A kernel with data that suits the dtypes, and a margin on both sides of every buffer.
struct Trial {
  Kernel kernel;
  std::vector<int64_t> elements;  // per buffer
  std::vector<int64_t> integers;
  int64_t offset_bytes = 0;  // of every buffer's address from a multiple of 64

  std::vector<std::vector<std::byte>> data() const {
    std::mt19937_64 random(11);
    std::vector<std::vector<std::byte>> result;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const Dtype dtype = kernel.buffers[i].dtype;
      std::vector<std::byte> bytes(static_cast<size_t>(elements[i] * size_of(dtype) + 256));
      for (int64_t e = 0; e < elements[i]; ++e) {
        std::byte* at = bytes.data() + 64 + e * size_of(dtype);
        if (dtype == kFloat32) {
          float value = static_cast<float>(random() % 2000) / 100.0f - 10.0f;
          std::memcpy(at, &value, 4);
        } else if (dtype == kFloat64) {
          double value = static_cast<double>(random() % 2000) / 100.0 - 10.0;
          std::memcpy(at, &value, 8);
        } else {
          uint64_t value = dtype == kBool ? random() % 2 : random();
          std::memcpy(at, &value, static_cast<size_t>(size_of(dtype)));
        }
      }
      result.push_back(std::move(bytes));
    }
    return result;
  }

  template <typename Execute>
  std::vector<std::vector<std::byte>> results(Execute execute, int64_t* failed) const {
    std::vector<std::vector<std::byte>> contents = data();
    std::vector<std::byte*> blocks;
    std::vector<void*> pointers;
    for (auto& bytes : contents) {
      auto* block = static_cast<std::byte*>(std::aligned_alloc(64, (bytes.size() + 255) / 64 * 64 + 64));
      std::memcpy(block + offset_bytes, bytes.data(), bytes.size());
      blocks.push_back(block);
      pointers.push_back(block + offset_bytes + 64);
    }
    execute(Launch{pointers.data(), integers.data(), nullptr, 0, loop::parallel_extent(kernel, integers), failed});
    for (size_t i = 0; i < contents.size(); ++i) {
      std::memcpy(contents[i].data(), blocks[i] + offset_bytes, contents[i].size());
      std::free(blocks[i]);
    }
    return contents;
  }

  // Bit for bit, margins included.
  void expect_equal() const {
    int64_t failed_here = -1, failed_there = -1;
    CompiledKernelRef compiled = compile(loop::parse(loop::to_string(kernel)));
    auto actual =
        results([&](const Launch& l) { compiled->entry(l.buffers, l.integers, l.scalars, l.begin, l.end, l.failed); },
                &failed_here);
    auto expected = results([&](const Launch& l) { loop::interpret(kernel, l); }, &failed_there);
    EXPECT_EQ(failed_here, failed_there);
    for (size_t i = 0; i < actual.size(); ++i)
      for (size_t at = 0; at < actual[i].size(); ++at)
        ASSERT_EQ(actual[i][at], expected[i][at])
            << kernel.buffers[i].name << ", byte " << static_cast<int64_t>(at) - 64 << " of " << elements[i]
            << " elements\n"
            << loop::to_string(kernel);
  }
};

class KernelAtWidth : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    set_isa(GetParam());
    if (isa_bits() != GetParam()) GTEST_SKIP() << "this machine has no vectors of " << GetParam() << " bits";
    set_cache_folder("");
  }
  void TearDown() override {
    set_bounds_checks(usual_checks_);
    set_isa(0);
  }
  const bool usual_checks_ = bounds_checks();
};
INSTANTIATE_TEST_SUITE_P(Widths, KernelAtWidth, testing::Values(512, 256, 128));

TEST_P(KernelAtWidth, ColumnSumsOfIntegers) {
  Builder b("column_sums");
  int x = b.buffer("x", kInt32, BufferRole::In), out = b.buffer("out", kInt32, BufferRole::Out);
  Expr rows = b.integer("rows", kCount), columns = b.integer("columns", kCount);
  b.loop(columns, {.parallel = true, .vector = true}, [&](Expr j) {
    Lane sum;
    b.loop(rows, {.reduction = true}, [&](Expr i) { sum = b.reduce(ReduceKind::Sum, b.load(x, i * columns + j)); });
    b.store(out, j, sum);
  });
  Kernel kernel = b.finish();
  for (int64_t count : {0, 1, 7, 16, 63, 64, 65, 200})
    Trial{loop::parse(to_string(kernel)), {9 * count, count}, {9, count}}.expect_equal();
}

TEST_P(KernelAtWidth, TransposesWithStridedLoadsAndStores) {
  for (bool scatter : {false, true}) {
    Builder b("transpose");
    int x = b.buffer("x", kInt64, BufferRole::In), out = b.buffer("out", kInt64, BufferRole::Out);
    Expr rows = b.integer("rows", kCount), columns = b.integer("columns", kCount);
    b.loop(rows, {.parallel = true}, [&](Expr i) {
      b.loop(columns, {.vector = true}, [&](Expr j) {
        if (scatter)
          b.store(out, j * rows + i, b.load(x, i * columns + j));
        else
          b.store(out, i * columns + j, b.load(x, j * rows + i));
      });
    });
    Trial{b.finish(), {13 * 41, 13 * 41}, {13, 41}}.expect_equal();
  }
}

TEST_P(KernelAtWidth, IndicesWithDivisionAndRemainder) {
  for (int64_t divisor : {1, 3, 5, 8, 100}) {
    Builder b("divided");
    int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
    int numbers = b.buffer("numbers", kInt64, BufferRole::Out);
    Expr n = b.integer("n", kCount), d = b.integer("d", {1, 1000}), start = b.integer("start");
    b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) {
      Expr row = floor_div(i, d), column = mod(i, d);
      b.store(
          out, i,
          b.load(x, row + column * 7) + b.load(x, floor_div(i, b.pool().constant(4)) + mod(i, b.pool().constant(6))));
      b.store(numbers, i * 2, b.index(floor_div(i + start, d)));
      b.store(numbers, i * 2 + 1, b.index(mod(start - i, d * 3)));
    });
    Kernel kernel = b.finish();
    // Large starts have no exact double.
    for (int64_t start_value : {int64_t{-37}, int64_t{0}, (int64_t{1} << 62) + 12345, -(int64_t{1} << 61) - 7})
      Trial{loop::parse(to_string(kernel)), {1000, 150, 300}, {150, divisor, start_value}}.expect_equal();
  }
}

TEST_P(KernelAtWidth, StreamingStoresAtEveryAlignment) {
  for (Dtype dtype : {kFloat32, kFloat64, kInt16, kInt8}) {
    Builder b("streaming");
    int x = b.buffer("x", dtype, BufferRole::In);
    int out = b.buffer("out", dtype, BufferRole::Out), second = b.buffer("second", kFloat32, BufferRole::Out);
    b.kernel().buffers[static_cast<size_t>(out)].streaming = true;
    b.kernel().buffers[static_cast<size_t>(second)].streaming = true;
    Expr rows = b.integer("rows", kCount), n = b.integer("n", kCount);
    b.loop(rows, {.parallel = true}, [&](Expr i) {
      b.loop(n, {.vector = true}, [&](Expr j) {
        Lane value = b.load(x, i * n + j);
        b.store(out, i * n + j, value + value);
        b.store(second, i * n + j, b.cast(value, kFloat32));
      });
    });
    Kernel kernel = b.finish();
    for (int64_t offset : {0, 8, 24, 64})
      for (int64_t columns : {1, 64, 131}) {
        Trial run{loop::parse(to_string(kernel)), {5 * columns, 5 * columns, 5 * columns}, {5, columns}, offset};
        run.expect_equal();
      }
  }
}

TEST_P(KernelAtWidth, HalvesOfEveryPattern) {
  for (Dtype from : {kFloat16, kBFloat16}) {
    for (Dtype to : {kFloat16, kBFloat16, kFloat32}) {
      Builder b("halves");
      int x = b.buffer("x", kInt16, BufferRole::In);
      (void)x;
      int half = b.buffer("half", from, BufferRole::InOut), out = b.buffer("out", to, BufferRole::Out);
      Expr n = b.integer("n", kCount);
      b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) { b.store(out, i, b.load(half, i)); });
      Kernel kernel = b.finish();
      CompiledKernelRef compiled = compile(loop::parse(to_string(kernel)));
      std::vector<uint16_t> patterns(65536);
      for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
      std::vector<uint32_t> actual(65536), expected(65536);
      int64_t count = 65536, failed = -1;
      void* buffers[] = {patterns.data(), patterns.data(), actual.data()};
      compiled->entry(buffers, &count, nullptr, 0, count, &failed);
      buffers[2] = expected.data();
      loop::interpret(kernel, {buffers, &count, nullptr, 0, count, &failed});
      for (size_t i = 0; i < 65536; ++i) {
        const bool nan = from == kFloat16 ? (i & 0x7fff) > 0x7c00 : (i & 0x7fff) > 0x7f80;
        const size_t pair = to == kFloat32 ? i : i / 2;
        if (nan || (to != kFloat32 && from == kFloat16 && ((i ^ 1) & 0x7fff) > 0x7c00)) continue;
        if (to != kFloat32 && from == kBFloat16 && ((i ^ 1) & 0x7fff) > 0x7f80) continue;
        ASSERT_EQ(actual[pair], expected[pair]) << i << " from " << name(from) << " to " << name(to);
      }
    }
  }
}

TEST_P(KernelAtWidth, DoublesAreRoundedToHalvesOnce) {
  Builder b("round");
  int x = b.buffer("x", kFloat64, BufferRole::In);
  int half = b.buffer("half", kFloat16, BufferRole::Out), brain = b.buffer("brain", kBFloat16, BufferRole::Out);
  Expr n = b.integer("n", kCount);
  b.loop(n, {.vector = true}, [&](Expr i) {
    b.store(half, i, b.cast(b.load(x, i), kFloat16));
    b.store(brain, i, b.cast(b.load(x, i), kBFloat16));
  });
  Kernel kernel = b.finish();
  std::vector<double> values;
  for (double base : {1.0, -3.0, 0x1p-14, 0x1p-24, 0x1p-25, 65504.0, 65520.0, 0x1p-126, 0x1p127, 1e300, 0.0})
    for (double step : {0.0, 0x1p-11, 0x1p-8, 0x1p-9, 0x1p-12})
      for (double nudge : {0.0, 0x1p-40, -0x1p-40, 0x1p-52}) values.push_back(base * (1 + step + nudge));
  CompiledKernelRef compiled = compile(loop::parse(to_string(kernel)));
  int64_t count = static_cast<int64_t>(values.size()), failed = -1;
  std::vector<uint16_t> actual[2], expected[2];
  for (int i = 0; i < 2; ++i) actual[i].resize(values.size()), expected[i].resize(values.size());
  void* here[] = {values.data(), actual[0].data(), actual[1].data()};
  void* there[] = {values.data(), expected[0].data(), expected[1].data()};
  compiled->entry(here, &count, nullptr, 0, 1, &failed);
  loop::interpret(kernel, {there, &count, nullptr, 0, 1, &failed});
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(actual[0][i], expected[0][i]) << values[i];
    EXPECT_EQ(actual[1][i], expected[1][i]) << values[i];
  }
}

TEST_P(KernelAtWidth, IntegerDivisionOfCorners) {
  const int64_t corners[] = {0,    1,   -1,  2,      -2,    3,         7,         -7,        100,
                             -128, 127, 255, -32768, 32767, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
  for (Dtype dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    Builder b("division");
    int x = b.buffer("x", kInt64, BufferRole::In), y = b.buffer("y", kInt64, BufferRole::In);
    int out = b.buffer("out", dtype, BufferRole::Out);
    Expr n = b.integer("n", kCount);
    b.loop(n, {.vector = true}, [&](Expr i) {
      Lane p = b.cast(b.load(x, i), dtype), q = b.cast(b.load(y, i), dtype);
      b.store(out, i * 6, p / q);
      b.store(out, i * 6 + 1, floor_div(p, q));
      b.store(out, i * 6 + 2, rem(p, q));
      b.store(out, i * 6 + 3, mod(p, q));
      b.store(out, i * 6 + 4, b.binary(loop::OpCode::Shl, p, q));
      b.store(out, i * 6 + 5, b.binary(loop::OpCode::Pow, p, q));
    });
    Kernel kernel = b.finish();
    std::vector<int64_t> left, right;
    for (int64_t p : corners)
      for (int64_t q : corners) left.push_back(p), right.push_back(q);
    int64_t count = static_cast<int64_t>(left.size()), failed = -1;
    std::vector<int64_t> actual(left.size() * 6), expected(left.size() * 6);
    CompiledKernelRef compiled = compile(loop::parse(to_string(kernel)));
    void* here[] = {left.data(), right.data(), actual.data()};
    void* there[] = {left.data(), right.data(), expected.data()};
    compiled->entry(here, &count, nullptr, 0, 1, &failed);
    loop::interpret(kernel, {there, &count, nullptr, 0, 1, &failed});
    for (size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(actual[i], expected[i]) << name(dtype) << " word " << i;
  }
}

TEST_P(KernelAtWidth, ChecksReportTheSmallestFailure) {
  Builder b("checks");
  int x = b.buffer("x", kInt64, BufferRole::In);
  Expr n = b.integer("n", kCount);
  b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) {
    Lane value = b.load(x, i);
    b.check(value < b.constant(100, kInt64), "below 100");
    b.check(value >= b.constant(0, kInt64), "not negative");
  });
  CompiledKernelRef compiled = compile(b.finish());
  auto failed_at = [&](int64_t position, int64_t value, int64_t count) {
    std::vector<int64_t> data(300, 5);
    data[static_cast<size_t>(position)] = value;
    int64_t failed = -1;
    void* buffers[] = {data.data()};
    compiled->entry(buffers, &count, nullptr, 0, count, &failed);
    return failed;
  };
  for (int64_t position : {0, 15, 130, 199}) {
    EXPECT_EQ(failed_at(position, 5, 200), -1);
    EXPECT_EQ(failed_at(position, -1, 200), 1);
    EXPECT_EQ(failed_at(position, 100, 200), 0);
  }
  EXPECT_EQ(failed_at(200, 100, 200), -1) << "a lane beyond the end was checked";
}

TEST_P(KernelAtWidth, EmptyLoopsTouchNothing) {
  // The load does not depend on the inner loop and moves out of it, but must not be made when that loop is empty.
  Builder b("empty");
  int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  Expr rows = b.integer("rows", kCount), columns = b.integer("columns", kCount), far = b.integer("far", kCount);
  b.loop(rows, {.parallel = true}, [&](Expr i) {
    b.loop(columns, {.vector = true}, [&](Expr j) { b.store(out, i * columns + j, b.load(x, i * far)); });
  });
  CompiledKernelRef compiled = compile(b.finish());
  int64_t integers[] = {5, 0, int64_t{1} << 40}, failed = -1;
  float one = 1;
  void* buffers[] = {&one, &one};
  compiled->entry(buffers, integers, nullptr, 0, 5, &failed);
  EXPECT_EQ(one, 1);
}

TEST_P(KernelAtWidth, WildAccessesAreCaughtWhenChecked) {
  // Processes of their own, not forks of one with threads.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  set_bounds_checks(true);
  for (bool varying : {false, true}) {
    Builder b("wild");
    Expr n = b.integer("n", kCount), extent = b.integer("extent", kCount);
    int x = b.buffer("x", kFloat32, BufferRole::In, extent), out = b.buffer("out", kFloat32, BufferRole::Out);
    b.loop(n, {.parallel = true, .vector = true},
           [&](Expr i) { b.store(out, i, b.load(x, varying ? i * 2 : extent - extent + n - 1)); });
    CompiledKernelRef compiled = compile(b.finish());
    std::vector<float> data(200, 1), result(100);
    auto call = [&](int64_t count, int64_t size) {
      int64_t integers[] = {count, size}, failed = -1;
      void* buffers[] = {data.data(), result.data()};
      compiled->entry(buffers, integers, nullptr, 0, count, &failed);
    };
    call(100, 200);
    EXPECT_EQ(result[99], 1.0f);
    EXPECT_DEATH(call(100, 99), "out-of-bounds access: wild: load x, element 99|element 100 of 99");
  }
}

TEST(Isa, RefusesOtherWidths) {
  try {
    set_isa(100);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[set_isa] expected 128, 256 or 512, got 100");
  }
  set_isa(128);
  EXPECT_EQ(isa_bits(), 128);
  EXPECT_NE(target_description().find("128"), std::string::npos);
  set_isa(0);
}

TEST(Isa, BadEnvironmentIsAnError) {
  // A process of its own: this one has read the environment already.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("TENON_ISA", "1024", 1);
        try {
          isa_bits();
        } catch (const Error& error) {
          std::fprintf(stderr, "%s\n", error.what());
          _exit(3);
        }
        _exit(0);
      },
      testing::ExitedWithCode(3), "expected 128, 256 or 512, got '1024'");
}

TEST(DebugFiles, AreWrittenSideBySide) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("tenon_debug_" + std::to_string(getpid()))).string();
  setenv("TENON_DEBUG_DIR", folder.c_str(), 1);
  set_cache_folder("");
  Builder b("debug_me");
  int out = b.buffer("out", kFloat32, BufferRole::Out);
  b.loop(b.integer("n", kCount), {.vector = true}, [&](Expr i) { b.store(out, i, b.constant(2.0, kFloat32)); });
  compile(b.finish());
  unsetenv("TENON_DEBUG_DIR");
  std::vector<std::string> kinds;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(file.path().filename().string().rfind("debug_me_", 0), 0u);
    EXPECT_GT(file.file_size(), 50u);
    kinds.push_back(file.path().extension().string());
  }
  std::sort(kinds.begin(), kinds.end());
  EXPECT_EQ(kinds, (std::vector<std::string>{".kernel", ".ll", ".s"}));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::codegen
