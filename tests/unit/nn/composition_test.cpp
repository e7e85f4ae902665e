// Models from parts: residual layers, how all weights begin, and evaluating for a while.
#include <tenon/nn/evaluating.h>
#include <tenon/nn/initialize.h>
#include <tenon/nn/residual.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(Residual, AddsWhatItWasGiven) {
  nn::Residual plain(nn::Lambda([](const Tensor& x) { return x * 10; }));
  EXPECT_THAT(values(plain(tensor({1.0, 2.0}))), ElementsAre(11, 22));
  nn::Residual with_shortcut(nn::Lambda([](const Tensor& x) { return x * 10; }),
                             nn::Lambda([](const Tensor& x) { return x * 3; }));
  EXPECT_THAT(values(with_shortcut(tensor({1.0, 2.0}))), ElementsAre(13, 26));
}

TEST(Residual, HasTheParametersOfBoth) {
  nn::Residual layer(nn::Sequential(nn::Linear(3, 4), nn::ReLU()), nn::Linear(3, 4, {.bias = false}));
  std::vector<std::string> names;
  for (const auto& [name, parameter] : layer.named_parameters()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("body.0.weight", "body.0.bias", "shortcut.weight"));
  EXPECT_EQ(nn::Sequential(layer).str().substr(0, 30), "Sequential(\n  (0): Residual(\n ");
}

TEST(Residual, AClonesPartsAreItsOwn) {
  nn::Residual layer(nn::Linear(2, 2, {.bias = false}));
  nn::Residual copy = nn::clone(layer);
  nn::init::each(copy, [](const Tensor& weight) { weight.fill_(0); });
  Tensor x = ones({1, 2});
  EXPECT_THAT(values(copy(x)), ElementsAre(1, 1));
  EXPECT_THAT(values(layer(x)), Not(ElementsAre(1, 1)));
}

TEST(Residual, TrainsAndCompiles) {
  nn::Residual layer(nn::Linear(2, 2, {.bias = false}));
  auto compiled = compile([&](Tensor x) { return layer(x).sum(); }, {.fullgraph = true});
  Tensor x = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
  compiled(x).backward();
  EXPECT_THAT(values(layer.parameters()[0].grad()), ElementsAre(4, 6, 4, 6));
}

TEST(Residual, SizesThatDifferAreAnError) {
  nn::Residual layer(nn::Linear(3, 4));
  EXPECT_EQ(error_of([&] { (void)layer(ones({2, 3})); }),
            "[Residual] expected a body and a shortcut that give the same sizes, got float32[2, 4] and float32[2, 3]: "
            "give it a shortcut that changes them as the body does");
  // Adding would stretch it.
  EXPECT_THAT(error_of([&] { (void)nn::Residual(nn::Linear(3, 1))(ones({2, 3})); }),
              ::testing::HasSubstr("got float32[2, 1] and float32[2, 3]"));
}

TEST(Initialize, EveryParameterOnceAndByName) {
  nn::Linear shared(2, 2);
  nn::Sequential model(shared, shared, nn::Linear(2, 1));
  std::vector<std::string> names;
  nn::init::each(model, [&](const std::string& name, const Tensor& parameter) {
    names.push_back(name);
    parameter.fill_(0.5);
  });
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  for (const Tensor& parameter : model.parameters()) {
    EXPECT_THAT(values(parameter), Each(0.5));
    EXPECT_TRUE(parameter.is_leaf() && parameter.requires_grad());
  }
  nn::init::each(model, [](const Tensor& parameter) { nn::init::zeros_(parameter); });
  EXPECT_THAT(values(shared.weight), Each(0));
}

TEST(Evaluating, EachPartIsAfterwardsAsItWas) {
  nn::Dropout frozen(0.5);
  nn::Sequential model(nn::Linear(2, 2), nn::Sequential(frozen, nn::Dropout(0.5)));
  frozen.eval();  // its owner trains
  {
    nn::Evaluating scope(model);
    for (const auto& [name, module] : model.named_modules()) EXPECT_FALSE(module.is_training()) << name;
    EXPECT_FALSE(model(ones({1, 2})).requires_grad());
  }
  for (const auto& [name, module] : model.named_modules()) EXPECT_EQ(module.is_training(), name != "1.0") << name;
  EXPECT_TRUE(model(ones({1, 2})).requires_grad());
  // Also when something is thrown.
  EXPECT_EQ(error_of([&] {
              nn::Evaluating scope(model);
              fail<ValueError>("stop");
            }),
            "stop");
  EXPECT_TRUE(model.is_training());
}

}  // namespace
}  // namespace tenon::testing
