// The autograd suite: functions and gradcheck in forward mode.
#include "autograd.h"

#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/gradcheck.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tenon {
namespace {

using namespace testing;
using autograd::gradcheck;
using autograd::GradcheckError;
using forward_ad::DualLevel;
using forward_ad::make_dual;
using forward_ad::unpack_dual;

// ---- Functions ------------------------------------------------------------------------------------------------------

struct DoubleInPlace : Function<DoubleInPlace> {
  static inline bool changes_tangent = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    return {changes_tangent ? tangents[0].mul_(2) : tangents[0] * 2};
  }
};

TEST_P(TestAutograd, custom_function_mark_dirty_not_differentiable) {
  for (bool requires_grad : {false, true}) {
    Tensor x = doubles({2}, requires_grad).clone();
    EXPECT_TRUE(DoubleInPlace::apply(x).is(x));
    for (bool changes : {true, false}) {
      DoubleInPlace::changes_tangent = changes;
      DualLevel level;
      Tensor tangent = ones({2}, kFloat64), dual = make_dual(x.clone(), tangent);
      if (!changes) {
        EXPECT_THAT(error_of([&] { DoubleInPlace::apply(dual); }),
                    HasSubstr("jvp function must modify the corresponding gradient inplace"));
        continue;
      }
      Tensor result = DoubleInPlace::apply(dual);
      EXPECT_TRUE(result.is(dual));
      EXPECT_TRUE(unpack_dual(result).tangent.is(tangent));
      expect_filled(tangent, 2);
    }
  }
  DoubleInPlace::changes_tangent = true;
}

TEST_P(TestAutograd, custom_function_forward_mode_inplace_checks) {
  auto f = [](const Tensor& x) { return DoubleInPlace::apply(x.clone()); };
  EXPECT_TRUE(gradcheck(f, {doubles({2})}, {.check_forward_ad = true}));
  DoubleInPlace::changes_tangent = false;
  EXPECT_THAT(error_of([&] { gradcheck(f, {doubles({2})}, {.check_forward_ad = true}); }),
              HasSubstr("inplace custom Function is not modifying the forward mode gradients inplace"));
  DoubleInPlace::changes_tangent = true;
}

struct Doubling : Function<Doubling> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
};

// Without a forward, without a backward, or with two: in C++ the compiler says so, in the same words.
TEST_P(TestAutograd, custom_function_error) {
  namespace fs = std::filesystem;
  fs::path file = fs::temp_directory_path() / fmt::format("tenon_functions_{}_{}.cpp", getpid(), GetParam());
  std::ofstream(file) << R"(
#include <tenon/autograd/function.h>
using namespace tenon;
using autograd::AutogradContext;
using Tensors = std::vector<Tensor>;
struct NoForward : autograd::Function<NoForward> {
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};
struct NoBackward : autograd::Function<NoBackward> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
};
struct Both : autograd::Function<Both> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return gradients; }
};
void use(const Tensor& x) { NoForward::apply(x), NoBackward::apply(x), Both::apply(x); }
)";
  fs::path log = file.string() + ".log";
  std::string compile = fmt::format("c++ -std=c++20 -fsyntax-only -w -I{}/include -I{}/generated/include {} > {} 2>&1",
                                    TENON_SOURCE_DIR, TENON_BINARY_DIR, file.string(), log.string());
  EXPECT_NE(std::system(compile.c_str()), 0);
  std::ifstream stream(log);
  std::string said(std::istreambuf_iterator<char>(stream), {});
  EXPECT_THAT(said, HasSubstr("must implement the forward"));
  EXPECT_THAT(said, HasSubstr("must implement either the backward"));
  EXPECT_THAT(said, HasSubstr("Implementing both 'backward' and 'vjp'"));
  fs::remove(file);
  fs::remove(log);

  DualLevel level;
  Tensor dual = make_dual(ones({2}), ones({2}));
  EXPECT_THAT(error_of([&] { Doubling::apply(dual); }), HasSubstr("must implement the jvp function"));
}

enum class Gives { View, NotAView, NotOfInput, NotOfBase };
struct FirstTwo : Function<FirstTwo> {
  static inline Gives gives = Gives::View;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->saved_data["sizes"] = AnyValue(Ints(x.sizes()));
    return x.narrow(0, 0, 2);
  }
  static Tensors vjp(AutogradContext*, Tensors gradients) {
    Tensor whole = zeros({4, 4}, kFloat64);
    whole.narrow(0, 0, 2).copy_(gradients[0]);
    return {whole};
  }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    Tensor part = tangents[0].narrow(0, 0, 2);
    if (gives != Gives::View) part = part.clone();
    if (gives == Gives::NotOfInput || gives == Gives::NotOfBase) part = part.view_as(part);
    return {part};
  }
};

