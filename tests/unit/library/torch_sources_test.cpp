// Sources in libtorch's API: operators that are backed by an autograd function, as extension authors write them.
#include <tenon/compat/torch.h>
#include <tenon/dispatch/packet.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <cassert>

namespace {

// Keeps a view of its argument beside the argument.
struct KeepsView : public torch::autograd::Function<KeepsView> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& input) {
    ctx->save_for_backward({input});
    ctx->saved_data["flat"] = input.view(-1);
    return input;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list) {
    const auto& saved = ctx->get_saved_variables();
    torch::Tensor flat = ctx->saved_data["flat"].toTensor();
    torch::autograd::variable_list gradients(1);
    gradients[0] = saved[0] * 2 + torch::sum(flat);
    return gradients;
  }
};
torch::Tensor keeps_view(const torch::Tensor& input) { return KeepsView::apply(input); }

// What it keeps depends on how often it ran.
struct Counts : public torch::autograd::Function<Counts> {
  static int runs;
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& a,
                                                const torch::Tensor& b) {
    ctx->save_for_backward({a, b});
    ctx->saved_data["flag"] = true;
    ctx->saved_data["runs"] = runs;
    switch (runs++) {
      case 1: ctx->saved_data["extra"] = 100; break;
      case 2: ctx->set_materialize_grads(false); break;
      case 3: throw std::runtime_error("too often");
    }
    return {a, b};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list incoming) {
    const auto& saved = ctx->get_saved_variables();
    TORCH_CHECK(ctx->saved_data["flag"].isBool() && ctx->saved_data["runs"].isInt());
    int number = ctx->saved_data["runs"].toInt();
    if (ctx->saved_data.count("extra")) number += ctx->saved_data["extra"].toInt();
    torch::autograd::variable_list gradients(2);
    // The gradient of the second result, which nobody used, is zeros or missing.
    gradients[0] = saved[0] + saved[1] + number + (incoming[1].defined() ? 0 : 1000);
    return gradients;
  }
};
int Counts::runs = 0;
torch::autograd::variable_list counts(const torch::Tensor& a, const torch::Tensor& b) { return Counts::apply(a, b); }
void reset() { Counts::runs = 0; }

// A tensor and a number that forward makes.
struct MakesScalars : public torch::autograd::Function<MakesScalars> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& input) {
    const auto& three = torch::tensor(3);
    ctx->save_for_backward({input, three});
    ctx->saved_data["two"] = 2;
    return input;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list incoming) {
    const auto& saved = ctx->get_saved_variables();
    assert(saved.size() == 2);
    int two = ctx->saved_data["two"].toInt();
    auto wide = incoming[0] * torch::ones_like(saved[0]);
    torch::autograd::variable_list gradients(1);
    gradients[0] = wide * saved[1] * two;
    return gradients;
  }
};
torch::Tensor makes_scalars(torch::Tensor input) { return MakesScalars::apply(input); }

}  // namespace

TORCH_LIBRARY(torch_sources, m) {
  m.def("keeps_view", keeps_view);
  m.def("counts", counts);
  m.def("reset", reset);
  m.def("makes_scalars(Tensor x) -> Tensor", makes_scalars);
}

namespace tenon {
namespace {

std::vector<double> values(const Tensor& tensor) {
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  return {plain.data<double>(), plain.data<double>() + plain.numel().plain()};
}

Tensor call(const char* name, const Tensor& x) {
  return dispatch::call_by_name(name, {dispatch::Value(x)})[0].take_tensor();
}

Tensor gradient(const char* name) {
  Tensor x = tensor({1.f, 2.f}).set_requires_grad();
  call(name, x).sum().backward();
  return x.grad();
}

TEST(TorchSources, a_view_is_kept) {
  EXPECT_EQ(values(gradient("torch_sources::keeps_view")), (std::vector<double>{5, 7}));
  auto f = compile([](Tensor t) { return call("torch_sources::keeps_view", t * 1).sum(); }, {.fullgraph = true});
  Tensor x = tensor({1.f, 2.f}).set_requires_grad();
  f(x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5, 7}));
}

TEST(TorchSources, scalars_are_made) {
  EXPECT_EQ(values(gradient("torch_sources::makes_scalars")), (std::vector<double>{6, 6}));
}

TEST(TorchSources, what_is_kept_changes) {
  dispatch::call_by_name("torch_sources::reset", {});
  Tensor y = tensor({10.f});
  std::vector<double> got;
  for (int round = 0; round < 3; ++round) {
    Tensor x = tensor({1.f}).set_requires_grad();
    dispatch::call_by_name("torch_sources::counts", {dispatch::Value(x), dispatch::Value(y)})[0]
        .tensors()[0]
        .sum()
        .backward();
    got.push_back(values(x.grad())[0]);
  }
  EXPECT_EQ(got, (std::vector<double>{11, 112, 1013}));
  EXPECT_THROW(dispatch::call_by_name("torch_sources::counts", {dispatch::Value(y), dispatch::Value(y)}),
               std::runtime_error);
  dispatch::call_by_name("torch_sources::reset", {});
}

}  // namespace
}  // namespace tenon
