// Indices, numbers among tensors, nested lists and other ways in and out of tensors.
#include <tenon/core/accessor.h>
#include <tenon/core/dlpack.h>
#include <tenon/core/indexing.h>
#include <tenon/dispatch/numbers.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "values_of.h"

namespace tenon::testing {
namespace {

using Numbers = std::vector<double>;
using ::testing::HasSubstr;

Tensor cube() { return arange(24).view({2, 3, 4}); }

TEST(Indexing, NumbersSlicesAndNewDimensions) {
  Tensor x = cube();
  EXPECT_EQ(values(x.index({1, 2})), (Numbers{20, 21, 22, 23}));
  EXPECT_EQ(values(x.index({-1, -1, -1})), (Numbers{23}));
  EXPECT_EQ(x.index({Slice(), 0, None}).description(), "int64[2, 1, 4]");
  EXPECT_EQ(values(x.index({0, Slice(1), Slice(None, None, 2)})), (Numbers{4, 6, 8, 10}));
  EXPECT_EQ(values(x.index({Ellipsis, 3})), (Numbers{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(values(x.index({0, Ellipsis, Slice(-2, None)})), (Numbers{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(x.index({None, Ellipsis, None}).description(), "int64[1, 2, 3, 4, 1]");
  EXPECT_TRUE(x.index({0, Slice(0, 2)}).is_same_storage(x));
}

TEST(Indexing, MasksAndPositions) {
  Tensor x = cube();
  EXPECT_EQ(values(x.index({x > 21})), (Numbers{22, 23}));
  EXPECT_EQ(values(x.index({Slice(), tensor({2, 0}), 1})), (Numbers{9, 1, 21, 13}));
  EXPECT_EQ(values(x.index({tensor({0, 1}), tensor({2, 1})})), (Numbers{8, 9, 10, 11, 16, 17, 18, 19}));
  EXPECT_EQ(values(x.index({0, tensor({true, false, true}), 0})), (Numbers{0, 8}));
  EXPECT_EQ(x.index({Ellipsis, tensor({0, 3})}).description(), "int64[2, 3, 2]");
}

TEST(Indexing, Writes) {
  Tensor x = zeros({2, 3});
  x[1][2] = 3;
  x[0] = tensor({1.0, 2.0, 4.0});
  EXPECT_EQ(values(x), (Numbers{1, 2, 4, 0, 0, 3}));
  x.index_put_({Slice(), 1}, 7.0);
  x.index_put_({x == 0}, -1);
  EXPECT_EQ(values(x), (Numbers{1, 7, 4, -1, 7, 3}));
  x.index_put_({tensor({1}), Slice(0, 2)}, tensor({{5.0, 6.0}}));
  EXPECT_EQ(values(x), (Numbers{1, 7, 4, 5, 6, 3}));
  x.index_put_({1}, ones({1, 3}));  // a leading dimension of one element
  EXPECT_EQ(values(x), (Numbers{1, 7, 4, 1, 1, 1}));
  Tensor same = x;
  same = zeros({1});  // a variable is given another tensor
  EXPECT_EQ(values(x), (Numbers{1, 7, 4, 1, 1, 1}));
}

TEST(Indexing, GradientsPassThrough) {
  Tensor w = ones({3, 2}).set_requires_grad();
  w.index({Slice(0, 2), 1}).sum().backward();
  EXPECT_EQ(values(w.grad()), (Numbers{0, 1, 0, 1, 0, 0}));
}

TEST(Indexing, ACompiledFunctionDoesTheSame) {
  auto f = [](Tensor x) {
    Tensor y = x * 2;
    y[0] = 5;
    y.index_put_({Slice(), 1}, 7.0);
    return y.index({Slice(), None, Slice(0, 2)}) + where(y > 5, y, 0.0).sum();
  };
  Tensor x = arange(6).view({2, 3}).to(kFloat32);
  EXPECT_EQ(values(compile(f)(x)), values(f(x)));
}

TEST(Indexing, Errors) {
  Tensor x = cube();
  EXPECT_EQ(error_of<IndexError>([&] { x.index({0, 0, 0, 0}); }),
            "[index] expected indices for at most 3 dimensions of int64[2, 3, 4], got 4");
  EXPECT_EQ(error_of<IndexError>([&] { x.index({Ellipsis, Ellipsis}); }),
            "[index] expected at most one Ellipsis, got 2");
  EXPECT_THAT(error_of([&] { x.index({5}); }), HasSubstr("[select]"));
}

TEST(Numbers, AmongTensors) {
  Tensor x = tensor({-1.0, 0.0, 2.0}), whole = tensor({-1, 3});
  EXPECT_EQ(values(where(x > 0, x, 0.0)), (Numbers{0, 0, 2}));
  EXPECT_EQ(values(where(x > 0, 1, x)), (Numbers{-1, 0, 1}));
  EXPECT_EQ(where(x > 0, 1, 0).dtype(), kInt64);
  EXPECT_EQ(where(whole > 0, whole, 0.5).dtype(), kFloat32);
  EXPECT_EQ(where(x > 0, x.to(kFloat16), 0.5).dtype(), kFloat16);
  EXPECT_EQ(values(maximum(x, 0)), (Numbers{0, 0, 2}));
  EXPECT_EQ(maximum(whole, 0).dtype(), kInt64);
  EXPECT_EQ(values(minimum(1.0, x)), (Numbers{-1, 0, 1}));
  EXPECT_EQ(values(pow(2.0, x)), (Numbers{0.5, 1, 4}));
  EXPECT_EQ(values(tensor({5, 6, -7}) % 4), (Numbers{1, 2, 1}));
  EXPECT_EQ(values((x > -2) & (x < 1)), (Numbers{1, 1, 0}));
  EXPECT_EQ(values((x < 0) | (x > 1)), (Numbers{1, 0, 1}));
  EXPECT_EQ(values(tensor({6, 3}) ^ 5), (Numbers{3, 6}));
  Tensor bits = tensor({6, 3});
  bits &= 2;
  EXPECT_EQ(values(bits), (Numbers{2, 2}));
  EXPECT_EQ(zeros(3).description(), "float32[3]");
  EXPECT_EQ(full(2, 7, kInt64).description(), "int64[2]");
  EXPECT_EQ(cube().reshape(-1).description(), "int64[24]");
  EXPECT_EQ(cube().T().description(), "int64[4, 3, 2]");
  EXPECT_EQ(cube().mT().description(), "int64[2, 4, 3]");
  EXPECT_EQ(error_of([&] { zeros(3).mT(); }), "[mT] expected a tensor of at least 2 dimensions, got float32[3]");
}

TEST(Numbers, WholeTensorsAreCompared) {
  Tensor x = tensor({1.0, double(NAN), 3.0}), y = tensor({1.0, 2.0});
  EXPECT_TRUE(equal(y, y.clone()));
  EXPECT_FALSE(equal(x, x));
  EXPECT_FALSE(equal(y, y.view({1, 2})));
  EXPECT_TRUE(allclose(y, y + 1e-6));
  EXPECT_FALSE(allclose(y, y + 1e-3));
  EXPECT_FALSE(x.allclose(x));
  EXPECT_TRUE(x.allclose(x, 0, 0, true));
  Tensor inf = tensor({double(INFINITY)});
  EXPECT_TRUE(allclose(inf, inf));
  EXPECT_FALSE(allclose(inf, -inf));
  EXPECT_FALSE(allclose(tensor({1.0}), inf));
}

TEST(Tensors, FromListsVectorsAndMemory) {
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}).description(), "int64[2, 2]");
  EXPECT_EQ(values(tensor({{{1.5}, {2.0}}, {{3.0}, {4.0}}})), (Numbers{1.5, 2, 3, 4}));
  EXPECT_EQ(tensor({{true, false}}).description(), "bool[1, 2]");
  EXPECT_EQ(tensor({{1.0f, 2.0f}}, kFloat64).description(), "float64[1, 2]");
  EXPECT_EQ(tensor(std::vector<float>{1, 2}).description(), "float32[2]");
  EXPECT_EQ(tensor(std::vector<int32_t>{1, 2}).description(), "int64[2]");
  EXPECT_EQ(error_of<ValueError>([] { tensor({{1, 2}, {3}}); }),
            "[tensor] expected lists of one length, got one of 2 and one of 1 elements");
  const double numbers[] = {1, 2, 3, 4};
  bool gone = false;
  {
    Tensor x = from_blob(numbers, {2, 2}, [&](void*) { gone = true; });
    EXPECT_EQ(x.description(), "float64[2, 2]");
    EXPECT_EQ(x.raw_data(), numbers);
  }
  EXPECT_TRUE(gone);
}

TEST(Tensors, Accessors) {
  Tensor x = arange(6).view({2, 3}).t();
  auto a = x.accessor<int64_t, 2>();
  for (int64_t row = 0; row < a.size(0); ++row)
    for (int64_t column = 0; column < a.size(1); ++column) EXPECT_EQ(a[row][column], column * 3 + row);
  a[2][1] = 50;
  EXPECT_EQ(x[2][1].item<int64_t>(), 50);
  EXPECT_EQ(error_of([&] { x.accessor<int64_t, 3>(); }),
            "[accessor] expected a tensor of 3 dimensions, got int64[3, 2]");
}

TEST(Tensors, ADimensionThatIsNotThere) {
  Tensor x = cube();
  EXPECT_EQ(x.sizes()[2], 4);
  EXPECT_EQ(error_of<IndexError>([&] { return x.sizes()[5]; }), "[sizes] expected a dimension below 3, got 5");
  EXPECT_EQ(error_of<IndexError>([&] { return x.strides()[static_cast<size_t>(-1)]; }),
            "[sizes] expected a dimension below 3, got -1");
}

TEST(Tensors, DLPackThereAndBack) {
  for (Dtype dtype : {kFloat32, kFloat64, kInt64, kUInt8, kBool, kBFloat16}) {
    Tensor x = arange(6).to(dtype).view({2, 3}).t();
    Tensor back = from_dlpack(to_dlpack(x));
    EXPECT_EQ(back.raw_data(), x.raw_data());
    EXPECT_EQ(back.description(), x.description());
    EXPECT_EQ(values(back), values(x));
    x = Tensor();  // what was lent keeps the memory
    EXPECT_EQ(values(back)[1], dtype == kBool ? 1 : 3);
  }
  EXPECT_THAT(error_of([] { to_dlpack(ones({1}).set_requires_grad()); }), HasSubstr("detach() it"));
}

}  // namespace
}  // namespace tenon::testing
