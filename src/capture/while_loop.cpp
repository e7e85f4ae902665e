// A loop whose number of steps data tells, in a capture: its condition and its body become one operator.
#include "aot/while_body.h"
#include "core/memory_order.h"
#include "excerpts.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/control/cond.h>
#include <tenon/control/while_loop.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::capture {
namespace {

using control::detail::WhileBody;
using control::detail::WhileCondition;

class WhileCapture {
 public:
  WhileCapture(Session& session, std::span<const Tensor> carry, WhileCondition condition, WhileBody body)
      : session_(session), condition_(condition), body_(body) {
    for (const Tensor& tensor : carry) {
      Tensor known = session.stand_in(tensor);
      needs_grad_.push_back(known.requires_grad());
      layouts_.push_back(core::dense_strides_of(known));
      carry_.push_back(std::move(known));
    }
  }

  std::optional<std::vector<Tensor>> run() {
    std::optional<std::vector<Tensor>> made = try_run();
    if (made) return made;
    TENON_LOG(Breaks, "a while_loop is run step by step: {}", why_);
    session_.check_may_end("a while_loop is run step by step: " + why_);
    return std::nullopt;
  }

 private:
  using IsFromOutside = std::function<bool(const Tensor&)>;

  std::optional<std::vector<Tensor>> try_run() {
    // What is carried requires grad once anything that it was computed from does.
    for (;;) {
      std::optional<Session::Excerpt> body = record([&](std::span<const Tensor> given, const IsFromOutside& outside) {
        std::vector<Tensor> made = body_(given);
        control::detail::check_while_carry(carry_, made);
        give_own_memory(session_, made, outside);
        for (size_t at = 0; at < made.size(); ++at)
          if (!core::is_dense(made[at]) || !is_same(core::dense_strides_of(made[at]), layouts_[at]))
            made[at] =
                empty_strided(made[at].sym_sizes(), layouts_[at], TensorOptions(made[at].dtype(), made[at].device()))
                    .copy_(made[at]);
        return made;
      });
      if (!body) return std::nullopt;
      bool changed = false;
      for (size_t at = 0; at < carry_.size(); ++at)
        if (body->needs_grad[at] && !needs_grad_[at]) needs_grad_[at] = changed = true;
      if (changed) continue;
      std::optional<Session::Excerpt> condition =
          record([&](std::span<const Tensor> given, const IsFromOutside& outside) {
            std::vector<Tensor> made{condition_(given)};
            control::detail::check_predicate(made[0], "[while_loop] expected a condition");
            give_own_memory(session_, made, outside);
            return made;
          });
      if (!condition) return std::nullopt;
      return call(std::move(*condition), std::move(*body));
    }
  }

  std::optional<Session::Excerpt> record(
      const std::function<std::vector<Tensor>(std::span<const Tensor>, const IsFromOutside&)>& piece) {
    std::vector<Tensor> given;
    for (size_t at = 0; at < carry_.size(); ++at)
      given.push_back(
          placeholder(carry_[at].sym_sizes(), layouts_[at], carry_[at], needs_grad_[at] && autograd::grad_enabled()));
    return session_.record_apart(given, [&](const IsFromOutside& outside) { return piece(given, outside); }, why_);
  }

  std::optional<std::vector<Tensor>> call(Session::Excerpt condition, Session::Excerpt body) {
    std::vector<bool> needs_grad = needs_grad_;
    std::vector<Session::Excerpt> excerpts;
    excerpts.push_back(std::move(condition));
    excerpts.push_back(std::move(body));
    const std::vector<Tensor> captured = join_captured(excerpts, carry_.size());
    std::vector<graph::Graph> graphs;
    for (Session::Excerpt& excerpt : excerpts) graphs.push_back(std::move(excerpt.graph));
    std::optional<aot::WhileOperator> made =
        aot::while_operator(std::move(graphs), carry_.size(), std::move(needs_grad), why_);
    if (!made) return std::nullopt;
    const SymInts numbers = numbers_of(made->symbols, session_.env());
    if (!can_go_back(*made, captured, numbers)) return std::nullopt;
    return aot::WhileCall(carry_, captured, numbers).run(*made->op);
  }

  // Whether there is a loop back, or none is needed.
  bool can_go_back(const aot::WhileOperator& made, std::span<const Tensor> captured, const SymInts& numbers) {
    if (!autograd::grad_enabled()) return true;
    std::vector<Tensor> arguments = carry_;
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    const std::vector<bool> wanted = made.body->wanted(arguments);
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return true;
    std::optional<std::string> why = why_no_way_back([&] { made.body->prepare_gradient(wanted, numbers); });
    if (why) why_ = *why;
    return !why;
  }

  Session& session_;
  WhileCondition condition_;
  WhileBody body_;
  std::vector<Tensor> carry_;
  std::vector<bool> needs_grad_;  // of the carry, so far
  std::vector<SymInts> layouts_;  // strides of the carry
  std::string why_;
};

std::optional<std::vector<Tensor>> capture_while(std::span<const Tensor> carry, WhileCondition condition,
                                                 WhileBody body) {
  Session* session = Session::current();
  if (!session) return std::nullopt;
  return WhileCapture(*session, carry, condition, body).run();
}

[[maybe_unused]] const bool registered = [] {
  control::detail::set_while_capturer(capture_while);
  return true;
}();

}  // namespace
}  // namespace tenon::capture
