// What modules do besides computing: states, clones, hooks, trees, beginnings.
#include <tenon/nn/modules.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>

#include "unit/autograd/helpers.h"
#include "unit/io/files.h"

#include <tenon/capture/compile.h>

namespace tenon::testing {
namespace {

using namespace nn;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

struct Block : Module {
  Linear inner = submodule("inner", Linear(3, 3));
  Cell<Tensor> scale = parameter("scale", ones({1}));
  Cell<Tensor> seen = buffer("seen", zeros({1}));
  Tensor operator()(const Tensor& input) const {
    return run(input, [&](const Tensor& x) { return inner(x) * scale.get(); });
  }
};

TEST(Module, StatesAreNamedAndComplete) {
  Sequential model(Block(), BatchNorm1d(3, {.affine = false}));
  Names names;
  for (const auto& [name, tensor] : model.state_dict()) names.push_back(name);
  EXPECT_EQ(names, (Names{"0.scale", "0.seen", "0.inner.weight", "0.inner.bias", "1.running_mean", "1.running_var",
                          "1.num_batches_tracked"}));
  Names modules;
  for (const auto& [name, module] : model.named_modules()) modules.push_back(name + ":" + module.kind());
  EXPECT_EQ(modules, (Names{":Sequential", "0:Block", "0.inner:Linear", "1:BatchNorm1d"}));
}

TEST(Module, LoadingIsStrictUnlessAsked) {
  Linear a(3, 2), b(3, 2, {.bias = false});
  Tensor before = b.weight.get();
  LoadResult result = b.load_state_dict(a.state_dict(), false);
  EXPECT_EQ(result.unexpected, Names{"bias"});
  EXPECT_TRUE(result.missing.empty());
  EXPECT_EQ(result.str(), "missing: none; unexpected: bias");
  EXPECT_TRUE(b.weight.get().is(before));  // the tensor stays; its values are new
  EXPECT_TRUE(equal(before, a.weight.get()));
  EXPECT_EQ(error_of<ValueError>([&] { b.load_state_dict(a.state_dict()); }),
            "[load_state_dict] the state does not fit the Linear\n  unexpected: bias");
  EXPECT_EQ(error_of<ValueError>([&] { a.load_state_dict(b.state_dict()); }),
            "[load_state_dict] the state does not fit the Linear\n  missing: bias");
  EXPECT_EQ(error_of<ValueError>([&] { Linear(4, 2).load_state_dict(a.state_dict()); }),
            "[load_state_dict] the state does not fit the Linear\n  of another size: weight is float32[2, 4] and got "
            "float32[2, 3]");
}

TEST(Module, SavesAndLoadsFiles) {
  for (const char* extension : {".safetensors", ".npz"}) {
    TemporaryFile file(extension);
    Sequential a(Linear(3, 4), ReLU(), Linear(4, 2)), b(Linear(3, 4), ReLU(), Linear(4, 2));
    a.save(file.path());
    b.load(file.path());
    EXPECT_TRUE(equal(a(ones({2, 3})), b(ones({2, 3}))));
  }
  // As PyTorch has it, with a batch norm.
  Sequential torch(Linear(3, 4), BatchNorm1d(4));
  torch.load(data_file("state_dict.pt"));
  EXPECT_EQ(values(torch.parameters()[1]), (std::vector<double>{1, 1.125, 1.25, 1.375}));
}

TEST(Module, ACloneIsApart) {
  Sequential model(Block(), Lambda([](const Tensor& x) { return x + 1; }), Linear(3, 3));
  Sequential copy = nn::clone(model);
  Tensor x = randn({2, 3});
  EXPECT_TRUE(equal(model(x), copy(x)));
  EXPECT_EQ(copy.parameters().size(), model.parameters().size());
  for (size_t at = 0; at < copy.parameters().size(); ++at) {
    EXPECT_FALSE(copy.parameters()[at].is_same_storage(model.parameters()[at]));
    EXPECT_TRUE(copy.parameters()[at].requires_grad());
  }
  {
    NoGrad off;
    for (const Tensor& parameter : copy.parameters()) parameter.zero_();
  }
  EXPECT_TRUE(equal(copy(x), zeros({2, 3})));
  EXPECT_FALSE(equal(model(x), zeros({2, 3})));
  copy.eval();
  EXPECT_TRUE(model.is_training());
  // Tensors that are one stay one.
  struct Tied : Module {
    Linear first = submodule("first", Linear(2, 2)), second = submodule("second", Linear(2, 2));
    Tied() { second.weight = first.weight.get(); }
  };
  Tied tied, apart = nn::clone(tied);
  EXPECT_TRUE(apart.first.weight.get().is(apart.second.weight.get()));
  EXPECT_FALSE(apart.first.weight.get().is(tied.first.weight.get()));
}

TEST(Module, HooksComeBeforeAndAfter) {
  Linear layer(3, 2);
  Tensor x = ones({1, 3}), plain = layer(x);
  std::vector<std::string> seen;
  auto first = layer.register_forward_pre_hook([&](const Module&, const Tensor&) {
    seen.push_back("before");
    return Tensor();
  });
  auto second = layer.register_forward_hook([&](const Module& module, const Tensor&, const Tensor& output) {
    seen.push_back("after " + module.kind());
    return output * 2;
  });
  EXPECT_TRUE(equal(layer(x), plain * 2));
  EXPECT_EQ(seen, (Names{"before", "after Linear"}));
  auto compiled = compile([&](Tensor input) { return layer(input); });
  EXPECT_TRUE(allclose(compiled(x), plain * 2));
  first();
  second();
  EXPECT_TRUE(equal(layer(x), plain));
}

TEST(Module, PrintsAsATree) {
  Sequential model(Linear(3, 4), Sequential(Conv2d(4, 8, 3, {.padding = 1}), ReLU()), Block());
  EXPECT_EQ(model.str(),
            "Sequential(\n"
            "  (0): Linear(in_features=3, out_features=4, bias=True)\n"
            "  (1): Sequential(\n"
            "    (0): Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
            "    (1): ReLU()\n"
            "  )\n"
            "  (2): Block(\n"
            "    (inner): Linear(in_features=3, out_features=3, bias=True)\n"
            "  )\n"
            ")");
}

TEST(Module, AnotherDtype) {
  Sequential model(Linear(3, 4), BatchNorm1d(4));
  model.to(kFloat64);
  for (const auto& [name, tensor] : model.state_dict())
    EXPECT_EQ(tensor.dtype(), name.ends_with("tracked") ? kInt64 : kFloat64) << name;
  model(ones({2, 3}, kFloat64)).sum().backward();
  EXPECT_TRUE(model.parameters()[0].grad().defined());
  model.requires_grad(false);
  EXPECT_FALSE(model(ones({2, 3}, kFloat64)).requires_grad());
}

TEST(Module, ListsDictionariesAndLambdas) {
  ModuleList<Linear> list;
  for (int at = 0; at < 3; ++at) list.push_back(Linear(2, 2));
  ModuleDict<Linear> heads;
  heads.insert("left", Linear(2, 1));
  ParameterList numbers;
  numbers.push_back(ones({2}));
  struct Net : Module {
    Net(const ModuleList<Linear>& l, const ModuleDict<Linear>& d, const ParameterList& p) {
      submodule("list", l);
      submodule("heads", d);
      submodule("numbers", p);
    }
  };
  Names names;
  for (const auto& [name, tensor] : Net(list, heads, numbers).named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (Names{"list.0.weight", "list.0.bias", "list.1.weight", "list.1.bias", "list.2.weight",
                          "list.2.bias", "heads.left.weight", "heads.left.bias", "numbers.0"}));
  EXPECT_EQ(error_of<IndexError>([&] { heads.at("right"); }), "[ModuleDict] there is no 'right'");
}

TEST(Module, ATrainedTransformerLearns) {
  manual_seed(3);
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0, .batch_first = true});
  Tensor x = randn({2, 4, 8}), target = randn({2, 4, 8});
  optim::Adam adam(layer.parameters(), {.lr = 0.01});
  auto loss = compile([&](Tensor input, Tensor goal) { return mse_loss(layer(input), goal); });
  double first = loss(x, target).item<double>();
  for (int step = 0; step < 30; ++step) {
    adam.zero_grad();
    loss(x, target).backward();
    adam.step();
  }
  EXPECT_LT(loss(x, target).item<double>(), 0.7 * first);
}

