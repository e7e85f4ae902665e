// Random numbers of a compiled function are eager's for one seed, bit for bit, and leave the generator as eager does.
#include "both_ways.h"

#include <tenon/autograd/function.h>
#include <tenon/core/random.h>
#include <tenon/graph/graph.h>
#include <tenon/schedule/schedule.h>

namespace tenon {
namespace {

using testing::difference;
using testing::on_all_backends;
using testing::same_bits;

// Both with one seed; the states of the generator must agree as well.
void compare(auto& function, auto&& compiled, auto&& run) {
  for (int64_t n : {4, 4, 6, 5}) {
    SCOPED_TRACE(n);
    manual_seed(42);
    std::vector<Tensor> expected = run(function, n);
    auto state = std::pair(default_generator().seed(), default_generator().offset());
    manual_seed(42);
    std::vector<Tensor> got = run(compiled, n);
    EXPECT_EQ(state, std::pair(default_generator().seed(), default_generator().offset()));
    for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(difference(got[at], expected[at]), 1e-5) << at;
  }
}

TEST(RandomOrder, plain_draws_are_the_same_bits) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) {
      Tensor a = rand({3}), dead = randn({5}), b = randn({3}), c = rand({3});
      Tensor late = randint(10, {4}), unused = rand_like(x);
      return std::tuple(c, b + 1, a, late, x.sum());
    };
    auto f = compiled(function);
    for (int64_t n : {2, 2, 5, 4}) {
      manual_seed(7);
      auto [c, b, a, late, s] = function(ones({n}));
      uint64_t offset = default_generator().offset();
      manual_seed(7);
      auto [c2, b2, a2, late2, s2] = f(ones({n}));
      EXPECT_EQ(default_generator().offset(), offset);
      EXPECT_TRUE(same_bits(c, c2) && same_bits(b, b2) && same_bits(a, a2) && same_bits(late, late2));
    }
  });
}

TEST(RandomOrder, an_attention_block_with_four_dropouts) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x, Tensor w) {
      Tensor h = dropout(x, 0.1, true);
      Tensor scores = dropout(softmax(mm(mm(h, w), h.t()), -1), 0.3, true);
      Tensor out = dropout(mm(scores, mm(h, w)), 0.2, true);
      return x + dropout(mm(relu(out), w), 0.25, true);
    };
    compare(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = (arange(n * 8).to(kFloat32).view({n, 8}) * 0.1).set_requires_grad();
      Tensor w = (arange(64).to(kFloat32).view({8, 8}) * 0.01).set_requires_grad();
      Tensor y = f(x, w);
      (y * y).sum().backward();
      Tensor after = rand({2});
      return std::vector{y.detach(), x.grad(), w.grad(), after};
    });
  });
}

TEST(RandomOrder, what_backward_computes_again_is_what_forward_drew) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) { return (x * randn({4}) * bernoulli(full({4}, 0.5)) + rand({4})).exp() * x; };
    compare(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = full({n, 4}, 0.5).set_requires_grad();
      Tensor y = f(x), g = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
      Tensor between = rand({2});
      Tensor gg = autograd::grad({g.square().sum()}, {x})[0];
      return std::vector{y.detach(), g.detach(), between, gg, rand({2})};
    });
  });
}

struct Noisy : autograd::Function<Noisy> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * rand({4}); }
  static std::vector<Tensor> backward(autograd::AutogradContext*, std::vector<Tensor> grads) {
    Tensor dead = rand({2});
    return {grads[0] * rand({4})};
  }
};

TEST(RandomOrder, draws_of_a_backward_happen_when_it_runs) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) { return Noisy::apply(x * 2) + rand({4}); };
    compare(function, compiled(function), [](auto&& f, int64_t n) {
      Tensor x = ones({n, 4}).set_requires_grad();
      Tensor y = f(x);
      Tensor between = rand({3});
      y.sum().backward();
      return std::vector{y.detach(), between, x.grad(), rand({3})};
    });
  });
}

GraphFunction interpreting(const graph::Graph& graph) {
  return [graph](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    graph::InterpretOptions options;
    options.symbols = symbols;
    return graph::interpret(graph, inputs, options);
  };
}

GraphFunction planned(const graph::Graph& graph) {
  auto plan = schedule::compile_graph(graph);
  return [plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    return runtime::run(*plan, inputs, symbols);
  };
}

TEST(RandomOrder, a_graph_that_seeds_the_generator) {
  // What a capture of manual_seed() between two operators leaves.
  auto draw_thrice = [](Tensor x) {
    Tensor first = x + rand({3}), second = rand({3}), third = rand({3});
    return std::tuple(first, second, third);
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    graph::Graph captured;
    Backend keep = [&](const graph::Graph& graph) {
      captured = graph;
      return interpreting(graph);
    };
    compile(draw_thrice, {.backend = keep})(zeros({3}));
    ASSERT_EQ(captured.nodes.size(), 4u);
    captured.seeds.push_back({2, dispatch::Value(int64_t{5})});
    captured.seeds.push_back({4, dispatch::Value(int64_t{9})});
    GraphFunction run = interpreting(captured);
    if (std::string_view(backend) == "aot_eager") run = aot::compile(captured, {false}, true, interpreting).run;
    if (std::string_view(backend) == "inductor") run = aot::compile(captured, {false}, true, planned).run;
    for (int call = 0; call < 2; ++call) {
      manual_seed(1);
      Tensor first = rand({3});
      manual_seed(5);
      Tensor second = rand({3}), third = rand({3});
      manual_seed(1);
      Tensor x = zeros({3});
      std::vector<dispatch::Value> got = run({&x, 1}, {});
      EXPECT_TRUE(same_bits(got[0].tensor(), first) && same_bits(got[1].tensor(), second));
      EXPECT_TRUE(same_bits(got[2].tensor(), third));
      EXPECT_EQ(std::pair(default_generator().seed(), default_generator().offset()),
                (std::pair<uint64_t, uint64_t>(9, 0)));
    }
  }
}

}  // namespace
}  // namespace tenon
