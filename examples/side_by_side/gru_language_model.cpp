// A GRU that learns to continue a text, letter by letter: the state goes on from window to window, the learning rate
// falls along a cosine, gradients are clipped. Then it writes.
#include <tenon/tenon.h>

using namespace tenon;

constexpr int64_t kLetters = 128, kFeatures = 32, kHidden = 48, kBatch = 4, kWindow = 16, kSteps = 60;

struct Model : nn::Module {
  nn::Embedding table = submodule("table", nn::Embedding(kLetters, kFeatures));
  nn::GRU gru = submodule("gru", nn::GRU(kFeatures, kHidden, {.num_layers = 2, .batch_first = true}));
  nn::Linear head = submodule("head", nn::Linear(kHidden, kLetters));

  std::tuple<Tensor, Tensor> operator()(const Tensor& text, const Tensor& state) const {
    auto [sequence, last] = gru(table(text), state);
    return {head(sequence), last};
  }
};

int main() {
  std::vector<int64_t> letters;
  for (int copy = 0; copy < 40; ++copy)
    for (char letter : std::string("a compiler reads what it is given and writes what it has understood. "))
      letters.push_back(letter);
  Tensor text = tensor(letters).slice(0, 0, kBatch * 600).view({kBatch, 600});
  Model model;
  for (const Tensor& each : model.parameters()) each.detach().copy_(sin(arange(each.numel())).view_as(each) * 0.2);

  auto loss = compile([&](Tensor input, Tensor target, Tensor state) {
    auto [scores, last] = model(input, state);
    return std::tuple(cross_entropy(scores.flatten(0, 1), target.flatten()), last.detach());
  });
  optim::Adam adam(model.parameters(), {.lr = 1e-2});
  optim::CosineAnnealingLR schedule(adam, kSteps, 1e-3);
  Tensor state = zeros({2, kBatch, kHidden});
  for (int64_t step = 0; step < kSteps; ++step) {
    int64_t at = step % 36 * kWindow;
    auto [value, next] = loss(text.slice(1, at, at + kWindow), text.slice(1, at + 1, at + kWindow + 1), state);
    adam.zero_grad();
    value.backward();
    nn::clip_grad_norm_(model.parameters(), 1.0);
    adam.step();
    schedule.step();
    state = next;
    if (step % 10 == 0) fmt::print("step {:2} loss {:.4f}\n", step, value.item<double>());
  }

  NoGrad off;
  Tensor letter = text.slice(0, 0, 1).slice(1, 0, 1), memory = zeros({2, 1, kHidden});
  for (int at = 0; at < 40; ++at) {
    auto [scores, next] = model(letter, memory);
    letter = scores.argmax(-1);
    memory = next;
    fmt::print("{}", static_cast<char>(letter.item<int64_t>()));
  }
  fmt::print("\n");
}
