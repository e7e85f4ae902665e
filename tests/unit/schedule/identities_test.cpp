// What changes nothing is taken out, but not where views count from its beginning.
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using testing::same_bits;

TEST(Identities, ACopyOfASliceBeginsAtItsOwnFirstElement) {
  auto f = [](Tensor x) { return (x.slice(0, 1) * 1).view({-1}) + x.slice(0, 1).sub(0).t().reshape({-1}); };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto compiled = compile(f, {.dynamic = dynamic});
    for (int64_t rows : {3, 4, 2}) {
      Tensor x = arange(rows * 4, kFloat32).view({rows, 4});
      EXPECT_TRUE(same_bits(compiled(x), f(x)));
    }
  }
}

}  // namespace
}  // namespace tenon