TEST(Init, DistributionsHaveTheirBounds) {
  manual_seed(1);
  Tensor w = empty({200, 300});
  auto spread = [&] { return std::sqrt(values((w * w).mean())[0]); };
  auto largest = [&] { return values(w.abs().max())[0]; };
  init::xavier_uniform_(w);
  EXPECT_LE(largest(), std::sqrt(6.0 / 500));
  EXPECT_NEAR(spread(), std::sqrt(2.0 / 500), 0.002);
  init::xavier_normal_(w, 2);
  EXPECT_NEAR(spread(), 2 * std::sqrt(2.0 / 500), 0.004);
  init::kaiming_uniform_(w, {.nonlinearity = "relu"});
  EXPECT_LE(largest(), std::sqrt(6.0 / 300));
  EXPECT_NEAR(spread(), std::sqrt(2.0 / 300), 0.002);
  init::kaiming_normal_(w, {.mode = init::Fan::Out, .nonlinearity = "relu"});
  EXPECT_NEAR(spread(), std::sqrt(2.0 / 200), 0.002);
  init::trunc_normal_(w, 0, 1, -0.5, 0.5);
  EXPECT_LE(largest(), 0.5);
  init::eye_(w);
  EXPECT_EQ(values(w.sum())[0], 200);
  init::orthogonal_(w, 2);
  EXPECT_TRUE(allclose(matmul(w, w.t()), 4 * eye(200), 1e-4, 1e-4));
  Tensor tall = init::orthogonal_(empty({6, 2, 2}));
  EXPECT_TRUE(allclose(matmul(tall.view({6, 4}).t(), tall.view({6, 4})), eye(4), 1e-5, 1e-5));
  EXPECT_EQ(error_of<ValueError>([] { init::gain("cubic"); }),
            "[gain] expected linear, sigmoid, tanh, relu, leaky_relu or selu, got 'cubic'");
}

