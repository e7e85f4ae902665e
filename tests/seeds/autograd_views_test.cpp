// The autograd suite: indices, views, changes in place, and the hooks and gradients of what was changed.
#include "autograd.h"

#include <tenon/autograd/detach.h>
#include <tenon/autograd/gradcheck.h>
#include <tenon/core/indexing.h>
#include <tenon/support/warnings.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using Where = std::vector<TensorIndex>;

Tensor at(const Tensor& tensor, const Where& where) { return tensor.index(std::span<const TensorIndex>(where)); }
void put_at(const Tensor& tensor, const Where& where, const Tensor& values) {
  tensor.index_put_(std::span<const TensorIndex>(where), values);
}

Tensor longs(std::initializer_list<int64_t> values) { return tensor(std::vector<int64_t>(values)); }

// The elements are those without grad, and the gradient of their sum is 1 there and 0 elsewhere.
void check_index(const Tensor& x, const Where& where) {
  Tensor y = x.detach().clone().set_requires_grad(), found = at(y, where);
  EXPECT_TRUE(same_bits(found.detach(), at(x, where)));
  found.sum().backward();
  Tensor expected = zeros_like(x);
  put_at(expected, where, tensor(1.0f));
  EXPECT_TRUE(same_bits(y.grad(), expected));
}

TEST_P(TestAutograd, indexing) {
  Tensor x = arange(1, 17, 1, kFloat32).view({4, 4});
  check_index(x, {1, 2});
  check_index(x, {Slice()});
  check_index(x, {1});
  check_index(x, {Slice(), 2});
  check_index(x, {Slice(1, 3), Slice(0, None, 2)});
  check_index(x, {Ellipsis, 1});
  check_index(x, {longs({1, 2})});
  check_index(x, {longs({0, 2}), longs({1, 3})});
  check_index(x, {x > 7});
  check_index(x, {Slice(), longs({0, 2})});
  check_index(x, {longs({0, 2}), Slice(1, 3)});
  check_index(x, {longs({0, 2}), 1});
  Tensor deep = arange(1, 49, 1, kFloat32).view({4, 3, 4});
  check_index(deep, {1, 2, 3});
  check_index(deep, {Slice(), longs({0}), longs({0})});
  check_index(deep, {longs({0}), Slice(), longs({1})});
  check_index(deep, {longs({0, 2}), Slice(), longs({1, 3})});
  check_index(deep, {Ellipsis, longs({1, 2})});
  check_index(deep, {longs({0, 1}), Ellipsis});
  check_index(deep, {Slice(1, 3), longs({0, 2}), Slice(None, None, 2)});
  check_index(deep, {deep > 20});
}

TEST_P(TestAutograd, indexing_duplicates) {
  Tensor x = arange(1, 17, 1, kFloat32).view({4, 4});
  auto counts = [&](const Tensor& source, const Where& where) {
    Tensor y = source.clone().set_requires_grad();
    at(y, where).sum().backward();
    return y.grad();
  };
  Tensor expected = zeros({4, 4});
  expected.index_put_({1}, 3.0);
  expected.index_put_({2}, 2.0);
  expected.index_put_({3}, 1.0);
  EXPECT_TRUE(same_bits(counts(x, {longs({1, 1, 3, 2, 1, 2})}), expected));
  expected = zeros({4, 4});
  expected.index_put_({1, 0}, 3.0);
  expected.index_put_({2, 0}, 2.0);
  expected.index_put_({3, 0}, 1.0);
  EXPECT_TRUE(same_bits(counts(x, {longs({1, 1, 3, 2, 1, 2}), longs({0})}), expected));
  Tensor rows = tensor({{0, 0}, {1, 2}}), columns = tensor({{1, 1}, {0, 1}});
  expected =
      tensor({{0.0f, 2.0f, 0.0f, 0.0f}, {1.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 1.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}});
  EXPECT_TRUE(same_bits(counts(x, {rows, columns}), expected));
  Tensor deep = arange(1, 65, 1, kFloat32).view({4, 4, 4});
  expected = zeros({4, 4, 4});
  expected.index_put_({1}, 3.0);
  EXPECT_TRUE(same_bits(counts(deep, {longs({1, 1, 1}), Slice(), Slice()}), expected));
}

TEST_P(TestAutograd, index_backward_does_not_save_tensor) {
  Tensor a = tensor({1.0f, 0.0f, 0.0f}), b = zeros({3}).set_requires_grad(), changed = b + 0;
  put_at(changed, {a != 0}, at(changed, {a != 0}));
  changed.backward(zeros({3}));
  EXPECT_TRUE(same_bits(b.grad(), zeros({3})));
}

