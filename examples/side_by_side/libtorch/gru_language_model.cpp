// As ../gru_language_model.cpp.
#include <torch/torch.h>

#include <cmath>

constexpr int64_t kLetters = 128, kFeatures = 32, kHidden = 48, kBatch = 4, kWindow = 16, kEpochs = 2;

struct ModelImpl : torch::nn::Module {
  torch::nn::Embedding table;
  torch::nn::GRU gru;
  torch::nn::Linear head;

  ModelImpl()
      : table(kLetters, kFeatures),
        gru(torch::nn::GRUOptions(kFeatures, kHidden).num_layers(2).batch_first(true)),
        head(kHidden, kLetters) {
    register_module("table", table);
    register_module("gru", gru);
    register_module("head", head);
  }

  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& text, const torch::Tensor& state) {
    auto [sequence, last] = gru(table(text), state);
    return {head(sequence), last};
  }
};
TORCH_MODULE(Model);

int main() {
  std::vector<int64_t> letters;
  for (int copy = 0; copy < 28; ++copy)
    for (char letter : std::string("a compiler reads what it is given and writes what it has understood. "))
      letters.push_back(letter);
  const int64_t row = (int64_t(letters.size()) - 1) / kBatch, windows = row / kWindow, steps = kEpochs * windows;
  torch::Tensor text = torch::tensor(letters), inputs = text.slice(0, 0, kBatch * row).view({kBatch, row}),
                targets = text.slice(0, 1, kBatch * row + 1).view({kBatch, row});
  Model model;
  for (const torch::Tensor& each : model->parameters())
    each.detach().copy_(torch::sin(torch::arange(each.numel())).view_as(each) * 0.2);

  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(1e-2));
  torch::Tensor state;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t at = step % windows * kWindow;
    if (at == 0) state = torch::zeros({2, kBatch, kHidden});
    auto [scores, next] = model(inputs.slice(1, at, at + kWindow), state);
    torch::Tensor target = targets.slice(1, at, at + kWindow);
    torch::Tensor loss = torch::nn::functional::cross_entropy(scores.flatten(0, 1), target.flatten());
    adam.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    adam.step();
    const double rate = 1e-3 + (1e-2 - 1e-3) * (1 + std::cos(M_PI * double(step + 1) / double(steps))) / 2;
    for (auto& group : adam.param_groups()) static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
    state = next.detach();
    if (step % 10 == 0) std::printf("step %ld loss %.4f\n", step, loss.item<double>());
  }

  torch::NoGradGuard off;
  torch::Tensor letter = text.slice(0, 0, 1).view({1, 1}), memory = torch::zeros({2, 1, kHidden});
  std::printf("a");
  for (int at = 0; at < 40; ++at) {
    auto [scores, next] = model(letter, memory);
    letter = scores.argmax(-1);
    memory = next;
    std::printf("%c", static_cast<char>(letter.item<int64_t>()));
  }
  std::printf("\n");
}
