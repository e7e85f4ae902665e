#include <tenon/trainer/evaluate.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using data::Example;

TEST(Evaluate, TheMeanOverSamplesNotBatches) {
  nn::Identity model;
  std::vector<Example> batches = {{ones({3}, kFloat64), {}}, {5 * ones({1}, kFloat64), {}}};
  EXPECT_EQ(trainer::evaluate(model, batches, [](const Tensor& x, const Tensor&) { return x.mean(); }), 2);
}

TEST(Evaluate, TheModelEvaluatesMeanwhile) {
  nn::Sequential model(nn::Dropout(0.5), nn::BatchNorm1d(2));
  std::vector<Example> batches = {{randn({4, 2}), {}}};
  Tensor before = model.named_buffers()[0].second.clone();
  trainer::evaluate(model, batches, [&](const Tensor& x, const Tensor&) {
    EXPECT_FALSE(model.is_training());
    Tensor result = model(x);
    EXPECT_FALSE(result.requires_grad());
    return result.mean();
  });
  EXPECT_TRUE(model.is_training());
  EXPECT_TRUE(model.named_buffers()[0].second.equal(before));
}

TEST(Accuracy, SharesOfRightAnswers) {
  nn::Identity model;  // its input is its scores
  std::vector<Example> batches = {{tensor({{0.9, 0.1}, {0.2, 0.8}, {0.6, 0.4}}), tensor({0, 1, 1})},
                                  {tensor({{0.1, 0.9}}), tensor({1})}};
  EXPECT_EQ(trainer::accuracy(model, batches), 0.75);
  // Scores [batch, length, vocabulary].
  std::vector<Example> text = {{tensor({{{0.9, 0.1}, {0.2, 0.8}}}), tensor({{0, 0}})}};
  EXPECT_EQ(trainer::accuracy(model, text, -1), 0.5);
}

TEST(Evaluate, Refusals) {
  nn::Identity model;
  std::vector<Example> batches = {{ones({3, 2}), ones({3, 2}, kInt64)}};
  EXPECT_EQ(error_of([&] { (void)trainer::accuracy(model, batches); }),
            "[accuracy] expected a target for each of the scores float32[3, 2], with classes along 1, got int64[3, 2]");
  EXPECT_EQ(
      error_of([&] { (void)trainer::evaluate(model, batches, [](const Tensor& x, const Tensor&) { return x; }); }),
      "[evaluate] expected a measure of one number for a batch, got float32[3, 2]; end it with .mean()");
  EXPECT_EQ(error_of([&] { (void)trainer::accuracy(model, std::vector<Example>()); }),
            "[evaluate] expected at least one sample, got none");
}

}  // namespace
}  // namespace tenon::testing
