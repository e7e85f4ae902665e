#include "autograd/running_walk.h"
#include "core/effects.h"

#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/core/random.h>

#include <algorithm>
#include <map>

namespace tenon::autograd {
namespace {

using Tensors = std::vector<Tensor>;

struct RandomState {
  uint64_t seed = default_generator().seed(), offset = default_generator().offset();
};

// While it lives, random numbers are those of another time.
class RestoreRandom {
 public:
  RestoreRandom(bool on, const RandomState& then) : on_(on) {
    if (on_) default_generator().set_state(then.seed, then.offset);
  }
  ~RestoreRandom() {
    if (on_) default_generator().set_state(now_.seed, now_.offset);
  }
  RestoreRandom(const RestoreRandom&) = delete;
  RestoreRandom& operator=(const RestoreRandom&) = delete;

 private:
  bool on_;
  RandomState now_;
};

// The same tensors as leaves of a graph of their own.
Tensors detached(const Tensors& inputs) {
  Tensors made;
  for (const Tensor& input : inputs) {
    made.push_back(input.defined() ? input.detach() : input);
    if (input.defined() && input.requires_grad()) made.back().set_requires_grad();
  }
  return made;
}

// The second run has made what is needed.
struct EarlyStop {};

// What one checkpoint would have saved: how many tensors, and what they were like; and those that were made again.
struct Frame {
  detail::Checkpointed function;
  Tensors inputs;
  CheckpointOptions options;
  RandomState random;
  std::vector<InputMeta> saved;     // of the first run, in order
  std::map<size_t, Tensor> remade;  // each is handed out once

  Tensor read(size_t at) {
    auto found = remade.find(at);
    if (found == remade.end()) {
      run_again();
      found = remade.find(at);
    }
    TENON_CHECK(found != remade.end(),
                "[checkpoint] A different number of tensors was saved during the original forward and recomputation: "
                "{} and {}",
                saved.size(), remade.size());
    Tensor tensor = std::move(found->second);
    remade.erase(found);
    return tensor;
  }

  void run_again() {
    size_t count = 0;
    SavedTensorHooks hooks;
    hooks.pack = [&](const Tensor& tensor) -> std::any {
      size_t at = count++;
      check_same(at, tensor);
      remade.insert_or_assign(at, tensor);
      if (options.early_stop && count == saved.size()) throw EarlyStop();
      return std::any();
    };
    hooks.unpack = [](const std::any&) -> Tensor {
      fail("[checkpoint] a tensor that was made again for backward is read by a walk inside the function");
    };
    RestoreRandom then(options.preserve_rng_state, random);
    EnableGrad on;
    Tensors leaves = detached(inputs);
    try {
      SavedTensorHooksGuard guard(hooks);
      (void)function(leaves);
    } catch (const EarlyStop&) {
    }
    TENON_CHECK(count == saved.size(),
                "[checkpoint] A different number of tensors was saved during the original forward and recomputation: "
                "{} and {}",
                saved.size(), count);
  }

  void check_same(size_t at, const Tensor& tensor) const {
    TENON_CHECK(at < saved.size(),
                "[checkpoint] trying to save more tensors during recomputation than during the original forward pass: "
                "{}",
                saved.size());
    InputMeta now = InputMeta::of(tensor);
    const InputMeta& then = saved[at];
    bool same = now.dtype == then.dtype && now.device == then.device &&
                std::equal(now.sizes.begin(), now.sizes.end(), then.sizes.begin(), then.sizes.end(),
                           [](const SymInt& a, const SymInt& b) { return a.same(b); });
    TENON_CHECK(same,
                "[checkpoint] Recomputed values for the following tensors have different metadata than during the "
                "forward pass: tensor {} was {}, and is {}",
                at, then.str(), now.str());
  }
};

Tensors without_reentering(detail::Checkpointed function, const Tensors& inputs, const CheckpointOptions& options) {
  auto frame = std::make_shared<Frame>(Frame{function, inputs, options, {}, {}, {}});
  SavedTensorHooks hooks;
  hooks.pack = [frame](const Tensor& tensor) -> std::any {
    frame->saved.push_back(InputMeta::of(tensor));
    return frame->saved.size() - 1;
  };
  hooks.unpack = [frame](const std::any& at) { return frame->read(std::any_cast<size_t>(at)); };
  SavedTensorHooksGuard guard(std::move(hooks));
  return function(inputs);
}

Tensors differentiate_again(const detail::Checkpointed& function, const Tensors& inputs, const Tensors& gradients,
                            const CheckpointOptions& options, const RandomState& random) {
  const RunningWalk* walk = current_walk();
  TENON_CHECK(!walk || !walk->plan.selective,
              "[checkpoint] torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
              ".backward(): use use_reentrant = false");
  Tensors leaves = detached(inputs), outputs, with;
  {
    RestoreRandom then(options.preserve_rng_state, random);
    EnableGrad on;
    Tensors results = function(leaves);
    for (size_t at = 0; at < results.size(); ++at)
      if (results[at].defined() && results[at].requires_grad() && gradients[at].defined()) {
        outputs.push_back(results[at]);
        with.push_back(gradients[at]);
      }
  }
  TENON_CHECK(!outputs.empty(),
              "[checkpoint] none of output has requires_grad=True, this checkpoint() is not necessary");
  backward(outputs, with);
  Tensors found;
  for (const Tensor& leaf : leaves) found.push_back(leaf.defined() ? leaf.grad() : Tensor());
  return found;
}

Tensors reentering(detail::Checkpointed function, const Tensors& inputs, const CheckpointOptions& options) {
  if (!detail::records(inputs)) return function(inputs);
  RandomState random;
  auto node = make_ref<FunctionNode>(
      "CheckpointFunctionBackward", [function, options, random](AutogradContext& context, Tensors gradients) {
        return differentiate_again(function, context.saved_tensors(), gradients, options, random);
      });
  node->connect(inputs, std::vector<uint32_t>(inputs.size(), 1));
  Tensors results;
  {
    NoGrad off;
    results = function(inputs);
  }
  node->context().save_for_backward(inputs);
  node->finish(inputs, results);
  return results;
}

}  // namespace

Tensors detail::checkpoint(Checkpointed function, const Tensors& inputs, const CheckpointOptions& options) {
  // A captured graph decides by itself what is kept and what is computed again.
  if (core::effect_interceptor() || detail::is_captured()) return function(inputs);
  return options.use_reentrant ? reentering(std::move(function), inputs, options)
                               : without_reentering(std::move(function), inputs, options);
}

}  // namespace tenon::autograd
