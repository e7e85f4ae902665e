#include <gtest/gtest.h>
#include <tenon/kernels/item.h>

namespace tenon::kernels {
namespace {

template <typename T>
Tensor one(T value) {
  Tensor result = core::allocate(Ints{1, 1}, Ints{1, 1}, DtypeOf<T>::value, kCPU);
  *result.data<T>() = value;
  return result;
}

TEST(Item, of_every_dtype) {
  EXPECT_EQ(item(one(true)).kind(), Scalar::Kind::Bool);
  EXPECT_TRUE(item(one(true)).to_bool());
  EXPECT_EQ(item(one(uint8_t{255})).to_int(), 255);
  EXPECT_EQ(item(one(int8_t{-7})).to_int(), -7);
  EXPECT_EQ(item(one(int16_t{-300})).to_int(), -300);
  EXPECT_EQ(item(one(int32_t{1 << 30})).to_int(), 1 << 30);
  EXPECT_EQ(item(one(int64_t{1} << 60)).to_int(), int64_t{1} << 60);
  EXPECT_EQ(item(one(int64_t{3})).kind(), Scalar::Kind::Int);
  EXPECT_EQ(item(one(to_half(1.5))).to_double(), 1.5);
  EXPECT_EQ(item(one(to_bfloat16(-2.0))).to_double(), -2);
  EXPECT_EQ(item(one(0.1f)).to_double(), static_cast<double>(0.1f));
  EXPECT_EQ(item(one(0.1)).to_double(), 0.1);
  EXPECT_EQ(item(one(0.1)).kind(), Scalar::Kind::Real);
}

TEST(Item, of_a_view_and_of_several) {
  Tensor list = core::allocate(Ints{3}, Ints{1}, kFloat32, kCPU);
  for (int i = 0; i < 3; ++i) list.data<float>()[i] = static_cast<float>(i) + 0.5f;
  EXPECT_EQ(item(core::make_view(list, SymInts{}, SymInts{}, 2)).to_double(), 2.5);
  try {
    item(list);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[item] expected a tensor of one element, got float32[3]");
  }
}

}  // namespace
}  // namespace tenon::kernels
