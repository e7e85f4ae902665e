// Sizes that fakes leave to the data, in traced graphs.
#include <tenon/capture/trace.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

namespace tenon::library {
namespace {

// Bounds are known to what follows in the traced function, and the sizes stand in the graph's text.
TEST(DynamicSize, bounds_and_text) {
  auto pick = custom_op("dynamic_test::pick", [](const Tensor& x) { return (x > 0).to(kInt64); }, {.names = "x"});
  pick.register_fake(
      [](const Tensor& x) { return empty({fake::new_dynamic_size(2, 100), SymInt(x.dim())}, TensorOptions(kInt64)); });
  graph::Graph graph = trace(
      [&](Tensor x) {
        Tensor rows = pick(x);
        EXPECT_TRUE(statically_true(rows.size(0) >= 2));
        EXPECT_TRUE(statically_true(rows.size(0) <= 100));
        EXPECT_FALSE(statically_true(rows.size(0) <= 99));
        Tensor more = pick(x.sin());
        return std::pair(rows, more.sum());
      },
      Tracing::Symbolic, randn({5, 6}));
  EXPECT_EQ(graph::to_string(graph),
            "graph(%arg0: float32[s0, s1])\n"
            "  %1 = dynamic_test::pick(%arg0) : int64[u0, 2]\n"
            "  %2 = aten::sin(%arg0) : float32[s0, s1]\n"
            "  %3 = dynamic_test::pick(%2) : int64[u1, 2]\n"
            "  %4 = aten::sum.dim_IntList(%3, None, false, dtype=None) : int64[]\n"
            "  return (%1, %4)\n");
  destroy_custom_op("dynamic_test::pick");
}

}  // namespace
}  // namespace tenon::library
