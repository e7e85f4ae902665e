#include "uniform.h"

#include <tenon/generated/ops.h>
#include <tenon/nn/recurrent.h>

#include <cmath>

namespace tenon::nn {

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options)
    : options_(options), input_size_(input_size), hidden_size_(hidden_size) {
  TENON_CHECK(input_size > 0 && hidden_size > 0 && options.num_layers > 0,
              "[LSTM] expected sizes and layers of at least 1, got input_size {}, hidden_size {} and {} layers",
              input_size, hidden_size, options.num_layers);
  TENON_CHECK(options.dropout >= 0 && options.dropout <= 1, "[LSTM] expected a probability from 0 to 1, got {}",
              options.dropout);
  TENON_CHECK(is_floating(options.dtype), "[LSTM] expected a floating point dtype, got {}", name(options.dtype));
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  int64_t directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      std::string suffix = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
      int64_t in = layer == 0 ? input_size : hidden_size * directions, gates = 4 * hidden_size;
      Direction made;
      made.weight_ih = parameter("weight_ih" + suffix, uniform({gates, in}, bound, options.dtype));
      made.weight_hh = parameter("weight_hh" + suffix, uniform({gates, hidden_size}, bound, options.dtype));
      made.bias_ih = parameter("bias_ih" + suffix, options.bias ? uniform({gates}, bound, options.dtype) : Tensor());
      made.bias_hh = parameter("bias_hh" + suffix, options.bias ? uniform({gates}, bound, options.dtype) : Tensor());
      directions_.push_back(std::move(made));
    }
}

// [time, batch, in] to [time, batch, hidden], and the last states [batch, hidden].
std::tuple<Tensor, Tensor, Tensor> LSTM::run(const Direction& direction, const Tensor& sequence, Tensor h, Tensor c,
                                             bool reverse) const {
  auto given = [](const Tensor& tensor) { return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt; };
  // What the input says to the gates, for all steps at once.
  Tensor from_input = linear(sequence, direction.weight_ih.get(), given(direction.bias_ih.get()));
  Tensor recurrent = direction.weight_hh.get();
  std::optional<Tensor> bias = given(direction.bias_hh.get());
  auto steps = int64_t(sequence.size(0));
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  for (int64_t at = 0; at < steps; ++at) {
    int64_t step = reverse ? steps - 1 - at : at;
    std::vector<Tensor> gates = chunk(from_input.select(0, step) + linear(h, recurrent, bias), 4, 1);
    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
    h = sigmoid(gates[3]) * tanh(c);
    outputs[static_cast<size_t>(step)] = h;
  }
  return {stack(outputs, 0), h, c};
}

std::tuple<Tensor, LSTMState> LSTM::operator()(const Tensor& input, const std::optional<LSTMState>& state) const {
  ModuleScope inside = enter();
  TENON_CHECK(input.defined() && (input.dim() == 2 || input.dim() == 3) && bool(input.size(-1) == input_size_),
              "[LSTM] expected a sequence of {} features and 2 or 3 dimensions, got {}", input_size_,
              input.defined() ? input.description() : "an undefined tensor");
  bool batched = input.dim() == 3, batch_first = batched && options_.batch_first;
  Tensor sequence = batched ? input : input.unsqueeze(1);
  if (batch_first) sequence = sequence.transpose(0, 1);
  TENON_CHECK(bool(sequence.size(0) > 0), "[LSTM] expected at least one step, got {}", input.description());
  size_t directions = options_.bidirectional ? 2 : 1;
  SymInts sizes{static_cast<int64_t>(directions_.size()), sequence.size(1), hidden_size_};
  auto start = [&](const Tensor& from) {
    if (!from.defined()) return zeros(sizes, TensorOptions(input.dtype(), input.device()));
    Tensor whole = batched ? from : from.unsqueeze(1);
    bool fits = whole.dim() == 3;
    for (int64_t dim = 0; fits && dim < 3; ++dim) fits = bool(whole.size(dim) == sizes[static_cast<size_t>(dim)]);
    TENON_CHECK(fits, "[LSTM] expected a state of {}, got {}", str(sizes), from.description());
    return whole;
  };
  Tensor first_h = start(state ? state->h : Tensor()), first_c = start(state ? state->c : Tensor());
  std::vector<Tensor> last_h, last_c;
  for (size_t layer = 0; layer < directions_.size() / directions; ++layer) {
    if (layer > 0 && options_.dropout > 0) sequence = dropout(sequence, options_.dropout, is_training());
    std::vector<Tensor> results;
    for (size_t direction = 0; direction < directions; ++direction) {
      auto at = static_cast<int64_t>(layer * directions + direction);
      auto [result, h, c] = run(directions_[static_cast<size_t>(at)], sequence, first_h.select(0, at),
                                first_c.select(0, at), direction == 1);
      results.push_back(result);
      last_h.push_back(h);
      last_c.push_back(c);
    }
    sequence = directions == 1 ? results[0] : cat(results, 2);
  }
  LSTMState last{stack(last_h, 0), stack(last_c, 0)};
  if (batched) return {batch_first ? sequence.transpose(0, 1) : sequence, last};
  return {sequence.squeeze(1), LSTMState{last.h.squeeze(1), last.c.squeeze(1)}};
}

}  // namespace tenon::nn
