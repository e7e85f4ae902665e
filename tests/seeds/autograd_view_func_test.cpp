// Views that are made again, of another tensor.
#include "autograd.h"

#include <tenon/autograd/meta.h>
#include <tenon/autograd/view_func.h>
#include <tenon/autograd/view_replay.h>

namespace tenon {
namespace {

using namespace testing;
using Tensors = std::vector<Tensor>;
using autograd::base_of;
using autograd::view_func;

void expect_same_geometry(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(found.sizes(), expected.sizes());
  EXPECT_EQ(found.strides(), expected.strides());
  EXPECT_EQ(found.storage_offset(), expected.storage_offset());
  EXPECT_EQ(found.dtype(), expected.dtype());
  EXPECT_EQ(found.device(), expected.device());
}

void check_made_again(const Tensor& base, const Tensors& views) {
  ASSERT_FALSE(views.empty());
  for (const Tensor& view : views) {
    ASSERT_TRUE(base_of(view).defined());
    EXPECT_TRUE(base_of(view).is(base));
    Tensor other = base.clone();
    expect_same_geometry(other, base);
    Tensor again = view_func(view, other);
    expect_same_geometry(again, view);
    EXPECT_TRUE(again.equal(view));
    EXPECT_TRUE(base_of(again).is(other));
    // And back: whoever has the memory of the view has the base.
    Tensor detached = view.detach(), whole = autograd::reverse_view_func(view, detached);
    expect_same_geometry(whole, base);
    EXPECT_TRUE(base_of(whole).is(detached));
    EXPECT_TRUE(whole.equal(base));
  }
}
void check_made_again(const Tensor& base, const Tensor& view) { check_made_again(base, Tensors{view}); }

// (There are no complex numbers, and so neither view_as_complex nor view_as_real.)
TEST_P(TestAutograd, view_func_replay) {
  autograd::ViewReplay by_steps(true);
  Tensor x = rand({2, 2});
  check_made_again(x, alias(x));
  check_made_again(x, x.as_strided({4}, {1}));
  check_made_again(x, x.narrow(0, 1, 1));
  check_made_again(x, x.select(0, 0));
  check_made_again(x, x.slice(1, 1, 2));
  check_made_again(x, x.split(1));
  x = rand({2, 4});
  check_made_again(x, x.chunk(2, -1));
  check_made_again(x, x.split_with_sizes({1, 3}, -1));
  check_made_again(x, x.t());
  check_made_again(x, x.transpose(0, 1));
  check_made_again(x, x.unsqueeze(-2));
  x = rand({4, 4});
  check_made_again(x, x.diagonal());
  x = rand({4, 1});
  check_made_again(x, x.expand({-1, 3}));
  x = rand({2, 3, 4});
  check_made_again(x, x.permute({1, 0, 2}));
  x = rand({2, 1, 4});
  check_made_again(x, x.squeeze());
  check_made_again(x, x.squeeze(1));
  x = rand({2, 1, 1, 4});
  check_made_again(x, squeeze(x, Ints{1, 2}));
  x = rand({1, 5});
  check_made_again(x, x.unbind());
  check_made_again(x, x.unfold(1, 3, 2));
  x = rand({2, 10});
  check_made_again(x, x.view({-1, 5, 2}));

  // Chains, also of pieces.
  x = randn({2, 4});
  check_made_again(x, x.unsqueeze(-1).transpose(-1, -2).squeeze(1));
  x = randn({2, 3, 4});
  check_made_again(x, x.chunk(2, -1)[0].transpose(0, 1).unsqueeze(-1));
  check_made_again(x, x.split_with_sizes({1, 3}, -1)[0].chunk(2, 0));

  // Nested: steps where they are known, places where they are not.
  for (bool first : {true, false}) {
    Tensor part = [&] {
      autograd::ViewReplay tracked(first);
      return x.split_with_sizes({1, 3}, -1)[0];
    }();
    autograd::ViewReplay tracked(!first);
    check_made_again(x, part.chunk(2, 0));
    check_made_again(x, part.transpose(0, 1));
  }
  EXPECT_THAT(error_of([&] { view_func(x, x); }), HasSubstr("[view_func] expected a view that autograd follows"));
  EXPECT_THAT(error_of([&] { view_func(x.select(0, 1), rand({5, 3, 4})); }),
              HasSubstr("[view_func] select was a view of float32[2, 3, 4], got float32[5, 3, 4]"));
}

TEST_P(TestAutograd, view_func_replay_with_modified_state) {
  autograd::ViewReplay by_steps(true);
  Tensor base = randn({3, 4, 5}), view = base.select(1, 2), other = randn_like(base);
  Tensor moved = view_func(view, other, {.number = [](const SymInt& number) { return number + 1; }});
  EXPECT_TRUE(moved.equal(other.select(1, 3)));
  EXPECT_TRUE(view_func(view, other).equal(other.select(1, 2)));  // the view kept what it had

  // The one view whose state is a tensor.
  Tensor sliced = base.slice(1, 2, 3).detach();
  view = slice_inverse(sliced, base, 1, 2, 3, 1);
  EXPECT_TRUE(view.equal(base));
  EXPECT_TRUE(base_of(view).is(sliced));
  Tensor new_sliced = ones_like(base).slice(1, 2, 3).detach();
  Tensor replaced = view_func(view, new_sliced, {.tensor = [](const Tensor&) { return randn({1, 2, 3}); }});
  EXPECT_EQ(replaced.sizes(), (Ints{1, 2, 3}).span());
  EXPECT_EQ(replaced.strides(), (Ints{6, 3, 1}).span());
  EXPECT_TRUE(view_func(view, sliced).equal(base));
  expect_same_geometry(view_func(view, sliced), base);

  // What a slice was made of gives the slice its gradient.
  Tensor leaf = randn({2, 6}, kFloat64).set_requires_grad(), part = leaf.slice(1, 1, 5);
  Tensor whole = slice_inverse(part, leaf, 1, 1, 5);
  (whole * arange(12).view({2, 6})).sum().backward();
  expect_near(leaf.grad(), tensor({0., 1., 2., 3., 4., 0., 0., 7., 8., 9., 10., 0.}, kFloat64).view({2, 6}));
}

}  // namespace
}  // namespace tenon
