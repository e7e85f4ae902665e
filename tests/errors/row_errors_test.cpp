// What rows say of arguments that they cannot take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/generated/ops.h>

#include <functional>

namespace tenon {
namespace {

using testing::HasSubstr;
using Indices = std::vector<std::optional<Tensor>>;

struct Refusal {
  std::function<void()> call;
  const char* says;
};

void expect(const std::vector<Refusal>& refusals) {
  for (const Refusal& each : refusals) {
    try {
      each.call();
      ADD_FAILURE() << "expected an Error: " << each.says;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(each.says));
    }
  }
}

TEST(RowErrors, Indices) {
  Tensor x = zeros({2, 3}), far = tensor({0, 5}), bools = tensor({true, false, true});
  expect({
      {[=] { index(x, Indices{far}); }, "[index] an index is out of range"},
      {[=] { index(x, Indices{tensor({-3})}); }, "[index] an index is out of range"},
      {[=] { index(x, Indices{tensor({0}), tensor({0}), tensor({0})}); },
       "[index] 3 indices are too many for float32[2, 3]"},
      {[=] { index(x, Indices{tensor({0.f})}); },
       "[index] expected indices of int64 or int32, or masks, got float32[1]"},
      {[=] { index(x, Indices{}); }, "[index] expected at least one index"},
      {[=] { index(x, Indices{tensor({0, 1}), tensor({0, 1, 2})}); },
       "[index] shapes [2], [3] cannot be broadcast together"},
      {[=] { index(x, Indices{bools}); }, "[index] the mask bool[3] does not fit float32[2, 3] at dimension 0"},
      {[=] { index_put(x, Indices{far}, zeros({2, 3})); },
       "[index_put] index 5 is out of range for dimension 0 of size 2"},
      {[=] { index_put(x, Indices{tensor({0})}, zeros({4})); },
       "[index_put] values float32[4] cannot be broadcast to [1, 3]"},
      {[=] { index_put(x, Indices{tensor({0})}, zeros({3}, kInt64)); },
       "[index_put] expected values of float32, got int64[3]"},
      {[=] { index_select(x, 1, far); }, "[index_select] an index is out of range"},
      {[=] { index_select(x, 2, far); }, "[index_select] expected a dimension from -2 to 1, got 2"},
      {[=] { index_select(x, 0, zeros({1, 1}, kInt64)); },
       "[index_select] expected a vector of int64 or int32, got int64[1, 1]"},
      {[=] { index_add(x, 0, tensor({0}), zeros({2, 3})); },
       "[index_add] expected an index for each of 2 rows, got int64[1]"},
      {[=] { scatter(x, 0, zeros({2, 3}, kInt64) + 7, zeros({2, 3})); },
       "[scatter] index 7 is out of range for dimension 0 of size 2"},
      {[=] { masked_select(x, zeros({2, 3})); }, "[masked_select] expected a mask of bools, got float32[2, 3]"},
      {[=] { masked_fill(x, zeros({3}), 1); }, "[masked_fill] expected a mask of bools, got float32[3]"},
      {[=] { masked_fill(x, bools, zeros({3})); }, "[masked_fill] expected a value of no dimensions, got float32[3]"},
  });
}

TEST(RowErrors, Pieces) {
  Tensor x = zeros({2, 3});
  expect({
      {[=] { split(x, 0, 1); }, "[split] pieces of no elements cannot make up dimension 1 of float32[2, 3]"},
      {[=] { split(x, -1, 1); }, "[split] expected a size of at least 0, got -1"},
      {[=] { split_with_sizes(x, {1, 3}, 1); },
       "[split_with_sizes] sizes [1, 3] do not add up to dimension 1 of float32[2, 3]"},
      {[=] { chunk(x, 0); }, "[chunk] expected a number of at least 1, got 0"},
      {[=] { unbind(zeros({})); }, "[unbind] expected a tensor of at least one dimension, got float32[]"},
      {[=] { narrow(x, 1, 2, 2); }, "[narrow] start 2 and length 2 go beyond dimension 1 of float32[2, 3]"},
      {[=] { stack({}); }, "[stack] expected at least one tensor"},
      {[=] { stack({x, zeros({3, 2})}); },
       "[stack] expected tensors of equal sizes, got float32[2, 3] and float32[3, 2]"},
      {[=] { repeat(x, {2}); }, "[repeat] expected at least 2 numbers, got [2]"},
      {[=] { repeat(x, {2, -1}); }, "[repeat] expected numbers of at least 0, got [2, -1]"},
      {[=] { flip(x, {0, -2}); }, "[flip] dimension 0 appears twice"},
      {[=] { roll(x, {1, 2}, {0}); }, "[roll] expected a shift for each dimension, got 2 for 1"},
      {[=] { diagonal(zeros({3})); }, "[diagonal] expected a tensor of at least two dimensions, got float32[3]"},
      {[=] { diagonal(x, 0, 1, -1); }, "[diagonal] expected two dimensions, got 1 twice"},
      {[=] { tril(zeros({3})); }, "[tril] expected a tensor of at least two dimensions"},
      {[=] { movedim(x, Ints{0, 0}, Ints{0, 1}); }, "[movedim] a dimension appears twice"},
      {[=] { unflatten(x, 1, {2, -1}); }, "[unflatten] sizes [2, -1] do not make up dimension 1 of float32[2, 3]"},
      {[=] { repeat_interleave(x, tensor({1, 2}), 1); },
       "[repeat_interleave] expected a number for each of 3 elements, got int64[2]"},
      {[=] { repeat_interleave(zeros({2}), tensor({1, -2})); },
       "[repeat_interleave] expected repeats of at least 0, got -2"},
      {[=] { repeat_interleave(zeros({2}), tensor({1, 2}), std::nullopt, SymInt(5)); },
       "[repeat_interleave] expected an output_size of 3, the sum of the repeats, got 5"},
  });
}

TEST(RowErrors, Elements) {
  Tensor x = zeros({2, 3}), whole = zeros({2, 3}, kInt64);
  expect({
      {[=] { clamp(x, std::optional<Scalar>(), std::optional<Scalar>()); },
       "[clamp] expected at least one of min and max"},
      {[=] { bitwise_and(x, x); }, "[bitwise_and] expected integers or bools, got float32"},
      {[=] { bitwise_not(x); }, "[bitwise_not] expected a tensor of integers or bools, got float32[2, 3]"},
      {[=] { lerp(whole, whole, 1); }, "[lerp] expected floating point tensors, got int64"},
      {[=] { leaky_relu(whole); }, "[leaky_relu] expected a floating point tensor, got int64[2, 3]"},
      {[=] { gelu(x, "quick"); }, "[gelu] expected approximate to be 'none' or 'tanh', got 'quick'"},
      {[=] { div(x, x, std::string_view("up")); },
       "[div] expected a rounding mode of 'floor', 'trunc' or none, got 'up'"},
      {[=] { eye(-1); }, "[eye] expected sizes of at least 0, got -1 and -1"},
      {[=] { randint(0, {3}); }, "[randint] expected a range of at least one number, got 0 to 0"},
      {[=] { linspace(0, 1, -1); }, "[linspace] expected a number of at least 0, got -1"},
      {[=] { x.index_put_({tensor({0})}, zeros({3}, kFloat64)); }, "[index_put] expected values of float32"},
  });
}

TEST(RowErrors, Statistics) {
  Tensor x = zeros({2, 3}), whole = zeros({2, 3}, kInt64);
  expect({
      {[=] { argmax(zeros({2, 0}), 1); },
       "[argmax] expected a dimension of at least one element, got float32[2, 0] at dimension 1"},
      {[=] { max(x, 2); }, "[max] expected a dimension from -2 to 1, got 2"},
      {[=] { var(whole); }, "[var] expected a floating point tensor, got int64[2, 3]"},
      {[=] { norm(whole); }, "[norm] expected a floating point dtype, got int64"},
      {[=] { cumsum(x, 3); }, "[cumsum] expected a dimension from -2 to 1, got 3"},
      {[=] { cumsum(x, 0, kBool); }, "[cumsum] expected a dtype of numbers, got bool"},
      {[=] { topk(x, 4); }, "[topk] expected a number from 0 to 3, the size of dimension 1, got 4"},
      {[=] { sort(x, 2); }, "[sort] expected a dimension from -2 to 1, got 2"},
  });
}

TEST(RowErrors, Images) {
  Tensor x = zeros({1, 2, 4, 4});
  expect({
      {[=] { max_pool2d(zeros({4, 4}), {2}); },
       "[max_pool2d_with_indices] expected a tensor of 3 or 4 dimensions, got float32[4, 4]"},
      {[=] { max_pool2d(x, {2, 2, 2}); }, "[max_pool2d_with_indices] expected a kernel_size of 1 or 2 numbers, got 3"},
      {[=] { max_pool2d(x, {2}, {}, {2}); }, "expected a padding of at most half of the kernel_size 2, got 2"},
      {[=] { max_pool2d(x, {5}); }, "[max_pool2d] a window of 5 does not fit into 4 elements"},
      {[=] { avg_pool2d(x, {2}, {}, {0}, false, true, 0); }, "[avg_pool2d] expected a divisor_override other than 0"},
      {[=] { avg_pool2d(x.to(kInt32), {2}); },
       "[avg_pool2d] expected a tensor of floating point numbers or int64, got int32[1, 2, 4, 4]"},
      {[=] { adaptive_max_pool3d(x, {1, 2}); },
       "[adaptive_max_pool3d] expected an output_size of 1 or 3 numbers, got [1, 2]"},
      {[=] { constant_pad_nd(x, {1}); },
       "[constant_pad_nd] expected two numbers for each of at most 4 dimensions, got [1]"},
      {[=] { constant_pad_nd(x, {-3, -2}); },
       "[constant_pad_nd] padding of -3 and -2 leaves nothing of dimension 3 of float32[1, 2, 4, 4]"},
      {[=] { pad(x, {4, 0}, "reflect"); },
       "[pad] expected padding of at most 3 for mode 'reflect' at dimension 3 of float32[1, 2, 4, 4], got 4 and 0"},
      {[=] { pad(x, {1, 1}, "mirror"); },
       "[pad] expected a mode of 'constant', 'reflect', 'replicate' or 'circular', got 'mirror'"},
      {[=] { upsample_nearest2d(x, {0, 2}); }, "[upsample_nearest2d] expected sizes of at least 1, got [0, 2]"},
      {[=] { upsample_bilinear2d(zeros({4, 4}), {2, 2}, false); },
       "[upsample_bilinear2d] expected a tensor of 4 dimensions, got float32[4, 4]"},
      {[=] { unfold(x, 3, 5, 1); }, "[unfold] windows of 5 do not fit into dimension 3 of float32[1, 2, 4, 4]"},
      {[=] { conv2d(x, zeros({3, 3, 2, 2})); },
       "[conv2d] input float32[1, 2, 4, 4] and weight float32[3, 3, 2, 2] do not fit with 1 groups"},
      {[=] { conv2d(x, zeros({3, 2, 2, 2}), zeros({2})); }, "[conv2d] expected a bias of 3 elements, got float32[2]"},
      {[=] { layer_norm(x, {3}); }, "[layer_norm] expected the last dimensions of float32[1, 2, 4, 4] to be [3]"},
      {[=] { layer_norm(x, {4}, zeros({3})); }, "[layer_norm] expected a weight and bias of [4], got float32[3]"},
      {[=] { embedding(zeros({3}), tensor({0})); }, "[embedding] expected a table of two dimensions, got float32[3]"},
      {[=] { embedding(zeros({3, 2}), tensor({3})); }, "[index_select] an index is out of range"},
      {[=] { dropout(x, 1.5, true); }, "[dropout] expected a probability from 0 to 1, got 1.5"},
      {[=] { baddbmm(zeros({5}), zeros({1, 2, 3}), zeros({1, 3, 4})); },
       "[baddbmm] self float32[5] cannot be broadcast to [1, 2, 4]"},
  });
}

}  // namespace
}  // namespace tenon
