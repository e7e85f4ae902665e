#include "uniform.h"

#include <tenon/control/scan.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/recurrent.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::nn {
namespace {

// The rules of one step. `input` and `hidden` are what both say to the gates.
LSTMState lstm_step(const Tensor& input, const Tensor& hidden, const Tensor& c) {
  std::vector<Tensor> gates = chunk(input + hidden, 4, -1);
  Tensor next = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
  return {sigmoid(gates[3]) * tanh(next), next};
}

Tensor gru_step(const Tensor& input, const Tensor& hidden, const Tensor& h) {
  std::vector<Tensor> x = chunk(input, 3, -1), y = chunk(hidden, 3, -1);
  Tensor reset = sigmoid(x[0] + y[0]), update = sigmoid(x[1] + y[1]), fresh = tanh(x[2] + reset * y[2]);
  return fresh + update * (h - fresh);
}

Tensor rnn_step(const Tensor& input, const Tensor& hidden, bool with_relu) {
  return with_relu ? relu(input + hidden) : tanh(input + hidden);
}

bool is_relu(const char* kind, const std::string& nonlinearity) {
  TENON_CHECK_VALUE(nonlinearity == "tanh" || nonlinearity == "relu",
                    "[{}] expected a nonlinearity of 'tanh' or 'relu', got '{}'", kind, nonlinearity);
  return nonlinearity == "relu";
}

}  // namespace

