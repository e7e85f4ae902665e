#include <tenon/nn/recurrent_sequential.h>

#include <tenon/generated/ops.h>

namespace tenon::nn {

std::tuple<Tensor, RecurrentSequential::State> RecurrentSequential::operator()(const Tensor& input,
                                                                               const State& state) const {
  size_t tensors = 0;
  for (const Part& part : parts_) tensors += part.tensors;
  TENON_CHECK_VALUE(state.empty() || state.size() == tensors,
                    "[RecurrentSequential] expected no state or one of {} tensors (one for each GRU and RNN, two for "
                    "each LSTM), got {}",
                    tensors, state.size());
  std::vector<Tensor> inputs{input};
  inputs.insert(inputs.end(), state.begin(), state.end());
  std::vector<Tensor> results = run(std::move(inputs), [this](const std::vector<Tensor>& given) {
    Tensor value = given[0];
    State next;
    std::span<const Tensor> before = std::span(given).subspan(1);
    const bool from_zeros = before.empty();
    for (const Part& part : parts_) {
      value = part.run(value, from_zeros ? before : before.first(part.tensors), next);
      if (!from_zeros) before = before.subspan(part.tensors);
    }
    next.insert(next.begin(), value);
    return next;
  });
  return {results[0], State(results.begin() + 1, results.end())};
}

RecurrentSequential::State RecurrentSequential::zero_state(int64_t batch) const {
  TENON_CHECK_VALUE(batch > 0, "[RecurrentSequential] expected a batch of at least one, got {}", batch);
  State state;
  for (const Part& part : parts_) {
    if (part.tensors == 0) continue;
    // A layer has a weight_hh [gates · hidden, hidden] for each of its layers and directions.
    int64_t directions = 0;
    Tensor weight;
    for (const auto& [name, parameter] : part.module.named_parameters())
      if (name.starts_with("weight_hh")) {
        ++directions;
        weight = parameter;
      }
    for (size_t at = 0; at < part.tensors; ++at)
      state.push_back(
          zeros({SymInt(directions), SymInt(batch), weight.size(1)}, TensorOptions(weight.dtype(), weight.device())));
  }
  return state;
}

}  // namespace tenon::nn
