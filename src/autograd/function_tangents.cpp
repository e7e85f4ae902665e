// A `Function` in forward mode: what its jvp gives is held against what its forward did.
#include "autograd/forward_mode.h"
#include "autograd/function_call.h"
#include "autograd/row_node.h"

#include <tenon/autograd/function.h>
#include <tenon/autograd/meta.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::autograd {
namespace detail {

std::vector<Tensor> tangents_of(std::span<const Tensor> arguments) {
  if (!dual_level()) return {};
  std::vector<Tensor> tangents;
  for (const Tensor& argument : arguments) tangents.push_back(tangent_of(argument));
  bool any = std::any_of(tangents.begin(), tangents.end(), [](const Tensor& each) { return each.defined(); });
  return any ? tangents : std::vector<Tensor>();
}

void give_tangents(std::span<const Tensor> results, std::span<const Tensor> tangents) {
  for (size_t at = 0; at < tangents.size(); ++at)
    if (tangents[at].defined()) set_tangent(results[at], tangents[at]);
}

NoTangents::NoTangents() : level_(dual_level()) {
  support::thread_context.set(support::ContextSlot::DualLevel, nullptr);
}
NoTangents::~NoTangents() { support::thread_context.set(support::ContextSlot::DualLevel, level_); }

}  // namespace detail

namespace {

using detail::is_view;

// The place of a tensor in a list; its size if it is not there.
size_t place_of(const Tensor& tensor, std::span<const Tensor> list) {
  return static_cast<size_t>(
      std::find_if(list.begin(), list.end(), [&](const Tensor& each) { return each.defined() && each.is(tensor); }) -
      list.begin());
}

// Values that look into one memory have tangents that do.
void check_view(const std::string& name, const Tensor& argument, const Tensor& given, const Tensor& tangent) {
  constexpr const char* kIs = "A custom Function's forward is returning a view (or an input as-is) but the";
  TENON_CHECK(is_view(tangent) && !tangent.is(given),
              "[{}] {} jvp is not returning a view. Return a view of the tangent of that argument (view_as())", name,
              kIs);
  if (tangent.is_same_storage(given)) return;
  TENON_CHECK(!is_view(argument),
              "[{}] {} jvp is not returning a view of the same base as the tangent that it was given", name, kIs);
  fail("[{}] {} jvp is not returning a view of the given tangent", name, kIs);
}

}  // namespace

std::vector<Tensor> FunctionNode::tangents(std::span<const Tensor> arguments, std::vector<Tensor> given,
                                           std::vector<Tensor>& results, const Jvp& jvp) {
  TENON_CHECK_IMPLEMENTED(jvp, "[{}] a custom Function must implement the jvp function to be used in forward mode",
                          name());
  detail::NoTangents plain;
  for (size_t at = 0; at < given.size(); ++at)
    if (!given[at].defined() && context_.materialize_ && arguments[at].defined() && arguments[at].is_floating_point())
      given[at] = zeros_like(arguments[at].detach());
  context_.in_jvp_ = true;
  std::vector<Tensor> made = jvp(context_, given);
  context_.in_jvp_ = false;
  TENON_CHECK(made.size() == results.size(), "[{}] jvp gave {} tangents, expected one for each of {} results", name(),
              made.size(), results.size());
  bool recorded = detail::records(arguments);
  for (size_t at = 0; at < results.size(); ++at) {
    Tensor& result = results[at];
    bool differentiable = result.defined() && result.is_floating_point() &&
                          place_of(result, context_.non_differentiable_) == context_.non_differentiable_.size();
    TENON_CHECK(differentiable || !made[at].defined(),
                "[{}] jvp gave a tangent for result {}, which is not differentiable. You should return None at that "
                "position instead: an undefined tensor",
                name(), at);
    if (!made[at].defined()) continue;
    TENON_CHECK(same_sizes(made[at].sym_sizes(), result.sym_sizes()), "[{}] jvp gave a tangent {} for the result {}",
                name(), made[at].description(), result.description());
    size_t argument = place_of(result, arguments);
    if (place_of(result, context_.dirty_) < context_.dirty_.size()) {
      TENON_CHECK(argument == arguments.size() || made[at].is(given[argument]),
                  "[{}] An inplace custom Function is not modifying the forward mode gradients inplace. If the forward "
                  "modifies an input inplace, then the jvp function must modify the corresponding gradient inplace, "
                  "and return it",
                  name());
      continue;
    }
    bool is_argument = argument < arguments.size();
    for (size_t other = 0; !is_argument && other < arguments.size(); ++other)
      if (arguments[other].defined() && arguments[other].is_same_storage(result)) argument = other;
    if (argument < arguments.size()) check_view(name(), arguments[argument], given[argument], made[at]);
    if (is_argument && !recorded) result = detach_below(result);
  }
  return made;
}

}  // namespace tenon::autograd
