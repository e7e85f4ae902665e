// vmap against the same function, entry by entry.
#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/functional.h>
#include <tenon/autograd/vmap.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon {
namespace {

using autograd::vmap;
using testing::error_of;
using ::testing::HasSubstr;
using Tensors = std::vector<Tensor>;

Tensors as_list(Tensor one) { return {std::move(one)}; }
Tensors as_list(Tensors several) { return several; }

// All inputs are batches of the same number of entries.
template <typename F>
void check(F function, const Tensors& inputs) {
  auto of_list = [&](const Tensors& at) {
    if constexpr (std::is_invocable_v<F, const Tensors&>)
      return as_list(function(at));
    else if constexpr (std::is_invocable_v<F, const Tensor&>)
      return as_list(function(at[0]));
    else
      return as_list(function(at[0], at[1]));
  };
  std::vector<Tensors> entries;
  for (int64_t entry = 0; entry < inputs[0].sizes()[0]; ++entry) {
    Tensors given;
    for (const Tensor& input : inputs) given.push_back(input.select(0, entry));
    entries.push_back(of_list(given));
  }
  Tensors together = vmap(function, inputs);
  ASSERT_EQ(together.size(), entries[0].size());
  for (size_t at = 0; at < together.size(); ++at) {
    Tensors column;
    for (const Tensors& entry : entries) column.push_back(entry[at]);
    Tensor expected = stack(column);
    EXPECT_EQ(together[at].description(), expected.description());
    bool same =
        expected.is_floating_point() ? together[at].allclose(expected, 1e-5, 1e-6, true) : together[at].equal(expected);
    EXPECT_TRUE(same) << together[at].str() << expected.str();
  }
}

TEST(Vmap, calls_of_every_kind) {
  manual_seed(1);
  Tensor x = randn({4, 3, 5}), y = randn({4, 5}), square = randn({4, 3, 3});
  check([](const Tensor& a) { return a.sin() * a + 2; }, {x});
  check([](const Tensor& a, const Tensor& b) { return a * b + b; }, {x, y});  // entries of other ranks broadcast
  check([](const Tensor& a, const Tensor& b) { return where(a > 0, a, b); }, {x, y});
  check([](const Tensor& a) { return Tensors{a.sum(), a.sum(0), a.amax({-1}, true), a.mean(), a.any()}; }, {x});
  check(
      [](const Tensor& a) { return Tensors{a.t(), a.view({-1}), a.select(1, 2), a.unsqueeze(0), a.slice(1, 1, 4, 2)}; },
      {x});
  check([](const Tensor& a) { return Tensors{a.expand({2, 3, 5}), a.permute({1, 0}), a.diagonal(), a.flatten()}; },
        {x});
  check([](const Tensor& a, const Tensor& b) { return Tensors{a.matmul(b), a.mm(a.t())}; }, {x, y});
  check([](const Tensor& a) { return Tensors{bmm(a.unsqueeze(0), a.unsqueeze(0)), addmm(a, a, a)}; }, {square});
  check([](const Tensor& a) { return Tensors{softmax(a, -1), layer_norm(a, {5}), a.cumsum(1), a.prod()}; }, {x});
  check([](const Tensor& a) { return Tensors{std::get<0>(a.sort(-1)), std::get<1>(a.sort(-1)), a.argmax(0)}; }, {x});
  check([](const Tensor& a) { return a.split(2, 1); }, {x});
  check([](const Tensor& a) { return a.gather(1, a.argsort(1)); }, {x});
  check([](const Tensor& a, const Tensor& b) { return cat({a, b.unsqueeze(0)}, 0); }, {x, y});
  check([](const Tensor& a) { return Tensors{zeros_like(a), a.detach() * 2, a.to(kFloat64), a.clone()}; }, {x});
}

TEST(Vmap, numbers_and_promotion) {
  Tensor numbers = randn({6}), wide = randn({6}, kFloat64), whole = arange(6);
  check([](const Tensor& a) { return Tensors{a * 2, a.sum(), a.sum(Ints{0}, true), a.amax()}; }, {numbers});
  check([](const Tensor& a, const Tensor& b) { return a + b; }, {numbers, wide});
  // A number of each entry counts less than a tensor, as one number does.
  Tensor rows = randn({6, 3});
  check([](const Tensor& a, const Tensor& b) { return a * b; }, {rows, wide});
  check([](const Tensor& a, const Tensor& b) { return a * b; }, {whole, wide});
  EXPECT_EQ(vmap([](const Tensor& a, const Tensor& b) { return a * b; }, {rows, wide})[0].dtype(), kFloat32);
}

TEST(Vmap, changes_in_place) {
  auto fill = [](const Tensor& a) {
    Tensor own = a.clone();
    own.select(0, 1).add_(10);
    own.mul_(a).view({-1}).slice(0, 0, 2).zero_();
    return own;
  };
  check(fill, {randn({3, 2, 4})});
  Tensor shared = zeros({4});
  auto spoil = [&](const Tensor& a) {
    shared.add_(a);
    return a;
  };
  EXPECT_THAT(error_of([&] { vmap(spoil, {ones({2, 4})}); }),
              HasSubstr("[add_] vmap: inplace arithmetic is not possible: 'self' is the same for all entries"));
}

TEST(Vmap, dimensions_of_the_batch) {
  Tensor x = randn({3, 5}), w = randn({3});
  auto dot = [](const Tensor& a, const Tensor& b) { return (a * b).sum(); };
  Tensor found = vmap(dot, {x, w}, {.in_dims = {1, std::nullopt}})[0];
  EXPECT_TRUE(found.allclose(w.matmul(x)));
  EXPECT_TRUE(vmap([](const Tensor& a) { return a * 2; }, {x}, {.in_dims = {-1}, .out_dim = 1})[0].equal(x * 2));
  // What does not depend on the entry is the same for all.
  EXPECT_TRUE(vmap([&](const Tensor&) { return w; }, {x})[0].equal(w.expand({3, 3})));
  EXPECT_TRUE(vmap([](const Tensor& a) { return a.sum(); }, {zeros({0, 3})})[0].equal(zeros({0})));
  EXPECT_THAT(error_of([&] { vmap(dot, {x, randn({4})}); }), HasSubstr("expected 3 entries"));
  EXPECT_THAT(error_of([&] { vmap(dot, {x, w}, {.in_dims = {std::nullopt, std::nullopt}}); }),
              HasSubstr("[vmap] expected at least one input with a dimension for the batch"));
  EXPECT_THAT(error_of([&] { vmap(dot, {x, w}, {.in_dims = {2, 0}}); }),
              HasSubstr("[vmap] expected input 0 to have the dimension 2 for the batch, got float32[3, 5]"));
  EXPECT_THAT(error_of([&] { vmap(dot, {x, w}, {.in_dims = {0}}); }),
              HasSubstr("expected in_dims for each of 2 inputs"));
}

TEST(Vmap, batches_of_batches) {
  Tensor a = randn({3, 4}), b = randn({5, 4});
  auto distances = [&](const Tensor& one) {
    return vmap([&](const Tensor& other) { return (one - other).pow(2).sum(); }, {b})[0];
  };
  Tensor expected = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(2);
  EXPECT_TRUE(vmap(distances, {a})[0].allclose(expected));
}

TEST(Vmap, gradients_through_it_and_inside_of_it) {
  Tensor x = randn({4, 3}, kFloat64).set_requires_grad(), w = randn({3}, kFloat64).set_requires_grad();
  auto model = [&](const Tensor& at) { return (at * w).sin().sum(); };
  vmap(model, {x})[0].sum().backward();
  Tensor by_batch = x.grad(), of_weight = w.grad();
  x.set_grad(Tensor());
  w.set_grad(Tensor());
  (x * w).sin().sum().backward();
  EXPECT_TRUE(by_batch.allclose(x.grad()));
  EXPECT_TRUE(of_weight.allclose(w.grad()));
  // One gradient of the weight for each entry.
  auto of_entry = [&](const Tensor& at, const Tensor& weight) {
    return autograd::grad({(at * weight).sin().sum()}, {weight})[0];
  };
  Tensor repeated = w.detach().expand({4, 3}).clone().set_requires_grad();
  Tensor each = vmap(of_entry, {x.detach(), repeated})[0];
  EXPECT_TRUE(each.allclose((x * w).cos().detach() * x.detach()));
  auto curvature = [](const Tensor& at) {
    return autograd::hessian([](const Tensor& v) { return v.pow(3).sum(); }, {at})[0][0];
  };
  Tensor curves = vmap(curvature, {x.detach()})[0];
  EXPECT_TRUE(curves.allclose(6 * x.detach().unsqueeze(-1) * eye(3, kFloat64)));
  EXPECT_THAT(error_of([&] { vmap([&](const Tensor& at) { return autograd::grad({model(at)}, {w})[0]; }, {x}); }),
              HasSubstr("[grad] vmap: expected inputs that are batched"));
  EXPECT_THAT(error_of([&] {
                vmap(
                    [&](const Tensor& at) {
                      model(at).backward();
                      return at;
                    },
                    {x});
              }),
              HasSubstr("[backward] vmap: a walk from a batched tensor"));
}

TEST(Vmap, tangents_inside_of_it) {
  Tensor x = randn({4, 3}, kFloat64);
  auto slope = [](const Tensor& at) {
    forward_ad::DualLevel level;
    return forward_ad::unpack_dual(forward_ad::make_dual(at, ones_like(at)).sin()).tangent;
  };
  EXPECT_TRUE(vmap(slope, {x})[0].allclose(x.cos()));
}

TEST(Vmap, in_a_compiled_function) {
  auto f = [](Tensor x, Tensor w) {
    return vmap([&](const Tensor& row) { return (row * w).relu().sum(); }, {x})[0] + 1;
  };
  auto compiled = compile(f, {.fullgraph = true});
  Tensor x = randn({4, 3}).set_requires_grad(), w = randn({3}).set_requires_grad();
  Tensor y = compiled(x, w);
  EXPECT_TRUE(y.allclose(f(x, w)));
  y.sum().backward();
  Tensor found = w.grad();
  w.set_grad(Tensor());
  f(x, w).sum().backward();
  EXPECT_TRUE(found.allclose(w.grad()));
}

TEST(Vmap, refusals) {
  Tensor x = randn({2, 3});
  const char* random = "vmap: We do not yet support calling random operations inside of vmap";
  EXPECT_THAT(error_of([&] { vmap([](const Tensor& a) { return a + rand({3}); }, {x}); }), HasSubstr(random));
  EXPECT_THAT(error_of([&] { vmap([](const Tensor& a) { return dropout(a, 0.5, true); }, {x}); }), HasSubstr(random));
  EXPECT_THAT(error_of([&] { vmap([](const Tensor& a) { return nonzero(a); }, {x}); }),
              HasSubstr("[nonzero] vmap: the sizes of its results depend on data"));
  EXPECT_THAT(error_of([&] { vmap([](const Tensor& a) { return a * a.sum().item<float>(); }, {x}); }),
              HasSubstr("vmap: It looks like you're calling .item() on a Tensor"));
  EXPECT_THAT(error_of([&] { vmap([](const Tensor& a) { return a.clone().unsqueeze_(0); }, {x}); }),
              HasSubstr("[unsqueeze_] vmap: gives a tensor another shape in place"));
  // Outside all is as it was.
  EXPECT_NO_THROW(rand({3}));
  EXPECT_FALSE(autograd::is_batched(x));
}

}  // namespace
}  // namespace tenon