Tensor put_twice(const Tensor& b) {
  Tensor c = zeros({3}, kFloat64);
  put_at(c, {longs({1, 2})}, at(b, {longs({1, 1})}));
  return c;
}

TEST_P(TestAutograd, backward_twice_with_saved_values) {
  Tensor c = put_twice(doubles({3})), g = ones({3}, kFloat64);
  c.backward(g);
  EXPECT_THAT(error_of([&] { c.backward(g); }), HasSubstr("Specify retain_graph=True"));
}

TEST_P(TestAutograd, backward_twice_retained_graph_with_saved_values) {
  Tensor b = doubles({3}), c = put_twice(b), g = ones({3}, kFloat64);
  c.backward(g, true);
  c.backward(g);
  EXPECT_TRUE(same_bits(b.grad(), tensor(std::vector<double>{0, 4, 0}, kFloat64)));
}

TEST_P(TestAutograd, backward_twice_retained_graph_without_saved_values) {
  Tensor b = doubles({3}), c = zeros({3}, kFloat64), g = ones({3}, kFloat64);
  put_at(c, {longs({1, 2})}, at(b, {longs({1, 1})}));
  c.backward(g, true);
  c.backward(g);
  EXPECT_TRUE(same_bits(b.grad(), tensor(std::vector<double>{0, 4, 0}, kFloat64)));
}

void check_setitem(const Ints& sizes, const Where& where) {
  Tensor x = ones(SymInts(sizes.span())).set_requires_grad(), y = x + 2;
  int64_t version = y.version();
  put_at(y, where, tensor(2.0f));
  EXPECT_NE(y.version(), version);
  y.backward(ones(SymInts(sizes.span())));
  Tensor expected = ones(SymInts(sizes.span()));
  put_at(expected, where, tensor(0.0f));
  EXPECT_TRUE(same_bits(x.grad(), expected));
  // Values that have gradients of their own.
  x = ones(SymInts(sizes.span())).set_requires_grad();
  y = x + 2;
  Tensor value = full_like(at(x.detach(), where).clone(), 7).set_requires_grad();
  version = y.version();
  put_at(y, where, value);
  EXPECT_NE(y.version(), version);
  y.backward(ones(SymInts(sizes.span())));
  EXPECT_TRUE(same_bits(x.grad(), expected));
  expect_filled(value.grad(), 1);
}

TEST_P(TestAutograd, setitem) {
  check_setitem({5, 5}, {1});
  check_setitem({5}, {1});
  check_setitem({1}, {0});
  check_setitem({10}, {longs({0, 4, 2})});
  check_setitem({5, 5}, {longs({0, 4}), longs({2, 2})});
  check_setitem({5, 5, 5}, {Slice(), Slice(), longs({1, 3})});
  check_setitem({5, 5, 5}, {Slice(), longs({1, 3}), Slice()});
  check_setitem({5, 5, 5}, {longs({1, 3}), Slice(), Slice()});
  check_setitem({5, 5, 5}, {Slice(), longs({2, 4}), longs({1, 3})});
  check_setitem({5, 5, 5}, {longs({1, 3}), longs({2, 4}), Slice()});
  check_setitem({5, 5, 5}, {longs({2}), longs({1, 3}), Slice(None, None, 2)});
  Tensor x = randn({4}).set_requires_grad(), y = zeros({2, 3, 4});
  put_at(y, {1}, x);
  y.backward(randn({2, 3, 4}));
  EXPECT_EQ(x.grad().description(), x.description());
}

TEST_P(TestAutograd, setitem_mask) {
  Tensor square = rand({5, 5}) > 0.5, row = rand({5}) > 0.5;
  square.index_put_({0, 0}, tensor(true));  // one at least
  row.index_put_({0}, tensor(true));
  check_setitem({5, 5}, {square});
  check_setitem({5}, {row});
  check_setitem({1}, {tensor({true})});
}

TEST_P(TestAutograd, diagonal_expanded_v) {
  Tensor value = rand({}, kFloat64), a = rand({10, 10}, kFloat64).set_requires_grad();
  Tensor found = autograd::grad({a.diagonal()}, {a}, {value.expand({10})})[0];
  EXPECT_TRUE(same_bits(found, eye(10, kFloat64) * value));
}

TEST_P(TestAutograd, slice_expanded_v) {
  Tensor v = rand({10, 1}, kFloat64).expand({2, 10, 10}), a = rand({10, 10, 10}, kFloat64).set_requires_grad();
  Tensor found = autograd::grad({a.slice(0, 3, 5)}, {a}, {v})[0], expected = zeros({10, 10, 10}, kFloat64);
  expected.slice(0, 3, 5).copy_(v);
  EXPECT_TRUE(same_bits(found, expected));
}

