// What a branch does not take is neither read nor checked, however wide the vectors are.
#include <gtest/gtest.h>
#include <tenon/codegen/compile.h>
#include <tenon/eager/eager.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;

class Width : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set(GetParam()); }
  void TearDown() override { set(0); }
  static void set(int bits) {
    codegen::set_isa(bits);
    eager::forget_kernels();
  }
};

using Function = std::function<Tensor(Tensor, Tensor)>;

// Rows of x that `which` names, none of them among the calls.
Tensor picked(const Tensor& x, const Tensor& which) { return x.index_select(0, which.nonzero().squeeze(1)); }

void expect_as_eager(const Function& f, const Tensor& rows) {
  for (const char* backend : {"aot_eager", "inductor"}) {
    auto compiled = compile(f, {.fullgraph = true, .backend = backend, .capture_dynamic_output_shape_ops = true});
    for (const Tensor& which : {tensor({0, 0, 0}), tensor({0, 1, 1}), tensor({0, 0, 0}), tensor({1, 1, 1})}) {
      SCOPED_TRACE(fmt::format("{}, {}", backend, which.str()));
      Tensor x = rows.clone().set_requires_grad(), y = rows.clone().set_requires_grad();
      Tensor expected = f(x, which), got = compiled(y, which);
      EXPECT_TRUE(same_bits(got, expected));
      (expected * expected).sum().backward();
      (got * got).sum().backward();
      EXPECT_LE(difference(y.grad(), x.grad()), 1e-6);
    }
  }
}

TEST_P(Width, NothingIsReadOfAnEmptyPiece) {
  Tensor line = arange(3, kFloat32), rows = arange(60, kFloat32).view({3, 20});
  const std::vector<Function> functions = {
      [](Tensor x, Tensor which) { return cat({picked(x, which), x}); },
      [](Tensor x, Tensor which) { return cat({x, picked(x, which) * 2, x + 1}); },
      [](Tensor x, Tensor which) { return cat({picked(x, which), picked(x, which)}) + 1; },
      [](Tensor x, Tensor which) {
        return constant_pad_nd(picked(x, which), x.dim() == 1 ? SymInts{2, 1} : SymInts{0, 0, 2, 1}, 7);
      },
      [](Tensor x, Tensor which) {
        Tensor part = picked(x, which), whole = x * 1;
        whole.slice(0, 0, part.size(0)).copy_(part);
        return whole;
      },
  };
  for (const Function& f : functions)
    for (const Tensor& x : {line, rows}) expect_as_eager(f, x);
}

TEST_P(Width, AnIndexThatIsOutOfRangeIsStillFound) {
  auto f = [](Tensor x, Tensor i) { return cat({x.index_select(0, i), x}); };
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    auto compiled = compile(f, {.backend = backend});
    Tensor x = arange(3, kFloat32);
    EXPECT_TRUE(same_bits(compiled(x, tensor({2, 0})), tensor({2.f, 0.f, 0.f, 1.f, 2.f})));
    EXPECT_EQ(error_of([&] { return compiled(x, tensor({2, 3})); }), "[index_select] an index is out of range");
  }
}

INSTANTIATE_TEST_SUITE_P(ConditionalLoad, Width, ::testing::Values(128, 256, 512));

}  // namespace
}  // namespace tenon