TEST_P(TestAutograd, custom_function_forward_mode_view_checks) {
  const std::pair<Gives, const char*> expected[] = {
      {Gives::View, ""},
      {Gives::NotAView, "jvp is not returning a view"},
      {Gives::NotOfInput, "jvp is not returning a view of the given"},
      {Gives::NotOfBase, "jvp is not returning a view of the same base"},
  };
  for (auto [gives, text] : expected) {
    FirstTwo::gives = gives;
    // (What gradcheck hands to the function is itself a view here: a dual tensor is one of its primal.)
    auto f = [given = gives](const Tensor& x) {
      return FirstTwo::apply(given == Gives::NotOfBase ? x.view_as(x) : given == Gives::View ? x : x.clone());
    };
    auto check = [&] { return gradcheck(f, {doubles({4, 4})}, {.check_forward_ad = true}); };
    if (gives == Gives::View)
      EXPECT_TRUE(check());
    else
      EXPECT_THAT(error_of(check), HasSubstr(text));
  }
  FirstTwo::gives = Gives::View;
}

struct Scaled : Function<Scaled> {
  static inline double tangent_factor = 2;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
  static Tensors jvp(AutogradContext*, Tensors tangents) { return {tangents[0] * tangent_factor}; }
};

TEST_P(TestAutograd, custom_function_forward_mode_wrong_formula) {
  EXPECT_TRUE(gradcheck(Scaled::apply<const Tensor&>, {doubles({2})}, {.check_forward_ad = true}));
  Scaled::tangent_factor = 3;
  EXPECT_THAT(error_of([] { gradcheck(Scaled::apply<const Tensor&>, {doubles({2})}, {.check_forward_ad = true}); }),
              HasSubstr("Jacobian computed with forward mode mismatch for output 0"));
  Scaled::tangent_factor = 2;
}

struct Weighted : Function<Weighted> {
  static Tensor forward(AutogradContext*, int, const Tensor& x, int, const Tensor& y) { return x * 2 + y * 3; }
  static Tensors vjp(AutogradContext*, Tensors gradients) {
    return {Tensor(), gradients[0] * 2, Tensor(), gradients[0] * 3};
  }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    EXPECT_EQ(tangents.size(), 4u);
    EXPECT_FALSE(tangents[0].defined());
    EXPECT_FALSE(tangents[2].defined());
    return {tangents[1] * 2 + tangents[3] * 3};
  }
};

TEST_P(TestAutograd, custom_function_forward_mode_non_tensor_before_tensor_args) {
  Tensor x = doubles({1}), y = doubles({1});
  {
    DualLevel level;
    Tensor dual = make_dual(x, full({1}, 5.0, kFloat64));
    expect_filled(unpack_dual(Weighted::apply(1, dual, 1, y)).tangent, 10);
  }
  auto f = [](const Tensor& a, const Tensor& b) { return Weighted::apply(1, a, 1, b); };
  EXPECT_TRUE(gradcheck(f, {x, y}, {.check_backward_ad = false, .check_forward_ad = true}));
}

enum class GivesBack { View, Itself, Another };
struct SumAndFirst : Function<SumAndFirst> {
  static inline GivesBack gives = GivesBack::View;
  static Tensors forward(AutogradContext*, const Tensor& x, const Tensor& y) { return {x + y, x}; }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return {gradients[0] + gradients[1], gradients[0]}; }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    Tensor of_x = tangents[0];
    Tensor second = gives == GivesBack::View ? of_x.view_as(of_x) : gives == GivesBack::Itself ? of_x : of_x * 2;
    return {of_x + tangents[1], second};
  }
};

TEST_P(TestAutograd, custom_function_forward_mode_forward_is_no_op) {
  Tensor x = doubles({2}), t = ones({2}, kFloat64), y = doubles({2}), u = full({2}, 3.0, kFloat64);
  for (GivesBack gives : {GivesBack::View, GivesBack::Itself, GivesBack::Another}) {
    SumAndFirst::gives = gives;
    DualLevel level;
    Tensor a = make_dual(x, t), b = make_dual(y, u);
    if (gives != GivesBack::View) {
      EXPECT_THAT(error_of([&] { SumAndFirst::apply(a, b); }),
                  HasSubstr("A custom Function's forward is returning a view (or an input as-is)"));
      continue;
    }
    Tensors both = SumAndFirst::apply(a, b);
    expect_filled(unpack_dual(both[0]).tangent, 4);
    Tensor second = unpack_dual(both[1]).tangent;
    EXPECT_FALSE(both[1].is(a));
    EXPECT_FALSE(second.is(t));
    EXPECT_TRUE(second.is_same_storage(t));
    expect_filled(second, 1);
  }
  SumAndFirst::gives = GivesBack::View;
}

