// A convolutional network that tells pictures apart: MNIST from a folder that is given, else bars and crosses that it
// draws itself.
//
//   image_classifier [--eager] [--steps 120] [folder of MNIST]
#include "arguments.h"

using namespace tenon;

constexpr int64_t kSide = 28, kShapes = 4;

// A bright bar, upright, lying or slanted, or a cross, somewhere in noise.
struct Shapes : data::Dataset {
  size_t size() const override { return 2000; }
  data::Example get(size_t index) const override {
    auto kind = static_cast<int64_t>(index) % kShapes;
    std::vector<float> pixels(kSide * kSide);
    uint64_t state = 88172645463325252ull + index;
    auto random = [&](uint64_t bound) {  // xorshift: the same picture for the same number
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      return static_cast<int64_t>(state % bound);
    };
    for (float& pixel : pixels) pixel = static_cast<float>(random(100)) * 0.004f;
    int64_t row = 4 + random(8), column = 4 + random(8);
    for (int64_t at = 0; at < 12; ++at) {
      auto light = [&](int64_t y, int64_t x) { pixels[static_cast<size_t>((row + y) * kSide + column + x)] = 1; };
      if (kind == 0 || kind == 3) light(at, 6);
      if (kind == 1 || kind == 3) light(6, at);
      if (kind == 2) light(at, at);
    }
    return {tensor(pixels).view({1, kSide, kSide}), tensor(kind)};
  }
};

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 120);
  manual_seed(1);
  data::DatasetRef all = std::make_shared<Shapes>();
  if (!arguments.path.empty()) all = std::make_shared<data::MNIST>(arguments.path);
  std::vector<data::DatasetRef> parts = data::random_split(all, {all->size() - 400, 400}, 1);
  data::DataLoader training(parts[0], {.batch_size = 32, .shuffle = true, .drop_last = true, .workers = 2});
  data::DataLoader testing(parts[1], {.batch_size = 100});

  nn::Sequential model(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Conv2d(8, 16, 3, {.padding = 1}), nn::BatchNorm2d(16), nn::ReLU(), nn::AdaptiveAvgPool2d(4),
                       nn::Flatten(), nn::Linear(16 * 16, 10));
  auto loss = compile([&](Tensor images, Tensor labels) { return cross_entropy(model(images), labels); });
  optim::Adam adam(model.parameters(), {.lr = 3e-3});
  double first = 0, last = 0;
  for (int64_t step = 0; step < arguments.steps;)
    for (const data::Example& batch : progress(training, "training")) {
      if (step == arguments.steps) break;
      adam.zero_grad();
      Tensor value = loss(batch.data, batch.target);
      value.backward();
      adam.step();
      last = value.item<double>();
      if (step++ == 0) first = last;
    }

  model.eval();
  NoGrad off;
  auto right = compile([&](Tensor images, Tensor labels) { return sum(argmax(model(images), 1) == labels); });
  int64_t hits = 0;
  for (const data::Example& batch : testing) hits += right(batch.data, batch.target).item<int64_t>();
  fmt::print("image_classifier: first={:.6f} last={:.6f} accuracy={:.3f}\n", first, last,
             static_cast<double>(hits) / static_cast<double>(parts[1]->size()));
}
