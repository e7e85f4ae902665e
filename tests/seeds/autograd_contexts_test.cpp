// The autograd suite: functions whose context is set up apart, that change arguments in place or return views; hooks of
// several tensors, and of nodes; walks inside walks.
#include "autograd.h"

#include <tenon/autograd/grad.h>
#include <tenon/autograd/multi_grad_hook.h>
#include <tenon/nn/modules.h>
#include <tenon/optim/adam.h>
#include <tenon/support/warnings.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using autograd::register_posthook;
using autograd::register_prehook;

struct SecondMarked : Function<SecondMarked> {
  static inline int seen = 0;
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    Tensor first = x.clone(), second = x.clone();
    ctx->mark_non_differentiable({second});
    ctx->set_materialize_non_diff_grads(false);
    return {first, second};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    ++seen;
    EXPECT_TRUE(gradients[0].defined());
    EXPECT_FALSE(gradients[1].defined());
    return {gradients[0]};
  }
};

TEST_P(TestAutograd, set_materialize_non_diff_grads) {
  SecondMarked::seen = 0;
  Tensor a = tensor(1.0).set_requires_grad();
  SecondMarked::apply(a)[0].backward();
  EXPECT_EQ(SecondMarked::seen, 1);
  expect_filled(a.grad(), 1);
}

struct WrongSize : Function<WrongSize> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors) { return {randn({10})}; }
};

TEST_P(TestAutograd, invalid_gradients) {
  Tensor x = randn({5, 5}).set_requires_grad();
  EXPECT_THAT(error_of([&] { WrongSize::apply(x).sum().backward(); }), HasSubstr("expected shape"));
}

struct Square : Function<Square> {
  static Tensor forward(const Tensor& x) { return x * x; }
  static void setup_context(AutogradContext* ctx, const Tensor&, const Tensor& x) { ctx->save_for_backward({x}); }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return {gradients[0] * 2 * ctx->saved_tensors()[0]};
  }
};

TEST_P(TestAutograd, custom_function_setup_context_simple) {
  Tensor x = randn({}).set_requires_grad();
  expect_near(autograd::grad({Square::apply(x)}, {x})[0], 2 * x);
}

struct SquareAndNumber : Function<SquareAndNumber> {
  static std::tuple<Tensor, double> forward(const Tensor& x) { return {x * x, 2 * x.item<double>()}; }
  static void setup_context(AutogradContext* ctx, const std::tuple<Tensor, double>& output, const Tensor&) {
    ctx->saved_data["slope"] = std::get<1>(output);
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    EXPECT_FALSE(gradients[1].defined());
    return {gradients[0] * ctx->saved_data["slope"].real()};
  }
};

TEST_P(TestAutograd, custom_function_setup_context_multi_output) {
  Tensor x = randn({}).set_requires_grad();
  auto [y, slope] = SquareAndNumber::apply(x);
  EXPECT_FLOAT_EQ(static_cast<float>(slope), 2 * x.item<float>());
  expect_near(autograd::grad({y}, {x})[0], 2 * x);
}

struct MyReshape : Function<MyReshape> {
  static Tensor forward(const Tensor& x, const SymInts& sizes, double forward_scale, double) {
    return x.reshape(sizes) * forward_scale;
  }
  static void setup_context(AutogradContext* ctx, const Tensor&, const Tensor& x, const SymInts&, double,
                            double backward_scale) {
    ctx->saved_data["scale"] = backward_scale;
    ctx->save_for_backward({x});
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return {gradients[0].reshape(ctx->saved_tensors()[0].sym_sizes()) * ctx->saved_data["scale"].real(), Tensor(),
            Tensor(), Tensor()};
  }
};
struct ReshapeInOne : Function<ReshapeInOne> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const SymInts& sizes, double forward_scale,
                        double backward_scale) {
    ctx->saved_data["scale"] = backward_scale;
    ctx->save_for_backward({x});
    return x.reshape(sizes) * forward_scale;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return MyReshape::backward(ctx, std::move(gradients));
  }
};

