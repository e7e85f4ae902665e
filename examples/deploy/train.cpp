// Trains a small network that tells waves apart, freezes it and saves it as a file, which serve.cpp runs without a
// compiler.
//
//   train [--steps 150] [waves.tenon]
#include "../arguments.h"
#include "waves.h"

using namespace tenon;

int main(int count, char** words) {
  examples::Arguments arguments = examples::read_arguments(count, words, 150);
  if (arguments.path.empty()) arguments.path = "waves.tenon";
  manual_seed(1);
  nn::Sequential model(nn::Conv1d(1, 16, 7, {.stride = 2, .padding = 3}), nn::BatchNorm1d(16), nn::ReLU(),
                       nn::Conv1d(16, 32, 5, {.stride = 2, .padding = 2}), nn::BatchNorm1d(32), nn::ReLU(),
                       nn::AdaptiveAvgPool1d(4), nn::Flatten(), nn::Linear(32 * 4, waves::kKinds));
  auto loss = compile([&](Tensor signals, Tensor kinds) { return cross_entropy(model(signals), kinds); });
  optim::Adam adam(model.parameters(), {.lr = 3e-3});
  double first = 0, last = 0;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    std::vector<Tensor> signals;
    std::vector<int64_t> kinds;
    for (uint64_t each = 0; each < 32; ++each) {
      kinds.push_back(static_cast<int64_t>(each % waves::kKinds));
      signals.push_back(tensor(waves::signal(kinds.back(), static_cast<uint64_t>(step) * 32 + each)).unsqueeze(0));
    }
    adam.zero_grad();
    Tensor value = loss(stack(signals), tensor(kinds));
    value.backward();
    adam.step();
    last = value.item<double>();
    if (step == 0) first = last;
  }

  model.eval();
  auto classify = freeze([&](Tensor signals) { return softmax(model(signals), 1); }, {.dynamic = Dynamic::On});
  NoGrad off;
  classify(zeros({2, 1, waves::kLength}));  // what was compiled is what is saved: any number of signals of any length,
  classify(zeros({1, 1, waves::kLength}));  // and one of them alone
  save_compiled(classify, arguments.path);
  fmt::print("train: first={:.6f} last={:.6f}\nsaved {}\n", first, last, arguments.path);
}
