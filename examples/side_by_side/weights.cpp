// Weights in and out: a state dictionary of PyTorch is loaded by name, what does not fit is named, and the network is
// written as safetensors and its output as a NumPy array, both read back.
#include <tenon/tenon.h>

#include <fmt/ranges.h>

using namespace tenon;

int main(int, char** words) {
  nn::Sequential model(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Tanh(), nn::Linear(4, 2));
  for (const Tensor& each : model.parameters()) each.detach().fill_(0.5);
  nn::LoadResult result = model.load(words[1], /*strict=*/false);
  fmt::print("missing {} unexpected {}\n", result.missing, result.unexpected);
  model.eval();

  NoGrad off;
  Tensor output = model(arange(6).to(kFloat32).view({2, 3}));
  model.save("weights.safetensors");
  io::save_npy("output.npy", output);
  nn::Sequential again(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Tanh(), nn::Linear(4, 2));
  again.load("weights.safetensors");
  again.eval();
  Tensor same = again(arange(6).to(kFloat32).view({2, 3}));
  fmt::print("{} {:.4f}\n", same.equal(io::load_npy("output.npy")), output.sum().item<double>());
}
