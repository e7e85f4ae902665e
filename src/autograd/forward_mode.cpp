// How calls give their results tangents. Views do to the tangent what they do to the value. Of any other row the
// tangent follows from the gradient: a gradient is linear in what it is given, and its derivative by that is the
// derivative of the row, turned around.
#include "autograd/forward_mode.h"

#include "autograd/layers.h"
#include "autograd/row_node.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/functional.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/core/random.h>
#include <tenon/dispatch/operator.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::autograd {
namespace {

using dispatch::Value;

// Of a tangent's computation: no tangents of its own, no hooks and interceptors of the user's, no layer above this one.
support::ThreadContext own_context() {
  using Slot = support::ContextSlot;
  static const EngineInterceptor plain = [](const Walk&) { return std::nullopt; };
  support::ThreadContext context = support::thread_context;
  for (Slot slot : {Slot::DualLevel, Slot::SavedTensorHooks}) context.set(slot, nullptr);
  context.set(Slot::EngineInterceptor, &plain);
  context.excluded_keys |= (kAutogradAndAbove - KeySet{DispatchKey::Autograd}).bits();
  return context;
}

bool is_real(const Tensor& tensor) { return tensor.defined() && tensor.is_floating_point(); }

// A call as a function of its real tensors.
struct Function {
  const dispatch::Operator& op;
  dispatch::Values arguments;
  std::vector<int> written;

  explicit Function(const dispatch::Call& call) : op(call.op), written(call.op.schema().mutated_arguments()) {
    for (const Value& value : call.args) arguments.push_back(value.own());
  }

  bool writes(size_t argument) const {
    return std::find(written.begin(), written.end(), static_cast<int>(argument)) != written.end();
  }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> found;
    for (const Value& value : arguments)
      value.each_tensor([&](const Tensor& tensor) {
        if (is_real(tensor)) found.push_back(tensor);
      });
    return found;
  }

  // What is written, as it is afterwards; then the results that are real.
  std::vector<Tensor> operator()(const std::vector<Tensor>& at) const {
    size_t next = 0;
    dispatch::Values given;
    std::vector<Tensor> outputs;
    for (size_t argument = 0; argument < arguments.size(); ++argument)
      given.push_back(arguments[argument]
                          .map_tensors([&](const Tensor& tensor) {
                            Tensor now = is_real(tensor) ? at[next++] : tensor;
                            if (!writes(argument) || !now.defined()) return now;
                            now = now.clone();
                            if (is_real(now)) outputs.push_back(now);
                            return now;
                          })
                          .own());
    size_t changed = outputs.size();
    for (const Value& result : dispatch::call_boxed(op, given))
      result.each_tensor([&](const Tensor& tensor) {
        bool is_changed = std::any_of(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(changed),
                                      [&](const Tensor& each) { return each.is(tensor); });
        if (is_real(tensor) && !is_changed) outputs.push_back(tensor);
      });
    return outputs;
  }
};

// What the call of `values` draws from the generator is drawn once more.
class DrawsAgain {
 public:
  DrawsAgain() : seed_(default_generator().seed()), offset_(default_generator().offset()) {}
  template <typename F>
  auto operator()(F&& compute) {
    struct Back {
      uint64_t seed = default_generator().seed(), offset = default_generator().offset();
      ~Back() { default_generator().set_state(seed, offset); }
    } back;
    default_generator().set_state(seed_, offset_);
    return compute();
  }

 private:
  uint64_t seed_, offset_;
};

// Writes in place change the tangent in place: whoever looks into the same memory has tangents in one memory, too.
void write_tangent(const Tensor& self, const Tensor& tangent) {
  Tensor known = tangent_of(self);
  const AutogradMeta* meta = meta_of(self);
  if (!known.defined() && meta && meta->view) {
    Tensor whole = [&] {
      WithoutTangents off;
      return zeros_like(meta->view->base.detach());
    }();
    set_tangent(meta->view->base, whole);
    known = tangent_of(self);
  }
  bool is_fixed = known.defined() && known.is_leaf() && known.requires_grad();
  if (!known.defined() || is_fixed) return set_tangent(self, tangent);
  WithoutTangents off;
  known.copy_(tangent);
}

