// Models that score the next token, with a context or with a state, and how they write.
#include <tenon/nn/generate.h>
#include <tenon/nn/gpt.h>
#include <tenon/nn/initialize.h>
#include <tenon/nn/recurrent_sequential.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

nn::GPT small_gpt(bool tied = true) {
  manual_seed(1);
  return nn::GPT(11, 8, {.layers = 2, .heads = 2, .context = 6, .dropout = 0.5, .tied = tied});
}

TEST(GPT, NamesAndSizesOfItsParameters) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : small_gpt().named_parameters()) names.push_back(name);
  EXPECT_EQ(names.size(), 2 + 2 * 12 + 2u);
  EXPECT_EQ(names[0], "tokens.weight");
  EXPECT_EQ(names[1], "places.weight");
  EXPECT_EQ(names[2], "blocks.layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names.back(), "norm.bias");
  nn::NamedTensors own_head = small_gpt(false).named_parameters();
  EXPECT_EQ(own_head.size(), names.size() + 1);
  EXPECT_EQ(own_head[0].first, "head");
  EXPECT_EQ(own_head[0].second.description(), "float32[11, 8]");
}

TEST(GPT, SeesWhatWasBeforeAlone) {
  for (bool tied : {true, false}) {
    nn::GPT model = small_gpt(tied);
    nn::Evaluating scope(model);
    Tensor text = tensor({{1, 2, 3, 4, 5}}), other = tensor({{1, 2, 3, 9, 5}});
    Tensor scores = model(text), changed = model(other);
    EXPECT_EQ(scores.description(), "float32[1, 5, 11]");
    EXPECT_TRUE(scores.slice(1, 0, 3).allclose(changed.slice(1, 0, 3), 1e-4, 1e-5));
    EXPECT_FALSE(scores.slice(1, 4).allclose(changed.slice(1, 4), 1e-4, 1e-5));
    // The same token at another place.
    Tensor same = model(tensor({{7, 7}}));
    EXPECT_FALSE(same.slice(1, 0, 1).allclose(same.slice(1, 1, 2), 1e-4, 1e-5));
  }
}

TEST(GPT, BeginsSoThatNoTokenIsPreferred) {
  manual_seed(3);
  nn::GPT model(50, 32, {.layers = 4, .heads = 4, .context = 8, .dropout = 0});
  Tensor text = arange(16).view({2, 8}), other = text + 20;  // a tied head knows the token that it was shown
  double loss = cross_entropy(model(text).flatten(0, 1), other.flatten()).item<double>();
  EXPECT_NEAR(loss, std::log(50), 0.2);
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (name.ends_with("bias")) {
      EXPECT_THAT(values(parameter), Each(0)) << name;
    } else if (name.ends_with("linear2.weight")) {
      EXPECT_NEAR(parameter.std().item<double>(), 0.02 / std::sqrt(8), 1e-3);
    } else if (name.ends_with("linear1.weight")) {
      EXPECT_NEAR(parameter.std().item<double>(), 0.02, 2e-3);
    }
  }
}

TEST(GPT, IsOneGraphForAllLengths) {
  nn::GPT model = small_gpt();
  model.eval();
  auto compiled = compile([&](Tensor text) { return model(text); }, {.fullgraph = true});
  for (int64_t length : {2, 3, 4, 5}) {
    Tensor text = arange(2 * length).view({2, length});
    EXPECT_TRUE(compiled(text).allclose(model(text), 1e-4, 1e-5)) << length;
  }
  EXPECT_LE(compiled.compile_count(), 2);
}

TEST(GPT, Refusals) {
  nn::GPT model = small_gpt();
  EXPECT_EQ(error_of([&] { (void)model(zeros({1, 7}, kInt64)); }),
            "[PositionEmbedding] expected at most 6 places of 8 features, got float32[1, 7, 8]");
  EXPECT_EQ(error_of([&] { (void)model(zeros({7}, kInt64)); }), "[GPT] expected tokens [batch, length], got int64[7]");
  EXPECT_EQ(error_of([] { nn::GPT(10, 8, {.heads = 3}); }), "[GPT] expected a width that 3 heads divide, got 8");
  EXPECT_EQ(error_of([] { nn::GPT(0, 8); }), "[GPT] expected a vocabulary and a width above 0, got 0 and 8");
}

