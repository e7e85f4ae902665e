// Layers that go through a sequence step by step.
#pragma once

#include <tenon/nn/module.h>

#include <optional>
#include <tuple>

namespace tenon::nn {

//   nn::LSTMOptions options{.num_layers = 2, .batch_first = true, .bidirectional = true};
struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  // input and output are [batch, time, features] instead of [time, batch, features]
  double dropout = 0;        // between layers, when training
  bool bidirectional = false;
  Dtype dtype = kFloat32;
};

// What an LSTM remembers: hidden and cell state, [layers * directions, batch, hidden].
struct LSTMState {
  Tensor h, c;
};

// A long short-term memory. Layer k has weight_ih_lk [4 * hidden, in], weight_hh_lk [4 * hidden, hidden], bias_ih_lk
// and bias_hh_lk [4 * hidden], the gates in the order input, forget, cell, output; the other direction has them with
// "_reverse" behind. All are uniform in ±1/√hidden. Without a batch, sequences and states have one dimension less.
//
//   nn::LSTM layer(3, 8);
//   auto [sequence, state] = layer(ones({5, 2, 3}));             // [5, 2, 8], and h and c of [1, 2, 8]
//   auto [more, last] = layer(ones({5, 2, 3}), nn::LSTMState{zeros({1, 2, 8}), zeros({1, 2, 8})});
class LSTM : public Module {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options = {});
  // Starts from zeros, or from `state`.
  std::tuple<Tensor, LSTMState> operator()(const Tensor& input, const std::optional<LSTMState>& state = {}) const;

 private:
  struct Direction {
    Cell<Tensor> weight_ih, weight_hh, bias_ih, bias_hh;
  };
  std::tuple<Tensor, Tensor, Tensor> run(const Direction& direction, const Tensor& sequence, Tensor h, Tensor c,
                                         bool reverse) const;

  LSTMOptions options_;
  int64_t input_size_, hidden_size_;
  std::vector<Direction> directions_;  // by layer, forward first
};

}  // namespace tenon::nn