TEST_P(TestAutograd, unused_output) {
  Tensor x = randn({10, 10}).set_requires_grad();
  (x.chunk(5)[2] * 4 + 2).sum().backward();
  Tensor expected = zeros({10, 10});
  expected.slice(0, 4, 6).fill_(4);
  EXPECT_TRUE(same_bits(x.grad(), expected));
  x.set_grad(Tensor());
  Tensor go = randn({2, 10});
  x.chunk(5)[0].backward(go);
  expected = zeros({10, 10});
  expected.slice(0, 0, 2).copy_(go);
  EXPECT_TRUE(same_bits(x.grad(), expected));
}

TEST_P(TestAutograd, isolated_node) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}).set_requires_grad(), a = x + y;
  Tensor b = std::get<1>(max(a, 1, true)).repeat({1, 5}).to(kFloat64);
  (b + a).sum().backward();
  expect_filled(x.grad(), 1);
}

TEST_P(TestAutograd, type_conversions) {
  Tensor x = randn({5, 5});
  EXPECT_EQ(x.to(kFloat32).dtype(), kFloat32);
  EXPECT_EQ(x.to(kInt32).dtype(), kInt32);
  EXPECT_EQ(x.to(kFloat64).dtype(), kFloat64);
  EXPECT_EQ(x.to(kUInt8).dtype(), kUInt8);
  Tensor whole = x.to(kInt64);
  EXPECT_EQ(x.type_as(whole).dtype(), kInt64);
  EXPECT_EQ(x.to(kFloat32).raw_data(), x.raw_data());
  EXPECT_EQ(x.type_as(randn({2})).raw_data(), x.raw_data());
  for (auto [from, to] : {std::pair{kFloat32, kFloat64}, {kFloat64, kFloat32}}) {
    Tensor source = randn({5, 5}, from).set_requires_grad();
    source.to(to).sum().backward();
    EXPECT_EQ(source.grad().dtype(), from);
    expect_filled(source.grad(), 1);
  }
}

TEST_P(TestAutograd, var_mean_differentiable) {
  Tensor x = doubles({3, 4, 5, 6, 2, 3}), y = x.detach().clone().set_requires_grad();
  Ints dims{2, 4};
  auto [var1, mean1] = var_mean(x, dims);
  Tensor var2 = var(y, dims), mean2 = y.mean(dims);
  Tensor one = (var1 * var1 * mean1 * mean1).sum(), two = (var2 * var2 * mean2 * mean2).sum();
  expect_near(one, two, 0.01);
  one.backward();
  two.backward();
  expect_near(x.grad(), y.grad(), 0.01);
}

struct AddsInPlace : Function<AddsInPlace> {
  static Tensors forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->mark_dirty({a});
    return {a.add_(b), b + 2};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], gradients[0] + gradients[1]}; }
};

TEST_P(TestAutograd, return_leaf_inplace) {
  Tensor x = randn({5, 5}), y = randn({5, 5}).set_requires_grad();
  Tensors out = AddsInPlace::apply(x, y);
  EXPECT_TRUE(out[0].is(x));
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_EQ(grad_fn(out[0])->name(), "AddsInPlaceBackward");
  out[0].sum().backward();
  expect_filled(y.grad(), 1);
}

TEST_P(TestAutograd, inplace_on_view_leaf_errors) {
  Tensor x = zeros({1}).set_requires_grad(), y = x.view_as(x);
  EXPECT_THAT(error_of([&] { y.add_(1); }),
              HasSubstr("a view of a leaf Variable that requires grad is being used in an in-place operation"));
}

