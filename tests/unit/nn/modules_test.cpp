#include "unit/autograd/helpers.h"

#include <tenon/core/random.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/modules.h>
#include <tenon/optim/sgd.h>

namespace tenon::testing {
namespace {

struct Scale : nn::Module {
  Cell<Tensor> factor = parameter("factor", tensor({2.0f}));
  Cell<Tensor> count = buffer("count", tensor({0.0f}));
  Tensor operator()(const Tensor& x) const { return is_training() ? x * factor.get() : x; }
};

TEST(Modules, NamesAndOrder) {
  auto model = nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::Sequential(nn::Linear(8, 2), Scale()));
  std::vector<std::string> names;
  for (auto& [name, tensor] : model.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.0.weight", "2.0.bias", "2.1.factor"}));
  EXPECT_EQ(model.parameters().size(), 5u);
  EXPECT_EQ(model.parameters()[0].description(), "float32[8, 4]");
  EXPECT_EQ(model.named_buffers()[0].first, "2.1.count");
  for (const Tensor& parameter : model.parameters()) EXPECT_TRUE(parameter.requires_grad() && parameter.is_leaf());
  EXPECT_EQ(model.children()[2].first, "2");
}

TEST(Modules, CellsKnowTheirPath) {
  nn::Linear layer(2, 2);
  auto model = nn::Sequential(nn::Sequential(layer));
  EXPECT_EQ(layer.weight.state()->name, "0.weight");
  auto outer = nn::Sequential(nn::ReLU(), model);
  EXPECT_EQ(layer.weight.state()->name, "1.0.weight");
}

TEST(Modules, CopiesShare) {
  nn::Linear layer(2, 2);
  nn::Linear copy = layer;
  copy.weight = real({1, 2, 3, 4}, {2, 2}).to(kFloat32);
  EXPECT_EQ(values(layer.weight.get()), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(layer.parameters()[0]), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Modules, TrainAndEval) {
  Scale scale;
  auto model = nn::Sequential(nn::ReLU(), scale);
  Tensor x = tensor({3.0f});
  EXPECT_EQ(values(model(x))[0], 6);
  model.eval();
  EXPECT_FALSE(scale.is_training());
  EXPECT_EQ(values(model(x))[0], 3);
  model.train();
  EXPECT_TRUE(scale.is_training());
}

TEST(Modules, LinearIsAnAffineMap) {
  nn::Linear layer(3, 2, {.dtype = kFloat64});
  layer.weight = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  layer.bias = leaf({10, 20});
  expect_near(layer(real({1, 0, 2, 0, 1, 0}, {2, 3})), {10 + 7, 20 + 16, 10 + 2, 20 + 5});
  nn::Linear plain(3, 2, {.bias = false});
  EXPECT_EQ(plain.parameters().size(), 1u);
}

TEST(Modules, LinearStartsUniformWithinItsBound) {
  manual_seed(7);
  nn::Linear layer(64, 128);
  double low = 1, high = -1, sum = 0;
  for (double value : values(layer.weight.get())) {
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  EXPECT_GE(low, -0.125);
  EXPECT_LT(high, 0.125);
  EXPECT_LT(low, -0.12);
  EXPECT_GT(high, 0.12);
  EXPECT_NEAR(sum / (64 * 128), 0, 0.005);
}

TEST(Modules, Errors) {
  EXPECT_EQ(error_of([] { nn::Linear layer(0, 2); }), "[Linear] expected at least one feature in and out, got 0 and 2");
  struct Twice : nn::Module {
    Twice() {
      parameter("a", tensor({1.0f}));
      parameter("a", tensor({1.0f}));
    }
  };
  EXPECT_EQ(error_of([] { Twice twice; }), "[Module] 'a' is registered already");
}

TEST(Modules, CrossEntropyClosedForm) {
  Tensor logits = leaf({1, 2, 3, 1, 1, 1}, {2, 3});
  Tensor loss = cross_entropy(logits, tensor({2, 0}));
  double total = std::exp(1) + std::exp(2) + std::exp(3);
  expect_near(loss, {(-(3 - std::log(total)) + std::log(3)) / 2}, 1e-10);
  loss.backward();
  double third = 1.0 / 3;
  expect_near(logits.grad(),
              {std::exp(1) / total / 2, std::exp(2) / total / 2, (std::exp(3) / total - 1) / 2, (third - 1) / 2,
               third / 2, third / 2},
              1e-10);
}

TEST(Modules, ASmallNetworkLearns) {
  manual_seed(1);
  auto model = nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 2));
  optim::SGD sgd(model.parameters(), {.lr = 0.3, .momentum = 0.9});
  Tensor x = tensor(std::vector<double>{0, 0, 0, 1, 1, 0, 1, 1}, TensorOptions(kFloat32)).view({4, 2});
  Tensor y = tensor({0, 1, 1, 0});
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    sgd.zero_grad();
    Tensor value = cross_entropy(model(x), y);
    value.backward();
    sgd.step();
    loss = values(value)[0];
  }
  EXPECT_LT(loss, 0.05);
  model.zero_grad();
  EXPECT_FALSE(model.parameters()[0].grad().defined());
}

}  // namespace
}  // namespace tenon::testing
