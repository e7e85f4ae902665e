// What operators ask for beside their arguments and results.
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <functional>

namespace tenon::test {
namespace {

// Bytes at the most in use during a call, above those before it, by bytes of the argument.
double asked_for(const Tensor& x, const std::function<Tensor(const Tensor&)>& function) {
  Tensor first = function(x);  // what is made once
  allocator::reset_peak();
  const int64_t before = allocator::bytes_in_use();
  Tensor result = function(x);
  return static_cast<double>(allocator::peak_bytes_in_use() - before) /
         static_cast<double>(x.numel().plain() * x.element_size());
}

// Their parts are as large as the argument, and of positions: of bytes, eight times as large.
TEST(Memory, places_of_extrema_and_counts_need_none) {
  for (Dtype dtype : {kUInt8, kFloat32}) {
    Tensor bytes = (rand({3, 100'000}) * 200).to(dtype);
    EXPECT_LT(asked_for(bytes, [](const Tensor& x) { return argmax(x); }), 0.1);
    EXPECT_LT(asked_for(bytes, [](const Tensor& x) { return argmin(x); }), 0.1);
    EXPECT_LT(asked_for(bytes, [](const Tensor& x) { return argmax(x, 1, true); }), 0.1);
    EXPECT_LT(asked_for(bytes, [](const Tensor& x) { return count_nonzero(x); }), 0.1);
    EXPECT_LT(asked_for(bytes, [](const Tensor& x) { return count_nonzero(x, Ints{1}); }), 0.1);
  }
}

TEST(Memory, and_have_no_history) {
  Tensor x = tensor({1.0, 3.0, 2.0}).set_requires_grad();
  EXPECT_FALSE(argmax(x).requires_grad());
  EXPECT_FALSE(argmin(x, 0, true).requires_grad());
  EXPECT_FALSE(count_nonzero(x).requires_grad());
  EXPECT_EQ(argmax(x).item<int64_t>(), 1);
  EXPECT_EQ(count_nonzero(x).item<int64_t>(), 3);
}

}  // namespace
}  // namespace tenon::test