TEST_P(TestAutograd, custom_function_setup_context_multi_input) {
  auto check = [](const Ints& from, const SymInts& to, double scale, double back) {
    Tensor x = randn(SymInts(from.span())).set_requires_grad();
    Tensor y = MyReshape::apply(x, to, scale, back), expected = ReshapeInOne::apply(x, to, scale, back);
    expect_near(y, expected);
    Tensor g = randn(to);
    expect_near(autograd::grad({y}, {x}, {g})[0], autograd::grad({expected}, {x}, {g})[0]);
  };
  check({24}, {3, 8}, 7, 11);
  check({2, 3, 4}, {6, 4}, -1, 2);
}

// A default stands in both signatures: what the caller leaves out is not handed on.
struct Power : Function<Power> {
  static Tensor forward(const Tensor& x, int exponent = 3) { return x.pow(exponent); }
  static void setup_context(AutogradContext* ctx, const Tensor&, const Tensor& x, int exponent = 3) {
    ctx->save_for_backward({x});
    ctx->saved_data["exponent"] = exponent;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    auto exponent = static_cast<double>(ctx->saved_data["exponent"].integer());
    return {gradients[0] * exponent * ctx->saved_tensors()[0].pow(exponent - 1), Tensor()};
  }
};

TEST_P(TestAutograd, setup_context_when_forward_has_default_args) {
  Tensor x = tensor(2.0).set_requires_grad(), y = Power::apply(x);
  EXPECT_EQ(y.item<double>(), 8);
  EXPECT_EQ(autograd::grad({y}, {x})[0].item<double>(), 12);
  EXPECT_EQ(autograd::grad({Power::apply(x, 2)}, {x})[0].item<double>(), 4);
}

struct Multiplies : Function<Multiplies> {
  static Tensor forward(AutogradContext* ctx, const Tensor& t1, const Tensor& t2, double scale) {
    ctx->save_for_backward({t1, t2});
    ctx->saved_data["scale"] = scale;
    return t1 + scale * t2 + t1 * t2;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensors kept = ctx->saved_tensors();
    double scale = ctx->saved_data["scale"].real();
    return {gradients[0] + gradients[0] * kept[1], gradients[0] * scale + gradients[0] * kept[0], Tensor()};
  }
};

// "MulBackward0(AccumulateGrad(), None)": a node and what it leads to.
std::string graph_of(const Ref<autograd::Node>& node) {
  if (!node) return "None";
  std::string name = node->name().substr(node->name().rfind(':') + 1), parts;
  for (const autograd::Edge& edge : node->next_edges()) parts += (parts.empty() ? "" : ", ") + graph_of(edge.node);
  return name + "(" + parts + ")";
}

TEST_P(TestAutograd, function) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}).set_requires_grad(),
         go = ones({5, 5}).set_requires_grad();
  ForgetsGradients in_the_end({x, y});
  CatchWarnings caught;
  Multiplies::apply(x, y, 2.0).backward(go, false, true);
  expect_near(x.grad(), y + 1);
  expect_near(y.grad(), x + 2);
  ASSERT_TRUE(grad_fn(x.grad()) && grad_fn(y.grad()));
  // A captured walk is differentiated as one program.
  if (GetParam()) return;
  EXPECT_EQ(graph_of(grad_fn(x.grad())),
            "CloneBackward0(AddBackward0(AccumulateGrad(), MulBackward0(AccumulateGrad(), AccumulateGrad())))");
  EXPECT_EQ(graph_of(grad_fn(y.grad())),
            "CloneBackward0(AddBackward0(MulBackward1(AccumulateGrad()), MulBackward0(AccumulateGrad(), "
            "AccumulateGrad())))");
}

struct MultipliesOnce : Function<MultipliesOnce> {
  static constexpr bool once_differentiable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& t1, const Tensor& t2, double scale) {
    return Multiplies::forward(ctx, t1, t2, scale);
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    EXPECT_FALSE(autograd::grad_enabled());
    return Multiplies::backward(ctx, std::move(gradients));
  }
};