nn::RecurrentSequential remembering() {
  manual_seed(2);
  return nn::RecurrentSequential(nn::Embedding(11, 4), nn::GRU(4, 5, {.num_layers = 2, .batch_first = true}),
                                 nn::LSTM(5, 3, {.batch_first = true}), nn::Tanh(),
                                 nn::RNN(3, 6, {.batch_first = true}), nn::Linear(6, 11));
}

TEST(RecurrentSequential, AStateThatGoesOnIsTheWholeText) {
  nn::RecurrentSequential model = remembering();
  EXPECT_EQ(model.size(), 6u);
  Tensor text = arange(10).view({2, 5});
  auto [whole, last] = model(text);
  auto [first, between] = model(text.slice(1, 0, 2));
  auto [second, same] = model(text.slice(1, 2), between);
  EXPECT_EQ(whole.description(), "float32[2, 5, 11]");
  EXPECT_TRUE(whole.allclose(cat({first, second}, 1), 1e-4, 1e-5));
  ASSERT_EQ(last.size(), 4u);  // of the GRU, two of the LSTM, of the RNN
  for (size_t at = 0; at < last.size(); ++at) EXPECT_TRUE(last[at].allclose(same[at], 1e-4, 1e-5)) << at;
}

TEST(RecurrentSequential, ZerosAreNoState) {
  nn::RecurrentSequential model = remembering();
  std::vector<Tensor> zero = model.zero_state(2);
  std::vector<std::string> sizes;
  for (const Tensor& each : zero) sizes.push_back(each.description());
  EXPECT_THAT(sizes, ElementsAre("float32[2, 2, 5]", "float32[1, 2, 3]", "float32[1, 2, 3]", "float32[1, 2, 6]"));
  Tensor text = arange(6).view({2, 3});
  EXPECT_TRUE(std::get<0>(model(text)).allclose(std::get<0>(model(text, zero)), 1e-5, 1e-6));
}

TEST(RecurrentSequential, NamesClonesAndCompiles) {
  nn::RecurrentSequential model = remembering(), copy = nn::clone(model);
  EXPECT_EQ(model.named_parameters()[1].first, "1.weight_ih_l0");
  Tensor text = arange(6).view({2, 3});
  Tensor before = std::get<0>(copy(text));
  nn::init::each(model, [](const Tensor& each) { each.fill_(0); });
  EXPECT_TRUE(std::get<0>(copy(text)).equal(before));
  auto compiled =
      compile([&](Tensor input, std::vector<Tensor> state) { return copy(input, state); }, {.fullgraph = true});
  auto [scores, state] = compiled(text, copy.zero_state(2));
  EXPECT_TRUE(scores.allclose(before, 1e-4, 1e-5));
  EXPECT_EQ(state.size(), 4u);
}

TEST(RecurrentSequential, AStateOfAnotherModelIsAnError) {
  EXPECT_EQ(
      error_of([] { (void)remembering()(zeros({2, 3}, kInt64), {zeros({1, 2, 5})}); }),
      "[RecurrentSequential] expected no state or one of 4 tensors (one for each GRU and RNN, two for each LSTM), "
      "got 1");
}

// Scores that say: the next letter is the last one and one more.
Tensor counting(const Tensor& tokens) { return one_hot((tokens + 1) % 11, 11).to(kFloat32) * 20; }

TEST(Generate, TheLikeliestTokenFollows) {
  EXPECT_THAT(values(nn::generate(counting, tensor({3, 4}), 4)), ElementsAre(3, 4, 5, 6, 7, 8));
  Tensor rows = nn::generate(counting, tensor({{3}, {9}}), 3);
  EXPECT_EQ(rows.description(), "int64[2, 4]");
  EXPECT_THAT(values(rows), ElementsAre(3, 4, 5, 6, 9, 10, 0, 1));
  EXPECT_THAT(values(nn::generate(counting, tensor({3, 4}), 0)), ElementsAre(3, 4));
}

