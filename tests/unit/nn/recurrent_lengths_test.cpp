// Recurrent layers over sequences of many lengths: compiled for one, and for all others.
#include "unit/capture/testing.h"

namespace tenon {
namespace {

using testing::difference;
using testing::same_bits;

template <typename Layer>
void check(const Layer& layer, const nn::Module& module) {
  auto run = [&](const Tensor& x) {
    auto [sequence, state] = layer(x);
    if constexpr (std::is_same_v<decltype(state), nn::LSTMState>)
      return std::vector<Tensor>{sequence, state.h, state.c};
    else
      return std::vector<Tensor>{sequence, state};
  };
  auto compiled = compile(run, {.fullgraph = true});
  std::vector<Tensor> wanted = module.parameters();
  auto gradients = [&](const std::vector<Tensor>& results, const Tensor& x) {
    std::vector<Tensor> of = wanted;
    of.push_back(x);
    Tensor loss = zeros({}, kFloat64);
    for (const Tensor& result : results) loss = loss + (result * result).sum();
    std::vector<Tensor> roots{loss};
    return autograd::grad(roots, of);
  };
  for (int64_t length = 2; length < 22; ++length) {
    manual_seed(static_cast<uint64_t>(length));
    Tensor x = randn({length, 3, 4}, TensorOptions(kFloat64)).set_requires_grad();
    std::vector<Tensor> eager = run(x), made = compiled(x);
    for (size_t at = 0; at < eager.size(); ++at) EXPECT_TRUE(same_bits(made[at], eager[at])) << length;
    std::vector<Tensor> of_eager = gradients(eager, x), of_made = gradients(made, x);
    for (size_t at = 0; at < of_eager.size(); ++at) EXPECT_LT(difference(of_made[at], of_eager[at]), 1e-12) << length;
  }
  EXPECT_EQ(compiled.compile_count(), 2);
}

TEST(RecurrentLengths, Lstm) {
  nn::LSTM layer(4, 5, {.num_layers = 2, .bidirectional = true, .dtype = kFloat64});
  check(layer, layer);
}

TEST(RecurrentLengths, Gru) {
  nn::GRU layer(4, 5, {.dtype = kFloat64});
  check(layer, layer);
}

TEST(RecurrentLengths, Rnn) {
  nn::RNN layer(4, 5, {.num_layers = 2, .dtype = kFloat64}, "relu");
  check(layer, layer);
}

}  // namespace
}  // namespace tenon
