// Gradients by authors that read tensors which they were not given: those that are there when backward runs, as in
// eager.
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends.h"
#include "error_of.h"
#include "values_of.h"

namespace tenon {
namespace {

using autograd::AutogradContext;
using autograd::Function;
using ::testing::Contains;
using testing::error_of;
using ::testing::HasSubstr;
using testing::values;
using Tensors = std::vector<Tensor>;

// Made when they are first asked for: other tests look at what a process does before its first kernel.
const Cell<Tensor>& weight() {
  static const Cell<Tensor> made(full({2}, 3.0), "weight");
  return made;
}
Tensor& bare() {
  static Tensor made = full({2}, 5.0);
  return made;
}
Tensor& walks() {
  static Tensor made = zeros({});
  return made;
}

Tensor& kept() {
  static Tensor made;
  return made;
}

struct ReadsCell : Function<ReadsCell> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * weight().get()}; }
};
struct ReadsBare : Function<ReadsBare> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * bare().view({2})}; }
};
struct ReadsKept : Function<ReadsKept> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * kept()}; }
};
// A number of forward's, and a product with a matrix that is outside, differentiated inside.
struct Implicit : Function<Implicit> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->saved_data["rows"] = AnyValue(x.size(0));
    context->save_for_backward({x});
    return x * 2;
  }
  static Tensors backward(AutogradContext* context, Tensors gradients) {
    autograd::EnableGrad on;
    Tensor z = context->get_saved_variables()[0].detach().set_requires_grad();
    const Tensor roots[] = {(z * weight().get()).square()}, inputs[] = {z}, given[] = {gradients[0]};
    return {autograd::grad(roots, inputs, given)[0] * context->saved_data["rows"].sym_int()};
  }
};
// It writes to what is outside.
struct Counts : Function<Counts> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    walks().add_(1);
    return {gradients[0] * 2};
  }
};

// They look at values, and at memory.
struct Clips : Function<Clips> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    double largest = gradients[0].abs().max().item<double>();
    return {largest > 1 ? gradients[0] / largest : gradients[0]};
  }
};
struct Touches : Function<Touches> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    Tensor copy = gradients[0].clone(MemoryFormat::Contiguous);
    float* element = copy.data<float>();
    for (int64_t at = 0; at < copy.numel().plain(); ++at) element[at] *= static_cast<float>(at);
    return {copy};
  }
};
struct Throws : Function<Throws> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors) { throw std::out_of_range("not today"); }
};

// Gradients of eager and of compiled code at calls between which everything outside changes, and sizes too.
template <typename F>
void expect_eager(F function) {
  for (const char* backend : testing::kBackends) {
    auto compiled = compile(function, {.backend = backend});
    for (int call = 0; call < 4; ++call) {
      weight().set(full({2}, 3.0 + call));
      bare() = full({2}, 5.0 - call);
      Tensor x = randn({2 + call / 2, 2}).set_requires_grad(), y = x.detach().clone().set_requires_grad();
      Tensor found = compiled(x), expected = function(y);
      EXPECT_TRUE(allclose(found, expected, 1e-6, 1e-6)) << backend << " " << call;
      // What is read is what is there when backward runs.
      weight().get().detach().mul_(2);
      found.sum().backward();
      expected.sum().backward();
      EXPECT_TRUE(allclose(x.grad(), y.grad(), 1e-6, 1e-6)) << backend << " " << call;
    }
    // (The backend eager runs operators one by one, and differentiates nothing ahead of time.)
    const std::vector<std::string> breaks = compiled.explain().breaks;
    if (backend != std::string("eager")) {
      EXPECT_THAT(breaks, Contains(HasSubstr("the backward of ")));
    }
  }
}

TEST(AuthorFormulas, read_a_cell) {
  expect_eager([](Tensor x) { return ReadsCell::apply(x * 2).tanh(); });
}
TEST(AuthorFormulas, read_a_tensor) {
  expect_eager([](Tensor x) { return ReadsBare::apply(x.sin()) * 3; });
}
TEST(AuthorFormulas, differentiate_inside_and_know_sizes) {
  expect_eager([](Tensor x) { return Implicit::apply(x * 2).cos(); });
}
TEST(AuthorFormulas, several_in_one_function) {
  expect_eager([](Tensor x) {
    Tensor y = ReadsCell::apply(x * 2);
    Tensor z = Implicit::apply(y + x);
    autograd::NoGrad off;
    Tensor same = ReadsBare::apply(z);
    return autograd::SetGradMode(true), ReadsCell::apply(z * 2) + ReadsBare::apply(same);
  });
}

TEST(AuthorFormulas, look_at_values) {
  expect_eager([](Tensor x) { return Clips::apply(x.sin() * 5).cos(); });
}
TEST(AuthorFormulas, look_at_values_behind_a_break) {
  expect_eager([](Tensor x) { return Clips::apply(x * x.detach().sum().item<double>()).cos(); });
}
TEST(AuthorFormulas, look_at_memory) {
  expect_eager([](Tensor x) { return Touches::apply(x.sin()) * Clips::apply(x); });
}

