// ATen's steps over lists, against what PyTorch 2.13 gives for the same numbers.
#include <gtest/gtest.h>
#include <tenon/dispatch/packet.h>
#include <tenon/tenon.h>

namespace tenon::optim {
namespace {

using dispatch::Keyword;
using dispatch::Value;
using Numbers = std::vector<double>;
using List = std::vector<Tensor>;

Tensor vector(const Numbers& numbers) { return tensor(numbers, kFloat64); }

// A parameter, its gradient, and what is remembered of it.
struct Given {
  Tensor parameter = vector({1, -2, 0.5, 3}), gradient = vector({0.1, -0.4, 0.25, -1.5});
  Tensor mean = vector({0.2, 0.1, -0.3, 0.05}), square = vector({0.01, 0.04, 0.09, 0.5});
  Tensor largest = vector({0.02, 0.03, 0.2, 0.1});
};

void expect_numbers(const Tensor& is, const Numbers& should) {
  for (size_t at = 0; at < should.size(); ++at)
    EXPECT_NEAR(is[static_cast<int64_t>(at)].item<double>(), should[at], 1e-10 * std::abs(should[at]) + 1e-12) << at;
}

std::vector<Keyword> adam_words(bool amsgrad, bool maximize, const Value& lr) {
  return {
      {"lr", lr},           {"beta1", Value(0.9)},       {"beta2", Value(0.99)},       {"weight_decay", Value(0.05)},
      {"eps", Value(1e-3)}, {"amsgrad", Value(amsgrad)}, {"maximize", Value(maximize)}};
}
void adam(const char* name, const Given& g, bool largest, std::vector<Keyword> words) {
  const List p{g.parameter}, grad{g.gradient}, mean{g.mean}, square{g.square}, most{g.largest}, none,
      steps{tensor(3.0)};
  const Value arguments[] = {Value(p),    Value(grad), Value(mean), Value(square), Value(largest ? most : none),
                             Value(steps)};
  const dispatch::Operator& op = dispatch::find_operator(name);
  dispatch::call_boxed(op, dispatch::bind_arguments(op.schema(), arguments, words));
}

TEST(FusedOperators, adam_and_adamw) {
  Given a;
  adam("aten::_fused_adam_", a, false, adam_words(false, false, Value(0.1)));
  expect_numbers(a.parameter, {0.876970247871, -2.01238712623, 0.551416703345, 3.00798730722});
  expect_numbers(a.gradient, {0.1, -0.4, 0.25, -1.5});
  expect_numbers(a.mean, {0.195, 0.04, -0.2425, -0.09});
  expect_numbers(a.square, {0.010125, 0.0421, 0.08985625, 0.513225});
  Given w;
  adam("aten::_fused_adamw_", w, false, adam_words(false, false, Value(0.1)));
  expect_numbers(w.parameter, {0.874379249026, -2.00565197181, 0.549484730676, 2.99427996495});
  expect_numbers(w.square, {0.01, 0.0412, 0.089725, 0.5175});
}

TEST(FusedOperators, the_largest_square_of_scaled_gradients_upwards) {
  const Tensor scale = tensor(4.0);
  Given a, w;
  std::vector<Keyword> words = adam_words(true, true, Value(0.1));
  words.push_back({"grad_scale", Value(scale)});
  adam("aten::_fused_adam_", a, true, words);
  expect_numbers(a.parameter, {0.918033725618, -2.02873658842, 0.538912402548, 2.99121369195});
  expect_numbers(a.gradient, {0.025, -0.1, 0.0625, -0.375});
  expect_numbers(a.largest, {0.02, 0.0396, 0.2, 0.49775625});
  words = adam_words(true, true, Value(tensor(std::vector<double>{0.1}, kFloat64)));
  words.push_back({"grad_scale", Value(scale)});
  adam("aten::_fused_adamw_.tensor_lr", w, true, words);
  expect_numbers(w.parameter, {0.915279376971, -2.02188933858, 0.536767766955, 2.97755533165});
  expect_numbers(w.mean, {0.1775, 0.1, -0.27625, 0.0825});
}

TEST(FusedOperators, nothing_happens_where_an_infinity_was_found) {
  Given a;
  const Tensor found = tensor(1.0);
  std::vector<Keyword> words = adam_words(false, false, Value(0.1));
  words.push_back({"found_inf", Value(found)});
  adam("aten::_fused_adam_", a, false, words);
  expect_numbers(a.parameter, {1, -2, 0.5, 3});
  expect_numbers(a.mean, {0.2, 0.1, -0.3, 0.05});
}

void sgd(const Given& g, double momentum, double dampening, bool nesterov, bool maximize, bool first) {
  const List p{g.parameter}, grad{g.gradient}, mean{g.mean}, none;
  const Value arguments[] = {Value(p), Value(grad), Value(momentum == 0 ? none : mean)};
  const std::vector<Keyword> words = {
      {"weight_decay", Value(0.05)},   {"momentum", Value(momentum)}, {"lr", Value(0.1)},
      {"dampening", Value(dampening)}, {"nesterov", Value(nesterov)}, {"maximize", Value(maximize)},
      {"is_first_step", Value(first)}};
  const dispatch::Operator& op = dispatch::find_operator("aten::_fused_sgd_");
  dispatch::call_boxed(op, dispatch::bind_arguments(op.schema(), arguments, words));
}

TEST(FusedOperators, gradient_descent) {
  Given first, later, plain;
  sgd(first, 0.9, 0, true, false, true);
  expect_numbers(first.parameter, {0.9715, -1.905, 0.44775, 3.2565});
  expect_numbers(first.mean, {0.15, -0.5, 0.275, -1.35});
  sgd(later, 0.9, 0.1, false, false, false);
  expect_numbers(later.parameter, {0.9685, -1.964, 0.50225, 3.117});
  expect_numbers(later.mean, {0.315, -0.36, -0.0225, -1.17});
  sgd(plain, 0, 0, false, true, false);
  expect_numbers(plain.parameter, {1.005, -2.03, 0.5225, 2.835});
}

TEST(FusedOperators, adagrad) {
  Given g;
  const List p{g.parameter}, grad{g.gradient}, sums{g.square}, steps{tensor(3.0)};
  const Value arguments[] = {Value(p), Value(grad), Value(sums), Value(steps)};
  const std::vector<Keyword> words = {{"lr", Value(0.1)},
                                      {"lr_decay", Value(0.01)},
                                      {"weight_decay", Value(0.05)},
                                      {"eps", Value(1e-3)},
                                      {"maximize", Value(false)}};
  const dispatch::Operator& op = dispatch::find_operator("aten::_fused_adagrad_");
  dispatch::call_boxed(op, dispatch::bind_arguments(op.schema(), arguments, words));
  expect_numbers(g.parameter, {0.91887643431, -1.90914159327, 0.43391487049, 3.08679023295});
  expect_numbers(g.square, {0.0325, 0.29, 0.165625, 2.3225});
}

// Several parameters are one launch, also in another layout, and in a compiled function.
TEST(FusedOperators, a_list_is_one_launch) {
  static Counter& launches = counter("kernels_launched");
  auto run = [](const List& p, const List& grad, const List& mean) {
    const Value arguments[] = {Value(p), Value(grad), Value(mean)};
    const std::vector<Keyword> words = {
        {"weight_decay", Value(0.0)},   {"momentum", Value(0.9)},   {"lr", Value(0.1)},
        {"dampening", Value(0.0)},      {"nesterov", Value(false)}, {"maximize", Value(false)},
        {"is_first_step", Value(false)}};
    const dispatch::Operator& op = dispatch::find_operator("aten::_fused_sgd_");
    dispatch::call_boxed(op, dispatch::bind_arguments(op.schema(), arguments, words));
  };
  auto fresh = [] { return List{ones({3}), ones({2, 4}), ones({5})}; };
  List p = fresh(), grad = fresh(), mean = fresh();
  const int64_t before = launches.value();
  run(p, grad, mean);
  EXPECT_EQ(launches.value() - before, 1);
  for (const Tensor& each : p) EXPECT_NEAR(each.max().item<double>(), 1 - 0.19, 1e-6);
  auto f = compile([&](List given) {
    run({given[0], given[1]}, {given[2], given[3]}, {given[4], given[5]});
    return given[0] * 2;
  });
  List all = {ones({3}), ones({2, 4}), ones({3}), ones({2, 4}), ones({3}), ones({2, 4})};
  Tensor twice = f(all);
  EXPECT_NEAR(all[1].max().item<double>(), 1 - 0.19, 1e-6);
  EXPECT_NEAR(all[5].max().item<double>(), 1.9, 1e-6);
  EXPECT_NEAR(twice.max().item<double>(), 2 * (1 - 0.19), 1e-6);
  EXPECT_THROW(run({ones({3})}, {ones({4})}, {ones({3})}), RuntimeError);
}

}  // namespace
}  // namespace tenon::optim