struct Product : Function<Product> {
  static inline bool for_forward = true;
  static inline size_t seen_by_jvp = 0, seen_by_vjp = 0;
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, double z) {
    ctx->save_for_backward(for_forward ? Tensors{x, y} : Tensors{x});
    if (for_forward) ctx->save_for_forward({x, y});
    ctx->saved_data["z"] = z;
    return z * x * y;
  }
  static Tensors vjp(AutogradContext* ctx, Tensors gradients) {
    Tensors saved = ctx->saved_tensors();
    seen_by_vjp = saved.size();
    double z = ctx->saved_data["z"].real();
    return {z * saved.back() * gradients[0], z * saved[0] * gradients[0], Tensor()};
  }
  static Tensors jvp(AutogradContext* ctx, Tensors tangents) {
    Tensors saved = ctx->saved_tensors();
    seen_by_jvp = saved.size();
    if (saved.empty()) return {zeros({1}, kFloat64)};
    double z = ctx->saved_data["z"].real();
    return {z * saved[0] * tangents[1] + z * saved[1] * tangents[0]};
  }
};

TEST_P(TestAutograd, custom_function_save_for_forward) {
  Tensor x = doubles({1}), y = doubles({1});
  auto f = [](const Tensor& a, const Tensor& b) { return Product::apply(a, b, 4.0); };
  EXPECT_TRUE(gradcheck(f, {x, y}, {.check_forward_ad = true}));
  {
    DualLevel level;
    Tensor dual = make_dual(x, full({1}, 0.5, kFloat64)), result = f(dual, y);
    auto [value, slope] = unpack_dual(result);
    expect_near(slope, y * 4 * 0.5);
    value.sum().backward();
    expect_near(y.grad(), x * 4);
    slope.sum().backward();  // of the tangent, too
    expect_near(y.grad(), x * 4 + 2);
  }
  Product::for_forward = false;
  {
    DualLevel level;
    Tensor result = f(make_dual(x, ones({1}, kFloat64)), y);
    EXPECT_EQ(Product::seen_by_jvp, 0u);
    result.sum().backward();
    EXPECT_EQ(Product::seen_by_vjp, 1u);
  }
  Product::for_forward = true;
}

enum class Second { Marked, Integer, MarkedWithTangent };
struct WithMarked : Function<WithMarked> {
  static inline Second second = Second::Marked;
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    Tensor other = second == Second::Integer ? (x > 0).to(kInt64) : x.sign();
    if (second != Second::Integer) ctx->mark_non_differentiable({other});
    return {x * 2, other};
  }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    return {tangents[0] * 2, second == Second::MarkedWithTangent ? tangents[0] * 1 : Tensor()};
  }
};
struct WithNumber : Function<WithNumber> {
  static std::tuple<Tensor, int, Tensor> forward(AutogradContext*, const Tensor& x) { return {x * 2, 7, x * 3}; }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return {gradients[0] * 2 + gradients[2] * 3}; }
  static Tensors jvp(AutogradContext*, Tensors tangents) { return {tangents[0] * 2, Tensor(), tangents[0] * 3}; }
};

TEST_P(TestAutograd, custom_function_forward_mode_non_differentiable) {
  for (Second second : {Second::Marked, Second::Integer, Second::MarkedWithTangent}) {
    WithMarked::second = second;
    DualLevel level;
    Tensor dual = make_dual(doubles({2}), ones({2}, kFloat64));
    if (second == Second::MarkedWithTangent) {
      EXPECT_THAT(error_of([&] { WithMarked::apply(dual); }),
                  HasSubstr("You should return None at that position instead"));
      continue;
    }
    Tensors both = WithMarked::apply(dual);
    expect_filled(unpack_dual(both[0]).tangent, 2);
    EXPECT_FALSE(unpack_dual(both[1]).tangent.defined());
  }
  WithMarked::second = Second::Marked;
  DualLevel level;
  auto [first, number, last] = WithNumber::apply(make_dual(doubles({2}), ones({2}, kFloat64)));
  EXPECT_EQ(number, 7);
  expect_filled(unpack_dual(first).tangent, 2);
  expect_filled(unpack_dual(last).tangent, 3);
}

// ---- gradcheck ------------------------------------------------------------------------------------------------------

struct Failing : Function<Failing> {
  static inline bool backward_fails = false, forward_fails = false;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors vjp(AutogradContext*, Tensors gradients) {
    TENON_CHECK(!backward_fails, "FAIL BWD");
    return gradients;
  }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    TENON_CHECK(!forward_fails, "FAIL FWD");
    return tangents;
  }
};

