// Layers one after the other, some of which remember.
#pragma once

#include <tenon/nn/layer.h>
#include <tenon/nn/recurrent.h>

#include <span>

namespace tenon::nn {

template <typename M>
concept RecurrentModule = std::same_as<M, GRU> || std::same_as<M, RNN> || std::same_as<M, LSTM>;

// A `Sequential` that may hold GRU, LSTM and RNN layers: it takes a state and gives the next one, a list with one
// tensor for each GRU and RNN and two (h and c) for each LSTM. No state is zeros.
//
//   nn::RecurrentSequential model(nn::Embedding(128, 16), nn::GRU(16, 32, {.batch_first = true}), nn::Linear(32, 128));
//   Tensor text = zeros({4, 10}, kInt64);
//   auto [scores, state] = model(text);                                       // [4, 10, 128], and one [1, 4, 32]
//   auto [more, later] = model(text, state);
//   nn::RecurrentSequential::State fresh = model.zero_state(/*batch=*/4);
//   model.push_back(nn::Dropout(0.1));
//   size_t layers = model.size();                                             // 4
class RecurrentSequential : public Module {
 public:
  using State = std::vector<Tensor>;

  RecurrentSequential() { describe("RecurrentSequential"); }
  template <typename... Layers>
    requires(sizeof...(Layers) > 0 && ((Layer<Layers> || RecurrentModule<Layers>) && ...))
  explicit RecurrentSequential(Layers... layers) : RecurrentSequential() {
    (push_back(std::move(layers)), ...);
  }

  template <Layer M>
  void push_back(M layer) {
    submodule(std::to_string(parts_.size()), layer);
    parts_.push_back(
        {layer, 0, [layer](const Tensor& x, std::span<const Tensor>, State&) { return Tensor(layer(x)); }});
  }
  template <RecurrentModule M>
  void push_back(M layer) {
    submodule(std::to_string(parts_.size()), layer);
    parts_.push_back({layer, std::same_as<M, LSTM> ? 2u : 1u,
                      [layer](const Tensor& x, std::span<const Tensor> before, State& after) {
                        return through(layer, x, before, after);
                      }});
  }
  size_t size() const { return parts_.size(); }

  std::tuple<Tensor, State> operator()(const Tensor& input, const State& state = {}) const;
  // Zeros, for a batch of this size.
  State zero_state(int64_t batch) const;

 private:
  struct Part {
    Module module;
    size_t tensors;  // of its state
    // The result; of the state before, its own part (empty: zeros); adds its own of the state after.
    std::function<Tensor(const Tensor& input, std::span<const Tensor> before, State& after)> run;
  };
  template <typename M>
  static Tensor through(const M& layer, const Tensor& input, std::span<const Tensor> before, State& after) {
    if constexpr (std::same_as<M, LSTM>) {
      auto [result, next] =
          layer(input, before.empty() ? std::nullopt : std::optional(LSTMState{before[0], before[1]}));
      after.insert(after.end(), {next.h, next.c});
      return result;
    } else {
      auto [result, next] = layer(input, before.empty() ? std::nullopt : std::optional(before[0]));
      after.push_back(next);
      return result;
    }
  }

  std::vector<Part> parts_;
};

}  // namespace tenon::nn
