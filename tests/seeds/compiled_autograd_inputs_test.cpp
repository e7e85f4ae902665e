// Seed 001: tensors that are given up are freed while the graph runs; what else hangs on the graph's inputs.
//
// The seed looks for this in bytecode: a graph that takes its inputs as one list must take the tensors out of it before
// it runs, and never touch the list again. In C++ the same is told by the list, which is empty afterwards, and by the
// memory, which is free while the function still runs.
#include "compiled_autograd.h"

#include <tenon/library/custom_op.h>

namespace tenon {
namespace {

using namespace testing;

// A function that may use up its inputs: `step` runs on each, and sees how much memory is held.
struct Probe {
  std::function<void()> look;
};
Probe& probe() {
  static Probe one;
  return one;
}
Tensor assertion(const Tensor& tensor) {
  if (probe().look) probe().look();
  return tensor.clone();
}

Tensor asserted(const Tensor& tensor) {
  static auto op = [] {
    auto made = library::custom_op("test_compiled_autograd::assertion_op", assertion, {.names = "x"});
    made.register_fake([](const Tensor& x) { return empty_like(x); });
    return made;
  }();
  return op(tensor);
}

// Forward gets its inputs one by one; the walk's graph gets all that it needs as one list, which is its own.
TEST_F(TestCompiledAutograd, dynamo_boxed) {
  size_t forward_inputs = 0, walks = 0;
  Backend forward = [&](const graph::Graph& graph) -> GraphFunction {
    forward_inputs = graph.inputs.size();
    return aot::compile(graph, aot::interpreted).run;
  };
  Backend backward = [&](const graph::Graph& graph) -> GraphFunction {
    GraphFunction run = aot::compile(graph, aot::interpreted).run;
    return [&walks, run](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
      std::vector<dispatch::Value> results = run(inputs, symbols);
      // Known by the second walk: nobody holds them but the graph, and it has used them up.
      if (++walks > 1) {
        for (const Tensor& input : inputs) EXPECT_FALSE(input.defined());
      }
      return results;
    };
  };
  Tensor a = leaf({1, 2}), b = leaf({2, 3}), c = leaf({3, 4});
  Tensors expected = autograd::grad({mm(mm(a, b), c).sum()}, {a, b, c});
  compiled_autograd::Enable on({.backend = backward});
  auto fn = compile([](Tensor x, Tensor y, Tensor z) { return mm(mm(x, y), z).sum(); }, {.backend = forward});
  for (int round = 0; round < 3; ++round) {
    for (const Tensor& each : {a, b, c}) each.set_grad(Tensor());
    fn(a, b, c).backward();
    expect_equal({a.grad(), b.grad(), c.grad()}, expected);
  }
  EXPECT_GT(forward_inputs, 1u);
  EXPECT_GT(walks, 1u);
}

// The seed's graph adds `activ * 2` to the gradient of `param`, as `accumulate_grad_` does, and may use up its inputs.
TEST_F(TestCompiledAutograd, inputs_aliasing_bytecode_attr_mutations) {
  Tensor param = ones({100}).set_requires_grad();
  for (int round = 1; round <= 3; ++round) {
    compiled_autograd::Enable on;
    {
      Tensor activ = ones({100}) * 2;
      (param * activ.mul(2)).sum().backward();
    }
    EXPECT_TRUE(same_bits(param.grad(), full({100}, 4.0f * static_cast<float>(round)))) << round;
  }
  EXPECT_EQ(captures(), 1);
}

TEST_F(TestCompiledAutograd, inputs_aliasing_bytecode_stack_restore) {
  auto fn = compile([](std::vector<Tensor> inputs) { return inputs[0] + 1 + inputs[1]; });
  for (int round = 0; round < 3; ++round) {
    Tensors inputs = {ones({1000000}), ones({1})};
    Tensor out = fn.consume(inputs);
    EXPECT_TRUE(inputs.empty());
    EXPECT_TRUE(same_bits(out, full({1000000}, 3.0f)));
  }
  EXPECT_EQ(fn.compile_count(), 1);
}

// On the CPU, with a list that is given up after a captured walk of halves.
TEST_F(TestCompiledAutograd, logging_tensor_flaky) {
  {
    compiled_autograd::Enable on({.fullgraph = true});
    Tensor x = arange(1, 10, 1, kFloat16).set_requires_grad();
    x.sum().backward();
    EXPECT_TRUE(same_bits(x.grad(), ones({9}, kFloat16)));
  }
  auto fn = compile([](std::vector<Tensor> inputs) { return inputs[0] + 1 + inputs[1]; });
  Tensors inputs = {ones({1000000}), ones({1})};
  EXPECT_TRUE(same_bits(fn.consume(inputs), full({1000000}, 3.0f)));
  EXPECT_TRUE(inputs.empty());
}

// The second operator looks at the memory: the activation is gone by then.
TEST_F(TestCompiledAutograd, free_activation_memory) {
  auto fn = compile([](std::vector<Tensor> activations) { return asserted((activations[0] + 1).sum(0, true)); });
  for (int round = 0; round < 3; ++round) {
    int64_t before = allocator::bytes_in_use(), during = -1;
    Tensors activations = {ones({1000, 1000})};
    EXPECT_GE(allocator::bytes_in_use() - before, 4000000);
    probe().look = [&] { during = allocator::bytes_in_use() - before; };
    Tensor out = fn.consume(activations);
    probe().look = nullptr;
    EXPECT_TRUE(activations.empty());
    EXPECT_TRUE(same_bits(out, full({1, 1000}, 2000.0f)));
    if (round == 0) continue;
    EXPECT_TRUE(during >= 0 && during < 4000000) << "activations should have been freed: " << during;
  }
}

// A structure of tensors in place of the seed's subclass: a jagged one is a list of values and where each begins.
TEST_F(TestCompiledAutograd, free_activation_memory_subclass) {
  auto fn = compile([](std::vector<Tensor> inputs) { return asserted(inputs[2] + 0.0); });
  for (int round = 0; round < 3; ++round) {
    int64_t before = allocator::bytes_in_use(), during = -1;
    Tensors jagged = {ones({2, 100000}), tensor({int64_t{0}, int64_t{1}, int64_t{2}})};
    Tensors inputs = {jagged[0], jagged[1], ones({1, 100000})};
    jagged.clear();
    EXPECT_GE(allocator::bytes_in_use() - before, 1200000);
    probe().look = [&] { during = allocator::bytes_in_use() - before; };
    Tensor out = fn.consume(inputs);
    probe().look = nullptr;
    EXPECT_TRUE(inputs.empty());
    EXPECT_TRUE(same_bits(out, ones({1, 100000})));
    if (round == 0) continue;
    EXPECT_TRUE(during >= 0 && during < 1200000) << "some should have been freed: " << during;
  }
}

struct QueuesCallback : autograd::Function<QueuesCallback> {
  static constexpr bool is_traceable = true;
  static inline int called = 0;
  static inline bool breaks = true;
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(autograd::AutogradContext*, Tensors gradients) {
    autograd::queue_callback([] { ++called; });
    if (breaks) graph_break();
    return gradients;
  }
};

TEST_F(TestCompiledAutograd, callback_graph_break_throws_error) {
  QueuesCallback::called = 0;
  QueuesCallback::breaks = true;
  Tensor a = rand({3, 3}).set_requires_grad();
  {
    compiled_autograd::Enable on({.fullgraph = false});
    Tensor loss = QueuesCallback::apply(a).sum();
    EXPECT_THAT(error_of([&] { loss.backward(); }),
                HasSubstr("only supported when Compiled Autograd is enabled with fullgraph=True"));
  }
  EXPECT_EQ(QueuesCallback::called, 0);
  // Without a break it is called once for every walk.
  QueuesCallback::breaks = false;
  compiled_autograd::Enable on({.fullgraph = true});
  for (int round = 1; round <= 3; ++round) {
    QueuesCallback::apply(a).sum().backward();
    EXPECT_EQ(QueuesCallback::called, round);
  }
}

// A walk on the CPU cannot be launched as a CUDA graph: that is counted.
TEST_F(TestCompiledAutograd, cudagraphs_cpu_graph) {
  nn::Linear model(10, 10, {.dtype = kFloat16});
  Tensor loss = model(randn({10, 10}).to(kFloat16)).mean() / 1000.0;
  counter("cuda_graph_skips").reset();
  compiled_autograd::Enable on({.fullgraph = true, .cuda_graphs = true});
  loss.backward();
  EXPECT_EQ(counter("cuda_graph_skips").value(), 1);
  EXPECT_TRUE(model.parameters()[0].grad().defined());
}

}  // namespace
}  // namespace tenon