TEST(Utils, GradientsAreClipped) {
  Tensor a = leaf({3.0}), b = leaf({4.0});
  auto renew = [&] {
    a.set_grad(real({3.0}));
    b.set_grad(real({4.0}));
  };
  renew();
  expect_near(clip_grad_norm_({a, b}, 1), {5});
  expect_near(a.grad(), {3.0 / 5}, 1e-6);
  renew();
  clip_grad_norm_({a, b}, 10);
  expect_near(a.grad(), {3});
  expect_near(clip_grad_norm_({a, b}, 1, INFINITY), {4});
  expect_near(b.grad(), {1}, 1e-6);
  renew();
  clip_grad_value_({a, b}, 3.5);
  expect_near(b.grad(), {3.5});
  a.set_grad(real({double(NAN)}));
  EXPECT_THAT(error_of([&] { clip_grad_norm_({a, b}, 1, 2, true); }), HasSubstr("have a norm of"));
  Linear layer(3, 2);
  Tensor all = parameters_to_vector(layer.parameters());
  EXPECT_EQ(all.description(), "float32[8]");
  vector_to_parameters(zeros({8}), layer.parameters());
  EXPECT_EQ(values(layer.bias.get()), (std::vector<double>{0, 0}));
  EXPECT_EQ(error_of<ValueError>([&] { vector_to_parameters(zeros({7}), layer.parameters()); }),
            "[vector_to_parameters] expected a vector of 8 elements, got float32[7]");
}

TEST(Dropouts, WholeChannelsGo) {
  manual_seed(5);
  Tensor x = ones({4, 8, 3, 3}), y = Dropout2d(0.5)(x);
  Tensor per_channel = y.mean({2, 3});
  for (double value : values(per_channel)) EXPECT_TRUE(value == 0 || value == 2) << value;
  Tensor noise = randn({100, 100}), kept = AlphaDropout(0.3)(noise);
  EXPECT_NEAR(values(kept.mean())[0], 0, 0.05);
  EXPECT_NEAR(values(var(kept))[0], 1, 0.1);
}

}  // namespace
}  // namespace tenon::testing
