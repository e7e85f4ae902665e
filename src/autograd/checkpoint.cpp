#include "autograd/running_walk.h"
#include "core/effects.h"
#include "support/out_of_memory.h"

#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/core/random.h>
#include <tenon/dispatch/autocast.h>
#include <tenon/support/call_site.h>

#include <algorithm>
#include <map>

namespace tenon::autograd {
namespace {

using Tensors = std::vector<Tensor>;

// What the first run finds, and the second is to find again.
struct Surroundings {
  uint64_t seed = default_generator().seed(), offset = default_generator().offset();
  std::optional<Dtype> autocast = Autocast::current();
};

// While it lives, autocast is as it was at another time; so are random numbers, if they are `preserved`.
class Restore {
 public:
  Restore(bool preserved, const Surroundings& then)
      : preserved_(preserved), cast_(then.autocast.value_or(kBFloat16), then.autocast.has_value()) {
    if (preserved_) default_generator().set_state(then.seed, then.offset);
  }
  ~Restore() {
    if (preserved_) default_generator().set_state(now_.seed, now_.offset);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  bool preserved_;
  Surroundings now_;
  Autocast cast_;
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

thread_local std::optional<bool> debug_override;

// One tensor that a run saves.
struct SavedInfo {
  InputMeta meta;
  CallSite place;  // with `debug`
  std::string str() const { return meta.str() + (place.known() ? " at " + place.str() : ""); }
};

// What one checkpoint would have saved: how many tensors, and what they were like; and those that were made again.
struct Frame {
  detail::Checkpointed function;
  Tensors inputs;
  CheckpointOptions options;
  Surroundings first;
  std::vector<SavedInfo> saved, again;             // of the first run, in order, and of the second
  std::map<size_t, std::optional<Tensor>> remade;  // each is handed out once
  int64_t walk = -1;                               // for which they were made

  SavedInfo note(const Tensor& tensor) const {
    return {InputMeta::of(tensor), options.debug ? CallSite::here() : CallSite()};
  }

  // Outside of a walk, everything that is read is made anew.
  Tensor read(size_t at) {
    int64_t now = current_walk_id();
    if (now < 0 || now != walk || remade.empty()) {
      remade.clear();
      walk = now;
      run_again();
    }
    auto found = remade.find(at);
    check(found != remade.end(), [&] { return other_number(); });
    TENON_CHECK(found->second,
                "[checkpoint] Unpack is being triggered for a tensor that was already unpacked once. A backward reads "
                "saved_tensors() once and keeps what it needs");
    Tensor tensor = std::move(*found->second);
    found->second.reset();
    return tensor;
  }

  void run_again() {
    again.clear();
    SavedTensorHooks hooks;
    hooks.pack = [&](const Tensor& tensor) -> std::any {
      size_t at = again.size();
      again.push_back(note(tensor));
      if (at < saved.size()) remade.insert_or_assign(at, tensor);
      check(at < saved.size() || options.early_stop, [&] {
        return fmt::format("trying to save more tensors during recomputation than during the original forward pass: {}",
                           saved.size());
      });
      if (options.early_stop && again.size() == saved.size()) throw EarlyStop();
      return std::any();
    };
    hooks.unpack = [](const std::any&) -> Tensor {
      fail("[checkpoint] a tensor that was made again for backward is read by a walk inside the function");
    };
    Restore then(options.preserve_rng_state, first);
    EnableGrad on;
    Tensors leaves = detached(inputs);
    try {
      std::shared_ptr<void> around = options.context ? options.context(true) : nullptr;
      SavedTensorHooksGuard guard(hooks);
      (void)function(leaves);
    } catch (const EarlyStop&) {
    }
    check(again.size() == saved.size(), [&] { return other_number(); });
    check_same();
  }

  std::string other_number() const {
    return fmt::format(
        "A different number of tensors was saved during the original forward and recomputation: {} and {}",
        saved.size(), again.size());
  }

  void check_same() const {
    for (size_t at = 0; at < saved.size(); ++at) {
      const InputMeta &now = again[at].meta, &then = saved[at].meta;
      bool same = now.dtype == then.dtype && now.device == then.device &&
                  std::equal(now.sizes.begin(), now.sizes.end(), then.sizes.begin(), then.sizes.end(),
                             [](const SymInt& a, const SymInt& b) { return a.same(b); });
      check(same, [&] {
        return fmt::format(
            "Recomputed values for the following tensors have different metadata than during the forward pass: tensor "
            "{} was {}, and is {}",
            at, then.str(), now.str());
      });
    }
  }

  template <typename Text>
  void check(bool holds, Text text) const {
    if (holds) return;
    std::string all = "[checkpoint] " + text();
    if (!options.debug) throw RuntimeError(all + ". CheckpointOptions::debug says where they were saved");
    auto list = [](const std::vector<SavedInfo>& infos) {
      std::string lines;
      for (size_t at = 0; at < infos.size(); ++at) lines += fmt::format("\n  {}: {}", at, infos[at].str());
      return lines;
    };
    throw RuntimeError(fmt::format(
        "{}. You are seeing this error because you passed `debug=True` to checkpoint. Saved by the first run:{}\nSaved "
        "by the second run:{}",
        all, list(saved), list(again)));
  }
};

Tensors without_reentering(detail::Checkpointed function, const Tensors& inputs, const CheckpointOptions& options) {
  auto frame = std::make_shared<Frame>();
  frame->function = function;
  frame->inputs = inputs;
  frame->options = options;
  frame->options.debug = debug_override.value_or(options.debug);
  SavedTensorHooks hooks;
  hooks.pack = [frame](const Tensor& tensor) -> std::any {
    frame->saved.push_back(frame->note(tensor));
    return frame->saved.size() - 1;
  };
  hooks.unpack = [frame](const std::any& at) { return frame->read(std::any_cast<size_t>(at)); };
  std::shared_ptr<void> around = options.context ? options.context(false) : nullptr;
  SavedTensorHooksGuard guard(std::move(hooks));
  return function(inputs);
}

Tensors differentiate_again(const detail::Checkpointed& function, const Tensors& inputs, const Tensors& gradients,
                            const CheckpointOptions& options, const Surroundings& first) {
  const RunningWalk* walk = current_walk();
  TENON_CHECK(!walk || !walk->plan.selective,
              "[checkpoint] torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
              ".backward(): use use_reentrant = false");
  Tensors leaves = detached(inputs), outputs, with;
  {
    Restore then(options.preserve_rng_state, first);
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
  Surroundings first;
  auto node = make_ref<FunctionNode>(
      "CheckpointFunctionBackward", [function, options, first](AutogradContext& context, Tensors gradients) {
        return differentiate_again(function, context.saved_tensors(), gradients, options, first);
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

SetCheckpointDebug::SetCheckpointDebug(bool debug) : before_(std::exchange(debug_override, debug)) {}
SetCheckpointDebug::~SetCheckpointDebug() { debug_override = before_; }

Tensors detail::checkpoint(Checkpointed function, const Tensors& inputs, const CheckpointOptions& options) try {
  TENON_CHECK_VALUE(!options.use_reentrant || (!options.context && !options.debug),
                    "[checkpoint] `context` and `debug` are only supported when use_reentrant=False");
  // A captured graph decides by itself what is kept and what is computed again.
  if (core::effect_interceptor() || detail::is_captured()) return function(inputs);
  return options.use_reentrant ? reentering(std::move(function), inputs, options)
                               : without_reentering(std::move(function), inputs, options);
} catch (...) {
  support::rethrow_named("checkpoint");
}

}  // namespace tenon::autograd
