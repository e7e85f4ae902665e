// The autograd suite: gradients of edges, of inputs that are no leaves, of batches; what is asked of a walk.
#include "autograd.h"

#include <tenon/autograd/grad.h>
#include <tenon/autograd/set.h>
#include <tenon/support/warnings.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using autograd::GradientEdge;
using autograd::GradInput;

struct Boom : Function<Boom> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors) { throw std::runtime_error("Boom!"); }
};

TEST_P(TestAutograd, copy_slices_graph_task_updates) {
  auto changed = [](const Tensor& x, const Tensor& y, bool used_before) {
    Tensor out = x.clone().view(-1), before = used_before ? out * 2 : Tensor();
    out.add_(y);
    return used_before ? out + before : out;
  };
  Tensor x = rand({2}).set_requires_grad(), y = rand({2}).set_requires_grad(), safe = Boom::apply(y);
  for (bool used_before : {false, true}) {
    auto sum = [&] { return changed(x, safe, used_before).sum(); };
    EXPECT_THAT(thrown_by([&] { sum().backward(); }), HasSubstr("Boom!"));
    EXPECT_THAT(thrown_by([&] { autograd::grad({sum()}, {y}); }), HasSubstr("Boom!"));
    expect_filled(autograd::grad({sum()}, {x})[0], used_before ? 3 : 1);
    expect_filled(autograd::grad({sum()}, {safe})[0], 1);
    Tensors both = autograd::grad({sum()}, {x, safe});
    expect_filled(both[0], used_before ? 3 : 1);
    expect_filled(both[1], 1);
  }
  // The view as it was before the change is no part of what is asked for.
  Tensor out = x.clone().view(-1);
  int calls = 0;
  autograd::register_hook(out, [&](const Tensor&) { ++calls; });
  Tensor b = out * 2;
  out.add_(safe);
  Tensors found = autograd::grad({(out + b).sum()}, {b, safe});
  expect_filled(found[0], 1);
  expect_filled(found[1], 1);
  EXPECT_EQ(calls, 0);
}

struct Resize : Function<Resize> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const SymInts& sizes) {
    ctx->save_for_backward({x});
    return x.reshape(sizes).clone();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return {gradients[0].reshape(ctx->saved_tensors()[0].sym_sizes()), Tensor()};
  }
};

TEST_P(TestAutograd, grad_to_node) {
  auto check = [](const Tensor& x) {
    Tensor out = x.clone();
    Tensor by_edge = autograd::grad_with({out.sum()}, {GradientEdge(x)})[0];
    Tensor by_tensor = autograd::grad({x.clone().sum()}, {x})[0];
    expect_near(by_edge, by_tensor);
  };
  Tensor x = rand({2}).set_requires_grad();
  check(x);
  check(x.clone());
  check(Resize::apply(x, SymInts{2}));
  check(std::get<1>(var_mean(x)));
}

TEST_P(TestAutograd, grad_to_node_set) {
  Tensor x = rand({2}).set_requires_grad();
  GradientEdge edge(x);
  Tensor out = x.clone();
  // A leaf of its own from here on: what was recorded belongs to the one that it was.
  {
    NoGrad off;
    set_(x, rand({2}));
  }
  EXPECT_THAT(error_of([&] { autograd::grad({out.sum()}, {x}, {}, true); }),
              HasSubstr("to not have been used in the graph"));
  expect_filled(autograd::grad_with({out.sum()}, {edge})[0], 1);
}

TEST_P(TestAutograd, grad_to_node_inplace) {
  Tensor x = rand({2}).set_requires_grad().clone();
  GradientEdge edge(x);
  x.mul_(2);
  Tensors found = autograd::grad_with({x.sum()}, {edge, x});
  expect_filled(found[0], 2);
  expect_filled(found[1], 1);
}

TEST_P(TestAutograd, grad_to_node_multi) {
  Tensor x = rand({2}).set_requires_grad().clone(), y = rand({2}).set_requires_grad().clone(), out = x + y;
  Tensors expected = autograd::grad({out.sum()}, {x, y});
  Tensors found =
      autograd::grad_with({(x + y).sum()}, {GradientEdge(grad_fn(x), static_cast<uint32_t>(x.output_nr())),
                                            GradientEdge(grad_fn(y), static_cast<uint32_t>(y.output_nr()))});
  expect_near(found[0], expected[0]);
  expect_near(found[1], expected[1]);
}

