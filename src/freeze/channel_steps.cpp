#include "channel_steps.h"

#include <tenon/generated/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::freezing {
namespace {

using Kind = ChannelStep::Kind;
using ops::Role;

std::optional<double> number_of(const graph::Argument& argument) {
  const auto* value = std::get_if<dispatch::Value>(&argument);
  if (!value || !value->is_number()) return std::nullopt;
  Scalar scalar = value->scalar();
  return scalar.is_symbolic() ? std::nullopt : std::optional(scalar.to_double());
}

class Walk {
 public:
  Walk(const Graph& graph, const Mask& constants, ValueId start, int64_t channel)
      : graph_(graph), constants_(constants), readers_(graph::users_of(graph)), at_(start), channel_(channel) {
    for (const graph::Argument& output : graph.outputs)
      graph::each_reference(output, [&](ValueId id) { results_.push_back(id); });
  }

  ChannelSteps go() {
    while (Decision next = step()) continue;
    return std::move(found_);
  }

 private:
  Decision stop(std::string why) {
    found_.why = std::move(why);
    return Decision::forbid("{}", found_.why);
  }

  // Appends what the single reader of the value does.
  Decision step() {
    if (std::find(results_.begin(), results_.end(), at_) != results_.end()) return stop("it is a result");
    const std::vector<int32_t>& readers = readers_[static_cast<size_t>(at_)];
    if (readers.size() != 1) return stop(fmt::format("it has {} readers", readers.size()));
    const Node& node = graph_.nodes[static_cast<size_t>(readers[0])];
    const Role role = ops::role_of(*node.op);
    ChannelStep step;
    step.node = &node;
    if (node.outputs.size() != 1) return stop(std::string(node.op->brief_name()) + " follows");
    step.result = node.outputs[0];
    auto is_here = [&](size_t at) {
      const auto* id = std::get_if<ValueId>(&node.args[at]);
      return id && *id == at_;
    };
    bool second = node.args.size() > 1 && is_here(1);
    const bool adds = role == Role::Add || role == Role::Subtract;
    if (role == Role::Convert && is_floating(graph_.meta(step.result).dtype())) {
      step.kind = Kind::Cast;
    } else if (role == Role::Reshape && channel_ == -1 && keeps_last(step.result)) {
      step.kind = Kind::View;
    } else if (role == Role::Negate) {
      step.kind = Kind::Negate;
    } else if (adds || role == Role::Multiply || role == Role::Divide) {
      if (second && role == Role::Divide) return stop("something is divided by it");
      step.kind = role == Role::Multiply ? Kind::Multiply
                  : role == Role::Divide ? Kind::Divide
                  : role == Role::Add    ? Kind::Add
                  : second               ? Kind::SubtractFrom
                                         : Kind::Subtract;
      if (adds) {
        std::optional<double> alpha = node.args.size() > 2 ? number_of(node.args[2]) : 1.0;
        if (!alpha || (second && *alpha != 1)) return stop("an alpha that is not known, or stands at the product");
        step.alpha = *alpha;
      }
      step.operand = node.args[second ? 0 : 1];
      if (!is_by_channel(step.operand))
        return stop(fmt::format("the other operand of {} is not constant for each channel", node.op->brief_name()));
    } else {
      return stop(std::string(node.op->brief_name()) + " follows");
    }
    if (step.kind != Kind::View && graph_.meta(step.result).dim() != graph_.meta(at_).dim())
      return stop(fmt::format("{} makes it larger", node.op->brief_name()));
    at_ = step.result;
    found_.steps.push_back(std::move(step));
    return Decision::allow();
  }

  bool keeps_last(ValueId view) const {
    const Tensor &from = graph_.meta(at_), &to = graph_.meta(view);
    return from.dim() > 0 && to.dim() > 0 && from.size(-1).same(to.size(-1));
  }

  // A number, or a constant that has one number for each channel, or one for all.
  bool is_by_channel(const graph::Argument& operand) const {
    if (number_of(operand)) return true;
    const auto* id = std::get_if<ValueId>(&operand);
    if (!id || *id == graph::kNoValue || !constants_[static_cast<size_t>(*id)]) return false;
    SymInts sizes = graph_.meta(*id).sym_sizes();
    auto rank = static_cast<int64_t>(sizes.size());
    if (rank > graph_.meta(at_).dim()) return false;
    for (int64_t dim = 0; dim < rank; ++dim) {
      const SymInt& size = sizes[static_cast<size_t>(dim)];
      bool fits = size.maybe_constant() == 1 || (dim - rank == channel_ && size.same(graph_.meta(at_).size(channel_)));
      if (!fits) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Mask& constants_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<ValueId> results_;
  ValueId at_;
  int64_t channel_;
  ChannelSteps found_;
};

}  // namespace

ChannelSteps channel_steps(const Graph& graph, const Mask& constants, ValueId start, int64_t channel) {
  return Walk(graph, constants, start, channel).go();
}

Scaling scaling_of(std::span<const ChannelStep> steps, const Values& now, Dtype dtype) {
  Scaling all;
  auto operand = [&](const ChannelStep& step) {
    if (std::optional<double> number = number_of(step.operand))
      return full(SymInts{1}, Scalar(*number), TensorOptions(dtype));
    return reshape(now(std::get<ValueId>(step.operand)).to(dtype), SymInts{-1});
  };
  auto scaled = [](const Tensor& tensor, const Tensor& factor) { return tensor.defined() ? tensor * factor : factor; };
  auto shifted = [](const Tensor& tensor, const Tensor& by) { return tensor.defined() ? tensor + by : by; };
  for (const ChannelStep& step : steps) {
    switch (step.kind) {
      case Kind::Cast:
      case Kind::View: break;
      case Kind::Add: all.shift = shifted(all.shift, operand(step) * step.alpha); break;
      case Kind::Subtract: all.shift = shifted(all.shift, operand(step) * -step.alpha); break;
      case Kind::Multiply:
        all.scale = scaled(all.scale, operand(step));
        if (all.shift.defined()) all.shift = all.shift * operand(step);
        break;
      case Kind::Divide:
        all.scale = all.scale.defined() ? all.scale / operand(step) : reciprocal(operand(step));
        if (all.shift.defined()) all.shift = all.shift / operand(step);
        break;
      case Kind::Negate:
      case Kind::SubtractFrom:
        all.scale = all.scale.defined() ? neg(all.scale) : full(SymInts{1}, Scalar(-1.0), TensorOptions(dtype));
        if (all.shift.defined()) all.shift = neg(all.shift);
        if (step.kind == Kind::SubtractFrom) all.shift = shifted(all.shift, operand(step));
        break;
    }
  }
  return all;
}

}  // namespace tenon::freezing