TEST_P(TestAutograd, once_differentiable) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}).set_requires_grad();
  Tensor go = ones({5, 5}).set_requires_grad();
  ForgetsGradients in_the_end({x, y});
  CatchWarnings caught;
  MultipliesOnce::apply(x, y, 2.0).backward(go, false, true);
  expect_near(x.grad(), y + 1);
  expect_near(y.grad(), x + 2);
  // Of one gradient that arrives there is one edge; the accumulator's copy stands before it.
  for (const Tensor& leaf : {x, y}) {
    if (!GetParam()) {
      EXPECT_EQ(graph_of(grad_fn(leaf.grad())), "CloneBackward0(Error(AccumulateGrad()))");
    }
    EXPECT_THAT(error_of([&] { leaf.grad().sum().backward(); }),
                HasSubstr("trying to differentiate twice a function that was marked once_differentiable"));
  }
}

struct Product : Function<Product> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x.prod(-1).prod(-1);
    ctx->save_for_backward({x, y});
    return y;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensors kept = ctx->saved_tensors();
    return {(gradients[0] * kept[1]).unsqueeze(-1).unsqueeze(-1) / kept[0]};
  }
};

TEST_P(TestAutograd, custom_autograd_repeated_grad_grad) {
  auto second = [](const Tensor& x, bool custom) {
    auto entry = [&] {
      Tensor y = custom ? Product::apply(x) : x.prod(-1).prod(-1);
      Tensor first = autograd::grad({y.sum()}, {x}, {}, false, true)[0];
      return autograd::grad({first[0][0][0]}, {x}, {}, false, true)[0][0][0][1].item<double>();
    };
    double once = entry();
    EXPECT_EQ(entry(), once);
    return once;
  };
  Tensor x = ones({2, 4, 4}).set_requires_grad();
  EXPECT_EQ(second(x, false), 1);
  EXPECT_EQ(second(x, true), 1);
}

struct ComplexView : Function<ComplexView> {
  static inline int calls = 0;
  static Tensor forward(AutogradContext* ctx, const Tensor& a, int64_t index) {
    ctx->save_for_backward({a});
    ctx->saved_data["index"] = index;
    return a.select(0, index);
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    ++calls;
    Tensor whole = zeros_like(ctx->saved_tensors()[0]);
    whole.select(0, ctx->saved_data["index"].integer()).copy_(gradients[0]);
    return {whole, Tensor()};
  }
};

TEST_P(TestAutograd, autograd_multiple_views_python) {
  ComplexView::calls = 0;
  Tensor a = ones({2}).set_requires_grad();
  ComplexView::apply(a.clone(), 1).sum().backward();
  EXPECT_EQ(ComplexView::calls, 1);
  Tensor out = ComplexView::apply(a.clone(), 1);
  EXPECT_THAT(error_of([&] { out.add_(1); }),
              HasSubstr("Output 0 of ComplexViewBackward is a view and is being modified inplace"));
}

struct Alias : Function<Alias> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.slice(0); }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};

TEST_P(TestAutograd, custom_function_return_view_in_nograd) {
  Tensor x = rand({2}).set_requires_grad(), found, expected;
  {
    NoGrad off;
    found = Alias::apply(x);
    expected = x.slice(0);
  }
  EXPECT_EQ(found.requires_grad(), expected.requires_grad());
  EXPECT_THAT(error_of([&] { found.zero_(); }),
              HasSubstr("A view was created in no_grad mode and is being modified inplace"));
}

struct MyAdder : Function<MyAdder> {
  static inline int calls = 0;
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    a.add_(b);
    ctx->mark_dirty({a});
    return a;
  }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    ++calls;
    return {gradients[0], gradients[0]};
  }
};
struct MarksAnother : Function<MarksAnother> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    Tensor c = 3 * a;
    c.add_(b);
    ctx->mark_dirty({c});
    return c;
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {3 * gradients[0], gradients[0]}; }
};
struct TwoResults : Function<TwoResults> {
  static inline int calls = 0;
  static Tensors forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    a.add_(b);
    ctx->mark_dirty({a});
    return {a, a + b};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    ++calls;
    return {gradients[0] + gradients[1], gradients[0] + 2 * gradients[1]};
  }
};
struct NotReturned : Function<NotReturned> {
  static Tensors forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    a.add_(b);
    ctx->mark_dirty({a});
    return {a.clone(), a + b};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};

