// A variational auto-encoder of small pictures of blobs: two numbers stand for a picture, and new ones are drawn.
//
//   vae [--eager] [--steps 200]
#include "arguments.h"

using namespace tenon;

constexpr int64_t kSide = 8, kPixels = kSide * kSide, kHidden = 64, kLatent = 2;

// A blob at a random place, [batch, pixels].
Tensor blobs(int64_t batch) {
  Tensor place = arange(kSide).to(kFloat32), centre = rand({2, batch, 1}) * static_cast<double>(kSide - 1);
  Tensor rows = exp(square(place - centre[0]) * -0.5), columns = exp(square(place - centre[1]) * -0.5);
  return (rows.unsqueeze(2) * columns.unsqueeze(1)).view({batch, kPixels});
}

struct VAE : nn::Module {
  nn::Sequential encoder = submodule("encoder", nn::Sequential(nn::Linear(kPixels, kHidden), nn::Tanh()));
  nn::Linear mean = submodule("mean", nn::Linear(kHidden, kLatent)),
             log_variance = submodule("log_variance", nn::Linear(kHidden, kLatent));
  nn::Sequential decoder =
      submodule("decoder", nn::Sequential(nn::Linear(kLatent, kHidden), nn::Tanh(), nn::Linear(kHidden, kPixels)));
  // What it costs to describe the pictures: how badly they are remade, and how much their numbers say.
  Tensor loss(const Tensor& pictures) const {
    Tensor inner = encoder(pictures), mu = mean(inner), spread = log_variance(inner);
    Tensor drawn = mu + exp(spread * 0.5) * randn_like(mu);
    Tensor remade = binary_cross_entropy_with_logits(decoder(drawn), pictures, {}, {}, Reduction::Sum);
    Tensor divergence = (square(mu) + exp(spread) - spread - 1).sum() * 0.5;
    return (remade + divergence) / Scalar(pictures.size(0));
  }
};

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 200);
  manual_seed(1);
  VAE model;
  auto loss = compile([&](Tensor pictures) { return model.loss(pictures); });
  optim::Adam adam(model.parameters(), {.lr = 3e-3});
  double first = 0, last = 0;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    adam.zero_grad();
    Tensor value = loss(blobs(64));
    value.backward();
    adam.step();
    last = value.item<double>();
    if (step == 0) first = last;
  }
  NoGrad off;
  Tensor picture = sigmoid(model.decoder(randn({1, kLatent}))).view({kSide, kSide});
  auto pixels = picture.accessor<float, 2>();
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < kSide; ++column) fmt::print("{}", " .:+#"[int(pixels[row][column] * 4.99f)]);
    fmt::print("\n");
  }
  fmt::print("vae: first={:.6f} last={:.6f}\n", first, last);
}
