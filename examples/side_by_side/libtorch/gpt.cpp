// As ../gpt.cpp. The encoder layer of LibTorch normalises last and puts time before the batch: the block is our own.
#include <torch/torch.h>

#include <cmath>

namespace F = torch::nn::functional;

constexpr int64_t kLetters = 128, kWidth = 32, kHeads = 4, kLayers = 2, kContext = 32, kSteps = 40;

struct BlockImpl : torch::nn::Module {
  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv, out, linear1, linear2;

  BlockImpl()
      : norm1(torch::nn::LayerNormOptions({kWidth})),
        norm2(torch::nn::LayerNormOptions({kWidth})),
        qkv(kWidth, 3 * kWidth),
        out(kWidth, kWidth),
        linear1(kWidth, 4 * kWidth),
        linear2(4 * kWidth, kWidth) {
    register_module("qkv", qkv);
    register_module("out", out);
    register_module("linear1", linear1);
    register_module("linear2", linear2);
    register_module("norm1", norm1);
    register_module("norm2", norm2);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const int64_t batch = input.size(0), length = input.size(1);
    auto parts = qkv(norm1(input)).view({batch, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind();
    torch::Tensor mixed = torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    torch::Tensor x = input + out(mixed.transpose(1, 2).reshape({batch, length, kWidth}));
    return x + linear2(F::gelu(linear1(norm2(x))));
  }
};
TORCH_MODULE(Block);

struct GPTImpl : torch::nn::Module {
  torch::nn::Embedding tokens, places;
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm;

  GPTImpl() : tokens(kLetters, kWidth), places(kContext, kWidth), norm(torch::nn::LayerNormOptions({kWidth})) {
    for (int64_t layer = 0; layer < kLayers; ++layer) blocks->push_back(Block());
    register_module("tokens", tokens);
    register_module("places", places);
    register_module("blocks", blocks);
    register_module("norm", norm);
  }

  torch::Tensor forward(const torch::Tensor& text) {
    torch::Tensor x = blocks->forward(tokens(text) + places(torch::arange(text.size(1))));
    return norm(x).matmul(tokens->weight.t());
  }
};
TORCH_MODULE(GPT);

int main() {
  std::vector<int64_t> letters;
  for (int copy = 0; copy < 40; ++copy)
    for (char letter : std::string("a compiler reads what it is given and writes what it has understood. "))
      letters.push_back(letter);
  torch::Tensor text = torch::tensor(letters), rows = torch::arange(8).view({8, 1}) * 5 + torch::arange(kContext);
  GPT model;
  for (const torch::Tensor& each : model->parameters())
    each.detach().copy_(torch::sin(torch::arange(each.numel())).view_as(each) * 0.1);

  torch::optim::AdamW adam(model->parameters(), torch::optim::AdamWOptions(1e-2));
  for (int64_t step = 0; step < kSteps; ++step) {
    const double warm = std::min(1.0, 0.1 + 0.9 * double(step) / 8), angle = M_PI * double(step) / kSteps;
    for (auto& group : adam.param_groups())
      static_cast<torch::optim::AdamWOptions&>(group.options()).lr(1e-2 * warm * (1 + std::cos(angle)) / 2);
    torch::Tensor scores = model(text.index({rows + 40 * step}));
    torch::Tensor loss = F::cross_entropy(scores.flatten(0, 1), text.index({rows + 40 * step + 1}).flatten());
    adam.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    adam.step();
    if (step % 8 == 0) std::printf("step %ld loss %.4f\n", step, loss.item<double>());
  }

  torch::NoGradGuard off;
  torch::Tensor written = text.slice(0, 0, 4).view({1, -1});
  while (written.size(1) < kContext) written = torch::cat({written, model(written).argmax(-1).slice(1, -1)}, 1);
  for (int64_t at = 0; at < kContext; ++at) std::printf("%c", static_cast<char>(written[0][at].item<int64_t>()));
  std::printf("\n");
}