TEST(AuthorFormulas, throw_when_backward_runs) {
  for (const char* backend : testing::kBackends) {
    auto f = compile([](Tensor x) { return Throws::apply(x + 1).sum(); }, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      Tensor y = f(ones({2}).set_requires_grad());
      EXPECT_EQ(values(y)[0], 8) << backend;
      EXPECT_THROW(y.backward(), std::out_of_range) << backend;
    }
  }
}

TEST(AuthorFormulas, write_to_what_is_outside) {
  for (const char* backend : testing::kBackends) {
    auto f = compile([](Tensor x) { return Counts::apply(x + 1).sum(); }, {.backend = backend});
    walks().zero_();
    for (int call = 0; call < 3; ++call) f(ones({2}).set_requires_grad()).backward();
    EXPECT_EQ(values(walks())[0], 3) << backend;
  }
}

// What no gradient leads to does not run, not even with zeros: also where one compiled function takes it and others.
TEST(AuthorFormulas, run_only_where_a_gradient_leads) {
  for (const char* backend : testing::kBackends)
    for (bool is_inside : {false, true})
      for (bool captures_walks : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", backend, is_inside, captures_walks));
        auto two = [=](Tensor a, Tensor b) {
          if (is_inside) b = Counts::apply(b);
          b.select(0, 0).mul_(3);
          return std::pair(a * 1.5, b.cos());
        };
        auto compiled = compile(two, {.backend = backend});
        for (int call = 0; call < 3; ++call) {
          Tensor a = ones({2}).set_requires_grad(), leaf = ones({2}).set_requires_grad();
          auto [first, second] = compiled(a, is_inside ? leaf * 1 : Counts::apply(leaf));
          walks().zero_();
          std::optional<compiled_autograd::Enable> on;
          if (captures_walks) on.emplace(compiled_autograd::Options{.backend = backend});
          first.sum().backward({}, true);
          EXPECT_EQ(walks().item<double>(), 0);
          EXPECT_FALSE(leaf.grad().defined());
          EXPECT_EQ(values(a.grad()), (std::vector{1.5, 1.5}));
          second.sum().backward();
          EXPECT_EQ(walks().item<double>(), 1);
          EXPECT_TRUE(leaf.grad().defined());
        }
      }
}

TEST(AuthorFormulas, of_custom_operators) {
  auto op = custom_op("outside_formulas::twice", [](const Tensor& x) { return x * 2; });
  op.register_fake([](const Tensor& x) { return empty_like(x); });
  op.register_autograd([](AutogradContext&, const Tensor& gradient) { return gradient * weight().get(); });
  expect_eager([&](Tensor x) { return op(x.sin()).tanh(); });
}

TEST(AuthorFormulas, second_derivatives) {
  auto function = [](Tensor x) { return ReadsCell::apply(x * x * x).sum(); };
  for (const char* backend : testing::kBackends) {
    auto f = compile(function, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      weight().set(full({2}, 3.0 + call));
      auto second = [&](const auto& of) {
        Tensor x = full({2}, 1.5).set_requires_grad();
        Tensor first = grad({of(x)}, {x}, {}, true, true)[0];
        return values(grad({first.sum()}, {x})[0]);
      };
      EXPECT_EQ(second(f), second(function)) << backend;
    }
  }
}

TEST(AuthorFormulas, are_refused_as_one_graph) {
  weight().set(full({2}, 3.0));  // not first made inside
  auto f = compile([](Tensor x) { return ReadsCell::apply(x * 2); }, {.fullgraph = true});
  EXPECT_THAT(
      error_of([&] { f(ones({2}).set_requires_grad()); }),
      HasSubstr("[tenon::function.ReadsCell] its backward reads a tensor float32[2] that it was not given; to be "
                "compiled, it needs the tensor as an argument, or saved in forward"));
  // Who asks for no gradient does not care.
  EXPECT_EQ(values(f(ones({2}))), (std::vector<double>{2, 2}));
}

// Of a value that an earlier capture left outside nobody knows what it is.
TEST(AuthorFormulas, do_not_read_what_was_kept_from_a_capture) {
  auto keeps = compile([](Tensor x) {
    kept() = x * 2;
    return kept() + 1;
  });
  (void)error_of([&] { keeps(ones({2})); });
  ASSERT_TRUE(kept().defined() && kept().is_fake());
  for (const char* backend : {"aot_eager", "inductor"}) {  // "eager" runs the formula when backward runs
    auto f = compile([](Tensor x) { return ReadsKept::apply(x * 2); }, {.fullgraph = true, .backend = backend});
    EXPECT_THAT(error_of([&] { f(ones({2}).set_requires_grad()); }),
                HasSubstr("a tensor float32[2] of another capture was used"))
        << backend;
    EXPECT_EQ(values(f(ones({2}))), (std::vector<double>{2, 2}));
  }
  kept() = Tensor();
}

}  // namespace
}  // namespace tenon
