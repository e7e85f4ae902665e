// Seed 000's operator cases: operators that stand below autograd, called by their names.
#include "operators.h"

#include <tenon/dispatch/packet.h>

namespace tenon::operators {
namespace {

using dispatch::Value;

Tensors call(const char* name, std::initializer_list<Value> arguments) {
  Tensors results;
  for (const Value& result : dispatch::call_by_name(name, arguments)) results.push_back(result.tensor());
  return results;
}
// Targets of five samples: all of the first class, or one sample that counts.
std::vector<Tensor> targets() { return {zeros({5}, kInt64), tensor({-100, -100, 3, -100, -100})}; }

TEST(CommonTemplate, nll_loss_forward) {
  for (const Tensor& target : targets()) {
    Tensor x = randn({5, 5});
    Tensors results = check(
        [](Tensor a, Tensor b) {
          return call("aten::nll_loss_forward", {Value(a), Value(b), Value(), Value(1), Value(-100)});
        },
        {x, target});
    EXPECT_EQ(results[1].item<double>(), (target != -100).sum().item<double>()) << "the total weight";
    Tensor counted = gather(x, 1, clamp_min(target, 0).unsqueeze(1)).squeeze(1);
    Tensor mask = (target != -100).to(kFloat32);
    EXPECT_TRUE(close(results[0], -(counted * mask).sum() / mask.sum(), {}));
  }
}
TEST(CommonTemplate, nll_loss_backward) {
  for (const Tensor& target : targets()) {
    Tensor grad = tensor(1.5), x = randn({5, 5});
    Tensor result = check(
        [](Tensor g, Tensor a, Tensor b) {
          return call("aten::nll_loss_backward",
                      {Value(g), Value(a), Value(b), Value(), Value(1), Value(-100), Value(tensor(1.0))});
        },
        {grad, x, target})[0];
    Tensor expected = zeros({5, 5});
    for (int64_t row = 0; row < 5; ++row)
      if (int64_t at = target[row].item<int64_t>(); at >= 0) expected[row][at] = -1.5;
    EXPECT_TRUE(close(result, expected, {}));
  }
}
// The second index is out of range, and masked.
using Indices = std::vector<std::optional<Tensor>>;
TEST(CommonTemplate, _unsafe_masked_index) {
  Tensor a = randn({8}), mask = tensor({true, false, true}), index = tensor({3, 9, -2});
  Tensor result = check(
      [](Tensor x, Tensor m, Tensor i) {
        return call("aten::_unsafe_masked_index", {Value(x), Value(m), Value(Indices{i}), Value(1)});
      },
      {a, mask, index})[0];
  EXPECT_TRUE(same_bits(result, stack({a[3], tensor(1.0), a[6]})));
}
TEST(CommonTemplate, _unsafe_masked_index_put_accumulate) {
  Tensor a = randn({8}), mask = tensor({true, false, true}), index = tensor({3, 9, -2}), values = randn({3});
  Tensor result = check(
      [](Tensor x, Tensor m, Tensor i, Tensor v) {
        return call("aten::_unsafe_masked_index_put_accumulate", {Value(x), Value(m), Value(Indices{i}), Value(v)});
      },
      {a, mask, index, values})[0];
  Tensor expected = a.clone();
  expected[3] += values[0];
  expected[6] += values[2];
  EXPECT_TRUE(same_bits(result, expected));
}
TEST(CommonTemplate, diagonal_copy) {
  for (auto [rows, columns] : {std::pair{2, 3}, std::pair{2, 2}, std::pair{3, 2}}) {
    Tensor x = randn({rows, columns});
    auto function = [](Tensor a) { return call("aten::diagonal_copy", {Value(a)}); };
    EXPECT_TRUE(same_bits(check(function, {x})[0], x.diagonal().contiguous()));
    EXPECT_FALSE(function(x)[0].is_same_storage(x)) << "a copy";
  }
}
TEST(CommonTemplate, unfold_zero_dimension_tensor) {
  Tensor result = check([](Tensor x) { return call("aten::unfold_copy", {Value(x), Value(1), Value(0), Value(7)}); },
                        {rand({1, 0})})[0];
  EXPECT_EQ(result.description(), "float32[1, 1, 0]");
}
TEST(CommonTemplate, narrow) {
  check(
      [](Tensor x) {
        return std::tuple(narrow(x, 1, 10, 16), narrow(x + 2, 0, 10, 16) + 1,
                          call("aten::narrow_copy", {Value(x), Value(1), Value(10), Value(16)}));
      },
      {randn({64, 64})});
}

}  // namespace
}  // namespace tenon::operators
