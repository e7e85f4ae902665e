// A compiled function's backward as a part of a captured walk.
#include "compiled_node.h"

#include "graph/translation.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/visit.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <bit>

namespace tenon::aot {
namespace {

using dispatch::Value;
using graph::Translation;

// A gradient with the strides that backward was traced with.
Tensor laid_out(const Tensor& gradient, const Tensor& meta, const Translation& translate) {
  SymInts sizes = translate(meta.sym_sizes()), strides = translate(meta.sym_strides()), given = gradient.sym_strides();
  bool same = gradient.dtype() == meta.dtype();
  for (size_t dim = 0; same && dim < sizes.size(); ++dim)
    same = given[dim].same(strides[dim]) || decide_or(given[dim] == strides[dim], false) ||
           decide_or(sizes[dim] <= 1, false);
  if (same) return gradient;
  Tensor copy = empty_strided(sizes, strides, TensorOptions(meta.dtype(), meta.device()));
  copy.copy_(gradient);
  return copy;
}

}  // namespace

bool CompiledNode::visit(autograd::NodeVisitor& visitor) {
  if (!is_copy_) {
    if (!alive_ || !state_->can_be_inlined || autograd::grad_enabled()) return false;
    for (const Watched& each : watched_)
      if (each.version->count != each.then) return false;
  }
  visitor.fixed(state_->serial);
  visitor.fixed(static_cast<uint64_t>(symbols_.size()) << 32 | saved_.size());
  const sym::EnvSnapshot& known = state_->known;
  for (size_t at = 0; at < symbols_.size(); ++at) {
    bool real = at < known.symbols.size() && known.symbols[at].expr.is_real();
    if (real) {
      SymFloat number(std::bit_cast<double>(symbols_[at]));
      visitor.number(number);
      if (is_copy_) numbers_.push_back(Value(number).own());
    } else {
      SymInt number(symbols_[at]);
      visitor.symbol(number);
      if (is_copy_) numbers_.push_back(Value(number).own());
    }
  }
  for (autograd::SavedTensor& saved : saved_) visitor.saved(saved, name(), [] { return autograd::Edge(); });
  return true;
}

Ref<autograd::Node> CompiledNode::copy() const {
  auto made = make_ref<CompiledNode>(state_, symbols_, draws_);
  made->copy_structure(*this);
  made->saved_ = saved_;
  made->alive_ = made->is_copy_ = true;
  return made;
}

std::vector<Tensor> CompiledNode::apply_inlined(const std::vector<Tensor>& gradients) const {
  autograd::NoGrad off;
  std::vector<bool> given;
  for (const Tensor& gradient : gradients) given.push_back(gradient.defined());
  State::Backward& backward = state_->backward(given, symbols_);
  Translation translate(numbers_);
  const graph::Graph& whole = state_->parts.backward;
  std::vector<Tensor> inputs;
  for (size_t at = 0; at < saved_.size(); ++at)
    if (backward.read[at]) inputs.push_back(saved_[at].unpack(name(), nullptr));
  for (size_t at = 0; at < gradients.size(); ++at)
    if (given[at])
      inputs.push_back(laid_out(gradients[at], whole.meta(whole.inputs[state_->parts.saved.size() + at]), translate));
  std::vector<Value> computed = graph::interpret(graph::with_numbers(*backward.graph, translate), inputs);
  std::vector<Tensor> results;
  size_t next = 0;
  for (bool reached : backward.reached) results.push_back(reached ? computed[next++].take_tensor() : Tensor());
  return results;
}

}  // namespace tenon::aot
