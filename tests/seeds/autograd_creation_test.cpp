// The autograd suite: how a view was created, and what that means for changing it in place; tensors as nodes save them.
#include "autograd.h"

#include <tenon/autograd/detach.h>
#include <tenon/autograd/gradcheck.h>
#include <tenon/autograd/inference_mode.h>
#include <tenon/autograd/saved.h>
#include <tenon/autograd/view_replay.h>
#include <tenon/support/warnings.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using autograd::SetGradMode;

bool is_view(const Tensor& tensor) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  return meta && meta->view;
}

// A text that must be there, or none at all: then nothing may be thrown.
template <typename F>
void expect_error(const std::string& text, F&& action) {
  std::string found = thrown_by(action);
  if (text.empty())
    EXPECT_EQ(found, "");
  else
    EXPECT_THAT(found, HasSubstr(text));
}

struct ViewAsItself : Function<ViewAsItself> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.view_as(x); }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0]}; }
};

constexpr const char* kNoGrad = "A view was created in no_grad mode";
constexpr const char* kSeveral = "function that returns multiple views";
constexpr const char* kInFunction = "view was created inside a custom Function";

void check_views(bool grad_mode, bool requires_grad, const std::vector<std::string>& errors) {
  Tensor base = rand({2}).set_requires_grad(requires_grad).clone(), view;
  {
    SetGradMode mode(grad_mode);
    view = base.view_as(base);
  }
  EXPECT_TRUE(is_view(view));
  expect_error(errors[0], [&] { view.add_(1); });
  base = rand({2}).set_requires_grad(requires_grad).clone();
  std::vector<Tensor> pieces;
  {
    SetGradMode mode(grad_mode);
    pieces = base.unbind();
  }
  for (size_t at : {0, 1}) {
    EXPECT_TRUE(is_view(pieces[at]));
    expect_error(errors[at + 1], [&] { pieces[at].add_(1); });
  }
}

TEST_P(TestAutograd, autograd_views_codegen) {
  check_views(true, false, {"", "", ""});
  check_views(true, true,
              {"", "Output 0 of UnbindBackward0 is a view and is being modified inplace.",
               "Output 1 of UnbindBackward0 is a view and is being modified inplace."});
  std::string without = "A view was created in no_grad mode and is being modified inplace";
  check_views(false, true, {without, without, without});
  check_views(false, false, {"", "", ""});
}

TEST_P(TestAutograd, inplace_not_requires_grad) {
  const std::string in_function = "This view was created inside a custom Function";
  const std::string several = "This view is the output of a function that returns multiple views.";
  auto with_grad = [](const Ints& sizes) { return rand(SymInts(sizes.span())).set_requires_grad(); };
  expect_error(in_function, [&] { ViewAsItself::apply(rand({1, 2})).add_(with_grad({1, 2})); });
  expect_error(in_function, [&] { ViewAsItself::apply(rand({1, 2})).copy_(with_grad({1, 2})); });
  expect_error(several, [&] { rand({1, 2}).unbind(0)[0].add_(with_grad({2})); });
  expect_error(several, [&] { rand({1, 2}).unbind(0)[0].copy_(with_grad({2})); });
  rand({1, 2}).select(1, 0).copy_(with_grad({1}));
}

template <typename F>
void check_inplace_views(F change) {
  for (const std::string kind : {"normal", "several", "function"})
    for (bool grad_view : {true, false})
      for (bool grad_change : {true, false})
        for (bool requires_grad : {true, false}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", kind, grad_view, grad_change, requires_grad));
          std::string why = !grad_view ? kNoGrad : kind == "several" ? kSeveral : kind == "function" ? kInFunction : "";
          if (!requires_grad) why.clear();
          Tensor base = rand({2, 3}).set_requires_grad(requires_grad).clone(), view;
          {
            SetGradMode mode(grad_view);
            view = kind == "several"    ? base.unbind()[0]
                   : kind == "function" ? ViewAsItself::apply(base)
                                        : base.view_as(base);
          }
          {
            SetGradMode mode(grad_change);
            expect_error(grad_change ? why : "", [&] { change(view); });
          }
          if (grad_change && !why.empty()) continue;
          expect_error(why, [&] { view.add_(1); });
        }
}

TEST_P(TestAutograd, autograd_inplace_views_creation_meta) {
  check_inplace_views([](const Tensor& view) { view.as_strided_({1, 0}, {2, 2}); });
  check_inplace_views([](const Tensor& view) { view.transpose_(0, 0); });
  check_inplace_views([](const Tensor& view) { view.t_(); });
  check_inplace_views([](const Tensor& view) { view.squeeze_(0); });
  check_inplace_views([](const Tensor& view) { view.unsqueeze_(0); });
  check_inplace_views([](const Tensor& view) { view.swapdims_(0, 0); });
  check_inplace_views([](const Tensor& view) { view.swapaxes_(0, 0); });
}

TEST_P(TestAutograd, autograd_inplace_view_of_view) {
  Tensor x = zeros({2}), y, z;
  {
    NoGrad off;
    y = x.view({2});
  }
  y.set_requires_grad();
  z = y.view({2});
  EXPECT_THAT(thrown_by([&] { z.div_(2); }),
              ::testing::ContainsRegex("a view of a view .* is being .* inside the no_grad block"));
  x = zeros({2});
  {
    InferenceMode on;
    y = x.view({2});
  }
  y.set_requires_grad();
  z = y.view({2});
  EXPECT_THAT(thrown_by([&] { z.div_(2); }),
              ::testing::ContainsRegex("a view of a view .* is being .* inside the inference_mode"));
}

