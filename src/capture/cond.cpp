// A branch in a capture: both ways are recorded, cut out of the graph, and become one operator.
#include "aot/branch_body.h"
#include "core/memory_order.h"
#include "excerpts.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/control/cond.h>

#include <algorithm>

namespace tenon::capture {
namespace {

using control::detail::Branch;
using control::detail::BranchResult;

// The same number, at every call. Numbers that are known here are compared, and a guard holds what came of it.
bool agree(const SymInt& a, const SymInt& b) {
  if (a.same(b)) return true;
  return a.hint() && b.hint() && bool(a == b);
}

class CondCapture {
 public:
  CondCapture(Session& session, const Tensor& predicate) : session_(session), predicate_(predicate) {}

  std::optional<std::vector<Tensor>> run(Branch then, Branch otherwise) {
    std::optional<std::vector<Tensor>> made = try_run(then, otherwise);
    if (made) return made;
    TENON_LOG(Breaks, "a cond is no part of a graph: {}", why_);
    session_.check_may_end("a cond is no part of a graph: " + why_);
    return std::nullopt;
  }

 private:
  std::optional<std::vector<Tensor>> try_run(Branch then, Branch otherwise) {
    std::vector<Session::Excerpt> excerpts;
    for (Branch branch : {then, otherwise}) {
      std::optional<Session::Excerpt> excerpt = record(branch);
      if (!excerpt) return std::nullopt;
      excerpts.push_back(std::move(*excerpt));
    }
    if (!are_alike(excerpts)) return std::nullopt;
    // A result has a history if it has one by either way.
    std::vector<bool> needs_grad = excerpts[0].needs_grad;
    for (size_t at = 0; at < needs_grad.size(); ++at) needs_grad[at] = needs_grad[at] || excerpts[1].needs_grad[at];
    const std::vector<Tensor> captured = join_captured(excerpts, 0);
    std::vector<graph::Graph> graphs;
    for (Session::Excerpt& excerpt : excerpts) graphs.push_back(std::move(excerpt.graph));
    std::optional<aot::BranchOperator> made = aot::branch_operator(std::move(graphs), needs_grad, why_);
    if (!made) return std::nullopt;
    const SymInts numbers = numbers_of(made->symbols, session_.env());
    if (!can_go_back(*made, captured, numbers)) return std::nullopt;
    return aot::BranchCall(session_.stand_in(predicate_), captured, numbers).run(*made->op);
  }

  std::nullopt_t refuse(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }

  std::optional<Session::Excerpt> record(Branch branch) {
    // A branch that nobody takes may raise.
    const bool grad_mode = autograd::grad_enabled();
    try {
      return session_.record_apart(
          {},
          [&](const std::function<bool(const Tensor&)>& is_from_outside) {
            BranchResult made = branch();
            counts_.push_back(std::move(made.counts));
            for (const Tensor& each : made.tensors)
              TENON_CHECK(each.defined(), "[cond] expected tensors, got an undefined one");
            give_own_memory(session_, made.tensors, is_from_outside);
            for (Tensor& each : made.tensors)
              if (!core::is_dense(each)) each = each.clone();
            return made.tensors;
          },
          why_);
    } catch (const Error& error) {
      autograd::set_grad_enabled(grad_mode);
      return refuse(fmt::format("a branch raises: {}", error.what()));
    }
  }

  bool are_alike(const std::vector<Session::Excerpt>& excerpts) {
    if (counts_[0] != counts_[1]) {
      why_ = fmt::format("its branches give {} and {} tensors, or structures of other sizes",
                         excerpts[0].graph.outputs.size(), excerpts[1].graph.outputs.size());
      return false;
    }
    for (size_t at = 0; at < excerpts[0].graph.outputs.size(); ++at) {
      auto meta = [&](size_t which) -> const Tensor& {
        return excerpts[which].graph.meta(std::get<graph::ValueId>(excerpts[which].graph.outputs[at]));
      };
      const Tensor &a = meta(0), &b = meta(1);
      auto all_agree = [](const SymInts& one, const SymInts& other) {
        bool same = one.size() == other.size();
        for (size_t dim = 0; same && dim < one.size(); ++dim) same = agree(one[dim], other[dim]);
        return same;
      };
      const char* what = nullptr;
      if (a.dtype() != b.dtype())
        what = "dtypes";
      else if (!all_agree(a.sym_sizes(), b.sym_sizes()))
        what = "sizes";
      else if (!all_agree(core::dense_strides_of(a), core::dense_strides_of(b)))
        what = "strides";
      if (!what) continue;
      why_ = fmt::format(
          "result {} has other {} by one branch than by the other: {} with strides {}, and {} with "
          "strides {}",
          at, what, a.description(), str(a.sym_strides()), b.description(), str(b.sym_strides()));
      return false;
    }
    return true;
  }

  // Whether there is a way back, or none is needed.
  bool can_go_back(const aot::BranchOperator& made, std::span<const Tensor> captured, const SymInts& numbers) {
    if (!autograd::grad_enabled()) return true;
    std::vector<bool> wanted;
    for (const Tensor& tensor : captured) wanted.push_back(tensor.is_floating_point() && tensor.requires_grad());
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return true;
    std::optional<std::string> why = why_no_way_back([&] { made.body->prepare_gradient(wanted, numbers); });
    if (why) why_ = *why;
    return !why;
  }

  Session& session_;
  const Tensor& predicate_;
  std::vector<std::vector<size_t>> counts_;  // by branch: of its structure
  std::string why_;
};

std::optional<std::vector<Tensor>> capture_cond(const Tensor& predicate, Branch then, Branch otherwise) {
  Session* session = Session::current();
  if (!session) return std::nullopt;
  return CondCapture(*session, predicate).run(then, otherwise);
}

[[maybe_unused]] const bool registered = [] {
  control::detail::set_cond_capturer(capture_cond);
  return true;
}();

}  // namespace
}  // namespace tenon::capture
