// What a plan holds at a time, and whose memory serves whom.
#include "../capture/testing.h"

#include <tenon/core/storage.h>
#include <tenon/library/custom_op.h>
#include <tenon/runtime/memory.h>
#include <tenon/schedule/schedule.h>

namespace tenon::schedule {
namespace {

using testing::same_bits;

struct Planned {
  std::shared_ptr<const runtime::Plan> plan;
  graph::Graph graph;
  int64_t peak(const std::vector<Tensor>& inputs) const {
    return runtime::peak_bytes(*plan, graph::bind_symbols(graph, inputs));
  }
  int new_blocks() const {
    return static_cast<int>(std::count_if(plan->steps.begin(), plan->steps.end(), [](const runtime::Step& step) {
      const auto* allocation = std::get_if<runtime::AllocateStep>(&step);
      return allocation && allocation->reuse < 0;
    }));
  }
};

template <typename Body, typename... Inputs>
Planned planned(Body body, Dynamic dynamic, const Inputs&... inputs) {
  Planned made;
  CompileOptions options;
  options.dynamic = dynamic;
  options.backend = [&](const graph::Graph& graph) -> GraphFunction {
    made.graph = graph;
    made.plan = compile_graph(graph);
    return [plan = made.plan](std::span<const Tensor> given, std::span<const int64_t> symbols) {
      return runtime::run(*plan, given, symbols);
    };
  };
  Tensor got = compile(body, options)(inputs...);
  EXPECT_TRUE(same_bits(got, body(inputs...)));
  return made;
}

// What a run really takes from the allocator.
int64_t measured(const Planned& made, const std::vector<Tensor>& inputs) {
  const std::vector<int64_t> symbols = graph::bind_symbols(made.graph, inputs);
  const int64_t before = allocator::bytes_in_use();
  allocator::reset_peak();
  (void)runtime::run(*made.plan, inputs, symbols);
  return allocator::peak_bytes_in_use() - before;
}

// Operators that take no memory of their own beside their results.
Tensor chain(Tensor x) {
  Tensor y = cumsum(x, 0);                                // n × n
  Tensor z = cumsum(stack({y, y + 1, y + 2, y + 3}), 0);  // 4 × n × n, beside what is stacked
  return cumsum(z.sum(0), 1);                             // n × n, beside the sum
}

TEST(PlanMemory, peak_is_what_a_run_takes) {
  // Powers of two, which the allocator does not round.
  Planned made = planned(chain, Dynamic::On, ones({16, 16}));
  for (int64_t n : {16, 8, 32, 64}) {
    SCOPED_TRACE(n);
    EXPECT_EQ(made.peak({ones({n, n})}), (4 + 4) * n * n * 4) << runtime::to_string(*made.plan);
    EXPECT_EQ(measured(made, {ones({n, n})}), made.peak({ones({n, n})}));
  }
}

TEST(PlanMemory, dead_values_go_at_once) {
  // Sizes that have nothing to do with each other: no result fits into what died before.
  auto body = [](Tensor x, Tensor a, Tensor b, Tensor c) { return mm(mm(mm(x, a), b), c); };
  Tensor x = ones({64, 8}), a = ones({8, 512}), b = ones({512, 32}), c = ones({32, 4});
  Planned made = planned(body, Dynamic::Off, x, a, b, c);
  EXPECT_EQ(made.peak({x, a, b, c}), (64 * 512 + 64 * 32) * 4);
}

TEST(PlanMemory, a_result_takes_over_what_dies_in_its_kernel) {
  auto body = [](Tensor x, Tensor w) { return tanh(mm(x, w)) + 1; };
  Planned made = planned(body, Dynamic::On, randn({24, 32}), randn({32, 40}));
  EXPECT_EQ(made.new_blocks(), 1);
  Tensor x = ones({16, 16}), w = ones({16, 64});
  EXPECT_EQ(made.peak({x, w}), 16 * 64 * 4);
  // Two that die and two results, one of which reads both.
  auto both = [](Tensor a, Tensor b) {
    Tensor p = mm(a, b), q = mm(b, a), sum = p + q, product = p * q;
    return mm(sum, product);
  };
  Planned two = planned(both, Dynamic::Off, randn({32, 32}), randn({32, 32}));
  EXPECT_EQ(two.new_blocks(), 3);
}

TEST(PlanMemory, rows_take_over_rows) {
  auto body = [](Tensor x, Tensor w) { return softmax(mm(x, w), -1); };
  Planned made = planned(body, Dynamic::Off, randn({24, 32}), randn({32, 100}));
  EXPECT_EQ(made.new_blocks(), 1);
}

TEST(PlanMemory, nothing_is_taken_over_that_lies_otherwise) {
  // Transposed: another element is read than is stored.
  auto turned = [](Tensor x, Tensor w) { return (mm(x, w).t() + 1).contiguous(); };
  EXPECT_EQ(planned(turned, Dynamic::Off, randn({32, 32}), randn({32, 32})).new_blocks(), 2);
  // As many bytes, but of larger elements.
  auto narrower = [](Tensor x, Tensor w) { return mm(x, w).to(kFloat64); };
  EXPECT_EQ(planned(narrower, Dynamic::Off, randn({32, 32}), randn({32, 32})).new_blocks(), 2);
  // Read again afterwards.
  auto again = [](Tensor x, Tensor w) {
    Tensor y = mm(x, w);
    return mm(tanh(y), y);
  };
  EXPECT_EQ(planned(again, Dynamic::Off, randn({32, 32}), randn({32, 32})).new_blocks(), 3);
}

TEST(PlanMemory, nothing_is_taken_over_that_a_custom_operator_saw) {
  Tensor kept;
  auto keep = library::custom_op("plan_memory::keep",
                                 [&kept](const Tensor& a) {
                                   kept = a;
                                   return a.sum();
                                 },
                                 {.names = "a"});
  keep.register_fake([](const Tensor& a) { return a.new_empty({}); });
  auto body = [&](Tensor x, Tensor w) {
    Tensor y = mm(x, w);
    return tanh(y) + keep(y);
  };
  Tensor x = randn({32, 32}), w = randn({32, 32});
  planned(body, Dynamic::Off, x, w);
  Tensor got = compile(body)(x, w);
  EXPECT_TRUE(same_bits(kept, mm(x, w)));
}

TEST(PlanMemory, backward_frees_what_was_saved_as_it_goes) {
  // A layer's gradient is as large as what forward saved for it.
  constexpr int64_t kLayers = 8, kSide = 128, kActivation = kSide * kSide * 4;
  std::vector<Tensor> weights;
  for (int64_t layer = 0; layer < kLayers; ++layer)
    weights.push_back((randn({kSide, kSide}) * 0.1).set_requires_grad());
  auto f = compile([](Tensor x, std::vector<Tensor> w) {
    for (const Tensor& each : w) x = tanh(mm(x, each));
    return x.sum();
  });
  Tensor x = randn({kSide, kSide});
  auto peak_of_backward = [&](bool retain) {
    for (const Tensor& weight : weights) weight.set_grad(Tensor());
    Tensor loss = f(x, weights);
    const int64_t before = allocator::bytes_in_use();
    allocator::reset_peak();
    loss.backward({}, retain);
    return allocator::peak_bytes_in_use() - before;
  };
  peak_of_backward(false);  // compiles
  const int64_t retained = peak_of_backward(true), freed = peak_of_backward(false);
  // Gradients come beside all that was saved, or as it goes.
  EXPECT_GE(retained, kLayers * kActivation);
  EXPECT_LE(freed, retained - (kLayers - 3) * kActivation);
  Tensor loss = f(x, weights);
  loss.backward();
  EXPECT_NE(testing::error_of([&] { loss.backward(); }).find("the graph was freed"), std::string::npos);
}

}  // namespace
}  // namespace tenon::schedule
