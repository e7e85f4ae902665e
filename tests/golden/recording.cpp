#include "golden/recording.h"

#include <tenon/aot/aot.h>
#include <tenon/codegen/compile.h>
#include <tenon/runtime/plan.h>
#include <tenon/schedule/schedule.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::golden {
namespace {

std::string text_of(const runtime::Plan& plan) {
  std::string text = runtime::to_string(plan);
  // A kernel that is launched twice stands in the plan's list once.
  for (const load::KernelRef& kernel : plan.kernels) text += "\n" + codegen::compiled_from(*kernel)->text;
  return text;
}

std::string section(const std::string& title, std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return fmt::format("---- {} ----\n{}\n\n", title, text);
}

}  // namespace

struct Recording::Compiled {
  std::string captured, joint, forward, backward;
  std::vector<std::string> plans;  // of forward, and of backward once it has run
};

Recording::Recording() : compiled_(std::make_shared<std::vector<Compiled>>()) {}

CompileOptions Recording::options(std::vector<size_t> trained) const {
  auto backend = [all = compiled_, trained](const graph::Graph& graph) -> GraphFunction {
    const size_t position = all->size();
    all->push_back({.captured = graph::to_string(graph), .joint = {}, .forward = {}, .backward = {}, .plans = {}});
    auto compiler = [all, position](const graph::Graph& part) -> GraphFunction {
      std::shared_ptr<const runtime::Plan> plan = schedule::compile_graph(part);
      (*all)[position].plans.push_back(text_of(*plan));
      return [plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
        return runtime::run(*plan, inputs, symbols);
      };
    };
    std::vector<bool> requires_grad(graph.inputs.size());
    for (size_t input : trained) requires_grad.at(input) = true;
    aot::Compiled parts = aot::compile(graph, requires_grad, autograd::grad_enabled(), compiler);
    Compiled& mine = (*all)[position];
    mine.joint = graph::to_string(*parts.joint);
    mine.forward = graph::to_string(*parts.forward);
    if (parts.backward) mine.backward = graph::to_string(*parts.backward);
    return parts.run;
  };
  return {.backend = backend};
}

std::string Recording::text(const Explanation& explanation) const {
  TENON_CHECK(explanation.entries.size() == compiled_->size() && explanation.breaks.empty(),
              "[golden] expected every entry to be compiled:\n{}", explanation.str());
  std::string text;
  for (size_t at = 0; at < compiled_->size(); ++at) {
    const Compiled& mine = (*compiled_)[at];
    if (at > 0) text += section("compiled again because", explanation.recompiles[at - 1]);
    text += section("captured", mine.captured);
    text += section("guards", fmt::format("{}", fmt::join(explanation.entries[at].guards, "\n")));
    // Without gradients the joint graph is the forward graph.
    if (!mine.backward.empty()) text += section("joint", mine.joint);
    text += section("forward", mine.forward);
    if (!mine.backward.empty()) text += section("backward", mine.backward);
    for (size_t part = 0; part < mine.plans.size(); ++part)
      text += section(part == 0 ? "plan and kernels of forward" : "plan and kernels of backward", mine.plans[part]);
  }
  return text;
}

}  // namespace tenon::golden
