// A small GPT: blocks that normalise first and look back only, AdamW with a warm-up and a cosine, clipped gradients.
// Then it writes.
#include <tenon/tenon.h>

using namespace tenon;

constexpr int64_t kLetters = 128, kWidth = 32, kHeads = 4, kLayers = 2, kContext = 32, kSteps = 40;

struct GPT : nn::Module {
  nn::Embedding tokens = submodule("tokens", nn::Embedding(kLetters, kWidth)),
                places = submodule("places", nn::Embedding(kContext, kWidth));
  nn::TransformerEncoder blocks = submodule("blocks", nn::TransformerEncoder({kWidth,
                                                                              kHeads,
                                                                              {.dim_feedforward = 4 * kWidth,
                                                                               .dropout = 0,
                                                                               .activation = "gelu",
                                                                               .batch_first = true,
                                                                               .norm_first = true}},
                                                                             kLayers));
  nn::LayerNorm norm = submodule("norm", nn::LayerNorm(kWidth));

  Tensor operator()(const Tensor& text) const {
    Tensor x = blocks(tokens(text) + places(arange(text.size(1))), {.is_causal = true});
    return norm(x).matmul(tokens.weight.get().t());
  }
};

int main() {
  std::vector<int64_t> letters;
  for (int copy = 0; copy < 40; ++copy)
    for (char letter : std::string("a compiler reads what it is given and writes what it has understood. "))
      letters.push_back(letter);
  Tensor text = tensor(letters), rows = arange(8).view({8, 1}) * 40 + arange(kContext);
  GPT model;
  for (const Tensor& each : model.parameters()) each.detach().copy_(sin(arange(each.numel())).view_as(each) * 0.1);

  auto loss =
      compile([&](Tensor input, Tensor target) { return cross_entropy(model(input).flatten(0, 1), target.flatten()); });
  optim::AdamW adam(model.parameters(), {.lr = 1e-2});
  optim::LinearLR warmup(adam, 0.1, 1.0, 8);
  optim::CosineAnnealingLR cosine(adam, kSteps);
  for (int64_t step = 0; step < kSteps; ++step) {
    Tensor value = loss(text.index({rows + step}), text.index({rows + step + 1}));
    adam.zero_grad();
    value.backward();
    nn::clip_grad_norm_(model.parameters(), 1.0);
    adam.step();
    warmup.step();
    cosine.step();
    if (step % 8 == 0) fmt::print("step {:2} loss {:.4f}\n", step, value.item<double>());
  }

  NoGrad off;
  Tensor written = text.slice(0, 0, 4).view({1, -1});
  while (written.size(1) < kContext) written = cat({written, model(written).argmax(-1).slice(1, -1)}, 1);
  for (int64_t at = 0; at < kContext; ++at) fmt::print("{}", static_cast<char>(written[0][at].item<int64_t>()));
  fmt::print("\n");
}