namespace detail {

RecurrentLayer::RecurrentLayer(const char* kind, int64_t input_size, int64_t hidden_size, int64_t gates,
                               const RecurrentOptions& options)
    : options_(options), input_size_(input_size), hidden_size_(hidden_size) {
  TENON_CHECK(input_size > 0 && hidden_size > 0 && options.num_layers > 0,
              "[{}] expected sizes and layers of at least 1, got input_size {}, hidden_size {} and {} layers", kind,
              input_size, hidden_size, options.num_layers);
  TENON_CHECK(options.dropout >= 0 && options.dropout <= 1, "[{}] expected a probability from 0 to 1, got {}", kind,
              options.dropout);
  TENON_CHECK(is_floating(options.dtype), "[{}] expected a floating point dtype, got {}", kind, name(options.dtype));
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  int64_t directions = options.bidirectional ? 2 : 1, rows = gates * hidden_size;
  for (int64_t layer = 0; layer < options.num_layers; ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      std::string suffix = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
      int64_t in = layer == 0 ? input_size : hidden_size * directions;
      auto offset = [&] { return options.bias ? uniform({rows}, bound, options.dtype) : Tensor(); };
      Direction made;
      made.weight_ih = parameter("weight_ih" + suffix, uniform({rows, in}, bound, options.dtype));
      made.weight_hh = parameter("weight_hh" + suffix, uniform({rows, hidden_size}, bound, options.dtype));
      made.bias_ih = parameter("bias_ih" + suffix, offset());
      made.bias_hh = parameter("bias_hh" + suffix, offset());
      directions_.push_back(std::move(made));
    }
  std::string details = fmt::format("{}, {}", input_size, hidden_size);
  if (options.num_layers > 1) details += fmt::format(", num_layers={}", options.num_layers);
  if (!options.bias) details += ", bias=False";
  if (options.batch_first) details += ", batch_first=True";
  if (options.dropout > 0) details += fmt::format(", dropout={}", options.dropout);
  if (options.bidirectional) details += ", bidirectional=True";
  describe(kind, details);
}

// [time, batch, in] to [time, batch, hidden], and the last states [batch, hidden].
std::tuple<Tensor, std::vector<Tensor>> RecurrentLayer::run_direction(const Direction& direction,
                                                                      const Tensor& sequence,
                                                                      std::vector<Tensor> states, bool reverse,
                                                                      const Step& step) const {
  // What the input says to the gates, for all steps at once.
  Tensor from_input = linear(sequence, direction.weight_ih.get(), given(direction.bias_ih));
  auto one_step = [&](const std::vector<Tensor>& before, const Tensor& x) {
    std::vector<Tensor> after = step(x, before, direction);
    Tensor output = after[0];
    return std::pair(std::move(after), std::move(output));
  };
  auto [last, outputs] = scan(one_step, states, from_input, {.reverse = reverse});
  return {outputs, last};
}

std::tuple<Tensor, std::vector<Tensor>> RecurrentLayer::run_sequence(const Tensor& input,
                                                                     const std::vector<Tensor>& states,
                                                                     const Step& step) const {
  std::vector<Tensor> inputs{input};
  inputs.insert(inputs.end(), states.begin(), states.end());
  std::vector<Tensor> results = run(std::move(inputs), [&](const std::vector<Tensor>& given) {
    return run_layers(given[0], std::span(given).subspan(1), step);
  });
  return {results[0], std::vector<Tensor>(results.begin() + 1, results.end())};
}

std::vector<Tensor> RecurrentLayer::run_layers(const Tensor& input, std::span<const Tensor> states,
                                               const Step& step) const {
  TENON_CHECK(input.defined() && (input.dim() == 2 || input.dim() == 3) && bool(input.size(-1) == input_size_),
              "[{}] expected a sequence of {} features and 2 or 3 dimensions, got {}", kind(), input_size_,
              input.defined() ? input.description() : "an undefined tensor");
  bool batched = input.dim() == 3, batch_first = batched && options_.batch_first;
  Tensor sequence = batched ? input : input.unsqueeze(1);
  if (batch_first) sequence = sequence.transpose(0, 1);
  TENON_CHECK(bool(sequence.size(0) > 0), "[{}] expected at least one step, got {}", kind(), input.description());
  size_t directions = options_.bidirectional ? 2 : 1;
  SymInts sizes{static_cast<int64_t>(directions_.size()), sequence.size(1), hidden_size_};
  auto start = [&](const Tensor& from) {
    if (!from.defined()) return zeros(sizes, TensorOptions(input.dtype(), input.device()));
    Tensor whole = batched ? from : from.unsqueeze(1);
    bool fits = whole.dim() == 3;
    for (int64_t dim = 0; fits && dim < 3; ++dim) fits = bool(whole.size(dim) == sizes[static_cast<size_t>(dim)]);
    TENON_CHECK(fits, "[{}] expected a state of {}, got {}", kind(), tenon::str(sizes), from.description());
    return whole;
  };
  std::vector<Tensor> first;
  for (const Tensor& state : states) first.push_back(start(state));
  std::vector<std::vector<Tensor>> last(states.size());
  for (size_t layer = 0; layer < directions_.size() / directions; ++layer) {
    if (layer > 0 && options_.dropout > 0) sequence = dropout(sequence, options_.dropout, is_training());
    std::vector<Tensor> results;
    for (size_t direction = 0; direction < directions; ++direction) {
      size_t at = layer * directions + direction;
      std::vector<Tensor> own;
      for (const Tensor& state : first) own.push_back(state.select(0, static_cast<int64_t>(at)));
      auto [result, ends] = run_direction(directions_[at], sequence, own, direction == 1, step);
      results.push_back(result);
      for (size_t which = 0; which < ends.size(); ++which) last[which].push_back(ends[which]);
    }
    sequence = directions == 1 ? results[0] : cat(results, 2);
  }
  std::vector<Tensor> results{!batched ? sequence.squeeze(1) : batch_first ? sequence.transpose(0, 1) : sequence};
  for (const std::vector<Tensor>& list : last) {
    Tensor all = stack(list, 0);
    results.push_back(batched ? all : all.squeeze(1));
  }
  return results;
}

RecurrentCell::RecurrentCell(const char* kind, int64_t input_size, int64_t hidden_size, int64_t gates,
                             const CellOptions& options)
    : input_size_(input_size), hidden_size_(hidden_size) {
  TENON_CHECK_VALUE(input_size > 0 && hidden_size > 0, "[{}] expected sizes of at least 1, got {} and {}", kind,
                    input_size, hidden_size);
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  int64_t rows = gates * hidden_size;
  weight_ih = parameter("weight_ih", uniform({rows, input_size}, bound, options.dtype));
  weight_hh = parameter("weight_hh", uniform({rows, hidden_size}, bound, options.dtype));
  bias_ih = parameter("bias_ih", options.bias ? uniform({rows}, bound, options.dtype) : Tensor());
  bias_hh = parameter("bias_hh", options.bias ? uniform({rows}, bound, options.dtype) : Tensor());
  describe(kind, fmt::format("{}, {}{}", input_size, hidden_size, options.bias ? "" : ", bias=False"));
}

Tensor RecurrentCell::from_input(const Tensor& input) const {
  TENON_CHECK(input.defined() && (input.dim() == 1 || input.dim() == 2) && bool(input.size(-1) == input_size_),
              "[{}] expected {} features and 1 or 2 dimensions, got {}", kind(), input_size_,
              input.defined() ? input.description() : "an undefined tensor");
  return linear(input, weight_ih.get(), given(bias_ih));
}

Tensor RecurrentCell::or_zeros(const Tensor& input, const Tensor& state) const {
  SymInts sizes = input.sym_sizes();
  sizes.back() = hidden_size_;
  if (!state.defined()) return zeros(sizes, TensorOptions(input.dtype(), input.device()));
  bool fits = state.dim() == input.dim();
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = bool(state.size(static_cast<int64_t>(dim)) == sizes[dim]);
  TENON_CHECK(fits, "[{}] expected a state of {}, got {}", kind(), tenon::str(sizes), state.description());
  return state;
}

}  // namespace detail

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options)
    : RecurrentLayer("LSTM", input_size, hidden_size, 4, options) {}

