#include <gtest/gtest.h>
#include <tenon/kernels/scatter.h>
#include <tenon/support/parallel.h>

#include <random>

namespace tenon::kernels {
namespace {

template <typename T>
T from_number(int64_t number) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(static_cast<double>(number));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(static_cast<double>(number));
  else
    return static_cast<T>(number);
}

template <typename T>
Tensor make(const Ints& sizes, const Ints& strides, const std::vector<int64_t>& values) {
  Tensor result = core::allocate(sizes, strides, DtypeOf<T>::value, kCPU);
  for (size_t position = 0; position < values.size(); ++position) {
    int64_t rest = static_cast<int64_t>(position), offset = 0;
    for (size_t dim = sizes.size(); dim-- > 0;) {
      offset += rest % sizes[dim] * strides[dim];
      rest /= sizes[dim];
    }
    result.data<T>()[offset] = from_number<T>(values[position]);
  }
  return result;
}

template <typename T>
Tensor make(const Ints& sizes, const std::vector<int64_t>& values) {
  return make<T>(sizes, core::contiguous_strides(sizes.span()), values);
}

template <typename T>
struct ScatterAdd : testing::Test {};
using ElementTypes = testing::Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>;
TYPED_TEST_SUITE(ScatterAdd, ElementTypes);

TYPED_TEST(ScatterAdd, along_either_dimension_with_repeats) {
  using T = TypeParam;
  auto at = [](std::initializer_list<int64_t> list) { return std::vector<int64_t>(list); };
  Tensor self = make<T>({2, 3}, at({1, 0, 0, 0, 1, 0})), out = make<T>({2, 3}, at({9, 9, 9, 9, 9, 9}));
  Tensor index = make<int64_t>({2, 2}, at({2, 2, 0, 1})), src = make<T>({2, 2}, at({1, 1, 0, 1}));
  scatter_add(self, 1, index, src, out);
  const int64_t expected[] = {1, 0, 2, 0, 2, 0};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(out.data<T>()[i], from_number<T>(std::is_same_v<T, bool> ? expected[i] != 0 : expected[i])) << i;

  // Strided operands, an index of int32, fewer positions than the source has.
  Tensor index32 = make<int32_t>({3, 1}, {2, 5}, at({1, 1, 0}));
  Tensor strided = make<T>({3, 2}, {1, 4}, at({1, 0, 1, 0, 1, 0}));
  Tensor wide = make<T>({2, 3}, {7, 2}, at({0, 0, 0, 0, 0, 0}));
  scatter_add(make<T>({2, 3}, {1, 2}, at({0, 0, 0, 1, 0, 0})), 0, index32, strided, wide);
  const int64_t column[] = {1, 3};
  for (int row = 0; row < 2; ++row)
    EXPECT_EQ(wide.data<T>()[row * 7], from_number<T>(std::is_same_v<T, bool> ? 1 : column[row])) << row;
  EXPECT_EQ(wide.data<T>()[2], from_number<T>(0));
}

TEST(ScatterAddKernel, random_against_a_loop) {
  std::mt19937 engine(3);
  const int64_t shape[] = {9, 17, 40};
  for (size_t dim = 0; dim < 3; ++dim) {
    Ints index_sizes(std::span<const int64_t>(shape, 3));
    index_sizes[dim] = 100;
    for (size_t other = 0; other < 3; ++other)
      if (other != dim) index_sizes[other] -= 2;
    int64_t count = index_sizes[0] * index_sizes[1] * index_sizes[2];
    std::vector<int64_t> self(9 * 17 * 40), picks(static_cast<size_t>(count)), values(static_cast<size_t>(count));
    for (int64_t& value : self) value = static_cast<int64_t>(engine() % 100);
    for (int64_t& value : picks) value = static_cast<int64_t>(engine() % static_cast<unsigned>(shape[dim]));
    for (int64_t& value : values) value = static_cast<int64_t>(engine() % 100);
    std::vector<int64_t> expected = self;
    for (int64_t i = 0, position = 0; i < index_sizes[0]; ++i)
      for (int64_t j = 0; j < index_sizes[1]; ++j)
        for (int64_t k = 0; k < index_sizes[2]; ++k, ++position) {
          int64_t at[] = {i, j, k};
          at[dim] = picks[static_cast<size_t>(position)];
          expected[static_cast<size_t>((at[0] * 17 + at[1]) * 40 + at[2])] += values[static_cast<size_t>(position)];
        }
    for (int threads : {1, 3}) {
      set_num_threads(threads);
      Tensor out = make<int64_t>({9, 17, 40}, self);
      scatter_add(make<int64_t>({9, 17, 40}, self), static_cast<int64_t>(dim), make<int64_t>(index_sizes, picks),
                  make<int64_t>(index_sizes, values), out);
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(out.data<int64_t>()[i], expected[i]) << dim << " " << i;
    }
    set_num_threads(0);
  }
}

TEST(ScatterAddKernel, halves_are_rounded_once) {
  // In float16 2048 + 1 is 2048 again; the ones must add up among themselves.
  Tensor out = make<Half>({1}, {0});
  scatter_add(make<Half>({1}, {2048}), 0, make<int64_t>({4}, {0, 0, 0, 0}), make<Half>({4}, {1, 1, 1, 1}), out);
  EXPECT_EQ(to_float(out.data<Half>()[0]), 2052);
}

TEST(ScatterAddKernel, numbers_and_nothing) {
  Tensor out = make<float>({}, {0});
  scatter_add(make<float>({}, {5}), 0, make<int64_t>({}, {0}), make<float>({}, {2}), out);
  EXPECT_EQ(out.data<float>()[0], 7);
  Tensor same = make<float>({2}, {0, 0});
  scatter_add(make<float>({2}, {3, 4}), 0, make<int64_t>({0}, {}), make<float>({0}, {}), same);
  EXPECT_EQ(same.data<float>()[1], 4);
}

TEST(ScatterAddKernel, index_out_of_range) {
  Tensor self = make<float>({2, 5}, std::vector<int64_t>(10)), out = make<float>({2, 5}, std::vector<int64_t>(10));
  for (int64_t wrong : {7, 5, -1}) {
    try {
      scatter_add(self, 1, make<int64_t>({1, 2}, {0, wrong}), make<float>({1, 2}, {1, 1}), out);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                fmt::format("[scatter_add] index {} is out of range for dimension 1 of size 5", wrong));
    }
  }
}

}  // namespace
}  // namespace tenon::kernels