TEST_P(TestAutograd, inplace_on_view_saved_output) {
  // Freed when nobody holds it: a ring would keep it.
  auto held = std::make_shared<int>(0);
  std::weak_ptr<int> watched = held;
  {
    Tensor root = randn({3, 3}).set_requires_grad(), copy = root.clone();
    autograd::register_posthook(grad_fn(copy), [held](Tensors&, const Tensors&) {});
    held.reset();
    Tensor view = copy.view(9);
    relu_(view);
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST_P(TestAutograd, inplace_on_view_weak_grad_fn) {
  Tensor a = arange(10, kFloat32).set_requires_grad(), c;
  {
    Tensor b = a.narrow(0, 0, 2).clone().view(-1);
    relu_(b);
    c = b.clone();
  }
  Tensor s = c.sum();
  s.backward();
  EXPECT_EQ(s.item<double>(), 1);
  Tensor leaf = rand({10}).set_requires_grad();
  EXPECT_THAT(error_of([&] { relu_(leaf.narrow(0, 0, 10)); }), HasSubstr("a view of a leaf Variable"));
}

// Where the gradients that a backward gave lie.
struct Given {
  static inline const void* data = nullptr;
};
struct GivesExpanded : Function<GivesExpanded> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x + y; }
  static Tensors backward(AutogradContext*, Tensors) {
    Tensor wide = randn({1}).expand({2});
    Given::data = wide.raw_data();
    return {wide, wide};
  }
};
struct GivesOneTwice : Function<GivesOneTwice> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x + y; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    Tensor made = gradients[0] * 1;
    Given::data = made.raw_data();
    return {made, made};
  }
};

TEST_P(TestAutograd, no_grad_copy) {
  Tensor a = randn({2}).set_requires_grad(), b = randn({2}).set_requires_grad();
  GivesExpanded::apply(a, b).sum().backward();
  EXPECT_NE(a.grad().raw_data(), Given::data);
  EXPECT_NE(b.grad().raw_data(), Given::data);
  EXPECT_TRUE(a.grad().is_contiguous() && b.grad().is_contiguous());
  a.set_grad(Tensor());
  b.set_grad(Tensor());
  GivesOneTwice::apply(a, b).sum().backward();
  EXPECT_NE(a.grad().raw_data(), b.grad().raw_data());
  EXPECT_NE(a.grad().raw_data() == Given::data, b.grad().raw_data() == Given::data);
}

struct DoubleMul : Function<DoubleMul> {
  static Tensors forward(AutogradContext*, const Tensor& x) { return {x * 2, x * 3}; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2 + gradients[1] * 3}; }
};

Tensors two_results(const Tensor& x, bool custom) {
  if (custom) return DoubleMul::apply(x);
  auto [var, mean] = var_mean(x, Ints{0});
  return {var, mean};
}

TEST_P(TestAutograd, retain_grad_inplace) {
  for (int changes : {1, 2}) {
    Tensor a = tensor({1.0f}).set_requires_grad().clone();
    a.retain_grad();
    for (int round = 0; round < changes; ++round) a.mul_(2);
    a.sum().backward();
    expect_filled(a.grad(), 1);
  }
  // Through a view in between.
  Tensor a = tensor({1.0f}).set_requires_grad().clone();
  a.retain_grad();
  a.mul_(2);
  a.view(-1).mul_(2);
  a.sum().backward();
  expect_filled(a.grad(), 1);
  // A base that does not require grad.
  Tensor base = zeros({3}), view = base.view(-1), w = ones({3}).set_requires_grad();
  view.add_(w);
  view.retain_grad();
  view.mul_(2);
  view.sum().backward();
  expect_filled(view.grad(), 1);
  expect_filled(w.grad(), 2);
}

TEST_P(TestAutograd, retains_grad_inplace_multiple_outputs) {
  for (bool custom : {true, false}) {
    Tensor b = rand({3, 3}).set_requires_grad();
    Tensors out = two_results(b, custom);
    out[0].retain_grad();
    out[1].retain_grad();
    out[0].mul_(2);
    (out[0] + out[1]).sum().backward();
    Tensors again = two_results(b, custom);
    again[0].mul_(2);
    Tensors expected = autograd::grad({(again[0] + again[1]).sum()}, {again[0], again[1]});
    expect_near(out[0].grad(), expected[0]);
    expect_near(out[1].grad(), expected[1]);
  }
}

TEST_P(TestAutograd, retain_grad_inplace_over_view) {
  Tensor base = tensor({1.0f}).set_requires_grad().clone(), view = base.slice(0), view2 = base.slice(0);
  view.retain_grad();
  view2.retain_grad();
  view.mul_(2);
  (view + view2).sum().backward();
  expect_filled(view.grad(), 1);
  expect_filled(view2.grad(), 1);
}

TEST_P(TestAutograd, tensor_hooks_inplace_multiple_outputs) {
  for (bool custom : {true, false}) {
    Tensor b = rand({3, 3}).set_requires_grad();
    Tensors out = two_results(b, custom);
    int calls[3] = {0, 0, 0};
    auto expects = [&](size_t which, double value) {
      return [&calls, which, value](const Tensor& gradient) {
        ++calls[which];
        expect_filled(gradient, value);
      };
    };
    autograd::register_hook(out[0], expects(0, 2));
    autograd::register_hook(out[1], expects(1, 3));
    out[0].mul_(2);
    autograd::register_hook(out[0], expects(2, 1));
    (out[0] + 3 * out[1]).sum().backward();
    EXPECT_THAT(calls, ::testing::ElementsAre(1, 1, 1));
  }
}

