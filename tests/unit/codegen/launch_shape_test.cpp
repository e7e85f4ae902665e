#include <tenon/codegen/compile.h>

#include <gtest/gtest.h>

namespace tenon::codegen {
namespace {

TEST(LaunchShape, WithoutParallelLoopIsOneIteration) {
  loop::Kernel kernel = loop::parse(
      "kernel k(x: f32 in, out: f32 out; n: int in [0, inf])\n"
      "  reduction vector i0 < n {\n"
      "    %0 = load x[i0] : f32\n"
      "    %1 = reduce sum %0 : f32\n"
      "  }\n"
      "  store out[0], %1\n");
  load::LaunchShape shape = launch_shape(kernel);
  EXPECT_FALSE(shape.parallel());
  EXPECT_EQ(shape.evaluate(std::vector<int64_t>{7}).extent, 1);
}

TEST(LaunchShape, ConstantsNeedNoParameters) {
  loop::Kernel kernel = loop::parse(
      "kernel k(x: f32 in, out: f32 out)\n"
      "  parallel vector i0 < 24 {\n"
      "    %0 = load x[i0] : f32\n"
      "    store out[i0], %0\n"
      "  }\n");
  load::LaunchShape shape = launch_shape(kernel);
  EXPECT_TRUE(shape.parallel());
  EXPECT_TRUE(shape.vector());
  EXPECT_EQ(shape.evaluate({}).extent, 24);
  EXPECT_EQ(shape.evaluate({}).work, 1);
}

// As the interpreter's own rule has it, for several values of the parameters.
TEST(LaunchShape, FollowsTheParameters) {
  loop::Kernel kernel = loop::parse(
      "kernel k(x: f32 in, out: f32 out; m: int in [0, inf], n: int in [0, inf])\n"
      "  parallel i0 < m + 1 {\n"
      "    vector i1 < n {\n"
      "      %0 = load x[i1 + n*i0] : f32\n"
      "      store out[i1 + n*i0], %0\n"
      "    }\n"
      "  }\n");
  load::LaunchShape shape = launch_shape(kernel);
  EXPECT_FALSE(shape.vector());
  for (int64_t m : {0, 3, 100})
    for (int64_t n : {0, 1, 50}) {
      const std::vector<int64_t> integers{m, n};
      EXPECT_EQ(shape.evaluate(integers).extent, n > 0 ? m + 1 : 0) << "there is nothing to do without columns";
      EXPECT_EQ(shape.evaluate(integers).extent, loop::parallel_extent(kernel, integers));
      EXPECT_EQ(shape.evaluate(integers).work, 1 + std::max<int64_t>(n, 1));
    }
  EXPECT_THROW(shape.evaluate(std::vector<int64_t>{1}), InternalError);
}

}  // namespace
}  // namespace tenon::codegen
