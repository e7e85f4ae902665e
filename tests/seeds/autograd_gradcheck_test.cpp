// The autograd suite: gradcheck, and the cases that are checked with it.
#include "autograd.h"

#include <tenon/autograd/gradcheck.h>
#include <tenon/support/warnings.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::gradcheck;
using autograd::GradcheckError;
using autograd::gradgradcheck;

TEST_P(TestAutograd, gradcheck_single_input) {
  for (bool fast : {true, false}) {
    auto f = [](const Tensor& x) { return x.mul(5); };
    EXPECT_TRUE(gradcheck(f, {doubles({10})}, {.fast_mode = fast}));
    EXPECT_TRUE(gradgradcheck(f, {doubles({10})}, {.fast_mode = fast}));
  }
}

TEST_P(TestAutograd, unrelated_inputs) {
  auto f = [](const Tensor& x, const Tensor&) { return x * x; };
  EXPECT_TRUE(gradcheck(f, {doubles({10}), doubles({10})}));
  EXPECT_TRUE(gradgradcheck(f, {doubles({10}), doubles({10})}));
}

TEST_P(TestAutograd, select_sum) {
  auto f = [](const Tensor& x) { return x.select(0, 1).sum(); };
  EXPECT_TRUE(gradcheck(f, {doubles({10})}));
  EXPECT_TRUE(gradgradcheck(f, {doubles({10})}));
}

struct DoubleDuplicate : Function<DoubleDuplicate> {
  static Tensors forward(AutogradContext*, const Tensor& x) {
    Tensor out = x * 2;
    return {out, out};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2 + gradients[1] * 2}; }
};

TEST_P(TestAutograd, return_duplicate) {
  auto f = [](const Tensor& x) {
    Tensors both = DoubleDuplicate::apply(x);
    EXPECT_TRUE(both[0].is(both[1]));
    return both[0] + both[1];
  };
  EXPECT_TRUE(gradcheck(f, {doubles({5, 5})}));
  EXPECT_TRUE(gradgradcheck(f, {doubles({5, 5})}));
}

struct DoubleInplace : Function<DoubleInplace> {
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return {x, x};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2 + gradients[1] * 2}; }
};

TEST_P(TestAutograd, return_duplicate_inplace) {
  Tensor x = doubles({5, 5});
  auto f = [](const Tensor& at) {
    Tensors both = DoubleInplace::apply(at.clone());
    EXPECT_TRUE(both[0].is(both[1]));
    return both[0] + both[1];
  };
  EXPECT_TRUE(gradcheck(f, {x}));
  EXPECT_TRUE(gradgradcheck(f, {x}));
  EXPECT_THAT(error_of([&] { DoubleInplace::apply(x); }), HasSubstr("a leaf Variable that requires grad"));
  EXPECT_THAT(error_of([&] { DoubleInplace::apply(x.clone()[0]); }),
              HasSubstr("your Function modifies inplace an input that is a view of another Tensor"));
}

// A backward of its input, or of its own result.
template <bool by_result>
struct Squared : Function<Squared<by_result>> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x * x;
    ctx->save_for_backward({x, y});
    return y;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensors saved = ctx->saved_tensors();
    return {by_result ? 2 * saved[1] / saved[0] * gradients[0] : 2 * saved[0] * gradients[0]};
  }
};

template <typename F>
void check_not_freed_early() {
  Tensor x = tensor(2.0, kFloat64).set_requires_grad();
  auto f = [](const Tensor& at) { return F::apply(at); };
  EXPECT_TRUE(gradcheck(f, {x}));
  EXPECT_TRUE(gradgradcheck(f, {x}));
  Tensor first = autograd::grad({F::apply(x)}, {x}, {}, false, true)[0];
  EXPECT_EQ(first.item<double>(), 4);
  EXPECT_EQ(autograd::grad({first}, {x})[0].item<double>(), 2);
}

TEST_P(TestAutograd, custom_autograd_no_early_free) {
  check_not_freed_early<Squared<false>>();
  check_not_freed_early<Squared<true>>();
}

// Seven results, of which three are tensors; `t1` comes back as it is.
struct Mixed : Function<Mixed> {
  static inline int seen = 0;
  template <typename T>
  static std::tuple<int, T, std::nullopt_t, bool, T, std::string, T> forward(AutogradContext* ctx, const T& t1,
                                                                             const T& t2, const T& t3, int scale) {
    T t4 = t1 + t2 * t3, t5 = t1 * t2 + t3;
    t4 = t4 * scale;
    t5 = t5 * scale;
    if constexpr (std::is_same_v<T, Tensor>) ctx->save_for_backward({t1, t2, t3});
    ctx->saved_data["scale"] = scale;
    return {scale, t4, std::nullopt, true, t5, "bar", t1};
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    ++seen;
    EXPECT_EQ(gradients.size(), 7u);
    for (size_t at : {0, 2, 3, 5}) EXPECT_FALSE(gradients[at].defined()) << at;
    Tensors t = ctx->saved_tensors();
    auto scale = static_cast<double>(ctx->saved_data["scale"].integer());
    Tensor one = scale * gradients[1] + scale * t[1] * gradients[4] + gradients[6];
    Tensor two = scale * t[2] * gradients[1] + scale * t[0] * gradients[4];
    return {one, two, Tensor(), Tensor()};
  }
};