TEST_P(TestAutograd, tensor_hooks_inplace_over_view) {
  int calls = 0, never = 0;
  Tensor base = tensor({1.0f}).set_requires_grad().clone(), view = base.slice(0), view2 = base.slice(0);
  autograd::register_hook(view, [&](const Tensor&) { ++never; });
  autograd::register_hook(view2, [&](const Tensor&) { ++never; });
  view.mul_(2);
  (void)grad_fn(view2);
  autograd::register_hook(view2, [&](const Tensor& gradient) {
    ++calls;
    expect_filled(gradient, 1);
  });
  (view + view2).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(never, 0);
}

TEST_P(TestAutograd, detach) {
  Tensor x = randn({10, 10}).set_requires_grad(), y = (x + 2).detach(), z = y * 4 + 2;
  EXPECT_FALSE(y.requires_grad() || z.requires_grad());
  x = randn({10, 10}).set_requires_grad();
  y = (x * 2).detach();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_FALSE(grad_fn(y));
  (x + y).sum().backward();
  expect_filled(x.grad(), 1);

  x = randn({10, 10}).set_requires_grad();
  y = randn({10, 10}).set_requires_grad();
  Tensor a = x * 2;
  (y + a).sum().backward({}, true);
  EXPECT_TRUE(detach_(a).is(a));
  EXPECT_FALSE(a.requires_grad());
  (y + a).sum().backward();
  expect_filled(x.grad(), 2);
  expect_filled(y.grad(), 2);
  EXPECT_THAT(error_of([&] { detach_(x.narrow(0, 1, 4)); }), HasSubstr("view"));
}

TEST_P(TestAutograd, detach_base) {
  Tensor x = randn({10, 10}).set_requires_grad(), view = x.narrow(0, 1, 4);
  detach_(x);
  EXPECT_FALSE(x.requires_grad());
  EXPECT_TRUE(view.requires_grad());
  EXPECT_TRUE(grad_fn(view));
  EXPECT_TRUE(autograd::meta_of(view)->view->base.is(x));
}

TEST_P(TestAutograd, version_counter) {
  Tensor x = randn({1, 2});
  int64_t version = x.version();
  x.add_(1);
  EXPECT_GT(x.version(), version);
  Tensor view = x.slice(0);
  EXPECT_EQ(view.version(), x.version());
  view.add_(1);
  EXPECT_EQ(view.version(), x.version());
  x.add_(1);
  EXPECT_EQ(view.version(), x.version());
  version = x.version();
  autograd::set_data(x, randn({2, 3}));
  EXPECT_EQ(x.version(), version);
  x.add_(1);
  EXPECT_GT(x.version(), version);
  EXPECT_EQ(x.version(), view.version());
}

TEST_P(TestAutograd, set_data_self_requires_grad) {
  Tensor x = tensor(1.0).set_requires_grad();
  autograd::set_data(x, tensor(2.0));
  EXPECT_EQ(x.item<double>(), 2);
  EXPECT_THAT(error_of([&] { autograd::set_data(x, tensor(3)); }),
              HasSubstr("must be floating point or complex dtype"));
}

TEST_P(TestAutograd, unsafe_set_version_counter) {
  Tensor x = ones({2}).set_requires_grad().clone();
  x.add_(1);
  x.add_(1);
  EXPECT_EQ(x.version(), 2);
  {
    autograd::PreserveVersion unchanged(x);
    x.mul_(2);
    x.mul_(3);
  }
  EXPECT_EQ(x.version(), 2);
  autograd::set_version(x, 0);
  EXPECT_EQ(x.version(), 0);
  EXPECT_THAT(error_of([&] { autograd::set_version(x, -1); }), HasSubstr("Cannot set"));
}

TEST_P(TestAutograd, power_function) {
  Tensor expected = tensor({-std::numeric_limits<float>::infinity(), 0.0f, 0.0f});
  for (bool number : {false, true}) {
    Tensor a = tensor({0.0f, 0.0f, 0.0f}), b = tensor({-1.0f, 0.0f, 1.0f}).set_requires_grad();
    Tensor c = number ? pow(tensor(0.0f), b) : pow(a, b);
    c.sum().backward();
    EXPECT_TRUE(b.grad().equal(expected)) << b.grad();
  }
}

}  // namespace
}  // namespace tenon
