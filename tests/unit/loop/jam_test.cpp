// Several rows in one pass give what one at a time gives.
#include <tenon/codegen/compile.h>
#include <tenon/loop/builder.h>
#include <tenon/loop/jam.h>

#include <gtest/gtest.h>

namespace tenon::loop {
namespace {

// out[row, column] = x[row, column] * w[column] + c[row], streaming.
Kernel rows_kernel(int64_t rows, int64_t columns, bool streaming = true) {
  Builder b("rows");
  int x = b.buffer("x", kFloat32, BufferRole::In), w = b.buffer("w", kFloat32, BufferRole::In),
      c = b.buffer("c", kFloat32, BufferRole::In);
  int out = b.buffer("out", kFloat32, BufferRole::Out);
  sym::Expr height = b.pool().constant(rows), width = b.pool().constant(columns);
  b.loop(height, {.parallel = true}, [&](sym::Expr row) {
    Lane shift = b.load(c, row);
    b.loop(width, {.vector = true}, [&](sym::Expr column) {
      b.store(out, row * columns + column, b.load(x, row * columns + column) * b.load(w, column) + shift);
    });
  });
  Kernel kernel = b.finish();
  kernel.buffers[static_cast<size_t>(out)].streaming = streaming;
  return kernel;
}

std::vector<float> run(const Kernel& kernel, int64_t rows, int64_t columns, bool compiled) {
  auto count = static_cast<size_t>(rows * columns);
  std::vector<float> x(count), w(static_cast<size_t>(columns)), c(static_cast<size_t>(rows)), out(count, -1);
  for (size_t at = 0; at < count; ++at) x[at] = static_cast<float>(at % 101);
  for (size_t at = 0; at < w.size(); ++at) w[at] = static_cast<float>(at % 7);
  for (size_t at = 0; at < c.size(); ++at) c[at] = static_cast<float>(at);
  void* buffers[] = {x.data(), w.data(), c.data(), out.data()};
  int64_t failed = -1, extent = parallel_extent(kernel, {});
  if (compiled)
    codegen::compile(parse(to_string(kernel)))->entry(buffers, nullptr, nullptr, 0, extent, &failed);
  else
    interpret(kernel, {buffers, nullptr, nullptr, 0, extent, &failed});
  return out;
}

TEST(Jam, four_rows_or_two_share_what_is_the_same_for_all) {
  for (auto [rows, taken] : {std::pair(512, 4), {256, 4}, {252, 2}, {130, 2}}) {
    Kernel kernel = rows_kernel(rows, 37), jammed = rows_kernel(rows, 37);
    ASSERT_EQ(jam_rows(jammed), taken);
    EXPECT_EQ(parallel_extent(jammed, {}), rows / taken);
    std::string text = to_string(jammed);
    size_t loads = 0;
    for (size_t at = text.find("load w"); at != std::string::npos; at = text.find("load w", at + 1)) ++loads;
    EXPECT_EQ(loads, 1u) << text;
    EXPECT_EQ(to_string(parse(text)), text);
    std::vector<float> expected = run(kernel, rows, 37, false);
    EXPECT_EQ(run(jammed, rows, 37, false), expected) << text;
    EXPECT_EQ(run(jammed, rows, 37, true), expected) << text;
  }
}

TEST(Jam, leaves_other_kernels_alone) {
  // An odd number of rows, so few that threads would have nothing to share, and a result that stays in the cache.
  for (auto [rows, streaming] : {std::pair(257, true), {8, true}, {256, false}}) {
    Kernel kernel = rows_kernel(rows, 37, streaming);
    std::string before = to_string(kernel);
    EXPECT_EQ(jam_rows(kernel), 1);
    EXPECT_EQ(to_string(kernel), before);
  }
  // Nothing is the same for all rows.
  Builder b("flat");
  int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  b.loop(b.pool().constant(256), {.parallel = true}, [&](sym::Expr row) {
    b.loop(b.pool().constant(16), {.vector = true},
           [&](sym::Expr column) { b.store(out, row * 16 + column, b.load(x, row * 16 + column) * 2.0); });
  });
  Kernel flat = b.finish();
  flat.buffers[1].streaming = true;
  EXPECT_EQ(jam_rows(flat), 1);
}

}  // namespace
}  // namespace tenon::loop
