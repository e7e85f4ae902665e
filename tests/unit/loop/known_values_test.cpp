// Indices that the builder knows: they are expressions, and bounds that they keep are not checked.
#include <tenon/loop/builder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::loop {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A kernel that picks x[position(i)] for i < `count`, checked and kept inside as the operators do it.
std::string picked(int64_t count, int64_t size, const std::function<Lane(Builder&, Lane)>& position) {
  Builder b("pick");
  int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  b.loop(b.pool().constant(count), {.vector = true}, [&](sym::Expr i) {
    Lane zero = b.constant(int64_t{0}, kInt64), extent = b.constant(size, kInt64);
    Lane at = position(b, b.index(i));
    Lane wrapped = select(at < zero, at + extent, at);
    b.check((wrapped >= zero) & (wrapped < extent), "out of range");
    b.store(out, i, b.load(x, b.bind_index(maximum(zero, minimum(wrapped, extent - 1.0)))));
  });
  return to_string(b.finish());
}

TEST(KnownValues, APositionIsAnIndex) {
  std::string text = picked(8, 8, [](Builder&, Lane i) { return i; });
  EXPECT_THAT(text, HasSubstr("load x[i0]"));
  EXPECT_THAT(text, Not(HasSubstr("check")));
  EXPECT_THAT(text, Not(HasSubstr("bind")));
}

TEST(KnownValues, ArithmeticOfPositions) {
  EXPECT_THAT(picked(8, 8, [](Builder&, Lane i) { return 7.0 - i; }), HasSubstr("load x[7 - i0]"));
  std::string halves = picked(16, 8, [](Builder& b, Lane i) { return floor_div(i, b.constant(2, kInt64)); });
  EXPECT_THAT(halves, Not(HasSubstr("check")));
  EXPECT_THAT(halves, Not(HasSubstr("bind")));
  std::string again = picked(24, 8, [](Builder& b, Lane i) { return mod(i, b.constant(8, kInt64)); });
  EXPECT_THAT(again, Not(HasSubstr("check")));
  EXPECT_THAT(again, Not(HasSubstr("bind")));
  std::string mirrored = picked(11, 8, [](Builder&, Lane i) { return abs(i - 3.0); });
  EXPECT_THAT(mirrored, Not(HasSubstr("check")));
  EXPECT_THAT(mirrored, Not(HasSubstr("bind")));
}

TEST(KnownValues, FromTheBack) {
  EXPECT_THAT(picked(8, 8, [](Builder&, Lane i) { return i - 8.0; }), HasSubstr("load x[i0]"));
}

// What may leave its bounds is checked, and what is read from memory is bound.
TEST(KnownValues, WhatIsNotKnownStays) {
  EXPECT_THAT(picked(9, 8, [](Builder&, Lane i) { return i; }), HasSubstr("check"));
  EXPECT_THAT(picked(8, 8, [](Builder&, Lane i) { return i * 2.0; }), HasSubstr("check"));
  std::string loaded = picked(8, 8, [](Builder& b, Lane) {
    return b.load(b.buffer("positions", kInt64, BufferRole::In), b.pool().constant(0));
  });
  EXPECT_THAT(loaded, HasSubstr("check"));
  EXPECT_THAT(loaded, HasSubstr("bind"));
}

// Kernels wrap at 64 bits and expressions do not: large factors are left to the kernel.
TEST(KnownValues, LargeFactorsAreNotFollowed) {
  std::string text = picked(8, 8, [](Builder& b, Lane i) {
    Lane large = b.constant(int64_t{1} << 32, kInt64);
    return i * large * large;
  });
  EXPECT_THAT(text, HasSubstr("bind"));
  EXPECT_THAT(text, HasSubstr("check"));
}

}  // namespace
}  // namespace tenon::loop
