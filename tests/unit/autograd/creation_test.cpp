// Views and how they were created: pieces that share a step of backward, tensors that become views of themselves, and
// what may be changed in place; eager and compiled alike.
#include "unit/autograd/helpers.h"

#include <tenon/tenon.h>

#include <gmock/gmock.h>

namespace tenon::testing {
namespace {

using autograd::grad_fn;
using ::testing::HasSubstr;

bool same_bits(const Tensor& a, const Tensor& b) {
  NoGrad off;
  return a.sym_sizes() == b.sym_sizes() && a.detach().allclose(b.detach(), 0, 0);
}

TEST(Creation, pieces_share_one_step_of_backward) {
  Tensor x = randn({6, 4}).set_requires_grad();
  std::vector<Tensor> halves = x.chunk(2), rows = x.unbind(), uneven = x.split({1, 5}), columns = x.split(2, 1);
  EXPECT_EQ(grad_fn(halves[0])->name(), "SplitBackward0");
  EXPECT_EQ(grad_fn(halves[0]), grad_fn(halves[1]));
  EXPECT_EQ(grad_fn(rows[3])->name(), "UnbindBackward0");
  EXPECT_EQ(grad_fn(uneven[1])->name(), "SplitWithSizesBackward0");
  Tensor expected = zeros({6, 4});
  expected.slice(0, 3, 6).add_(2);
  expected[2].add_(3);
  expected.slice(0, 1, 6).add_(5);
  expected.slice(1, 2, 4).add_(7);
  (halves[1] * 2).sum().add(rows[2].sum() * 3).add(uneven[1].sum() * 5).add(columns[1].sum() * 7).backward();
  EXPECT_TRUE(same_bits(x.grad(), expected));
}

TEST(Creation, a_derivative_goes_through_pieces_twice) {
  Tensor x = randn({3, 2}, kFloat64).set_requires_grad();
  std::vector<Tensor> rows = x.unbind();
  Tensor y = (rows[0] * rows[1] * rows[1]).sum();
  Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
  g.square().sum().backward();
  Tensor a = x.detach()[0], b = x.detach()[1], expected = zeros({3, 2}, kFloat64);
  // Of b⁴ + 4a²b²: 8ab² and 4b³ + 8a²b.
  expected[0].copy_(8 * a * b * b);
  expected[1].copy_(4 * b * b * b + 8 * a * a * b);
  EXPECT_TRUE(x.grad().allclose(expected, 1e-10, 1e-12));
}

// Eager and compiled refuse the same, inside of the function and of what it gave.
TEST(Creation, compiled_functions_refuse_what_eager_refuses) {
  Tensor w = randn({2, 3}).set_requires_grad();
  auto inside = [](const Tensor& x) {
    std::vector<Tensor> rows = x.unbind();
    rows[0].mul_(2);
    return rows[0] + rows[1];
  };
  std::string refused = error_of([&] { inside(w * 1); });
  EXPECT_THAT(refused, HasSubstr("Output 0 of UnbindBackward0 is a view and is being modified inplace"));
  EXPECT_THAT(error_of([&] { compile(inside)(w * 1); }), HasSubstr("is a view and is being modified inplace"));
  Tensor plain = ones({2, 3});
  EXPECT_TRUE(same_bits(compile(inside)(plain.clone()), inside(plain.clone())));

  auto gives = [](const Tensor& x) { return (x * 2).unbind(); };
  auto compiled = compile(gives);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(error_of([&] { gives(w)[1].add_(1); }), HasSubstr("multiple views"));
    EXPECT_THAT(error_of([&] { compiled(w)[1].add_(1); }), HasSubstr("multiple views"));
  }
  auto gives_one = [](const Tensor& x) { return (x * 2).unbind()[1]; };
  EXPECT_THAT(error_of([&] { gives_one(w).add_(1); }), HasSubstr("multiple views"));
  EXPECT_THAT(error_of([&] { compile(gives_one)(w).add_(1); }), HasSubstr("multiple views"));
  auto of_input = [](const Tensor& x) { return x.split(1); };
  Tensor base = w * 1;
  EXPECT_THAT(error_of([&] { compile(of_input)(base)[0].add_(1); }), HasSubstr("multiple views"));
}

TEST(Creation, a_piece_of_what_was_changed_has_no_history_to_ask_for) {
  Tensor x = randn({2, 3}).set_requires_grad().clone();
  std::vector<Tensor> rows = x.unbind();
  x.add_(1);
  EXPECT_TRUE(rows[0].requires_grad());
  EXPECT_THAT(error_of([&] { (rows[0] * 2).sum(); }),
              HasSubstr("its base or another view of its base has been modified inplace"));
  NoGrad off;
  EXPECT_TRUE(same_bits(rows[0] * 2, x[0] * 2));
}

TEST(Creation, tensors_become_views_of_themselves) {
  Tensor w = randn({3, 3}).set_requires_grad(), v = randn({3, 3});
  Tensor y = w * 2;
  EXPECT_TRUE(y.t_().is(y));
  (y * v).sum().backward();
  EXPECT_TRUE(same_bits(w.grad(), v.t() * 2));
  w.set_grad(Tensor());
  // Of a view: what it looks into does not change.
  y = w * 2;
  Tensor part = y.slice(0, 0, 2);
  part.transpose_(0, 1).unsqueeze_(0);
  EXPECT_EQ(part.sym_sizes().size(), 3u);
  part.mul_(3);
  (y * v).sum().backward();
  Tensor expected = v * 2;
  expected.slice(0, 0, 2).mul_(3);
  EXPECT_TRUE(same_bits(w.grad(), expected));
  EXPECT_TRUE(same_bits(y.slice(0, 0, 2).t().unsqueeze(0).detach(), part.detach()));
}

// A view knows the places in memory that it looks into, whatever becomes of the shape of its base.
TEST(Creation, views_of_a_tensor_that_gets_another_shape) {
  Tensor w = randn({3, 3}).set_requires_grad();
  Tensor y = w * 2, row = y[1];
  y.t_();
  row.mul_(5);
  Tensor weights = randn({3, 3});
  (y * weights).sum().backward();
  Tensor expected = weights.t().clone() * 2;
  expected[1].mul_(5);
  EXPECT_TRUE(w.grad().allclose(expected, 1e-6, 1e-6));
}

TEST(Creation, a_leaf_gets_another_shape_without_recording) {
  Tensor w = randn({2, 3}).set_requires_grad();
  EXPECT_THAT(error_of([&] { w.t_(); }), HasSubstr("a leaf Variable that requires grad"));
  w.sum().backward();
  w.set_grad(Tensor());
  {
    NoGrad off;
    w.t_();
  }
  (w * ones({3, 2})).sum().backward();
  EXPECT_EQ(w.grad().size(0), SymInt(3));
}

TEST(Creation, compiled_functions_may_give_tensors_another_shape) {
  auto f = [](const Tensor& x) {
    Tensor y = x + 1;
    y.unsqueeze_(1).squeeze_(0);
    return y * 2;
  };
  auto compiled = compile(f);
  for (int64_t rows : {1, 4, 4, 7}) {
    Tensor x = randn({rows, 3});
    EXPECT_TRUE(same_bits(compiled(x), f(x)));
  }
}

// Something is computed from a piece of an argument, and both are returned (fuzz 36824).
TEST(Creation, a_piece_of_an_argument_that_a_compiled_function_returns_may_not_be_changed) {
  auto function = [](Tensor x) {
    Tensor piece = x.split(1, 0)[1];
    return std::pair(piece, piece.sin());
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto f = compile(function, {.backend = backend});
    for (int64_t rows : {3, 3, 4}) {
      Tensor x = randn({rows, 2}).set_requires_grad();
      auto [piece, sine] = f(x * 1);
      EXPECT_THAT(error_of([&piece = piece] { piece.mul_(2); }), HasSubstr("a function that returns multiple views"))
          << backend;
      auto [again, second] = f(x * 1);
      (again.sum() + second.sum()).backward();
      EXPECT_TRUE(x.grad()[1].allclose(x.detach()[1].cos() + 1, 1e-6, 1e-6)) << backend;
    }
  }
}

// What was detached from a piece is read behind a break, after the piece's memory was written (fuzz 4520).
TEST(Creation, what_was_detached_from_a_changed_piece_outlives_a_break) {
  auto function = [](Tensor x) {
    Tensor piece = x.split(1, 0)[0], cut = piece.reshape({x.size(1), 1}).detach();
    cut.add_(1);
    SymFloat first = cut.sum().item<SymFloat>();
    return std::pair(cut * first, piece);
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"})
    for (Dynamic dynamic : {Dynamic::On, Dynamic::Off}) {
      auto f = compile(function, {.dynamic = dynamic, .backend = backend});
      for (int64_t columns : {3, 3, 5}) {
        Tensor x = randn({2, columns}).set_requires_grad(), y = x.detach().clone().set_requires_grad();
        auto [expected, expected_piece] = function(x);
        auto [got, piece] = f(y);
        EXPECT_TRUE(same_bits(got, expected)) << backend;
        EXPECT_TRUE(same_bits(y, x)) << backend;
        EXPECT_EQ(got.requires_grad(), expected.requires_grad()) << backend;
      }
    }
}

// A node holds the very tensor, and yet no ring: the tensor may come to depend on it.
TEST(Creation, what_is_saved_is_let_go_of_when_its_history_changes) {
  Tensor w = randn({3}).set_requires_grad();
  WeakRef<TensorImpl> watched;
  {
    Tensor a = w * 2, y = a * w;  // y's step saves a
    a.add_(y);                    // and a now comes after it
    watched = WeakRef<TensorImpl>(a.ref());
    EXPECT_THAT(error_of([&] { a.sum().backward(); }), HasSubstr("modified by an inplace operation"));
  }
  EXPECT_TRUE(watched.expired());
  // Set anew without a change of the data, the node reads what it saved, with the history that it had.
  Tensor a = w * 2, y = a * w;
  autograd::set_history(a, autograd::Edge{});
  Tensor g = autograd::grad({y.sum()}, {w}, {}, true, true)[0];
  g.sum().backward();
  EXPECT_TRUE(w.grad().allclose(full({3}, 4.0), 1e-6, 1e-6));
}

}  // namespace
}  // namespace tenon::testing
