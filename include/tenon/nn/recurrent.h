// Layers that go through a sequence step by step.
#pragma once

#include <tenon/nn/module.h>

#include <optional>
#include <tuple>

namespace tenon::nn {

//   nn::LSTMOptions options{.num_layers = 2, .batch_first = true, .bidirectional = true};
//   nn::RecurrentOptions same = options;
struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  // input and output are [batch, time, features] instead of [time, batch, features]
  double dropout = 0;        // between layers, when training
  bool bidirectional = false;
  Dtype dtype = kFloat32;
};
using LSTMOptions = RecurrentOptions;
using GRUOptions = RecurrentOptions;

namespace detail {

// What the layers have in common. Layer k has weight_ih_lk [gates * hidden, in], weight_hh_lk [gates * hidden, hidden],
// bias_ih_lk and bias_hh_lk [gates * hidden]; the other direction has them with "_reverse" behind. All are uniform in
// ±1/√hidden. Without a batch, sequences and states have one dimension less.
class RecurrentLayer : public Module {
 protected:
  struct Direction {
    Cell<Tensor> weight_ih, weight_hh, bias_ih, bias_hh;
  };
  // The states after a step, from what the input says to the gates and the states before; the first is the output.
  using Step = std::function<std::vector<Tensor>(const Tensor& from_input, const std::vector<Tensor>& states,
                                                 const Direction& direction)>;

  RecurrentLayer(const char* kind, int64_t input_size, int64_t hidden_size, int64_t gates,
                 const RecurrentOptions& options);
  // The sequence of outputs, and the last states [layers * directions, batch, hidden]. An undefined state is zeros.
  std::tuple<Tensor, std::vector<Tensor>> run_sequence(const Tensor& input, const std::vector<Tensor>& states,
                                                       const Step& step) const;

 private:
  // The same within the module's scope and without its hooks, all in one list: the sequence first.
  std::vector<Tensor> run_layers(const Tensor& input, std::span<const Tensor> states, const Step& step) const;
  std::tuple<Tensor, std::vector<Tensor>> run_direction(const Direction& direction, const Tensor& sequence,
                                                        std::vector<Tensor> states, bool reverse,
                                                        const Step& step) const;
  RecurrentOptions options_;
  int64_t input_size_, hidden_size_;
  std::vector<Direction> directions_;  // by layer, forward first
};

}  // namespace detail

// What an LSTM remembers: hidden and cell state, [layers * directions, batch, hidden].
struct LSTMState {
  Tensor h, c;
};

// A long short-term memory, the gates in the order input, forget, cell, output.
//
//   nn::LSTM layer(3, 8);
//   auto [sequence, state] = layer(ones({5, 2, 3}));             // [5, 2, 8], and h and c of [1, 2, 8]
//   auto [more, last] = layer(ones({5, 2, 3}), nn::LSTMState{zeros({1, 2, 8}), zeros({1, 2, 8})});
class LSTM : public detail::RecurrentLayer {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options = {});
  // Starts from zeros, or from `state`.
  std::tuple<Tensor, LSTMState> operator()(const Tensor& input, const std::optional<LSTMState>& state = {}) const;
};

// A gated recurrent unit, the gates in the order reset, update, new.
//
//   nn::GRU layer(3, 8, {.batch_first = true});
//   auto [sequence, last] = layer(ones({2, 5, 3}));              // [2, 5, 8] and [1, 2, 8]
class GRU : public detail::RecurrentLayer {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& options = {});
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const std::optional<Tensor>& state = {}) const;
};

//   nn::RNN layer(3, 8, {}, "relu");
//   auto [sequence, last] = layer(ones({5, 2, 3}));              // [5, 2, 8] and [1, 2, 8]
class RNN : public detail::RecurrentLayer {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {}, std::string nonlinearity = "tanh");
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const std::optional<Tensor>& state = {}) const;

 private:
  bool relu_;
};

//   nn::CellOptions options{.bias = false};
struct CellOptions {
  bool bias = true;
  Dtype dtype = kFloat32;
};

namespace detail {

class RecurrentCell : public Module {
 public:
  Cell<Tensor> weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCell(const char* kind, int64_t input_size, int64_t hidden_size, int64_t gates, const CellOptions& options);
  // What the input says to the gates; the state, or zeros.
  Tensor from_input(const Tensor& input) const;
  Tensor or_zeros(const Tensor& input, const Tensor& state) const;

  int64_t input_size_, hidden_size_;
};

}  // namespace detail

// One step each, of [batch, features] or [features].
//
//   Tensor h = nn::RNNCell(3, 8)(x), g = nn::GRUCell(3, 8)(x);   // [2, 8]
//   nn::LSTMState state = nn::LSTMCell(3, 8)(x);
//   nn::LSTMState next = nn::LSTMCell(3, 8)(x, state);
class RNNCell : public detail::RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {}, std::string nonlinearity = "tanh");
  Tensor operator()(const Tensor& input, const std::optional<Tensor>& state = {}) const;

 private:
  bool relu_;
};
class GRUCell : public detail::RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {});
  Tensor operator()(const Tensor& input, const std::optional<Tensor>& state = {}) const;
};
class LSTMCell : public detail::RecurrentCell {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {});
  LSTMState operator()(const Tensor& input, const std::optional<LSTMState>& state = {}) const;
};

}  // namespace tenon::nn
