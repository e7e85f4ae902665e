// Checkpointing: a part of the forward pass keeps its inputs alone, and is run again when backward needs what it would
// have kept. Memory for time.
//
//   Tensor w = ones({3, 3}).set_requires_grad();
//   auto block = [&](const Tensor& input) { return mm(input, w).relu(); };
//   Tensor y = autograd::checkpoint(block, x);                                   // saves x and nothing else
//   Tensor z = autograd::checkpoint(block, y, {.use_reentrant = true});
//   z.sum().backward();                                                          // runs both blocks again
//
// The second run draws the random numbers of the first. It must compute the same: other numbers of tensors, or tensors
// of other sizes, are an Error.
#pragma once

#include <tenon/autograd/saved_tensor.h>

#include <functional>
#include <memory>
#include <optional>

namespace tenon::autograd {

//   autograd::CheckpointOptions options{.use_reentrant = true, .preserve_rng_state = false, .early_stop = false};
struct CheckpointOptions {
  // The second run is a part of the backward walk, which starts another one; no input need require grad, but then
  // nothing is differentiated. Otherwise saved tensors are packed away, and unpacking the first of them runs it again.
  bool use_reentrant = false;
  bool preserve_rng_state = true;
  bool early_stop = true;  // the second run ends once it has made what is needed
  // Asked before each run (`again`: the second one), for something that lives as long as the run: a mode, a counter.
  std::function<std::shared_ptr<void>(bool again)> context = nullptr;
  bool debug = false;  // errors about another second run list the operators of both
};

// While one lives, it says what `CheckpointOptions::debug` is, on this thread.
//
//   autograd::SetCheckpointDebug on(true);
class SetCheckpointDebug {
 public:
  explicit SetCheckpointDebug(bool debug);
  ~SetCheckpointDebug();
  SetCheckpointDebug(const SetCheckpointDebug&) = delete;
  SetCheckpointDebug& operator=(const SetCheckpointDebug&) = delete;

 private:
  std::optional<bool> before_;
};

namespace detail {
using Checkpointed = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
std::vector<Tensor> checkpoint(Checkpointed function, const std::vector<Tensor>& inputs,
                               const CheckpointOptions& options);
}  // namespace detail

template <typename F>
auto checkpoint(F function, const Tensor& input, const CheckpointOptions& options = {}) {
  auto run = [function = std::move(function)](const std::vector<Tensor>& inputs) {
    return std::vector<Tensor>{function(inputs[0])};
  };
  return std::move(detail::checkpoint(std::move(run), {input}, options)[0]);
}
// Of several tensors, to several.
//
//   Tensor w = ones({3}).set_requires_grad();
//   auto both = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * in[1], in[0].exp()}; };
//   autograd::checkpoint_many(both, {x, w})[0].sum().backward();
template <typename F>
std::vector<Tensor> checkpoint_many(F function, const std::vector<Tensor>& inputs,
                                    const CheckpointOptions& options = {}) {
  return detail::checkpoint(std::move(function), inputs, options);
}

}  // namespace tenon::autograd