TEST(Generate, TheModelIsShownItsContext) {
  std::vector<int64_t> lengths;
  auto model = [&](const Tensor& tokens) {
    lengths.push_back(tokens.size(1));
    return counting(tokens);
  };
  (void)nn::generate(model, tensor({0, 1}), 4, {.context = 3});
  EXPECT_THAT(lengths, ElementsAre(2, 3, 3, 3));
  nn::GPT gpt = small_gpt();  // of a context of 6
  EXPECT_EQ(nn::generate(gpt, tensor({1, 2, 3}), 9).description(), "int64[12]");
  EXPECT_TRUE(gpt.is_training());
}

TEST(Generate, AStateReadsEveryTokenOnce) {
  nn::RecurrentSequential model = remembering();
  Tensor text = nn::generate(model, tensor({1, 2}), 6);
  // As if all was read anew for each.
  auto without_state = [&](const Tensor& tokens) { return std::get<0>(model(tokens)); };
  EXPECT_EQ(values(text), values(nn::generate(without_state, tensor({1, 2}), 6)));
  EXPECT_THAT(values(nn::generate(model, tensor({1, 2}), 0)), ElementsAre(1, 2));
}

TEST(Generate, DrawsByTheSharesOfTheModel) {
  Tensor scores = log(tensor({{0.5f, 0.3f, 0.15f, 0.05f}})).expand({4000, 4});
  Generator generator(5);
  auto shares = [&](const nn::GenerateOptions& options) {
    Tensor drawn = nn::next_token(scores, options);
    std::vector<double> counts;
    for (int64_t token = 0; token < 4; ++token) counts.push_back((drawn == token).to(kFloat64).mean().item<double>());
    return counts;
  };
  using ::testing::DoubleNear;
  using ::testing::Pointwise;
  EXPECT_THAT(shares({.temperature = 1, .generator = &generator}), Pointwise(DoubleNear(0.04), {0.5, 0.3, 0.15, 0.05}));
  // Squares of the shares, at half the temperature.
  EXPECT_THAT(shares({.temperature = 0.5, .generator = &generator}),
              Pointwise(DoubleNear(0.04), {0.25 / 0.365, 0.09 / 0.365, 0.0225 / 0.365, 0.0025 / 0.365}));
  EXPECT_THAT(shares({.temperature = 1, .top_k = 2, .generator = &generator}),
              Pointwise(DoubleNear(0.04), {0.625, 0.375, 0.0, 0.0}));
  EXPECT_THAT(shares({}), ElementsAre(1, 0, 0, 0));
}

TEST(Generate, AGeneratorRepeatsItself) {
  nn::GenerateOptions options{.temperature = 1};
  std::set<std::vector<double>> texts;
  for (int time = 0; time < 2; ++time) {
    Generator generator(3);
    options.generator = &generator;
    texts.insert(values(nn::generate(small_gpt(), tensor({1}), 20, options)));
  }
  EXPECT_EQ(texts.size(), 1u);
}

TEST(Generate, Refusals) {
  EXPECT_EQ(error_of([] { (void)nn::generate(counting, zeros({0}, kInt64), 3); }),
            "[generate] expected a start of at least one token, int64 [length] or [batch, length], got int64[0]");
  EXPECT_EQ(error_of([] { (void)nn::generate([](const Tensor& x) { return x.to(kFloat32); }, tensor({1}), 3); }),
            "[generate] expected a model that gives scores [1, length, vocabulary], got float32[1, 1]");
  EXPECT_EQ(error_of([] { (void)nn::generate(counting, tensor({1}), 3, {.temperature = -1}); }),
            "[next_token] expected a temperature and a top_k that are not negative, got -1 and 0");
  EXPECT_THAT(error_of([] { (void)nn::next_token(ones({3})); }), HasSubstr("got float32[3]"));
}

}  // namespace
}  // namespace tenon::testing