void follow_view(dispatch::Call& call, const ops::Row& row, const Tensor& tangent) {
  const Tensor& self = call.args[0].tensor();
  const Tensor& view = call.results[0].tensor();
  if (!tangent.defined() || view.is(self)) return;
  Tensor part = [&] {
    WithoutTangents off;
    dispatch::ExcludeKeys above(kAutogradAndAbove - KeySet{DispatchKey::Autograd});
    return ViewStep(make_ref<RecordedCall>(row, call.args), nullptr).replay(tangent);
  }();
  set_tangent(view, part);
}

}  // namespace

bool has_tangents(std::span<const Value> arguments) {
  bool any = false;
  for (const Value& value : arguments)
    value.each_tensor([&](const Tensor& tensor) { any = any || tangent_of(tensor).defined(); });
  return any;
}

void refuse_tangents(const dispatch::Call& call) {
  TENON_CHECK_IMPLEMENTED(!dual_level() || !has_tangents(call.args),
                          "[{}] Trying to use forward AD with {} that does not support it: operators of the table and "
                          "autograd::Function have tangents. detach() its arguments",
                          call.op.name(), call.op.name());
}

void run_with_tangents(dispatch::Call& call, const ops::Row* row, const std::function<void()>& values) {
  if (!row) refuse_tangents(call);
  if (row->kind == ops::Kind::View) {
    Tensor tangent = tangent_of(call.args[0].tensor());
    values();
    return follow_view(call, *row, tangent);
  }
  if (!row->differentiable()) return values();
  TENON_CHECK_IMPLEMENTED(row->implements_gradients(),
                          "[{}] Trying to use forward AD with {} that does not support it because it has not been "
                          "implemented yet: its tangents would follow from its gradients, which are not. detach() its "
                          "arguments",
                          row->schema.name, row->schema.name);

  Function function(call);
  std::vector<Tensor> inputs = function.inputs(), directions, written;
  bool recorded = false;
  for (const Tensor& input : inputs) {
    Tensor tangent = tangent_of(input);
    if (!tangent.defined()) {
      WithoutTangents off;
      tangent = zeros_like(input.detach());
    }
    recorded |= grad_enabled() && (input.requires_grad() || tangent.requires_grad());
    directions.push_back(std::move(tangent));
  }
  // What is about to be overwritten is needed as it is now.
  for (size_t at = 0; at < call.args.size(); ++at)
    if (function.writes(at)) call.args[at].each_tensor([&](const Tensor& tensor) { written.push_back(tensor); });
  for (size_t at = 0; at < inputs.size(); ++at) {
    bool is_written = std::any_of(written.begin(), written.end(), [&](const Tensor& each) {
      return each.defined() && each.is_same_storage(inputs[at]);
    });
    WithoutTangents off;
    if (is_written) inputs[at] = inputs[at].clone();
    if (is_written) directions[at] = directions[at].clone();
  }

  DrawsAgain draws;
  values();
  std::vector<Tensor> tangents = draws([&] {
    support::SwapContext own(own_context());
    return detail::jvp([&](const std::vector<Tensor>& at) { return function(at); }, inputs, directions,
                       {.create_graph = recorded})
        .derivative;
  });

  // A gradient that only passes something on gives that very tensor; a tangent may be written to.
  for (size_t at = 0; at < tangents.size(); ++at) {
    auto shares = [&](const Tensor& other) { return tangents[at].defined() && other.is_same_storage(tangents[at]); };
    WithoutTangents off;
    if (std::any_of(directions.begin(), directions.end(), shares) ||
        std::any_of(tangents.begin(), tangents.begin() + static_cast<ptrdiff_t>(at), shares))
      tangents[at] = tangents[at].clone();
  }
  size_t next = 0;
  for (const Tensor& tensor : written)
    if (is_real(tensor)) write_tangent(tensor, tangents[next++]);
  for (size_t at = 0; at < call.results.size(); ++at)
    call.results[at].each_tensor([&](const Tensor& tensor) {
      if (!is_real(tensor) ||
          std::any_of(written.begin(), written.end(), [&](const Tensor& each) { return each.is(tensor); }))
        return;
      if (carries_gradient(*row, at)) set_tangent(tensor, tangents[next]);
      ++next;
    });
}

}  // namespace tenon::autograd
