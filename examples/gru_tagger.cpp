// A tagger over sequences of different lengths: for each number, whether the sum so far is even. The lengths change
// from batch to batch, and the sequences of a batch are padded.
//
//   gru_tagger [--eager] [--steps 200]
#include "arguments.h"

using namespace tenon;

constexpr int64_t kNumbers = 4, kHidden = 32, kPadding = -100;

struct Tagger : nn::Module {
  nn::Embedding table = submodule("table", nn::Embedding(kNumbers, 16));
  nn::GRUCell cell = submodule("cell", nn::GRUCell(16, kHidden));
  nn::Linear head = submodule("head", nn::Linear(kHidden, 2));

  Tensor operator()(const Tensor& numbers) const {
    Tensor vectors = table(numbers), state = zeros({numbers.size(0), kHidden});
    std::vector<Tensor> states;
    for (int64_t at = 0; at < int64_t(numbers.size(1)); ++at) {
      state = cell(vectors.select(1, at), state);
      states.push_back(state);
    }
    return head(stack(states, 1));
  }
};

struct Batch {
  Tensor numbers, tags;
};

// Sequences of up to `length`, the rest padded with tags that do not count.
Batch make_batch(int64_t size, int64_t length) {
  Tensor numbers = randint(kNumbers, {size, length});
  Tensor tags = cumsum(numbers, 1) % 2, lengths = randint(1, length + 1, {size, 1});
  return {numbers, where(arange(length) < lengths, tags, kPadding)};
}

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 200);
  manual_seed(1);
  Tagger model;
  auto loss = compile([&](Tensor numbers, Tensor tags) {
    return cross_entropy(model(numbers).view({-1, 2}), tags.view(-1), {.ignore_index = kPadding});
  });
  optim::Adam adam(model.parameters(), {.lr = 1e-2});
  double first = 0, last = 0;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    auto [numbers, tags] = make_batch(32, 3 + step % 4);  // a length is compiled once
    adam.zero_grad();
    Tensor value = loss(numbers, tags);
    value.backward();
    nn::clip_grad_norm_(model.parameters(), 1.0);
    adam.step();
    last = value.item<double>();
    if (step == 0) first = last;
  }
  NoGrad off;
  auto [numbers, tags] = make_batch(100, 6);
  Tensor counts = tags != kPadding, right = (argmax(model(numbers), 2) == tags) & counts;
  fmt::print("gru_tagger: first={:.6f} last={:.6f} accuracy={:.3f}\n", first, last,
             right.sum().item<double>() / counts.sum().item<double>());
}
