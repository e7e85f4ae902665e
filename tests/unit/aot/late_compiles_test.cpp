// What is compiled when it is first needed (backward, of some results, of a higher order) serves calls with other
// sizes: what compiling it asks of the sizes is asked of every call.
#include "both_ways.h"

#include <tenon/sym/env_copy.h>

namespace tenon {
namespace {

using testing::difference;
using testing::same_bits;

// u: how many rows of z are taken, known from data alone.
auto taken = [](Tensor z, Tensor w, Tensor count) {
  SymInt u = count.item<SymInt>();
  check(u >= 0, "a count");
  check(u <= z.size(0), "a count of rows");
  return z.slice(0, 0, u) * w;
};

std::vector<Tensor> slopes(auto&& f, int64_t u, bool twice) {
  Tensor z = arange(120).to(kFloat64).view({40, 3}).mul_(0.1).set_requires_grad();
  Tensor w = tensor({1.0, 2.0, 3.0}, kFloat64).set_requires_grad();
  Tensor y = f(z, w, tensor({u}));
  if (!twice) {
    y.square().sum().backward();
    return {y.detach(), z.grad(), w.grad()};
  }
  std::vector<Tensor> first = autograd::grad({y.square().sum()}, {z, w}, {}, true, true);
  std::vector<Tensor> second = autograd::grad({(first[0] * first[0]).sum() + first[1].sum()}, {z, w});
  return {y.detach(), first[0].detach(), first[1].detach(), second[0], second[1]};
}

TEST(LateCompiles, a_size_from_data_takes_other_values) {
  for (const char* backend : {"inductor", "aot_eager", "eager"})
    for (bool twice : {false, true})
      for (Dynamic dynamic : {Dynamic::Auto, Dynamic::On}) {
        SCOPED_TRACE(std::string(backend) + (twice ? " twice" : ""));
        auto f = compile(taken, {.dynamic = dynamic, .backend = backend, .capture_scalar_outputs = true});
        for (int64_t u : {2, 30, 1, 0, 40, 3, 0, 1, 29}) {
          SCOPED_TRACE(u);
          std::vector<Tensor> expected = slopes(taken, u, twice), got = slopes(f, u, twice);
          for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(difference(got[at], expected[at]), 1e-12) << at;
        }
      }
}

// Two numbers of rows that must agree: the first is known before the second is, and is not to be had from it.
TEST(LateCompiles, a_size_from_data_that_must_agree_with_a_later_one) {
  auto function = [](Tensor x) {
    Tensor mask = x.select(1, 0) > 0, chosen = index_select(x, 0, mask.nonzero().squeeze(1));
    SymInt count = mask.sum().item<SymInt>();
    return std::tuple(chosen / x.slice(0, 0, count).exp(), chosen);
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto f = compile(function, {.dynamic = Dynamic::On,
                                .backend = backend,
                                .capture_scalar_outputs = true,
                                .capture_dynamic_output_shape_ops = true});
    for (int64_t above : {2, 4, 3}) {
      Tensor x = (arange(10).view({5, 2}) - 2 * (5 - above) + 1).to(kFloat32);
      auto [quotient, chosen] = function(x);
      auto [got_quotient, got_chosen] = f(x);
      EXPECT_TRUE(same_bits(got_chosen, chosen)) << got_chosen << chosen;
      EXPECT_LT(difference(got_quotient, quotient), 1e-6);
    }
  }
}

// With one element, or none, `contiguous()` of an expanded row is the row itself in eager; compiled code has made a
// copy before it knows. Whoever is asked for a gradient must not find out and mistake one result for another.
TEST(LateCompiles, a_copy_that_would_not_have_been_needed) {
  auto f = [](Tensor x) {
    SymInt many = (x > 0).sum().item<SymInt>();
    Tensor row = x.slice(0, 0, 1).expand({many});
    return std::tuple(x.exp(), row.contiguous(), x.sin());
  };
  for (const char* backend : {"inductor", "aot_eager"})
    for (std::vector<int> calls : {std::vector{3, 1, 0, 1, 4}, std::vector{1, 0, 3}, std::vector{0, 3}}) {
      auto compiled = compile(f, {.backend = backend, .capture_scalar_outputs = true});
      for (int positive : calls) {
        auto slopes = [&](auto&& function, size_t of) {
          Tensor x = (arange(5).to(kFloat64) - (4.5 - positive)).set_requires_grad();
          auto [a, b, c] = function(x);
          Tensor asked[] = {a, b.square(), c};
          Tensor first = autograd::grad({asked[of].sum()}, {x}, {}, true, true)[0];
          return std::vector{first.detach(), autograd::grad({first.square().sum()}, {x})[0]};
        };
        for (size_t of : {1, 0, 2}) {
          std::vector<Tensor> got = slopes(compiled, of), expected = slopes(f, of);
          for (size_t at = 0; at < 2; ++at)
            EXPECT_LT(difference(got[at], expected[at]), 1e-12) << backend << " " << positive << " " << of;
        }
      }
    }
}

TEST(LateCompiles, nonzero_rows) {
  auto function = [](Tensor x, Tensor mask) {
    Tensor rows = mask.nonzero().squeeze(1);
    return std::tuple(index_select(x, 0, rows).exp(), x.sum());
  };
  for (const char* backend : {"inductor", "aot_eager"}) {
    auto f = compile(function, {.backend = backend, .capture_dynamic_output_shape_ops = true});
    for (int64_t ones_in : {3, 0, 1, 6, 2}) {
      SCOPED_TRACE(ones_in);
      std::vector<Tensor> found;
      for (bool is_compiled : {false, true}) {
        Tensor x = arange(12).to(kFloat32).view({6, 2}).mul_(0.1).set_requires_grad();
        Tensor mask = arange(6) < ones_in;
        auto [rows, total] = is_compiled ? f(x, mask) : function(x, mask);
        rows.sum().backward();  // of some results
        found.push_back(x.grad());
      }
      EXPECT_LT(difference(found[1], found[0]), 1e-6);
    }
  }
}

TEST(LateCompiles, backward_is_first_needed_at_another_size) {
  auto function = [](Tensor x, Tensor w) { return softmax(mm(x, w), -1) + x.slice(1, 0, 2).sum(); };
  for (const char* backend : {"inductor", "aot_eager"}) {
    auto f = compile(function, {.dynamic = Dynamic::On, .backend = backend});
    for (int64_t n : {5, 64, 3, 7, 130}) {
      std::vector<Tensor> found;
      for (bool is_compiled : {false, true}) {
        manual_seed(static_cast<uint64_t>(n));
        Tensor x = randn({n, n + 1}).set_requires_grad(), w = randn({n + 1, 3}).set_requires_grad();
        Tensor y = is_compiled ? f(x, w) : function(x, w);
        if (n == 5) continue;  // the first call is not differentiated
        y.square().sum().backward();
        found.push_back(x.grad());
        found.push_back(w.grad());
      }
      for (size_t at = 0; at < found.size() / 2; ++at)
        EXPECT_LT(difference(found[at + found.size() / 2], found[at]), 1e-4);
    }
  }
}

TEST(LateCompiles, a_copy_of_an_environment_keeps_what_was_known_then) {
  auto env = make_ref<sym::ShapeEnv>();
  SymInt n = env->create_size(5, "a size"), u = env->create_unbacked({0, sym::Range::kMax});
  (void)env->take_fresh();
  EXPECT_TRUE(bool(n < 10));
  sym::EnvSnapshot then = sym::EnvSnapshot::of(env);
  EXPECT_TRUE(bool(n < 8));
  const int64_t values[] = {7, 3};
  sym::EnvCopy copy(then, values, {});
  EXPECT_TRUE(copy.conditions().empty());
  EXPECT_TRUE(bool(copy(n) < 10)) << "a fact";
  EXPECT_TRUE(copy.conditions().empty());
  EXPECT_FALSE(bool(copy(n) < 7)) << "not a fact: the hint answers";
  EXPECT_TRUE(bool(copy(u) > 2)) << "it has a value by now";
  EXPECT_EQ(copy.conditions().size(), 2u);
  EXPECT_EQ(env->guards().size(), 2u) << "nothing comes back to the original";
  const sym::EnvCopy::Bound open[] = {{1, false, false}};
  sym::EnvCopy without(then, values, open);
  EXPECT_THROW(bool(without(u) > 2), DataDependentError);
}

}  // namespace
}  // namespace tenon