TEST_P(TestAutograd, grad_to_node_materialize) {
  Tensor x = rand({2}).set_requires_grad().clone(), y = rand({2}).set_requires_grad().clone();
  GradientEdge edge_x(x), edge_y(y);
  auto sum = [&] { return x.clone().sum(); };
  Tensors found = autograd::grad_with({sum()}, {edge_x, y}, {.materialize_grads = true});
  expect_filled(found[0], 1);
  EXPECT_TRUE(same_bits(found[1], zeros({2})));
  found = autograd::grad_with({sum()}, {x, y}, {.materialize_grads = true});
  EXPECT_TRUE(same_bits(found[1], zeros({2})));
  found = autograd::grad_with({sum()}, {x, edge_y}, {.allow_unused = true});
  expect_filled(found[0], 1);
  EXPECT_FALSE(found[1].defined());
  EXPECT_THAT(error_of([&] { autograd::grad_with({sum()}, {x, edge_y}, {.materialize_grads = true}); }),
              HasSubstr("materialize_grads cannot be used when the given input is a GradientEdge"));
}

TEST_P(TestAutograd, backward_to_node) {
  for (auto [x_by_edge, y_by_edge] : {std::pair{true, false}, {false, false}, {false, true}, {true, true}}) {
    Tensor x = rand({2}).set_requires_grad().clone(), y = rand({2}).set_requires_grad().clone();
    GradInput of_x = x_by_edge ? GradInput(GradientEdge(x)) : GradInput(x);
    GradInput of_y = y_by_edge ? GradInput(GradientEdge(y)) : GradInput(y);
    autograd::backward_with({x.clone().sum()}, {.inputs = {{of_x, of_y}}});
    EXPECT_EQ(x.grad().defined(), !x_by_edge);
    EXPECT_FALSE(y.grad().defined());
  }
}

TEST_P(TestAutograd, grad_nonleaf_many_outputs) {
  Tensor x = randn({4, 2}).set_requires_grad();
  Tensors parts = x.chunk(2);
  int calls = 0;
  autograd::register_hook(x, [&](const Tensor&) { ++calls; });
  Tensor go = randn({2, 2});
  Tensors found = autograd::grad({parts[0] + 2 * parts[1]}, {parts[0], parts[1]}, {go}, false, true);
  expect_near(found[0], go);
  expect_near(found[1], 2 * go);
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(x.grad().defined());
}

TEST_P(TestAutograd, grad_materialize_grads) {
  Tensor x = tensor(0.5).set_requires_grad(), a = tensor(1.0).set_requires_grad(), y = x * a;
  Tensor dydx = autograd::grad({y}, {x}, {}, false, true)[0];
  EXPECT_FALSE(autograd::grad({dydx}, {x}, {}, true, false, true)[0].defined());
  Tensor second = autograd::grad_with({dydx}, {x}, {.create_graph = true, .materialize_grads = true})[0];
  EXPECT_EQ(second.item<double>(), 0);
  Tensor third = autograd::grad_with({second}, {x}, {.materialize_grads = true})[0];
  EXPECT_EQ(third.item<double>(), 0);
  EXPECT_THAT(error_of([&] { autograd::grad_with({x * a}, {x}, {.allow_unused = false, .materialize_grads = true}); }),
              HasSubstr("Expected allow_unused to be True or not passed when"));
}

