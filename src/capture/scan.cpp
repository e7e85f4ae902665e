// A loop in a capture: its body is recorded once, cut out of the graph, and becomes an operator of its own.
#include "aot/loop_body.h"
#include "core/memory_order.h"
#include "excerpts.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/control/scan.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::capture {
namespace {

class ScanCapture {
 public:
  static constexpr int64_t kMostTries = 8;

  ScanCapture(Session& session, const control::detail::ScanLoop& loop, control::detail::ScanBody body)
      : session_(session), loop_(loop), body_(body), carried_(loop.carry.size()) {
    for (const Tensor& tensor : loop.carry) {
      Tensor known = session.stand_in(tensor);
      needs_grad_.push_back(known.requires_grad());
      layouts_.push_back(core::dense_strides_of(known));
      carry_.push_back(std::move(known));
    }
    for (const Tensor& tensor : loop.xs) xs_.push_back(session.stand_in(tensor));
  }

  std::optional<std::vector<Tensor>> run() {
    // What is carried requires grad once anything that it was computed from does, and lies as what it was computed
    // from: found out step by step, as the loop itself would.
    std::optional<int64_t> steps = loop_.steps.maybe_constant();
    // None and one are other loops: a carry that is given back as it was, or that has changed once. Where only data can
    // tell, and something hangs on it, they are asked.
    bool is_open = false;
    if (!steps) {
      is_open = !loop_.steps.env()->hint(loop_.steps.expr());
      if (!is_open && !bool(loop_.steps >= 2)) steps = int64_t(loop_.steps);
    }
    for (const std::vector<Tensor>& list : {carry_, xs_})
      for (const Tensor& tensor : list)
        if (core::is_expanded(tensor)) return refuse("it is given a tensor whose elements share memory");
    for (int64_t step = 0;; ++step) {
      std::string why;
      std::optional<Session::Excerpt> excerpt = record(why);
      if (!excerpt) return refuse(why);
      if (steps == 0) return nothing_kept(*excerpt);
      bool changed = false;
      for (size_t at = 0; at < carried_; ++at) {
        const Tensor& made = excerpt->graph.meta(std::get<graph::ValueId>(excerpt->graph.outputs[at]));
        if (!core::is_dense(made)) return refuse("it carries a tensor that is not dense");
        SymInts layout = core::dense_strides_of(made);
        const bool needs_grad = needs_grad_[at] || excerpt->needs_grad[at];
        changed = changed || needs_grad != needs_grad_[at] || !is_same(layout, layouts_[at]);
        needs_grad_[at] = needs_grad;
        layouts_[at] = std::move(layout);
      }
      const std::vector<bool>& grads = excerpt->needs_grad;
      if (is_open && (changed || std::find(grads.begin(), grads.end(), true) != grads.end())) {
        control::detail::ScanLoop known = loop_;
        known.steps = int64_t(loop_.steps);
        return ScanCapture(session_, known, body_).run();
      }
      if (step > kMostTries) return refuse("what it carries lies in another way at every step");
      if (!changed || (steps && step + 1 >= *steps)) return call(std::move(*excerpt));
    }
  }

 private:
  std::optional<std::vector<Tensor>> refuse(const std::string& why) const {
    TENON_CHECK(loop_.steps.maybe_constant() != 0,
                "[scan] expected a body that can be captured, for a compiled loop without steps: {}", why);
    TENON_LOG(Breaks, "a scan is written out, step by step: {}", why);
    return std::nullopt;
  }

