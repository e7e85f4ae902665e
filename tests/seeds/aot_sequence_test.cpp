// Seed 002: sequence numbers and modules: which operator a step of backward differentiates, and who called it.
#include "aot.h"

#include <fstream>
#include <set>

namespace tenon {
namespace {

using testing::difference;
using testing::on_both_backends;

// Convolution, batch norm, relu, sum, flatten, linear and an L1 loss.
struct Model : nn::Module {
  nn::Conv2d conv1 = submodule("conv1", nn::Conv2d(16, 16, nn::Pair(1, 1), {.same_padding = true}));
  nn::BatchNorm2d bn1 = submodule("bn1", nn::BatchNorm2d(16));
  nn::ReLU relu1 = submodule("relu1", nn::ReLU());
  nn::Linear fc1;
  nn::L1Loss loss_fn = submodule("loss_fn", nn::L1Loss());
  explicit Model(int64_t features) : fc1(submodule("fc1", nn::Linear(features, 1))) {}

  std::tuple<Tensor> operator()(const Tensor& image, const Tensor& target) const {
    nn::ModuleScope inside = enter();
    Tensor y = image;
    Tensor x = conv1(image);
    x = bn1(x);
    x = relu1(x);
    x = x + y;
    x = flatten(x);
    x = fc1(x);
    return loss_fn(x, target);
  }
};

// One line a node: number, operator, module.
std::string table_of(const graph::Graph& graph) {
  std::string table = "number|operator|module\n";
  for (const graph::Node& node : graph.nodes)
    table += fmt::format("{}|{}|{}\n", node.sequence, node.op->brief_name(), node.module);
  return table;
}

// The joint graph of the model: forward, with modules, then backward from its end.
constexpr const char* kTable = R"(number|operator|module
0|convolution|conv1
1|add|bn1
2|_native_batch_norm_legit|bn1
3|var|bn1
4|mul|bn1
5|mul|bn1
6|add|bn1
7|empty_strided|bn1
7|copy|bn1
8|mul|bn1
9|mul|bn1
10|add|bn1
11|empty_strided|bn1
11|copy|bn1
12|relu|relu1
12|detach|relu1
13|add|self
14|view|self
15|permute|fc1
16|unsqueeze|fc1
17|mm|fc1
18|squeeze|fc1
19|add|fc1
20|sub|loss_fn
21|abs|loss_fn
22|sum|loss_fn
23|div|loss_fn
23|div|
22|view|
22|expand|
21|sign|
21|mul|
18|view|
17|permute|
17|mm|
17|permute|
17|mm|
16|view|
15|permute|
14|view|
12|threshold_backward|
2|sum|
2|div|
2|sub|
2|mul|
2|sum|
2|div|
2|add|
2|rsqrt|
2|view|
2|mul|
2|mul|
2|mul|
2|sum|
2|div|
2|mul|
2|sum|
2|div|
2|sub|
2|sub|
2|mul|
2|sum|
2|div|
2|sub|
2|mul|
2|sum|
2|div|
2|add|
2|rsqrt|
2|mul|
2|mul|
2|sum|
2|sum|
0|_convolution_input_gradient|
0|_convolution_weight_gradient|
0|sum|
0|add|
)";

TEST(AotAutogradFallbackTests, aot_sequence_nr) {
  Model model(16 * 4 * 4);
  Tensor x = rand({1, 16, 4, 4}).set_requires_grad(), target = rand({1});
  auto function = [&](Tensor image, Tensor wanted) { return model(image, wanted); };
  std::string table;
  Backend looking = [&](const graph::Graph& graph) -> GraphFunction {
    aot::Compiled compiled = aot::compile(graph, aot::interpreted);
    const graph::Graph& joint = *compiled.joint;
    table = table_of(joint);
    // Of one operator, forward rows have the module and come first.
    std::set<int64_t> forward;
    for (const graph::Node& node : joint.nodes) {
      EXPECT_GE(node.sequence, 0) << node.op->name();
      if (!node.module.empty())
        forward.insert(node.sequence);
      else
        EXPECT_TRUE(forward.contains(node.sequence)) << node.op->name() << " differentiates nothing";
    }
    return compiled.run;
  };
  compile(function, {.fullgraph = true, .backend = looking})(x, target);
  EXPECT_EQ(table, kTable);
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.fullgraph = true, .backend = backend});
    auto gradients = [&](const auto& which) {
      for (const Tensor& each : model.parameters()) each.set_grad(Tensor());
      x.set_grad(Tensor());
      std::get<0>(which(x, target)).backward();
      std::vector<Tensor> found{x.grad()};
      for (const Tensor& each : model.parameters()) found.push_back(each.grad());
      return found;
    };
    std::vector<Tensor> expected = gradients(function), found = gradients(f);
    for (size_t at = 0; at < expected.size(); ++at)
      EXPECT_LT((found[at] - expected[at]).abs().amax().item<float>(), 1e-6) << at;
  });
}

