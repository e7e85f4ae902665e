// As ../resnet.cpp.
#include <torch/torch.h>

#include <cmath>

namespace nn = torch::nn;

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BlockImpl : nn::Module {
  nn::Sequential body, shortcut;

  BlockImpl(int64_t in, int64_t out, int64_t stride)
      : body(conv(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(), conv(out, out, 3), nn::BatchNorm2d(out)) {
    if (stride != 1) shortcut = nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out));
    register_module("body", body);
    register_module("shortcut", shortcut);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(body->forward(x) + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }
};
TORCH_MODULE(Block);

// Waves of one of four directions.
struct Pictures : torch::data::Dataset<Pictures> {
  torch::Tensor images, labels;

  explicit Pictures(int64_t count) : labels(torch::arange(count) % 4) {
    torch::Tensor x = torch::arange(16).to(torch::kFloat32).expand({16, 16}), y = x.t();
    torch::Tensor waves = torch::stack({y, x, x + y, x - y}).index({labels});
    images = torch::sin(waves + 0.1 * torch::arange(count).view({-1, 1, 1})).unsqueeze(1);
  }
  torch::data::Example<> get(size_t index) override { return {images[int64_t(index)], labels[int64_t(index)]}; }
  std::optional<size_t> size() const override { return images.size(0); }
};

auto loader(int64_t count, size_t batch) {
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Pictures(count).map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(batch));
}

int main() {
  auto training = loader(160, 16), testing = loader(200, 50);
  nn::Sequential model(conv(1, 8, 3), nn::BatchNorm2d(8), nn::ReLU(), Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2),
                       nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(nn::LinearOptions(32, 4).bias(false)));
  for (const torch::Tensor& each : model->parameters())
    if (each.dim() > 1) each.detach().copy_(torch::sin(torch::arange(each.numel())).view_as(each) * 0.2);

  torch::optim::SGD sgd(model->parameters(),
                        torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(1e-4).nesterov(true));
  int64_t step = 0;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const torch::data::Example<>& batch : *training) {
      torch::Tensor loss = nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      sgd.zero_grad();
      loss.backward();
      sgd.step();
      std::printf("step %ld loss %.4f\n", step, loss.item<double>());
      const double rate = 0.01 * (1 + std::cos(M_PI * double(++step) / 20)) / 2;
      for (auto& group : sgd.param_groups()) static_cast<torch::optim::SGDOptions&>(group.options()).lr(rate);
    }

  model->eval();
  torch::NoGradGuard off;
  int64_t right = 0;
  for (const torch::data::Example<>& batch : *testing)
    right += (model->forward(batch.data).argmax(1) == batch.target).sum().item<int64_t>();
  std::printf("right %.4f\n", double(right) / 200);
}