std::tuple<Tensor, LSTMState> LSTM::operator()(const Tensor& input, const std::optional<LSTMState>& state) const {
  auto [sequence, last] = run_sequence(
      input, {state ? state->h : Tensor(), state ? state->c : Tensor()},
      [](const Tensor& x, const std::vector<Tensor>& states, const Direction& direction) -> std::vector<Tensor> {
        Tensor hidden = linear(states[0], direction.weight_hh.get(), given(direction.bias_hh));
        LSTMState next = lstm_step(x, hidden, states[1]);
        return {next.h, next.c};
      });
  return {sequence, LSTMState{last[0], last[1]}};
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& options)
    : RecurrentLayer("GRU", input_size, hidden_size, 3, options) {}

std::tuple<Tensor, Tensor> GRU::operator()(const Tensor& input, const std::optional<Tensor>& state) const {
  auto [sequence, last] = run_sequence(
      input, {state.value_or(Tensor())},
      [](const Tensor& x, const std::vector<Tensor>& states, const Direction& direction) -> std::vector<Tensor> {
        return {gru_step(x, linear(states[0], direction.weight_hh.get(), given(direction.bias_hh)), states[0])};
      });
  return {sequence, last[0]};
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options, std::string nonlinearity)
    : RecurrentLayer("RNN", input_size, hidden_size, 1, options), relu_(is_relu("RNN", nonlinearity)) {}

std::tuple<Tensor, Tensor> RNN::operator()(const Tensor& input, const std::optional<Tensor>& state) const {
  auto [sequence, last] = run_sequence(
      input, {state.value_or(Tensor())},
      [&](const Tensor& x, const std::vector<Tensor>& states, const Direction& direction) -> std::vector<Tensor> {
        return {rnn_step(x, linear(states[0], direction.weight_hh.get(), given(direction.bias_hh)), relu_)};
      });
  return {sequence, last[0]};
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, const CellOptions& options, std::string nonlinearity)
    : RecurrentCell("RNNCell", input_size, hidden_size, 1, options), relu_(is_relu("RNNCell", nonlinearity)) {}
Tensor RNNCell::operator()(const Tensor& input, const std::optional<Tensor>& state) const {
  return run(input, state.value_or(Tensor()), [this](const Tensor& now, const Tensor& before) {
    Tensor x = from_input(now), h = or_zeros(now, before);
    return rnn_step(x, linear(h, weight_hh.get(), given(bias_hh)), relu_);
  });
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options)
    : RecurrentCell("GRUCell", input_size, hidden_size, 3, options) {}
Tensor GRUCell::operator()(const Tensor& input, const std::optional<Tensor>& state) const {
  return run(input, state.value_or(Tensor()), [this](const Tensor& now, const Tensor& before) {
    Tensor x = from_input(now), h = or_zeros(now, before);
    return gru_step(x, linear(h, weight_hh.get(), given(bias_hh)), h);
  });
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options)
    : RecurrentCell("LSTMCell", input_size, hidden_size, 4, options) {}
LSTMState LSTMCell::operator()(const Tensor& input, const std::optional<LSTMState>& state) const {
  std::vector<Tensor> inputs{input, state ? state->h : Tensor(), state ? state->c : Tensor()};
  std::vector<Tensor> next = run(std::move(inputs), [this](const std::vector<Tensor>& given_now) {
    const Tensor& now = given_now[0];
    Tensor x = from_input(now), h = or_zeros(now, given_now[1]), c = or_zeros(now, given_now[2]);
    LSTMState after = lstm_step(x, linear(h, weight_hh.get(), given(bias_hh)), c);
    return std::vector<Tensor>{after.h, after.c};
  });
  return {next[0], next[1]};
}

}  // namespace tenon::nn
