// A tensor that is not there is an error, never a crash.
#include <gtest/gtest.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include "error_of.h"

namespace tenon {
namespace {

using testing::error_of;

TEST(Undefined, AccessorsSayWhatWasAsked) {
  Tensor none, x = ones({2});
  auto expected = [](const char* name) { return fmt::format("[{}] expected a tensor, got an undefined one", name); };
  EXPECT_EQ(error_of([&] { return none.dtype(); }), expected("dtype"));
  EXPECT_EQ(error_of([&] { return none.device(); }), expected("device"));
  EXPECT_EQ(error_of([&] { return none.is_floating_point(); }), expected("dtype"));
  EXPECT_EQ(error_of([&] { return none.element_size(); }), expected("dtype"));
  EXPECT_EQ(error_of([&] { return none.is_fake(); }), expected("is_fake"));
  EXPECT_EQ(error_of([&] { return none.has_symbolic_sizes(); }), expected("has_symbolic_sizes"));
  EXPECT_EQ(error_of([&] { return none.is_same_storage(x); }), expected("is_same_storage"));
  EXPECT_EQ(error_of([&] { return x.is_same_storage(none); }), expected("is_same_storage"));
  EXPECT_EQ(error_of([&] { return none.data<float>(); }), expected("dtype"));
  EXPECT_EQ(error_of([&] { return none.raw_data(); }), expected("data"));
  EXPECT_EQ(error_of([&] { return none.sizes(); }), expected("sizes"));
  EXPECT_EQ(error_of([&] { return none.item(); }), expected("_local_scalar_dense"));
  EXPECT_EQ(error_of([&] { return none.requires_grad(); }), expected("requires_grad"));
}

TEST(Undefined, OperatorsNameThemselves) {
  Tensor none, x = ones({2});
  auto expected = [](const char* name) { return fmt::format("[{}] expected a tensor, got an undefined one", name); };
  EXPECT_EQ(error_of([&] { return none.to(kFloat64); }), expected("to"));
  EXPECT_EQ(error_of([&] { return empty_like(none); }), expected("empty_like"));
  EXPECT_EQ(error_of([&] { return none + x; }), expected("add"));
  EXPECT_EQ(error_of([&] { return x * none; }), expected("mul"));
  EXPECT_EQ(error_of([&] { return none[0]; }), expected("select"));
  EXPECT_EQ(error_of([&] { return none.add_(1); }), expected("add_"));
  EXPECT_EQ(error_of([&] { return cat({x, none}); }), expected("cat"));
  EXPECT_EQ(error_of([&] { return none.matmul(x); }), expected("matmul"));
  // An optional one may be missing.
  Tensor image = ones({1, 1, 2, 2}), filter = ones({1, 1, 1, 1});
  EXPECT_EQ(conv2d(image, filter, std::nullopt).numel().plain(), 4);
}

// A handle of no operator cannot be made: only custom_op() makes handles.
static_assert(!std::is_constructible_v<library::CustomOp<Tensor, Tensor>, std::nullptr_t>);

TEST(Undefined, InACaptureToo) {
  auto f = compile([](Tensor x) { return x + Tensor(); });
  EXPECT_EQ(error_of([&] { return f(ones({2})); }), "[add] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tenon