TEST_P(TestAutograd, backward_with_inputs) {
  Tensor x = doubles({2, 2}), y = doubles({2, 2});
  auto f = [&] { return x.pow(2) + y * x + y.pow(2); };
  Tensor go = ones({2, 2}, kFloat64), of_x = (2 * x + y).detach(), of_y = (x + 2 * y).detach();
  auto reset = [&] {
    x.set_grad(zeros({2, 2}, kFloat64));
    y.set_grad(zeros({2, 2}, kFloat64));
  };
  reset();
  autograd::backward_with({f()}, {.gradients = {go}, .inputs = {{x, y}}});
  expect_near(x.grad(), of_x);
  expect_near(y.grad(), of_y);
  reset();
  autograd::backward_with({f()}, {.gradients = {go}, .inputs = {{x}}});
  expect_near(x.grad(), of_x);
  EXPECT_TRUE(same_bits(y.grad(), zeros({2, 2}, kFloat64)));
  for (bool plain : {false, true}) {
    reset();
    if (plain)
      autograd::backward({f()}, {go}, false, false, {y});
    else
      autograd::backward_with({f()}, {.gradients = {go}, .inputs = {{y}}});
    expect_near(y.grad(), of_y);
    EXPECT_TRUE(same_bits(x.grad(), zeros({2, 2}, kFloat64)));
  }
  EXPECT_THAT(
      error_of([&] { autograd::backward_with({f()}, {.gradients = {go}, .inputs = std::vector<GradInput>{}}); }),
      HasSubstr("cannot be empty"));
}

TEST_P(TestAutograd, backward_with_nonleaf_inputs) {
  Tensor x = doubles({2, 2}), inner = x * 1, y = doubles({2, 2}), z = doubles({2, 2});
  ForgetsGradients in_the_end({x, inner, y});
  Tensor out = inner.pow(2) + y * inner + y.pow(2);
  CatchWarnings caught;
  autograd::backward_with({out},
                          {.gradients = {ones({2, 2}, kFloat64)}, .create_graph = true, .inputs = {{x, y, inner}}});
  expect_near(x.grad(), 2 * x + y);
  expect_near(y.grad(), x + 2 * y);
  expect_near(inner.grad(), 2 * inner + y);
  autograd::backward_with({inner.pow(2) + y},
                          {.gradients = {ones({2, 2}, kFloat64)}, .create_graph = true, .inputs = {{x, y, z}}});
  EXPECT_FALSE(z.grad().defined());
}

TEST_P(TestAutograd, grad_fn_badcalls) {
  Tensor x = rand({3}).set_requires_grad(), y = x.pow(2), g = ones({3});
  auto says = AllOf(HasSubstr("expected 1 arguments"), HasSubstr("instead"));
  EXPECT_THAT(error_of([&] { autograd::call_node(grad_fn(y), {g, g}); }), says);
  EXPECT_THAT(error_of([&] { autograd::call_node(grad_fn(y), {}); }), says);
  expect_near(autograd::call_node(grad_fn(y), {g})[0], 2 * x);
}

TEST_P(TestAutograd, grad_batched_grad) {
  Tensor x = randn({2, 2}).set_requires_grad(), out = x.clone();
  Tensor batch = stack({zeros({2, 2}), ones({2, 2}), full({2, 2}, 2.0f)});
  Tensor found = autograd::grad_with({out}, {x}, {.grad_outputs = {batch}, .is_grads_batched = true})[0];
  expect_near(found, batch);
  Tensor sum = x.sum();
  found = autograd::grad_with({sum}, {x}, {.grad_outputs = {arange(3, kFloat32)}, .is_grads_batched = true})[0];
  expect_near(found, batch);
  auto says = HasSubstr("If `is_grads_batched=True`, we interpret the first");
  EXPECT_THAT(error_of([&] {
                autograd::grad_with({x.clone()}, {x}, {.grad_outputs = {ones({2, 2})}, .is_grads_batched = true});
              }),
              says);
  EXPECT_THAT(error_of([&] {
                autograd::grad_with({x.sum()}, {x}, {.grad_outputs = {ones({2, 1})}, .is_grads_batched = true});
              }),
              says);
}

TEST_P(TestAutograd, backward_create_graph_warns) {
  auto warns = [](const CatchWarnings& caught) {
    return caught.texts().size() == 1 &&
           caught.texts()[0].find("Using backward() with create_graph=True") != std::string::npos;
  };
  Tensor b = randn({3}).set_requires_grad();
  {
    CatchWarnings caught;
    (b * b).sum().backward({}, false, true);
    EXPECT_TRUE(warns(caught));
    b.set_grad(Tensor());
  }
  CatchWarnings caught;
  autograd::grad({(b * b).sum()}, {b}, {}, false, true);
  EXPECT_TRUE(caught.texts().empty());
}