TEST_P(TestAutograd, autograd_python_custom_function_inplace) {
  Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
  MyAdder::calls = TwoResults::calls = 0;
  MyAdder::apply(a.clone(), b).sum().backward();
  EXPECT_EQ(MyAdder::calls, 1);
  Tensor c = MyAdder::apply(a.clone(), b);
  c.add_(2);
  c.sum().backward();
  EXPECT_EQ(MyAdder::calls, 2);
  MyAdder::apply(a.clone().view_as(a), b).sum().backward();
  EXPECT_EQ(MyAdder::calls, 3);
  expect_filled(a.grad(), 3);
  {
    CatchWarnings caught;
    MarksAnother::apply(a.clone(), b);
    EXPECT_EQ(caught.texts().size(), 1u);
  }
  Tensors both = TwoResults::apply(a.clone(), b);
  (both[0] * both[1]).sum().backward();
  EXPECT_EQ(TwoResults::calls, 1);
  EXPECT_THAT(error_of([&] { TwoResults::apply(a.clone().view_as(a), b); }),
              HasSubstr("your Function modifies inplace an input that is a view of another Tensor"));
  EXPECT_THAT(error_of([&] { NotReturned::apply(a.clone(), b); }),
              HasSubstr("Some elements marked as dirty during the forward method were not returned as output."));
}

TEST_P(TestAutograd, prehook_ordering) {
  std::vector<int> log;
  auto of_tensor = [&](const Tensor& gradient) {
    log.push_back(1);
    return gradient * 3;
  };
  auto of_node = [&](Tensors& gradients) {
    log.push_back(2);
    for (Tensor& each : gradients) each = each * 2;
  };
  Tensor a = tensor(1.0).set_requires_grad(), b = a.clone();
  register_prehook(grad_fn(b), of_node);
  autograd::register_hook(b, of_tensor);
  register_prehook(grad_fn(b), of_node);
  Ref<autograd::Node> end = grad_fn(b)->next_edges()[0].node;
  autograd::register_hook(a, of_tensor);
  register_prehook(end, of_node);
  autograd::register_hook(a, of_tensor);
  b.sum().backward({}, true);
  EXPECT_EQ(log, (std::vector<int>{1, 2, 2, 1, 1, 2}));
  log.clear();
  autograd::grad({b.sum()}, {a}, {}, true);
  EXPECT_EQ(log, (std::vector<int>{1, 2, 2, 1, 1}));
  log.clear();
  autograd::backward_with({b.sum()}, {.inputs = {{b}}});
  EXPECT_EQ(log, (std::vector<int>{1, 2, 2}));
  EXPECT_EQ(b.grad().item<double>(), 3);
}

TEST_P(TestAutograd, hook_edge_case_when_called_with_grad) {
  Tensor a = tensor(1.0).set_requires_grad(), b = a * 2, c = b * 2;
  int tensors = 0, pres = 0, posts = 0;
  auto of_tensor = [&](const Tensor&) { ++tensors; };
  auto pre = [&](Tensors&) { ++pres; };
  auto post = [&](Tensors&, const Tensors&) { ++posts; };
  autograd::register_hook(a, of_tensor);
  autograd::register_hook(b, of_tensor);
  Ref<autograd::Node> end = grad_fn(b)->next_edges()[0].node;
  for (const Ref<autograd::Node>& node : {end, grad_fn(b)}) {
    register_posthook(node, post);
    register_prehook(node, pre);
  }
  auto expect_counts = [&](int of_tensors, int of_posts, int of_pres) {
    EXPECT_EQ(tensors, of_tensors);
    EXPECT_EQ(posts, of_posts);
    EXPECT_EQ(pres, of_pres);
    tensors = posts = pres = 0;
  };
  autograd::grad({c}, {b}, {}, true);
  expect_counts(1, 0, 0);
  autograd::grad({c}, {a, b}, {}, true);
  expect_counts(2, 1, 1);
  c.backward({}, true);
  expect_counts(2, 2, 2);
  autograd::backward_with({c}, {.retain_graph = true, .inputs = {{a, b}}});
  expect_counts(2, 2, 2);
}

