// A residual network that tells patterns apart: pictures in batches from a loader, SGD with Nesterov's momentum along
// a cosine of rates, then the share of right answers.
#include <tenon/tenon.h>

using namespace tenon;

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return {in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}};
}

nn::Sequential block(int64_t in, int64_t out, int64_t stride) {
  nn::Sequential body(conv(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(), conv(out, out, 3),
                      nn::BatchNorm2d(out));
  if (stride == 1) return nn::Sequential(nn::Residual(body), nn::ReLU());
  return nn::Sequential(nn::Residual(body, nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out))), nn::ReLU());
}

// Waves of one of four directions.
data::DataLoader pictures(int64_t count, size_t batch) {
  Tensor number = arange(count), x = arange(16).to(kFloat32).expand({16, 16}), y = x.t();
  Tensor waves = stack({y, x, x + y, x - y}).index({number % 4}) + 0.1 * number.view({-1, 1, 1});
  return {std::make_shared<data::TensorDataset>(sin(waves).unsqueeze(1), number % 4), {.batch_size = batch}};
}

int main() {
  data::DataLoader training = pictures(160, 16), testing = pictures(200, 50);
  nn::Sequential model(conv(1, 8, 3), nn::BatchNorm2d(8), nn::ReLU(), block(8, 8, 1), block(8, 16, 2), block(16, 32, 2),
                       nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(32, 4, {.bias = false}));
  nn::init::each(model, [](const Tensor& each) {
    if (each.dim() > 1) each.copy_(sin(arange(each.numel())).view_as(each) * 0.2);
  });

  auto loss = [&](Tensor images, Tensor labels) { return cross_entropy(model(images), labels); };
  optim::SGD sgd(model.parameters(), {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
  optim::CosineAnnealingLR cosine(sgd, 20);
  trainer::fit(loss, sgd, training, {.epochs = 2, .schedulers = {cosine}, .log_every = 1});
  fmt::print("right {:.4f}\n", trainer::accuracy(model, testing));
}
