// A character GPT: trains on a text (or on the documents of this project), then writes some, with keys and values of
// what it has written kept in a cache that grows.
//
//   char_gpt [--eager] [--steps 200] [text.txt]
#include "arguments.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tenon;

constexpr int64_t kContext = 64, kFeatures = 64, kHeads = 4, kLayers = 2, kBatch = 8;

struct Cache {
  std::vector<Tensor> keys, values;  // of each layer, [1, heads, length, features]
};

struct Block : nn::Module {
  nn::LayerNorm norm1 = submodule("norm1", nn::LayerNorm(kFeatures)),
                norm2 = submodule("norm2", nn::LayerNorm(kFeatures));
  nn::Linear qkv = submodule("qkv", nn::Linear(kFeatures, 3 * kFeatures)),
             out = submodule("out", nn::Linear(kFeatures, kFeatures));
  nn::Sequential feed = submodule(
      "feed", nn::Sequential(nn::Linear(kFeatures, 4 * kFeatures), nn::GELU(), nn::Linear(4 * kFeatures, kFeatures)));

  // Keys and values from before come first, and the new ones are appended to them.
  Tensor operator()(const Tensor& input, Tensor& keys, Tensor& values) const {
    SymInt batch = input.size(0), length = input.size(1);
    auto parts = qkv(norm1(input)).view({batch, length, 3, kHeads, kFeatures / kHeads}).permute({2, 0, 3, 1, 4});
    bool first = !keys.defined();
    keys = first ? parts[1] : cat({keys, parts[1]}, 2);
    values = first ? parts[2] : cat({values, parts[2]}, 2);
    Tensor mixed = scaled_dot_product_attention(parts[0], keys, values, {.is_causal = first});
    Tensor x = input + out(mixed.transpose(1, 2).reshape({batch, length, kFeatures}));
    return x + feed(norm2(x));
  }
};

struct GPT : nn::Module {
  nn::Embedding tokens, places = submodule("places", nn::Embedding(4 * kContext, kFeatures));
  nn::ModuleList<Block> blocks;
  nn::LayerNorm norm = submodule("norm", nn::LayerNorm(kFeatures));
  nn::Linear head;

  explicit GPT(int64_t letters)
      : tokens(submodule("tokens", nn::Embedding(letters, kFeatures))),
        head(submodule("head", nn::Linear(kFeatures, letters))) {
    for (int64_t layer = 0; layer < kLayers; ++layer) blocks.push_back(Block());
    submodule("blocks", blocks);
    apply([](const nn::Module& module) {
      if (module.kind() == "Embedding") nn::init::normal_(module.parameters()[0], 0, 0.02);
    });
  }
  Tensor operator()(const Tensor& text, const Tensor& where, Cache& cache) const {
    Tensor x = tokens(text) + places(where);
    cache.keys.resize(kLayers);
    cache.values.resize(kLayers);
    for (size_t layer = 0; layer < kLayers; ++layer) x = blocks[layer](x, cache.keys[layer], cache.values[layer]);
    return head(norm(x));
  }
};

std::string read_text(const std::string& path) {
  std::ostringstream text;
  if (!path.empty()) {
    text << std::ifstream(path).rdbuf();
  } else {
    for (const auto& file : std::filesystem::directory_iterator(TENON_DOCS)) text << std::ifstream(file.path()).rdbuf();
  }
  return text.str();
}

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 200);
  manual_seed(1);
  std::string text = read_text(arguments.path), letters = text;
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  std::vector<int64_t> numbers;
  for (char letter : text) numbers.push_back(static_cast<int64_t>(letters.find(letter)));
  Tensor data = tensor(numbers);
  GPT model(static_cast<int64_t>(letters.size()));

  auto loss = compile([&](Tensor input, Tensor target) {
    Cache cache;
    Tensor scores = model(input, arange(kContext), cache);
    return cross_entropy(scores.view({-1, scores.size(-1)}), target.view(-1));
  });
  optim::AdamW adam(model.parameters(), {.lr = 3e-3});
  optim::CosineAnnealingLR schedule(adam, std::max<int64_t>(1, arguments.steps), 1e-4);
  std::vector<double> losses;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    Tensor start = randint(data.size(0) - kContext - 1, {kBatch, 1}), window = start + arange(kContext);
    adam.zero_grad();
    Tensor value = loss(data.index({window}), data.index({window + 1}));
    value.backward();
    nn::clip_grad_norm_(model.parameters(), 1.0);
    adam.step();
    schedule.step();
    losses.push_back(value.item<double>());
    if (step % 50 == 0) fmt::print("step {:4}: loss {:.3f}\n", step, losses.back());
  }

  // One letter at a time; what was computed for those before stays in the cache.
  NoGrad off;
  auto next = compile([&](Tensor letter, Tensor where, std::vector<Tensor> keys, std::vector<Tensor> values) {
    Cache cache{std::move(keys), std::move(values)};
    Tensor scores = model(letter, where, cache).select(1, -1);
    Tensor noise = -log(-log(rand_like(scores)));  // the largest of noisy scores is a draw from the softmax
    return std::tuple(argmax(scores + noise * 0.7, 1, true), cache.keys, cache.values);
  });
  Cache cache;
  Tensor letter = data.slice(0, 0, 1).view({1, 1});
  model(letter, zeros({1}, kInt64), cache);
  std::string written;
  for (int64_t at = 1; at < 120; ++at) {
    auto [drawn, keys, values] = next(letter, tensor({at}), cache.keys, cache.values);
    letter = drawn;
    cache = {keys, values};
    written += letters[static_cast<size_t>(letter.item<int64_t>())];
  }
  fmt::print("{}\n", written);
  fmt::print("char_gpt: first={:.6f} last={:.6f}\n", losses.front(), losses.back());
}
