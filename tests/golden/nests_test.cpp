// What some well-known loops are, and how they run: nest and loop schedule of each.
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include "golden/expected.h"
#include "schedule/schedule_loops.h"

namespace tenon::golden {
namespace {

template <typename Body, typename... Inputs>
std::string nests_of(const std::string& title, Body body, Dynamic dynamic, const Inputs&... inputs) {
  std::string text = fmt::format("---- {} ----\n", title);
  auto backend = [&](const graph::Graph& graph) -> GraphFunction {
    graph::Graph parts = schedule::decompose(graph);
    const schedule::Schedule fused = schedule::fuse(parts, {});
    std::vector<schedule::GroupLoops> groups = schedule::make_nests(fused);
    schedule::schedule_loops(fused, schedule::find_lifetimes(fused, groups), groups);
    for (const schedule::GroupLoops& group : groups)
      if (group.nest) text += to_string(*group.nest) + "  => " + to_string(group.loops) + "\n";
    std::shared_ptr<const runtime::Plan> plan = schedule::compile_graph(graph);
    return [plan](std::span<const Tensor> given, std::span<const int64_t> symbols) {
      return runtime::run(*plan, given, symbols);
    };
  };
  compile(body, {.dynamic = dynamic, .backend = backend})(inputs...);
  return text + "\n";
}

TEST(Golden, nests) {
  const Dynamic off = Dynamic::Off;
  std::string text;
  text += nests_of("row sum", [](Tensor x) { return x.sum(-1); }, off, ones({512, 4096}));
  text += nests_of("row sum, any sizes", [](Tensor x) { return x.sum(-1); }, Dynamic::On, ones({512, 4096}));
  text += nests_of("few long rows", [](Tensor x) { return x.sum(-1); }, off, ones({2, 1 << 20}));
  text += nests_of("column sum", [](Tensor x) { return x.sum(0); }, off, ones({4096, 768}));
  text += nests_of("full sum", [](Tensor x) { return x.sum(); }, off, ones({2048, 1024}));
  text += nests_of("softmax", [](Tensor x) { return softmax(x, -1); }, off, ones({2048, 1024}));
  text += nests_of("softmax of one long row", [](Tensor x) { return softmax(x, -1); }, off, ones({1 << 20}));
  text += nests_of("transpose", [](Tensor x) { return x.t().contiguous(); }, off, ones({1024, 1024}));
  text += nests_of(
      "broadcast chain", [](Tensor x, Tensor w, Tensor b, Tensor r) { return tanh(x * w + b) + r; }, off,
      ones({4096, 1024}), ones({1024}), ones({1024}), ones({4096, 1024}));
  text += nests_of(
      "gather", [](Tensor x, Tensor i) { return x.index_select(0, i); }, off, ones({1000, 768}), zeros({64}, kInt64));
  expect_golden("nests", text);
}

}  // namespace
}  // namespace tenon::golden
