// A residual network that tells patterns apart: pictures in batches from a loader, SGD with Nesterov's momentum along
// one cycle of rates, then the share of right answers.
#include <tenon/tenon.h>

using namespace tenon;

struct Block : nn::Module {
  nn::Sequential body, shortcut;

  Block(int64_t in, int64_t out, int64_t stride)
      : body(submodule("body",
                       nn::Sequential(nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
                                      nn::BatchNorm2d(out), nn::ReLU(),
                                      nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(out)))) {
    if (stride != 1)
      shortcut = nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out));
    submodule("shortcut", shortcut);
  }
  Tensor operator()(const Tensor& x) const { return relu(body(x) + shortcut(x)); }
};

// Waves of one of four directions.
data::DatasetRef pictures(int64_t count) {
  std::vector<Tensor> images;
  Tensor side = arange(16).to(kFloat32), y = side.view({16, 1}), x = side, slope[] = {y, x, x + y, x - y};
  for (int64_t number = 0; number < count; ++number)
    images.push_back(sin(slope[number % 4] + 0.1 * static_cast<double>(number)).expand({1, 16, 16}));
  return std::make_shared<data::TensorDataset>(stack(images), arange(count) % 4);
}

int main() {
  data::DataLoader training(pictures(160), {.batch_size = 16}), testing(pictures(200), {.batch_size = 50});
  nn::Sequential model(nn::Conv2d(1, 8, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(8), nn::ReLU(),
                       Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                       nn::Linear(32, 4, {.bias = false}));
  for (const Tensor& each : model.parameters())
    if (each.dim() > 1) each.detach().copy_(sin(arange(each.numel())).view_as(each) * 0.2);

  auto loss = compile([&](Tensor images, Tensor labels) { return cross_entropy(model(images), labels); });
  optim::SGD sgd(model.parameters(), {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
  optim::CosineAnnealingLR schedule(sgd, 20);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const data::Example& batch : training) {
      Tensor value = loss(batch.data, batch.target);
      sgd.zero_grad();
      value.backward();
      sgd.step();
      schedule.step();
      fmt::print("loss {:.4f}\n", value.item<double>());
    }

  model.eval();
  NoGrad off;
  int64_t right = 0;
  for (const data::Example& batch : testing)
    right += (model(batch.data).argmax(1) == batch.target).sum().item<int64_t>();
  fmt::print("right {}\n", right);
}