TEST_P(TestAutograd, hooks_cpp) {
  nn::BatchNorm1d norm(5, {.affine = false});
  norm.to(kFloat64);
  norm.eval();
  int calls = 0;
  Tensor x = ones({5, 5}, kFloat64).set_requires_grad(), z = norm(x);
  autograd::register_hook(z, [&](const Tensor& gradient) {
    ++calls;
    return gradient * 2;
  });
  z.sum().backward();
  EXPECT_EQ(calls, 1);
  expect_near(x.grad(), full({5, 5}, 2.0, kFloat64), 1e-5);
}

TEST_P(TestAutograd, post_accumulate_grad_hook_e2e) {
  nn::Linear model(3, 2), reference = nn::clone(model);
  std::vector<std::unique_ptr<optim::Adam>> each;
  std::vector<autograd::HookHandle> handles;
  for (const Tensor& parameter : model.parameters()) {
    each.push_back(std::make_unique<optim::Adam>(Tensors{parameter}, optim::AdamOptions{.lr = 0.1}));
    handles.push_back(
        autograd::register_post_accumulate_grad_hook(parameter, [adam = each.back().get()](const Tensor&) {
          adam->step();
          adam->zero_grad();
        }));
  }
  optim::Adam whole(reference.parameters(), {.lr = 0.1});
  auto train = [&] {
    for (int round = 0; round < 5; ++round) {
      Tensor input = rand({4, 3});
      model(input).sum().backward();
      reference(input).sum().backward();
      whole.step();
      whole.zero_grad();
    }
  };
  auto compare = [&] {
    Tensors one = model.parameters(), two = reference.parameters();
    double apart = 0;
    for (size_t at = 0; at < one.size(); ++at) apart = std::max(apart, difference(one[at].detach(), two[at].detach()));
    return apart;
  };
  train();
  EXPECT_LE(compare(), 1e-6);
  for (const autograd::HookHandle& handle : handles) handle.remove();
  train();
  EXPECT_GT(compare(), 1e-3);
}

struct Identity : Function<Identity> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};
struct FailsInBackward : Function<FailsInBackward> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors) { throw std::runtime_error("error message"); }
};

TEST_P(TestAutograd, multi_grad_all_hooks) {
  Tensor t1 = rand({2}).set_requires_grad(), t2 = Identity::apply(rand({2}).set_requires_grad());
  Tensor t3 = rand({2}).set_requires_grad().mul(2), t4 = rand({2}).set_requires_grad().view(-1);
  int calls = 0;
  std::vector<bool> came;
  autograd::MultiGradHandle handle =
      autograd::register_multi_grad_hook({t1, t2, t3, t4}, [&](const Tensors& gradients) {
        ++calls;
        came.clear();
        for (const Tensor& each : gradients) came.push_back(each.defined());
      });
  Tensor out = t2 * t3;
  auto run = [&](const Tensor& of, const Tensor& one, const Tensor& two) {
    autograd::backward_with({of.sum()}, {.retain_graph = true, .inputs = {{one, two}}});
  };
  run(out, t2, t3);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(came, (std::vector<bool>{false, true, true, false}));
  run(out, t1, t4);
  EXPECT_EQ(calls, 1);
  run(out, t1, t3);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(came, (std::vector<bool>{false, false, true, false}));
  Tensor failing = FailsInBackward::apply(t2) * t3;
  EXPECT_THAT(thrown_by([&] { run(failing, t2, t3); }), HasSubstr("error message"));
  EXPECT_EQ(calls, 2);
  handle.remove();
  run(out, t1, t3);
  EXPECT_EQ(calls, 2);
}

