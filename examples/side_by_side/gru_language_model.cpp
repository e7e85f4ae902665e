// A GRU that learns to continue a text, letter by letter: the state goes on from window to window, the learning rate
// falls along a cosine, gradients are clipped. Then it writes.
#include <tenon/tenon.h>

using namespace tenon;

int main() {
  std::string text;
  for (int copy = 0; copy < 28; ++copy) text += "a compiler reads what it is given and writes what it has understood. ";
  auto letters = data::Alphabet::ascii();
  nn::RecurrentSequential model(nn::Embedding(letters.size(), 32),
                                nn::GRU(32, 48, {.num_layers = 2, .batch_first = true}),
                                nn::Linear(48, letters.size()));
  nn::init::each(model, [](const Tensor& each) { each.copy_(sin(arange(each.numel())).view_as(each) * 0.2); });

  auto loss = [&](Tensor input, Tensor target, std::vector<Tensor> state) {
    auto [scores, next] = model(input, state);
    return std::tuple(cross_entropy(scores.flatten(0, 1), target.flatten()), next);
  };
  optim::Adam adam(model.parameters(), {.lr = 1e-2});
  optim::CosineAnnealingLR cosine(adam, 60, 1e-3);
  trainer::fit_with_state(loss, model.zero_state(4), adam, data::streams(letters.encode(text), 4, 16),
                          {.epochs = 2, .clip_norm = 1, .schedulers = {cosine}, .log_every = 10});
  fmt::print("{}\n", letters.decode(nn::generate(model, letters.encode("a"), 40)));
}
