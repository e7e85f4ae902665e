// Pointwise calls whose tensors lie alike go a shorter way: with the values, strides and errors of the longer one.
#include "unit/capture/testing.h"

#include <gmock/gmock.h>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;

void expect_alike(const Tensor& made, const Tensor& expected, const std::string& what) {
  EXPECT_TRUE(same_bits(made, expected)) << what;
  EXPECT_EQ(made.dtype(), expected.dtype()) << what;
  EXPECT_TRUE(std::ranges::equal(made.strides(), expected.strides())) << what << ": " << made.description();
}

// What is compiled works out sizes and strides dimension by dimension.
TEST(Eager, CallsOnTensorsThatLieAlikeAreAsInferred) {
  const std::vector<std::function<Tensor(Tensor, Tensor)>> functions = {
      [](Tensor a, Tensor b) { return a + b; },        [](Tensor a, Tensor b) { return a.to(kFloat64) * b; },
      [](Tensor a, Tensor b) { return a >= b; },       [](Tensor a, Tensor b) { return where(a > 0, a, b); },
      [](Tensor a, Tensor b) { return a.sub_(b, 3); }, [](Tensor a, Tensor) { return a.mul_(a); },
      [](Tensor a, Tensor) { return a.exp() / 2; },
  };
  const std::vector<Ints> sizes = {{}, {1}, {7}, {3, 1, 2}, {0}, {0, 3, 4}, {2, 3, 4}};
  for (size_t at = 0; at < functions.size(); ++at)
    for (const Ints& size : sizes)
      for (bool turned : {false, true}) {
        auto make = [&](uint64_t seed) {
          manual_seed(seed);
          Tensor made = randn(SymInts(size.span()));
          return turned && made.dim() > 1 ? made.transpose(0, 1) : made;
        };
        auto compiled = compile(functions[at], {.dynamic = Dynamic::Off});
        expect_alike(functions[at](make(1), make(2)), compiled(make(1), make(2)),
                     fmt::format("{} of {}{}", at, make(1).description(), turned ? ", turned" : ""));
      }
}

TEST(Eager, WritesToWhatIsStillToBeReadGoTheLongWay) {
  Tensor x = arange(6).to(kFloat32);
  x.slice(0, 1).add_(x.slice(0, 0, 5));
  EXPECT_TRUE(same_bits(x, tensor(std::vector<double>{0, 1, 3, 5, 7, 9}, kFloat32)));
}

TEST(Eager, ErrorsAreThoseOfTheRow) {
  Tensor whole = ones({2}, kInt64), real = ones({2});
  EXPECT_THAT(error_of([&] { whole.add_(real); }), HasSubstr("cannot be stored in self of int64"));
  EXPECT_THAT(error_of([&] { real.to(kFloat8E4M3FN) + real.to(kFloat8E4M3FN); }), HasSubstr("floats of 8 bits"));
  EXPECT_THAT(error_of([&] { Tensor() + real; }), HasSubstr("undefined"));
}

}  // namespace
}  // namespace tenon