// Here the steps of a view are replayed unless one says otherwise; there they are not. So the case begins by saying so.
TEST_P(TestAutograd, view_replay_enabled) {
  Tensor x = ones({2, 2}).set_requires_grad();
  auto expect_replay = [&](bool replayed) {
    Tensor out = x.clone().view({-1});
    out.add_(1);
    EXPECT_THAT(grad_fn(out)->name(), HasSubstr(replayed ? "ViewBackward" : "AsStridedBackward"));
    EXPECT_EQ(autograd::is_view_replay_enabled(), replayed);
    out.backward(ones({4}));
    expect_filled(x.grad(), 1);
    x.set_grad(Tensor());
  };
  const bool before = autograd::is_view_replay_enabled();
  autograd::ViewReplay off(false);
  {
    autograd::ViewReplay inner(false);
    expect_replay(false);
  }
  expect_replay(false);
  {
    autograd::ViewReplay inner(true);
    expect_replay(true);
  }
  expect_replay(false);
  {
    autograd::ViewReplay inner(false);
    autograd::set_view_replay(true);
    expect_replay(true);
  }
  expect_replay(false);
  autograd::set_view_replay(false);
  expect_replay(false);
  autograd::set_view_replay(true);
  expect_replay(true);
  autograd::set_view_replay(before);
}

TEST_P(TestAutograd, grad_nonleaf_register_hook) {
  Tensor x = rand({5}).set_requires_grad(), seen;
  int calls = 0;
  std::vector<Tensor> elements = x.unbind();
  autograd::register_hook(elements[0], [&](const Tensor& gradient) {
    seen = gradient;
    ++calls;
  });
  for (const Tensor& element : elements) EXPECT_FALSE(autograd::meta_of(element)->grad.defined());
  elements[0].backward({}, true);
  ASSERT_TRUE(seen.defined());
  EXPECT_EQ(seen.item<float>(), 1.0f);
  std::vector<float> expected = {1, 0, 0, 0, 0};
  EXPECT_TRUE(same_bits(x.grad(), tensor(expected)));
  for (size_t at = 1; at < 5; ++at) {
    elements[at].backward({}, true);
    EXPECT_FALSE(seen.defined());
    expected[at] = 1;
    EXPECT_TRUE(same_bits(x.grad(), tensor(expected)));
  }
  EXPECT_EQ(calls, 5);
  for (const Tensor& element : elements) EXPECT_FALSE(autograd::meta_of(element)->grad.defined());
}

TEST_P(TestAutograd, no_unnecessary_unwrapping) {
  Tensor a = randn({5}).set_requires_grad(), before = a.detach().clone();
  Tensor b = a * a, c = a * b, d = a.exp();
  EXPECT_TRUE(autograd::saved(grad_fn(b), "self").is(a));
  EXPECT_TRUE(autograd::saved(grad_fn(b), "other").is(a));
  EXPECT_TRUE(autograd::saved(grad_fn(c), "self").is(a));
  EXPECT_TRUE(autograd::saved(grad_fn(c), "other").is(b));
  Tensor result = autograd::saved(grad_fn(d), "result");
  EXPECT_TRUE(same_bits(result.detach(), d.detach()));
  EXPECT_FALSE(result.is(d));
  c.sum().backward();
  EXPECT_THAT(thrown_by([&] { autograd::saved(grad_fn(c), "self"); }), HasSubstr("after they have already been freed"));
  EXPECT_TRUE(same_bits(a.detach(), before));
}

TEST_P(TestAutograd, saved_variable_saved_original_inplace_detach) {
  Tensor a = tensor({1.0f}).set_requires_grad().clone(), b = a.sin();
  detach_(a);
  EXPECT_THAT(thrown_by([&] { b.backward(); }), HasSubstr("Trying to use a saved tensor that has been detached"));
  Tensor leaf = tensor({1.0f}).set_requires_grad();
  a = leaf.clone();
  b = a.exp();
  detach_(a);
  b.backward();
  expect_near(leaf.grad(), b);
}

TEST_P(TestAutograd, gradcheck_undefined_grad) {
  Tensor x = ones({1}, kFloat64).set_requires_grad();
  auto watched = [](const Tensor& at) {
    Tensor y = at.clone();
    autograd::register_hook(y, [](const Tensor& gradient) {
      if (!gradient.defined()) throw RuntimeError("the gradient is undefined");
    });
    return y;
  };
  CatchWarnings warnings;
  EXPECT_THAT(thrown_by([&] { autograd::gradcheck(watched, {x}); }),
              HasSubstr("Expected backward function to handle undefined output grads"));
  EXPECT_THAT(
      warnings.texts(),
      ::testing::Contains(HasSubstr("Backwards compatibility: New undefined gradient support checking feature")));
  EXPECT_FALSE(autograd::gradcheck(watched, {x}, {.raise_exception = false}));
}

}  // namespace
}  // namespace tenon