  std::optional<Session::Excerpt> record(std::string& why) {
    std::vector<Tensor> given;
    for (size_t at = 0; at < carried_; ++at)
      given.push_back(
          placeholder(carry_[at].sym_sizes(), layouts_[at], carry_[at], needs_grad_[at] && autograd::grad_enabled()));
    for (const Tensor& tensor : xs_) {
      // As `select` would give it.
      SymInts sizes(tensor.sym_sizes().span().subspan(1)), strides(tensor.sym_strides().span().subspan(1));
      strides = core::dense_strides_of(fake::make(sizes, strides, tensor.dtype(), tensor.device()));
      given.push_back(placeholder(sizes, strides, tensor, tensor.requires_grad() && autograd::grad_enabled()));
    }
    return session_.record_apart(
        given,
        [&](const std::function<bool(const Tensor&)>& is_from_outside) {
          const std::span<const Tensor> all(given);
          std::vector<Tensor> made = body_(all.first(carried_), all.subspan(carried_));
          control::detail::check_carry(carry_, made);
          give_own_memory(session_, made, is_from_outside);
          return made;
        },
        why, loop_.steps.maybe_constant() != 0);
  }

  std::vector<Tensor> nothing_kept(const Session::Excerpt& excerpt) const {
    std::vector<Tensor> results = loop_.carry;
    for (size_t at = carried_; at < excerpt.graph.outputs.size(); ++at) {
      const Tensor& meta = excerpt.graph.meta(std::get<graph::ValueId>(excerpt.graph.outputs[at]));
      SymInts sizes{0};
      for (const SymInt& size : meta.sym_sizes()) sizes.push_back(size);
      results.push_back(empty(sizes, TensorOptions(meta.dtype(), meta.device())));
    }
    return results;
  }

  std::optional<std::vector<Tensor>> call(Session::Excerpt excerpt) {
    const Ref<sym::ShapeEnv> env = excerpt.graph.env;
    aot::LoopShape shape{carried_, xs_.size(), excerpt.needs_grad};
    for (size_t at = 0; at < carried_; ++at) shape.needs_grad[at] = needs_grad_[at];
    std::string why;
    std::optional<aot::LoopOperator> made = aot::loop_operator(std::move(excerpt.graph), std::move(shape), why);
    if (!made) return refuse(why);
    SymInts numbers = numbers_of(made->symbols, env);
    if (std::optional<std::string> unknown = why_not_back(*made, excerpt.captured, numbers)) return refuse(*unknown);
    return aot::LoopCall(carry_, xs_, excerpt.captured, std::move(numbers), loop_.steps, loop_.reverse).run(*made->op);
  }

  // Why there is no loop back; nothing if there is one, or none is needed.
  std::optional<std::string> why_not_back(const aot::LoopOperator& made, std::span<const Tensor> captured,
                                          const SymInts& numbers) const {
    if (!autograd::grad_enabled()) return std::nullopt;
    std::vector<bool> wanted;
    for (size_t at = 0; at < carried_; ++at) wanted.push_back(needs_grad_[at]);
    for (const std::span<const Tensor> list : {std::span<const Tensor>(xs_), captured})
      for (const Tensor& tensor : list) wanted.push_back(tensor.is_floating_point() && tensor.requires_grad());
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return std::nullopt;
    return why_no_way_back([&] { made.body->prepare_gradient(wanted, numbers); });
  }

  Session& session_;
  const control::detail::ScanLoop& loop_;
  control::detail::ScanBody body_;
  size_t carried_;
  std::vector<Tensor> carry_, xs_;
  std::vector<bool> needs_grad_;  // of the carry, so far
  std::vector<SymInts> layouts_;  // strides of the carry, likewise
};

std::optional<std::vector<Tensor>> capture_scan(const control::detail::ScanLoop& loop, control::detail::ScanBody body) {
  Session* session = Session::current();
  if (!session) return std::nullopt;
  if (auto captured = ScanCapture(*session, loop, body).run()) return captured;
  // What is written out has as many steps as there are; without any, only what is kept has to be known.
  control::detail::ScanLoop known = loop;
  known.steps = int64_t(loop.steps);
  return known.steps.plain() == 0 ? ScanCapture(*session, known, body).run() : std::nullopt;
}

[[maybe_unused]] const bool registered = [] {
  control::detail::set_scan_capturer(capture_scan);
  return true;
}();

}  // namespace
}  // namespace tenon::capture
