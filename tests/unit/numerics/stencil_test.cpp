#include <tenon/numerics/stencil.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using numerics::Boundary;
using numerics::laplacian;
using ::testing::ElementsAre;

TEST(Laplacian, BeyondTheEdgesOfALine) {
  Tensor line = tensor({1.0, 4.0, 9.0, 16.0}, kFloat64);
  EXPECT_THAT(values(laplacian(line)), ElementsAre(2, 2, 2, -23));
  EXPECT_THAT(values(laplacian(line, {.boundary = Boundary::Mirror})), ElementsAre(3, 2, 2, -7));
  EXPECT_THAT(values(laplacian(line, {.boundary = Boundary::Periodic})), ElementsAre(18, 2, 2, -22));
  EXPECT_THAT(values(laplacian(line, {.spacing = 0.5})), ElementsAre(8, 8, 8, -92));
}

TEST(Laplacian, AllDimensionsOrTheLast) {
  Tensor plane = tensor({{1.0, 2.0}, {3.0, 5.0}}, kFloat64);
  EXPECT_THAT(values(laplacian(plane)), ElementsAre(1, -2, -6, -15));
  // Two lines.
  EXPECT_THAT(values(laplacian(plane, {.dims = 1})), ElementsAre(0, -3, -1, -7));
  EXPECT_THAT(values(laplacian(ones({1, 1, 1}, kFloat64))), ElementsAre(-6));
}

TEST(Laplacian, OfAWaveIsTheWave) {
  constexpr int64_t kPoints = 64;
  double step = 2 * std::numbers::pi / kPoints;
  Tensor wave = sin(arange(kPoints).to(kFloat64) * step);
  EXPECT_TRUE(laplacian(wave, {.spacing = step, .boundary = Boundary::Periodic}).allclose(-wave, 1e-2));
}

TEST(Laplacian, CompiledIsOneKernelAndTheSame) {
  auto heat = compile([](Tensor u) { return u + 0.2 * laplacian(u); }, {.fullgraph = true});
  for (int64_t size : {5, 6, 7}) {
    Tensor field = sin(arange(size * size).to(kFloat64)).view({size, size});
    EXPECT_TRUE(heat(field).allclose(field + 0.2 * laplacian(field), 1e-12));
  }
}

TEST(Laplacian, IsItsOwnTranspose) {
  for (Boundary boundary : {Boundary::Zero, Boundary::Mirror, Boundary::Periodic}) {
    Tensor u = sin(arange(12).to(kFloat64)).view({3, 4}).set_requires_grad(),
           v = cos(arange(12).to(kFloat64)).view({3, 4});
    (laplacian(u, {.boundary = boundary}) * v).sum().backward();
    EXPECT_TRUE(u.grad().allclose(laplacian(v, {.boundary = boundary}), 1e-12, 1e-12));
  }
}

TEST(Laplacian, Refusals) {
  EXPECT_EQ(error_of([] { (void)laplacian(ones({3}, kInt64)); }),
            "[laplacian] expected a tensor of floating point numbers, got int64[3]");
  EXPECT_EQ(error_of([] { (void)laplacian(ones({3, 3}), {.dims = 3}); }),
            "[laplacian] expected a grid of 1 to 2 dimensions, got 3");
  EXPECT_EQ(error_of([] { (void)laplacian(ones({3}), {.spacing = 0}); }),
            "[laplacian] expected a spacing above 0, got 0");
}

}  // namespace
}  // namespace tenon::testing
