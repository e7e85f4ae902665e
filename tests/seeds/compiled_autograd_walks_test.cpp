// Seed 001: walks of ordinary models, hooks, what is asked for, sizes that change.
#include "compiled_autograd.h"

namespace tenon {
namespace {

using namespace testing;

// Linear layers with relu behind each.
struct Mlp : nn::Module {
  std::vector<nn::Linear> layers;
  explicit Mlp(int count) {
    for (int at = 0; at < count; ++at) layers.push_back(submodule(std::to_string(at), nn::Linear(4, 4)));
  }
  Tensor operator()(const Tensor& input) const {
    Tensor x = input;
    for (const nn::Linear& layer : layers) x = layer(x).relu();
    return x;
  }
};

struct SigmoidModel : nn::Module {
  nn::Linear layer = submodule("0", nn::Linear(4, 4));
  Tensor operator()(const Tensor& input) const { return layer(input).sigmoid(); }
};

Tensor hook1(const Tensor& gradient) { return gradient * 2; }
void hook2(Tensors& gradients) { gradients[0] = gradients[0] + 1; }
void hook3(Tensors& leaving, const Tensors& arrived) { leaving[0] = leaving[0].sin() + arrived[0]; }

TEST_F(TestCompiledAutograd, dynamo_flaky_segfault) {
  auto inner = [] {
    Tensor x = randn({1000, 3000}), w = leaf({1000, 3000});
    Tensor loss = linear(x, w).sum();
    {
      compiled_autograd::Enable on({.backend = "eager"});
      loss.backward();
    }
    return w.grad().defined();
  };
  // In a process of its own, which must end by itself.
  for (int round = 0; round < 3; ++round)
    EXPECT_EXIT(
        {
          bool fine = inner();
          compiled_autograd::reset();
          fine = fine && inner();
          std::exit(fine ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST_F(TestCompiledAutograd, basic) {
  check_output_and_recompiles([] {
    Mlp model(2);
    model(randn({2, 4})).sum().backward();
    Tensors found;
    add_gradients(found, model);
    return found;
  });
}

TEST_F(TestCompiledAutograd, cache_hit) {
  check_output_and_recompiles([] {
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Mlp model(2);
      model(randn({2, 4})).sum().backward();
      add_gradients(found, model);
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, tensor_grad_hook1) {
  check_output_and_recompiles([] {
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Mlp model(1);
      Tensor x = randn({2, 4});
      autograd::register_hook(model.parameters()[0], hook1);
      model(x).sum().backward();
      add_gradients(found, model);
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, tensor_grad_hook2) {
  check_output_and_recompiles([] {
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Mlp model(1);
      Tensor result = model(randn({1, 4})).sum();
      autograd::register_prehook(autograd::grad_fn(result), hook2);
      result.backward();
      add_gradients(found, model);
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, tensor_grad_hook3) {
  check_output_and_recompiles([] {
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Mlp model(1);
      Tensor result = model(randn({1, 4})).sum();
      autograd::register_posthook(autograd::grad_fn(result), hook3);
      result.backward();
      add_gradients(found, model);
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, torch_compile) {
  check_output_and_recompiles([] {
    Tensors found;
    SigmoidModel model;
    auto compiled = compile(model, {.fullgraph = true});
    for (int round = 0; round < 3; ++round) {
      compiled(randn({1, 4})).sum().backward();
      add_gradients(found, model);
      model.zero_grad();
    }
    return found;
  });
}

// A function that makes a model, trains it three times and gives its gradients, compiled with its walks.
void check_whole_function(const char* backend) {
  auto fn = [] {
    manual_seed(123);
    SigmoidModel model;
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      model(randn({1, 4})).sum().backward();
      add_gradients(found, model);
      model.zero_grad();
    }
    return found;
  };
  Tensors expected = fn();
  auto compiled = compile(fn, {.backend = backend, .compiled_autograd = true});
  expect_equal(compiled(), expected);
  EXPECT_EQ(captures(), 1);
}

TEST_F(TestCompiledAutograd, torch_compile_api_inductor) { check_whole_function("inductor"); }
TEST_F(TestCompiledAutograd, torch_compile_api_aot_eager) { check_whole_function("aot_eager"); }
TEST_F(TestCompiledAutograd, torch_compile_api_eager) { check_whole_function("eager"); }

TEST_F(TestCompiledAutograd, multiple_torch_compile) {
  SigmoidModel model;
  Tensor x = randn({1, 4});
  auto fn = [&] { model(x).sum().backward(); };
  nn::Linear model2(4, 4);
  Tensor x2 = randn({1, 4});
  auto fn2 = [&] { model2(x2).sum().backward(); };

  compile(fn)();
  EXPECT_EQ(captures(), 0);

  compile(fn2, {.compiled_autograd = true})();
  EXPECT_EQ(captures(), 1);
  reset_walk_counters();

  compile(fn)();
  EXPECT_EQ(captures(), 0);
  EXPECT_TRUE(model.parameters()[0].grad().defined() && model2.parameters()[0].grad().defined());
}

TEST_F(TestCompiledAutograd, torch_compile_graph_break) {
  SigmoidModel model;
  Tensor x = randn({1, 4});
  compile(disable([&] { model(x).sum().backward(); }), {.compiled_autograd = true})();
  EXPECT_EQ(captures(), 1);
  EXPECT_TRUE(model.parameters()[0].grad().defined());
}

TEST_F(TestCompiledAutograd, torch_compile_graph_break2) {
  SigmoidModel model;
  Tensor x = randn({1, 4});
  auto inner = disable([](const Tensor& loss) { loss.backward(); });
  compile([&] { inner(model(x).sum()); }, {.compiled_autograd = true})();
  EXPECT_EQ(captures(), 1);
  EXPECT_TRUE(model.parameters()[0].grad().defined());
}

TEST_F(TestCompiledAutograd, torch_compile_only_backward_call) {
  SigmoidModel model;
  Tensor result = model(randn({1, 4})).sum();
  compile([&] { result.backward(); }, {.compiled_autograd = true})();
  EXPECT_EQ(captures(), 1);
  EXPECT_TRUE(model.parameters()[0].grad().defined());
}

TEST_F(TestCompiledAutograd, implicit_add) {
  check_output_and_recompiles([] {
    Tensor y = leaf({1, 4});
    auto model = [&](const Tensor& x) { return (x * y + y.sin() + y.cos()).sigmoid(); };
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      model(randn({1, 4})).sum().backward();
      found.push_back(y.grad());
      y.set_grad(Tensor());
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, output_nodes_all_leaves) {
  check_output_and_recompiles([] {
    Tensor y = leaf({1, 4}), z = leaf({1, 4});
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Tensor result = (randn({1, 4}) * z + y.sin() + y.cos()).sigmoid().sum();
      for (const Tensor& gradient : autograd::grad({result}, {y, z})) found.push_back(gradient);
      EXPECT_FALSE(y.grad().defined());
      EXPECT_FALSE(z.grad().defined());
    }
    return found;
  });
}

// Its backward must never run.
struct UnreachableBackward : autograd::Function<UnreachableBackward> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(autograd::AutogradContext*, Tensors) { throw std::runtime_error("reached"); }
};

TEST_F(TestCompiledAutograd, output_nodes_some_leaves) {
  check_output_and_recompiles([] {
    Tensor y = leaf({1, 4}), z = leaf({1, 4});
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Tensor result = (UnreachableBackward::apply(y) * z).sigmoid().sum();
      found.push_back(autograd::grad({result}, {z})[0]);
      EXPECT_FALSE(y.grad().defined());
      EXPECT_FALSE(z.grad().defined());
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, no_output_nodes_all_leaves) {
  check_output_and_recompiles([] {
    Tensor y = leaf({1, 4}), z = leaf({1, 4});
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      (randn({1, 4}) * z + y.sin() + y.cos()).sigmoid().sum().backward();
      EXPECT_TRUE(y.grad().defined() && z.grad().defined());
      found.push_back(y.grad());
      found.push_back(z.grad());
      y.set_grad(Tensor());
      z.set_grad(Tensor());
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, no_output_nodes_some_leaves) {
  check_output_and_recompiles([] {
    Tensor y = leaf({1, 4}), z = leaf({1, 4}), a = leaf({1, 4});
    Tensors found;
    for (int round = 0; round < 3; ++round) {
      Tensor result = (randn({1, 4}) * y * z * UnreachableBackward::apply(a)).sigmoid().sum();
      autograd::backward({result}, {}, false, false, {y, z});
      EXPECT_TRUE(y.grad().defined() && z.grad().defined());
      EXPECT_FALSE(a.grad().defined());
      found.push_back(y.grad());
      found.push_back(z.grad());
      y.set_grad(Tensor());
      z.set_grad(Tensor());
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, no_output_nodes_different_leaves_will_recompile) {
  check_output_and_recompiles(
      [] {
        auto forward = [](const Tensor& x, const Tensor& y, const Tensor& z) { return (x * y * z).sum(); };
        Tensor x = leaf({5}), y = leaf({5}), z = leaf({5});
        Tensors found;
        Tensor loss = forward(x, y, z);
        compile([&] { autograd::backward({loss}, {}, false, false, {x}); })();
        found.push_back(x.grad());
        x.set_grad(Tensor());
        loss = forward(x, y, z);
        compile([&] { autograd::backward({loss}, {}, false, false, {y}); })();
        found.push_back(y.grad());
        return found;
      },
      2);
}

// The seed captures twice, the second time with sizes that vary. Here the function's own graph says that they do.
TEST_F(TestCompiledAutograd, dynamic_shapes) {
  check_output_and_recompiles(
      [] {
        Mlp model(2);
        auto compiled = compile(model, {.dynamic = Dynamic::On});
        Tensors found;
        for (int64_t batch = 10; batch < 100; batch += 10) {
          compiled(randn({batch, 4})).sum().backward();
          add_gradients(found, model);
          model.zero_grad();
        }
        return found;
      },
      1);
}

// The seed compiles twice, because a gradient that is there is added to by another graph than one that is not. Here
// adding is no part of the graph: once is enough.
TEST_F(TestCompiledAutograd, accumulate_without_zero) {
  check_output_and_recompiles(
      [] {
        Mlp model(2);
        auto compiled = compile(model, {.dynamic = Dynamic::On});
        Tensors found;
        for (int round = 0; round < 10; ++round) {
          compiled(randn({10, 4})).sum().backward();
          for (const Tensor& parameter : model.parameters()) found.push_back(parameter.grad().clone());
        }
        return found;
      },
      1);
}

TEST_F(TestCompiledAutograd, inplace_grad_update) {
  check_output_and_recompiles([] {
    Mlp model(1);
    auto compiled = compile(model, {.dynamic = Dynamic::On});
    Tensors found;
    for (int round = 0; round < 10; ++round) {
      Tensors given;
      for (const Tensor& parameter : model.parameters()) {
        given.push_back(rand_like(parameter.detach()));
        parameter.set_grad(given.back());
      }
      compiled(randn({10, 4})).sum().backward();
      for (size_t at = 0; at < given.size(); ++at) {
        EXPECT_TRUE(model.parameters()[at].grad().is(given[at]));
        found.push_back(given[at].clone());
      }
    }
    return found;
  });
}

TEST_F(TestCompiledAutograd, keep_graph_simple) {
  Tensor x = tensor({2.0f}).set_requires_grad();
  Tensor y = x.pow(2);
  y.backward(std::nullopt, true);
  EXPECT_TRUE(same_bits(x.grad(), tensor({4.0f})));
  check_output_and_recompiles([&] {
    x.set_grad(tensor({0.0f}));
    y.backward(std::nullopt, true);
    EXPECT_TRUE(same_bits(x.grad(), tensor({4.0f})));
    return Tensors{x.grad()};
  });
}

TEST_F(TestCompiledAutograd, keep_graph_usage_after_compiled) {
  Tensor x = tensor({2.0f}).set_requires_grad();
  Tensor y = x.pow(2);
  auto check = [&] {
    y.backward(std::nullopt, true);
    EXPECT_TRUE(same_bits(x.grad(), tensor({4.0f})));
    x.set_grad(tensor({0.0f}));
  };
  check();
  for (int round = 0; round < 5; ++round) {
    {
      compiled_autograd::Enable on({.fullgraph = true});
      check();
    }
    check();
  }
  EXPECT_EQ(captures(), 1);
}

void check_mismatched_fakes(bool dynamic_shape) {
  Tensor x = rand({8, 16}), y = rand({8, 16}).set_requires_grad();
  if (dynamic_shape) {
    mark_dynamic(x, 0);
    mark_dynamic(y, 0);
  }
  auto fn = [&] {
    y.set_grad(Tensor());
    Tensor out = x + y;
    out.sum().backward();
    return Tensors{out, y.grad()};
  };
  check_output_and_recompiles(fn, 1, {.fullgraph = true}, true);
}

TEST_F(TestCompiledAutograd, mismatch_fake_tensor_mode) { check_mismatched_fakes(false); }
TEST_F(TestCompiledAutograd, mismatch_fake_tensor_mode_dynamic_shape) { check_mismatched_fakes(true); }

TEST_F(TestCompiledAutograd, accumulate_grad_accuracy) {
  check_output_and_recompiles([] {
    nn::Linear first(2, 1, {.bias = false}), second(1, 2, {.bias = false});
    Tensor loss = second(first(randn({2, 2}))).sum();
    manual_seed(0);
    loss.backward();
    return Tensors{first.parameters()[0].grad(), second.parameters()[0].grad()};
  });
}

}  // namespace
}  // namespace tenon