TEST_P(TestAutograd, gradcheck_check_forward_or_backward_only) {
  Tensor x = doubles({1});
  for (int mask = 0; mask < 32; ++mask) {
    bool fast = mask & 1, backward = mask & 2, forward = mask & 4;
    Failing::backward_fails = mask & 8;
    Failing::forward_fails = mask & 16;
    auto check = [&] {
      return gradcheck(Failing::apply<const Tensor&>, {x},
                       {.fast_mode = fast, .check_backward_ad = backward, .check_forward_ad = forward});
    };
    const char* text = !backward && !forward                 ? "Expected at least one of"
                       : backward && Failing::backward_fails ? "FAIL BWD"
                       : forward && Failing::forward_fails   ? "FAIL FWD"
                                                             : nullptr;
    if (text)
      EXPECT_THAT(thrown_by(check), HasSubstr(text)) << mask;
    else
      EXPECT_TRUE(check()) << mask;
  }
  Failing::backward_fails = Failing::forward_fails = false;
}

// Counts what gradcheck asks for, and looks at what it is given.
struct Counted : Function<Counted> {
  static inline int jvps = 0;
  static inline bool saw_requires_grad = false;
  static Tensors forward(AutogradContext*, const Tensor& x, const Tensor& y) {
    if (DualLevel::is_on()) saw_requires_grad |= x.requires_grad() || y.requires_grad();
    return {x.clone(), y.clone()};
  }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return gradients; }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    ++jvps;
    return tangents;
  }
};

int jvps_of_check(const Tensor& x, const Tensor& y, bool undefined, bool batched) {
  Counted::jvps = 0;
  EXPECT_TRUE(gradcheck(Counted::apply<const Tensor&, const Tensor&>, {x, y},
                        {.check_undefined_grad = undefined,
                         .check_backward_ad = false,
                         .check_forward_ad = true,
                         .check_batched_forward_grad = batched}));
  return Counted::jvps;
}

TEST_P(TestAutograd, gradcheck_forward_ad_runs_with_no_requires_grad) {
  Counted::saw_requires_grad = false;
  Tensor x = doubles({1}), y = doubles({1});
  jvps_of_check(x, y, false, false);
  jvps_of_check(x, y, true, false);
  jvps_of_check(x, y, true, true);
  jvps_of_check(x, doubles({1}, false), true, true);
  EXPECT_FALSE(Counted::saw_requires_grad);
  EXPECT_TRUE(x.requires_grad() && y.requires_grad());
}

TEST_P(TestAutograd, gradcheck_forward_ad_respects_requires_grad) {
  Tensor x = doubles({1}), y = doubles({1});
  EXPECT_EQ(jvps_of_check(x, y, false, false), 2);                  // once for each input
  EXPECT_EQ(jvps_of_check(x, y, true, false), 6);                   // and with a tangent of zeros, and with none
  EXPECT_EQ(jvps_of_check(x, y, true, true), 12);                   // and a batch of two, at once and one by one
  EXPECT_EQ(jvps_of_check(x, doubles({1}, false), true, true), 5);  // without any tangent there is nothing to compute
}

struct Drawing : Function<Drawing> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors vjp(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
  static Tensors jvp(AutogradContext*, Tensors tangents) {
    randn_like(tangents[0]);
    return {tangents[0] * 2};
  }
};

TEST_P(TestAutograd, gradcheck_forward_ad_batched_grad) {
  autograd::GradcheckOptions options{.check_undefined_grad = false,
                                     .check_backward_ad = false,
                                     .check_forward_ad = true,
                                     .check_batched_forward_grad = true};
  Tensor x = doubles({2});
  int64_t number = 1;  // no tensor, and so nothing that is checked
  EXPECT_TRUE(gradcheck([&](const Tensor& a) { return Tensors{a.clone(), a + number}; }, {x}, options));
  EXPECT_TRUE(gradcheck([](const Tensor& a, const Tensor&) { return a.clone(); }, {x, doubles({2})}, options));
  // Views, products and writes in place have tangents for all directions at once, too.
  auto several = [](const Tensor& a) {
    Tensor b = a.view({1, 2}).expand({3, 2}).mm(a.view({2, 1})).sin();
    b.mul_(a.select(0, 1));
    return Tensors{b.sum(), softmax(a, 0), std::get<0>(a.sort())};
  };
  EXPECT_TRUE(gradcheck(several, {x}, options));
  const char* text = "vmap: We do not yet support calling random operations inside of vmap";
  EXPECT_THAT(error_of([&] {
                gradcheck(Drawing::apply<const Tensor&>, {x},
                          {.check_forward_ad = true, .check_batched_forward_grad = true});
              }),
              HasSubstr(text));
  EXPECT_THROW(
      gradcheck(Drawing::apply<const Tensor&>, {x}, {.check_forward_ad = true, .check_batched_forward_grad = true}),
      RuntimeError);
  options.check_forward_ad = false;
  options.check_backward_ad = true;
  EXPECT_THAT(error_of([&] { gradcheck(several, {x}, options); }), HasSubstr("requires check_forward_ad"));
}

}  // namespace
}  // namespace tenon