TEST_P(TestAutograd, next_functions) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}).set_requires_grad(), a = x + y;
  const autograd::Edges& of_a = grad_fn(a)->next_edges();
  ASSERT_EQ(of_a.size(), 2u);
  for (const autograd::Edge& edge : of_a) {
    EXPECT_EQ(edge.node->name(), "torch::autograd::AccumulateGrad");
    EXPECT_EQ(edge.input_nr, 0u);
  }
  EXPECT_EQ(of_a[0].node.get(), autograd::gradient_edge(x).node.get());
  // A number of an operator is no tensor here, and has no edge; a tensor that does not require grad has an empty one.
  Tensor b = a + tensor(5.0f);
  const autograd::Edges& of_b = grad_fn(b)->next_edges();
  ASSERT_EQ(of_b.size(), 2u);
  EXPECT_EQ(of_b[0].node.get(), grad_fn(a).get());
  EXPECT_FALSE(of_b[1].valid());
  Tensor c = a + 5;
  const autograd::Edges& of_number = grad_fn(c)->next_edges();
  ASSERT_EQ(of_number.size(), 1u);
  EXPECT_EQ(of_number[0].node.get(), grad_fn(a).get());
}

TEST_P(TestAutograd, current_graph_task_id) {
  std::vector<int64_t> seen;
  Tensor t = tensor(1.0).set_requires_grad().clone();
  autograd::register_hook(t, [&](const Tensor&) { seen.push_back(autograd::current_walk_id()); });
  for (int round = 0; round < 3; ++round) t.backward({}, true);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_GE(seen[0], 0);
  EXPECT_EQ(seen[1], seen[0] + 1);
  EXPECT_EQ(seen[2], seen[1] + 1);
  EXPECT_EQ(autograd::current_walk_id(), -1);
}

// A walk runs on the thread that starts it: there is no multithreading to turn off.
TEST_P(TestAutograd, current_graph_task_execution_order) {
  std::vector<std::string> predicted;
  auto predict = [&](const Tensor&) {
    predicted.clear();
    for (const Ref<autograd::Node>& node : autograd::execution_order()) predicted.push_back(node->name());
  };
  std::vector<std::string> actual;
  auto note = [&](const Tensor& tensor, const std::string& name) {
    autograd::register_hook(tensor, [&actual, name](const Tensor&) { actual.push_back(name); });
  };
  const std::string end = "torch::autograd::AccumulateGrad";
  Tensor t = tensor(1.0).set_requires_grad();
  Tensor copy = t.clone(), sine = copy.sin(), out = sine.exp();
  note(t, end);
  note(copy, "CloneBackward0");
  note(sine, "SinBackward0");
  note(out, "ExpBackward0");
  autograd::register_hook(out, predict);
  out.backward();
  EXPECT_EQ(predicted, (std::vector<std::string>{"ExpBackward0", "SinBackward0", "CloneBackward0", end}));
  EXPECT_EQ(predicted, actual);

  actual.clear();
  Tensor leaf = tensor(1.0).set_requires_grad();
  Tensor product = leaf * leaf, s = product.sin(), c = product.cos(), second = s.cos();
  note(leaf, end);
  note(product, "MulBackward0");
  note(s, "SinBackward0");
  note(c, "CosBackward0");
  note(second, "CosBackward0");
  autograd::register_hook(second, predict);
  autograd::grad({s, c, second}, {leaf}, {ones({}, kFloat32), ones({}, kFloat32), ones({}, kFloat32)});
  EXPECT_EQ(predicted, (std::vector<std::string>{"CosBackward0", "CosBackward0", "SinBackward0", "MulBackward0", end}));
  EXPECT_EQ(predicted, actual);
  EXPECT_THAT(error_of([] { autograd::execution_order(); }),
              HasSubstr("should only be called during the backward pass"));
}

}  // namespace
}  // namespace tenon
