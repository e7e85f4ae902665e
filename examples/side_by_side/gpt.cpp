// A small GPT: blocks that normalise first and look back only, AdamW with a warm-up and a cosine, clipped gradients.
// Then it writes.
#include <tenon/tenon.h>

using namespace tenon;

int main() {
  std::string text;
  for (int copy = 0; copy < 40; ++copy) text += "a compiler reads what it is given and writes what it has understood. ";
  auto letters = data::Alphabet::ascii();
  data::DataLoader batches(std::make_shared<data::Windows>(letters.encode(text), 32, 5), {.batch_size = 8});
  nn::GPT model(letters.size(), 32, {.layers = 2, .heads = 4, .context = 32, .dropout = 0});
  nn::init::each(model, [](const Tensor& each) { each.copy_(sin(arange(each.numel())).view_as(each) * 0.1); });

  auto loss = [&](Tensor input, Tensor target) { return cross_entropy(model(input).flatten(0, 1), target.flatten()); };
  optim::AdamW adam(model.parameters(), {.lr = 1e-2});
  optim::LinearLR warmup(adam, 0.1, 1.0, 8);
  optim::CosineAnnealingLR cosine(adam, 40);
  trainer::fit(loss, adam, batches, {.max_steps = 40, .clip_norm = 1, .schedulers = {warmup, cosine}, .log_every = 8});
  fmt::print("{}\n", letters.decode(nn::generate(model, letters.encode("a co"), 28)));
}
