#include "unit/autograd/helpers.h"

#include <tenon/optim/sgd.h>

namespace tenon::testing {
namespace {

// The rule in plain numbers, for a parameter p with the gradient of (p - 3)²/2.
std::vector<double> expected(const optim::SGDOptions& o, int steps) {
  double p = 1, velocity = 0;
  std::vector<double> path;
  for (int i = 0; i < steps; ++i) {
    double g = p - 3 + o.weight_decay * p;
    if (o.momentum != 0) {
      velocity = i == 0 ? g : o.momentum * velocity + (1 - o.dampening) * g;
      g = o.nesterov ? g + o.momentum * velocity : velocity;
    }
    path.push_back(p -= o.lr * g);
  }
  return path;
}

void check(const optim::SGDOptions& options) {
  Tensor p = leaf({1.0});
  optim::SGD sgd({p}, options);
  for (double at : expected(options, 5)) {
    sgd.zero_grad();
    EXPECT_FALSE(p.grad().defined());
    ((p - 3) * (p - 3) / 2).backward();
    sgd.step();
    expect_near(p, {at});
  }
}

TEST(SGD, FollowsTheRule) {
  check({.lr = 0.1});
  check({.lr = 0.1, .weight_decay = 0.3});
  check({.lr = 0.1, .momentum = 0.9});
  check({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .dampening = 0.5});
  check({.lr = 0.1, .momentum = 0.9, .nesterov = true});
}

TEST(SGD, ChangesParametersInPlaceAndSkipsThoseWithoutGradient) {
  Tensor p = leaf({1.0}), idle = leaf({7.0}), same = p;
  optim::SGD sgd({p, idle}, {.lr = 0.5});
  (p * 2).backward();
  sgd.step();
  expect_near(same, {0});
  expect_near(idle, {7});
  EXPECT_TRUE(p.is_leaf());
  sgd.zero_grad(false);
  expect_near(p.grad(), {0});
}

TEST(SGD, Errors) {
  Tensor p = leaf({1.0});
  EXPECT_EQ(error_of([] { optim::SGD sgd({}, {.lr = 0.1}); }),
            "[SGD] expected at least one parameter, got an empty list");
  EXPECT_EQ(error_of([&] { optim::SGD sgd({p}, {.lr = -1}); }), "[SGD] expected a learning rate of at least 0, got -1");
  EXPECT_EQ(error_of([&] { optim::SGD sgd({p}, {.lr = 1, .momentum = -0.5}); }),
            "[SGD] expected a momentum of at least 0, got -0.5");
  EXPECT_EQ(error_of([&] { optim::SGD sgd({p}, {.lr = 1, .nesterov = true}); }),
            "[SGD] nesterov needs a momentum above 0 and no dampening, got momentum 0 and dampening 0");
  EXPECT_EQ(error_of([&] { optim::SGD sgd({p * 2}, {.lr = 1}); }), "[SGD] parameter 0 is not a leaf: float64[1]");
  EXPECT_EQ(error_of([&] { optim::SGD sgd({p, p}, {.lr = 1}); }),
            "[SGD] parameters 0 and 1 are the same tensor float64[1]");
}

}  // namespace
}  // namespace tenon::testing
