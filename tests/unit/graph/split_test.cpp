#include <tenon/aot/export.h>
#include <tenon/capture/trace.h>
#include <tenon/graph/split.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::testing {
namespace {

// Every node a piece of its own, or by a rule.
TEST(Split, PiecesGiveWhatTheWholeGives) {
  auto function = [](Tensor a, Tensor b) {
    Tensor sum = a + b, twice = sum * 2;
    twice.slice(0, 0, 2).add_(a.slice(0, 1, 3));
    return std::tuple(twice.sin(), sum);
  };
  Tensor a = randn({4}), b = randn({4});
  graph::Graph whole = trace(function, Tracing::Fake, a, b);
  auto [expected, expected_sum] = function(a, b);
  for (int length : {1, 2, 3, 100}) {
    int at = 0;
    std::vector<graph::Piece> pieces = graph::split(whole, [&](const graph::Node&) { return at++ / length; });
    EXPECT_EQ(pieces.size(), (whole.nodes.size() + static_cast<size_t>(length) - 1) / static_cast<size_t>(length));
    std::vector<graph::PieceFunction> functions;
    for (const graph::Piece& piece : pieces) functions.push_back(aot::interpreted(piece.graph));
    const Tensor inputs[] = {a, b};
    std::vector<dispatch::Value> found = graph::run_pieces(whole, pieces, functions, inputs, {});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ((found[0].tensor() - expected).abs().amax().item<float>(), 0);
    EXPECT_EQ((found[1].tensor() - expected_sum).abs().amax().item<float>(), 0);
  }
}

TEST(Split, RefusesWhatCannotRunInOrder) {
  graph::Graph whole = trace([](Tensor a) { return a.sin().cos(); }, Tracing::Fake, ones({2}));
  int at = 1;
  EXPECT_EQ(error_of([&] { graph::split(whole, [&](const graph::Node&) { return at--; }); }),
            "[split] aten::cos belongs to piece 0 and comes after one of piece 1: pieces run in the program's order");
  graph::Graph sized = trace([](Tensor a) { return a.nonzero() * 2; }, Tracing::Fake, ones({2}));
  EXPECT_EQ(error_of([&] { graph::split(sized, [&](const graph::Node&) { return ++at; }); }).substr(0, 17),
            "[split] the size ");
}

TEST(ExportJoint, RefusesWhatOnlyCompileCanDo) {
  Tensor x = randn({3});
  EXPECT_EQ(error_of([&] { export_joint([](Tensor a) { return a.add_(1) * 2; }, Tracing::Fake, x); }),
            "[export_joint] the function writes to its input arg0: clone it first");
  EXPECT_EQ(error_of([&] { export_joint([](Tensor a) { return a.slice(0, 0, 2); }, Tracing::Fake, x); }),
            "[export_joint] the function returns its input arg0, or a view of it: clone it first");
}

}  // namespace
}  // namespace tenon::testing