TEST(AotAutogradFallbackTests, eager_sequence_nr) {
  Model model(1638400);
  Tensor x = rand({100, 16, 32, 32}).set_requires_grad(), target = rand({1});
  Tensor along = tensor(1.0f).set_requires_grad();
  auto slope = [&](Tensor image, Tensor wanted) {
    auto [loss] = model(image, wanted);
    return autograd::grad({loss}, {image}, {along}, false, true)[0];
  };
  // The numbers of the steps of backward, and of the operators; a step has the number of an operator.
  auto numbers_of = [&](Profiler& profiler) {
    std::set<int64_t> operators, steps;
    for (const Profiler::Event& event : profiler.events()) {
      if (event.sequence < 0) continue;
      if (event.kind == Profiler::Event::Kind::Operator) operators.insert(event.sequence);
      if (event.kind == Profiler::Event::Kind::Backward) steps.insert(event.sequence);
    }
    return std::pair(operators, steps);
  };
  Tensor expected;
  {
    Profiler profiler;
    expected = slope(x, target);
    auto [operators, steps] = numbers_of(profiler);
    EXPECT_EQ(steps.size(), 13u);
    for (int64_t step : steps) EXPECT_TRUE(operators.contains(step)) << step;
  }
  on_both_backends([&](const char* backend) {
    auto f = compile(slope, {.backend = backend});
    Profiler profiler;
    Tensor found = f(x, target);
    auto [operators, steps] = numbers_of(profiler);
    EXPECT_FALSE(steps.empty());
    EXPECT_LT(difference(found.detach(), expected.detach()), 1e-4);
  });
}

TEST(AotAutogradFallbackTests, split_with_sizes_aot_autograd_cleans_up_traceback_meta) {
  auto function = [](Tensor result, Tensor sizes) {
    SymInts numbers;
    for (int64_t at = 0; at < 3; ++at) numbers.push_back(sizes[at].item<SymInt>());
    return split_with_sizes(result, numbers);
  };
  struct Named : nn::Module {
    Tensor operator()(const std::vector<Tensor>& pieces) const {
      nn::ModuleScope inside = enter();
      return pieces[0].sum() + pieces[1].sum() + pieces[2].sum();
    }
  };
  // What a graph that is made next says of its own operators: numbers from 0 on, and no module.
  auto expect_clean = [] {
    graph::Graph next = trace([](Tensor a) { return a.sin().cos(); }, Tracing::Fake, ones({2}));
    EXPECT_EQ(table_of(next), "number|operator|module\n0|sin|\n1|cos|\n");
  };
  Tensor sizes = tensor({7, 16, 9});
  auto total = [&](Tensor result) { return Named()(function(result, sizes)); };
  Tensor x = randn({32}).set_requires_grad();
  total(x).backward();
  EXPECT_TRUE(testing::same_bits(x.grad(), ones({32})));
  expect_clean();
  on_both_backends([&](const char* backend) {
    auto f = compile(total, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      Tensor y = randn({32}).set_requires_grad();
      f(y).backward();
      EXPECT_TRUE(testing::same_bits(y.grad(), ones({32})));
      expect_clean();
    }
    // Also where backward fails in the middle.
    Tensor y = randn({32}).set_requires_grad();
    autograd::register_hook(y, [](const Tensor&) -> Tensor { fail("[hook] enough"); });
    EXPECT_EQ(testing::error_of([&] { f(y).backward(); }), "[hook] enough");
    expect_clean();
  });
}

}  // namespace
}  // namespace tenon