TEST_P(TestAutograd, custom_function_non_tensor_inputs_outputs) {
  Tensor t1 = doubles({}), t2 = doubles({}), t3 = doubles({}, false);
  Mixed::seen = 0;
  auto [number, t4, none, flag, t5, text, same] = Mixed::apply(t1, t2, t3, 2);
  EXPECT_EQ(number, 2);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "bar");
  expect_near(t4, 2 * (t1 + t2 * t3));
  expect_near(t5, 2 * (t1 * t2 + t3));
  expect_near(same, t1);
  (t4 + t5 + same).backward();
  EXPECT_EQ(Mixed::seen, 1);
  EXPECT_TRUE(t1.grad().defined() && t2.grad().defined());
  EXPECT_FALSE(t3.grad().defined());
  EXPECT_TRUE(gradcheck(
      [](const Tensor& a, const Tensor& b, const Tensor& c) {
        auto results = Mixed::apply(a, b, c, 2);
        return Tensors{std::get<1>(results), std::get<4>(results), std::get<6>(results)};
      },
      {doubles({}), doubles({}), doubles({}, false)}));
}

TEST_P(TestAutograd, custom_function_no_tensors) {
  auto [number, t4, none, flag, t5, text, same] = Mixed::apply(1.5, 2.0, -0.5, 3);
  EXPECT_EQ(number, 3);
  EXPECT_EQ(t4, 3 * (1.5 + 2.0 * -0.5));
  EXPECT_TRUE(flag);
  EXPECT_EQ(t5, 3 * (1.5 * 2.0 - 0.5));
  EXPECT_EQ(text, "bar");
  EXPECT_EQ(same, 1.5);
}

// Gives other values every time.
struct Jittered : Function<Jittered> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double jitter) {
    ctx->saved_data["jitter"] = jitter;
    return x * 1;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    double jitter = ctx->saved_data["jitter"].real();
    if (jitter == 0) return {gradients[0], Tensor()};
    NoGrad off;
    Tensor noise = rand_like(gradients[0].detach()) * jitter;
    EnableGrad on;
    return {Jittered::apply(gradients[0], jitter) * (1 + noise), Tensor()};
  }
};

TEST_P(TestAutograd, gradcheck_nondeterministic) {
  for (bool fast : {true, false}) {
    Tensor x = doubles({5, 5});
    auto with = [](double jitter) { return [jitter](const Tensor& at) { return Jittered::apply(at, jitter); }; };
    EXPECT_TRUE(gradcheck(with(0), {x}, {.fast_mode = fast}));
    EXPECT_TRUE(gradgradcheck(with(0), {x}, {.fast_mode = fast}));
    EXPECT_THAT(error_of([&] { gradcheck(with(1e-6), {x}, {.fast_mode = fast}); }),
                HasSubstr("Backward is not reentrant"));
    EXPECT_TRUE(gradcheck(with(1e-6), {x}, {.nondet_tol = 1e-5, .fast_mode = fast}));
    EXPECT_THAT(error_of([&] { gradgradcheck(with(1e-12), {x}, {.fast_mode = fast}); }),
                HasSubstr("Backward is not reentrant"));
    EXPECT_TRUE(gradgradcheck(with(1e-12), {x}, {.nondet_tol = 1e-5, .fast_mode = fast}));
  }
}

TEST_P(TestAutograd, gradcheck_check_no_differentiable_outputs) {
  for (bool fast : {true, false}) {
    auto outside = [](const Tensor& x) { return x.detach() * 2; };
    Tensor x = ones({}, kFloat64).set_requires_grad();
    EXPECT_THAT(error_of([&] { gradcheck(outside, {x}, {.fast_mode = fast}); }),
                HasSubstr("Numerical gradient for function expected to be zero"));
    EXPECT_FALSE(gradcheck(outside, {x}, {.raise_exception = false, .fast_mode = fast}));
    EXPECT_TRUE(gradcheck([](const Tensor&) { return Tensors{}; }, {x}, {.fast_mode = fast}));
  }
}

TEST_P(TestAutograd, gradcheck_output_shape_or_dtype_depend_on_values) {
  for (bool fast : {true, false}) {
    Tensor x = ones({1}, kFloat64).set_requires_grad();
    auto other_shape = [](const Tensor& at) { return (at >= 1).all().item<bool>() ? cat({at, at}) : at * 1; };
    EXPECT_THAT(error_of([&] { gradcheck(other_shape, {x}, {.fast_mode = fast}); }),
                HasSubstr("return outputs with the same shape when inputs are perturbed"));
    auto other_dtype = [](const Tensor& at) { return (at >= 1).all().item<bool>() ? at * 1 : at.to(kFloat32); };
    EXPECT_THAT(error_of([&] { gradcheck(other_dtype, {x}, {.fast_mode = fast}); }),
                HasSubstr("return outputs with the same dtype when inputs are perturbed"));
  }
}

struct Wrong : Function<Wrong> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 3}; }
};

TEST_P(TestAutograd, gradcheck_custom_error) {
  for (bool fast : {true, false}) {
    Tensor x = rand({2, 2}, kFloat64).set_requires_grad();
    auto wrong = [](const Tensor& at) { return Wrong::apply(at); };
    EXPECT_THROW(gradcheck(wrong, {x}, {.fast_mode = fast}), GradcheckError);
    EXPECT_THROW(gradcheck(wrong, {x}, {.fast_mode = fast}), RuntimeError);
    EXPECT_THAT(error_of([&] { gradcheck(wrong, {x}, {.fast_mode = fast}); }),
                HasSubstr("Jacobian mismatch for output 0 with respect to input 0"));
    EXPECT_FALSE(gradcheck(wrong, {x}, {.raise_exception = false, .fast_mode = fast}));
    auto throwing = [](const Tensor&) -> Tensor { throw RuntimeError("Not a GradcheckError!"); };
    EXPECT_THAT(error_of([&] { gradcheck(throwing, {x}, {.raise_exception = false, .fast_mode = fast}); }),
                HasSubstr("Not a GradcheckError!"));
  }
}

}  // namespace
}  // namespace tenon
