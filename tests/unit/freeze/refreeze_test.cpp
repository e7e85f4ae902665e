// Constants follow the parameters that they were computed from.
#include "../../seeds/freeze.h"

#include <atomic>
#include <thread>

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::HasSubstr;
using testing::same_bits;

struct Two : nn::Module {
  nn::Linear first = submodule("first", nn::Linear(4, 4)), second = submodule("second", nn::Linear(4, 4));
  Cell<Tensor> scale = buffer("scale", rand({4}) + 1);
  Tensor operator()(const Tensor& x) const { return second(relu(first(x) * scale.get())) * 3; }
};

// A call of a frozen function that compiles nothing, and computes this many units of constants again.
template <typename F>
Tensor call(const Compiled<F>& infer, const Tensor& x, int64_t folds) {
  auto compiled = [] {
    return counter("compiles").value() + counter("kernels_generated").value() + counter("kernels_from_cache").value();
  };
  NoGrad off;
  int64_t folded = counter("folds").value(), before = compiled();
  Tensor result = infer(x);
  EXPECT_EQ(counter("folds").value() - folded, folds);
  EXPECT_EQ(compiled() - before, 0);
  return result;
}

TEST(Refreeze, follows_an_optimizer) {
  Two module;
  auto infer = freeze([&](Tensor x) { return module(x); });
  Tensor x = randn({5, 4});
  {
    NoGrad off;
    infer(x);
  }
  optim::SGD optimizer(module.parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    module(x).square().mean().backward();
    optimizer.step();
    Tensor expected = module(x).detach();
    EXPECT_LT(difference(call(infer, x, 2), expected), 1e-5) << "both layers have changed";
    EXPECT_LT(difference(call(infer, x, 0), expected), 1e-5) << "nothing has changed since";
  }
  EXPECT_EQ(infer.compile_count(), 1);
}

TEST(Refreeze, only_what_depends_on_it) {
  Two module;
  auto infer = freeze([&](Tensor x) { return module(x); });
  NoGrad off;
  Tensor x = randn({5, 4});
  infer(x);
  module.second.weight.get().mul_(2);
  EXPECT_LT(difference(call(infer, x, 1), module(x)), 1e-5);
  module.scale.get().add_(1);
  EXPECT_LT(difference(call(infer, x, 1), module(x)), 1e-5);
}

TEST(Refreeze, another_tensor_and_another_state) {
  Two module, other;
  auto infer = freeze([&](Tensor x) { return module(x); });
  NoGrad off;
  Tensor x = randn({5, 4});
  infer(x);
  module.load_state_dict(other.state_dict());
  EXPECT_LT(difference(call(infer, x, 2), other(x)), 1e-5);
  module.first.weight.set(randn({4, 4}).set_requires_grad());
  EXPECT_LT(difference(call(infer, x, 1), module(x)), 1e-5);
  EXPECT_EQ(infer.compile_count(), 1);
}

TEST(Refreeze, a_tensor_of_another_shape_is_compiled_anew) {
  Cell<Tensor> weight(randn({4, 4}), "weight");
  auto infer = freeze([&](Tensor x) { return matmul(x, weight.get() * 2); });
  NoGrad off;
  Tensor x = randn({5, 4});
  infer(x);
  weight = randn({4, 6});
  EXPECT_LT(difference(infer(x), matmul(x, weight.get() * 2)), 1e-5);
  EXPECT_EQ(infer.compile_count(), 2);
  ASSERT_EQ(infer.explain().recompiles.size(), 1u);
  EXPECT_THAT(infer.explain().recompiles[0], HasSubstr("size of weight at dim 1: expected 4, got 6"));
}

TEST(Refreeze, raw_writes_are_announced) {
  Tensor weight = ones({4});
  auto infer = freeze([&](Tensor x) { return x + weight * 2; });
  NoGrad off;
  Tensor x = zeros({4});
  infer(x);
  weight.data<float>()[0] = 5;
  EXPECT_EQ(infer(x)[0].item<float>(), 2) << "nobody saw it";
  infer.refresh();
  EXPECT_EQ(infer(x)[0].item<float>(), 10);
}

TEST(Refreeze, update) {
  Two module;
  auto infer = freeze([&](Tensor x) { return module(x); });
  NoGrad off;
  Tensor x = randn({5, 4});
  EXPECT_THAT(error_of<ValueError>([&] { infer.update({{"first.weight", zeros({4, 4})}}); }),
              HasSubstr("[update] expected the name of a parameter that was frozen (), got 'first.weight'"));
  Tensor before = infer(x);
  EXPECT_THAT(
      error_of<ValueError>([&] { infer.update({{"first.weight", zeros({4, 4})}, {"third.weight", ones({4})}}); }),
      HasSubstr("[update] expected the name of a parameter that was frozen (first.bias, first.weight, scale, "
                "second.bias, second.weight), got 'third.weight'"));
  EXPECT_THAT(
      error_of<ValueError>([&] { infer.update({{"first.weight", zeros({4, 4})}, {"first.bias", zeros({5})}}); }),
      HasSubstr("[update] 'first.bias' is float32[4], got float32[5]"));
  EXPECT_THAT(error_of<ValueError>([&] { infer.update({{"first.bias", Tensor()}}); }),
              HasSubstr("[update] 'first.bias' is float32[4], got an undefined tensor"));
  EXPECT_TRUE(same_bits(infer(x), before)) << "nothing was changed";
  infer.update({{"first.weight", zeros({4, 4})}, {"first.bias", ones({4})}});
  EXPECT_LT(difference(call(infer, x, 1), module(x)), 1e-5);
  EXPECT_FALSE(same_bits(infer(x), before));
  EXPECT_TRUE(module.first.weight.get().requires_grad());
}

TEST(Refreeze, callers_see_all_of_an_update_or_nothing) {
  struct Pair : nn::Module {
    Cell<Tensor> a = buffer("a", zeros({8})), b = buffer("b", zeros({8}));
    Tensor operator()(const Tensor& x) const { return x + a.get() * 2 - b.get() * 2; }
  };
  Pair module;
  auto infer = freeze([&](Tensor x) { return module(x); });
  Tensor x = zeros({8});
  {
    NoGrad off;
    infer(x);
  }
  std::atomic<int64_t> mixtures{0}, calls{0};
  std::vector<std::jthread> callers;  // stop with the test, however it ends
  for (int thread = 0; thread < 3; ++thread)
    callers.emplace_back([&](const std::stop_token& stop) {
      NoGrad off;
      while (!stop.stop_requested()) {
        Tensor result = infer(x);
        for (int64_t at = 0; at < 8; ++at) mixtures += result.data<float>()[at] != 0 ? 1 : 0;
        ++calls;
        std::this_thread::yield();  // for the one who updates
      }
    });
  for (int step = 1; step < 200; ++step) {
    Tensor value = full({8}, static_cast<double>(step));
    infer.update({{"a", value}, {"b", value.clone()}});
  }
  while (calls.load() < 3) std::this_thread::yield();
  callers.clear();
  EXPECT_EQ(mixtures.load(), 0);
  EXPECT_EQ(infer.compile_count(), 1);
}

}  // namespace
}  // namespace tenon
