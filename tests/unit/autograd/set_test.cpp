#include "unit/autograd/helpers.h"

#include <tenon/autograd/set.h>
#include <tenon/capture/compile.h>

namespace tenon::testing {
namespace {

TEST(Set, TakesTheMemoryOfAnother) {
  Tensor a = real({1, 2}), b = real({3, 4, 5, 6}, {2, 2});
  EXPECT_TRUE(set_(a, b.t()).is(a));
  EXPECT_EQ(values(a), (std::vector<double>{3, 5, 4, 6}));
  a.select(0, 0).fill_(0);
  EXPECT_EQ(values(b), (std::vector<double>{0, 4, 0, 6}));
}

TEST(Set, RefusesWhatAutogradFollows) {
  Tensor x = leaf({1, 2}), plain = real({0, 0});
  EXPECT_EQ(error_of([&] { set_(x, plain); }),
            "[set_] a leaf Variable that requires grad is being used in an in-place operation: use no_grad()");
  EXPECT_EQ(error_of([&] { set_(plain, x); }),
            "[set_] expected tensors that do not require grad: no gradient flows through it; use no_grad()");
  EXPECT_EQ(error_of([&] { set_(plain, ones({2})); }),
            "[set_] expected a source of float64 on cpu, got float32[2] on cpu");
  NoGrad off;
  set_(x, plain);
  EXPECT_TRUE(x.is_same_storage(plain) && x.requires_grad());
}

TEST(Set, ACompiledFunctionThatMovesATensorRunsEagerly) {
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    auto f = compile([](Tensor a, Tensor b) { return set_(a, b * 2) + 1; }, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      Tensor a = real({1, 2}), b = real({3, 4, 5});
      EXPECT_EQ(values(f(a, b)), (std::vector<double>{7, 9, 11})) << backend;
      EXPECT_EQ(values(a), (std::vector<double>{6, 8, 10})) << backend;
    }
    EXPECT_EQ(f.explain().breaks.at(0).substr(0, 50), "aten::set_.source_Tensor moves a tensor to other m") << backend;
  }
}

}  // namespace
}  // namespace tenon::testing