TEST_P(TestAutograd, multi_grad_any_hooks) {
  std::vector<int> order;
  std::vector<autograd::MultiGradHandle> handles;
  nn::Linear one(3, 2), two(2, 2);
  auto run = [&](bool any) {
    order.clear();
    int id = 0;
    auto half = [&](const nn::Linear& layer, const Tensor& x) {
      Tensor z = layer(x);
      Tensors out = {z.sin(), z.cos()};
      autograd::register_hook(z, [&order, mine = id++](const Tensor&) { order.push_back(mine); });
      handles.push_back(
          autograd::register_any_grad_hook(out, [&order, mine = id++](const Tensor&) { order.push_back(mine); }));
      return out;
    };
    Tensors first = half(one, rand({2, 3})), second = half(two, first[0] + first[1]);
    if (!any)
      for (const autograd::MultiGradHandle& handle : handles) handle.remove();
    (second[0] + second[1]).sum().backward();
  };
  run(true);
  EXPECT_EQ(order, (std::vector<int>{3, 2, 1, 0}));
  run(false);
  EXPECT_EQ(order, (std::vector<int>{2, 0}));
}

// Calls itself in a walk of its own, `left` times.
struct DeepReenter : Function<DeepReenter> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    EnableGrad on;
    Tensor inner = x.detach().set_requires_grad();
    ctx->saved_data["x"] = AnyValue(inner - 1);
    return (x - 1).detach();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensor x = ctx->saved_data["x"].tensor();
    if (x.item<double>() < 0) return gradients;
    EnableGrad on;
    DeepReenter::apply(x).sum().backward();
    return gradients;
  }
};

TEST_P(TestAutograd, deep_reentrant) {
#if defined(__SANITIZE_THREAD__)
  // It keeps the whole stack of every allocation, 30 of them for each walk within a walk: 2000 would take over 20 GB.
  constexpr double kDepth = 400;
#else
  constexpr double kDepth = 2000;
#endif
  Tensor v = tensor(kDepth).set_requires_grad();
  DeepReenter::apply(v).sum().backward();
  expect_filled(v.grad(), 1);
  Tensor again = tensor(200.0).set_requires_grad();
  DeepReenter::apply(again).sum().backward();
  expect_filled(again.grad(), 1);
}

struct Priority {
  static inline std::vector<std::string> order;
};
struct LogsItself : Function<LogsItself> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    Priority::order.emplace_back("MyFunction");
    return gradients;
  }
};
struct LogsAndReenters : Function<LogsAndReenters> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    EnableGrad on;
    Tensor inner = x.detach().set_requires_grad() - 1;
    ctx->saved_data["x"] = AnyValue(inner);
    return inner.detach();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Priority::order.emplace_back("Reentrant");
    Tensor x = ctx->saved_data["x"].tensor();
    if (x.item<double>() < 0) return gradients;
    EnableGrad on;
    LogsAndReenters::apply(x).backward();
    return gradients;
  }
};

TEST_P(TestAutograd, reentrant_priority) {
  Priority::order.clear();
  Tensor a = LogsItself::apply(tensor(6.0).set_requires_grad());
  Tensor b = LogsAndReenters::apply(tensor(9.0).set_requires_grad());
  (a * b).backward();
  EXPECT_EQ(Priority::order.size(), 11u);
  EXPECT_EQ(std::count(Priority::order.begin(), Priority::order.end(), "Reentrant"), 10);
  EXPECT_EQ(Priority::order.back(), "MyFunction");
}

TEST_P(TestAutograd, reentrant_with_leaf_variable_hook) {
  Tensor param = rand({10}).set_requires_grad();
  std::optional<autograd::HookHandle> handle;
  int calls = 0;
  handle = autograd::register_hook(param, [&](const Tensor& gradient) {
    ++calls;
    handle->remove();
    param.set_grad(Tensor());
    EnableGrad on;
    Tensor g = gradient.detach().set_requires_grad(), inner = param.detach().set_requires_grad();
    (g * 2 + inner).sum().backward();
    Tensor changed = g.grad() + gradient;
    param.set_grad(gradient);
    return changed;
  });
  (param * param).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(param.grad().defined());
}

}  // namespace
}  // namespace tenon
