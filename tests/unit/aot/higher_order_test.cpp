// Derivatives of any order through a compiled function agree with eager's.
#include "both_ways.h"

#include <tenon/autograd/function.h>

#include <functional>

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::on_all_backends;

using Function = std::function<Tensor(Tensor, Tensor)>;

Tensor noise(std::initializer_list<int64_t> sizes, double scale = 0.5) {
  return randn(SymInts(std::vector<SymInt>(sizes.begin(), sizes.end())), TensorOptions(kFloat64)) * scale;
}

// Of each order, what `grad` with create_graph gives, contracted with something that is no constant.
std::vector<Tensor> derivatives(const Function& f, int64_t n, int orders) {
  manual_seed(11);
  Tensor x = noise({n, 4, 6}).set_requires_grad(), w = noise({n, 4, 6}).set_requires_grad();
  manual_seed(static_cast<uint64_t>(n));
  Tensor value = f(x, w);
  std::vector<Tensor> found = {value.detach()};
  Tensor scalar = (value * value.detach().cos()).sum();
  for (int order = 0; order < orders; ++order) {
    std::vector<Tensor> slopes = autograd::grad({scalar}, {x, w}, {}, true, true, true);
    scalar = zeros({}, TensorOptions(kFloat64));
    for (const Tensor& slope : slopes) {
      found.push_back(slope.defined() ? slope.detach() : Tensor());
      if (slope.defined() && slope.requires_grad()) scalar = scalar + (slope * slope).sum() * 0.5 + slope.sin().sum();
    }
    if (!scalar.requires_grad()) break;
  }
  return found;
}

const std::vector<std::pair<const char*, Function>>& functions() {
  static const std::vector<std::pair<const char*, Function>> list = {
      {"products", [](Tensor x, Tensor w) { return bmm(x, w.transpose(1, 2)).tanh(); }},
      {"softmax", [](Tensor x, Tensor w) { return softmax(x * w, -1) * w; }},
      {"layer norm",
       [](Tensor x, Tensor w) { return layer_norm(x, {6}, w.select(0, 0).select(0, 0), w.select(0, 0).select(0, 1)); }},
      {"convolution",
       [](Tensor x, Tensor w) {
         return conv2d(x.unsqueeze(1), w.select(0, 0).view({1, 1, 4, 6}).slice(3, 0, 3)).sigmoid();
       }},
      {"indexing",
       [](Tensor x, Tensor w) { return index_select(x, 1, tensor({3, 0, 3})).square() * w.slice(1, 1, 4).exp(); }},
      {"in place",
       [](Tensor x, Tensor w) {
         Tensor y = x * w;
         y.select(1, 1).mul_(w.select(1, 2));
         return y.add_(x).sin_();
       }},
      {"dropout", [](Tensor x, Tensor w) { return dropout(x * w, 0.4, true) * x; }},
      {"reductions", [](Tensor x, Tensor w) { return (x * w).sum({1, 2}) * x.amax({1, 2}) + logsumexp(w, {1, 2}); }},
      {"pieces of graphs without grad",
       [](Tensor x, Tensor w) {
         Tensor fixed;
         {
           autograd::NoGrad off;
           fixed = x * w;
         }
         return fixed * x * w.detach() * w;
       }},
      {"a polynomial", [](Tensor x, Tensor w) { return x * x * x * w + (x - w).pow(4); }},
      {"linear", [](Tensor x, Tensor w) { return x * 2 + w.transpose(1, 2).reshape({x.size(0), 4, 6}); }},
  };
  return list;
}

void compare(const char* name, const Function& f, const Function& compiled, std::initializer_list<int64_t> sizes) {
  SCOPED_TRACE(name);
  for (int64_t n : sizes) {
    SCOPED_TRACE(n);
    std::vector<Tensor> expected = derivatives(f, n, 3), got = derivatives(compiled, n, 3);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t at = 0; at < got.size(); ++at) {
      ASSERT_EQ(got[at].defined(), expected[at].defined()) << at;
      if (!got[at].defined()) continue;
      EXPECT_LT(difference(got[at], expected[at]), 1e-9) << "derivative " << at;
    }
  }
}

TEST(HigherOrder, three_orders_of_many_functions) {
  for (const char* backend : {"inductor", "aot_eager"})
    for (const auto& [name, function] : functions()) {
      SCOPED_TRACE(backend);
      compare(name, function, compile(function, {.backend = backend}), {2, 3, 5});
    }
}

TEST(HigherOrder, with_dynamic_sizes_from_the_start) {
  for (const char* backend : {"inductor", "aot_eager"})
    for (const auto& [name, function] : functions()) {
      SCOPED_TRACE(backend);
      auto compiled = compile(function, {.dynamic = Dynamic::On, .backend = backend});
      compare(name, function, compiled, {5, 2, 3});
      EXPECT_EQ(compiled.compile_count(), 1) << name;
    }
}

TEST(HigherOrder, a_first_and_a_second_derivative_in_one_backward) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) { return (x * x * x).sum(); });
    for (int64_t n : {3, 3, 5}) {
      Tensor x = full({n}, 2.0).set_requires_grad();
      Tensor y = f(x), g = autograd::grad({y}, {x}, {}, true, true)[0];
      (y + g.square().sum()).backward();
      // 3x^2 + 2 * 3x^2 * 6x
      EXPECT_LT(difference(x.grad(), full({n}, 12.0 + 2 * 12.0 * 12.0)), 1e-6);
    }
  });
}

TEST(HigherOrder, inside_a_compiled_function) {
  on_all_backends([](auto&& compiled) {
    auto penalty = [](Tensor x, Tensor w) {
      Tensor y = (x * x * w).sum();
      Tensor slope = autograd::grad({y}, {x}, {}, true, true)[0];
      return y + slope.square().sum();
    };
    auto f = compiled(penalty);
    for (int64_t n : {3, 3, 4}) {
      std::vector<Tensor> slopes;
      for (bool is_compiled : {false, true}) {
        Tensor x = full({n}, 1.5).set_requires_grad(), w = arange(n).to(kFloat32).set_requires_grad();
        (is_compiled ? f(x, w) : penalty(x, w)).backward();
        slopes.push_back(x.grad());
        slopes.push_back(w.grad());
      }
      EXPECT_LT(difference(slopes[2], slopes[0]), 1e-6);
      EXPECT_LT(difference(slopes[3], slopes[1]), 1e-6);
    }
  });
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x.round();  // what it computes has another derivative than it says
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* ctx, std::vector<Tensor> grads) {
    Tensor x = ctx->saved_tensors()[0];
    return {grads[0] * 3 * x * x};
  }
};

TEST(HigherOrder, of_functions_that_say_their_derivative) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x) { return Cube::apply(x).square() * x; };
    auto f = compiled(function);
    for (int64_t n : {3, 3, 5}) {
      std::vector<Tensor> slopes;
      for (bool is_compiled : {false, true}) {
        Tensor x = (arange(n).to(kFloat64) + 0.7).set_requires_grad();
        Tensor g = autograd::grad({(is_compiled ? f(x) : function(x)).sum()}, {x}, {}, true, true)[0];
        slopes.push_back(autograd::grad({g.square().sum()}, {x})[0]);
      }
      EXPECT_LT(difference(slopes[1], slopes[0]), 1e-12);
    }
  });
}

TEST(HigherOrder, of_some_results_and_with_gradients_that_require_grad) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor x, Tensor w) { return std::tuple(x * x * w, x.exp() * w, w.sin()); };
    auto f = compiled(function);
    auto run = [](auto&& g, int64_t n) {
      Tensor x = full({n}, 0.3).set_requires_grad(), w = full({n}, 0.7).set_requires_grad();
      Tensor v = full({n}, 2.0).set_requires_grad();
      auto [a, b, c] = g(x, w);
      std::vector<Tensor> slopes = autograd::grad({b}, {x, w}, {v}, true, true);
      std::vector<Tensor> again = autograd::grad({(slopes[0] * slopes[1]).sum()}, {x, w, v}, {}, true, true);
      std::vector<Tensor> third = autograd::grad({(again[0] * again[2]).sum()}, {x, w, v});
      again.insert(again.end(), third.begin(), third.end());
      return again;
    };
    for (int64_t n : {2, 2, 4}) {
      std::vector<Tensor> expected = run(function, n), got = run(f, n);
      for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(difference(got[at].detach(), expected[at].detach()), 1e-6);
    }
  });
}

TEST(HigherOrder, inputs_changed_in_place_are_refused) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) { return x * x; });
    Tensor leaf = full({3}, 2.0).set_requires_grad();
    Tensor x = leaf * 1, y = f(x);
    x.detach().mul_(2);
    std::string error = error_of([&] { autograd::grad({y.sum()}, {leaf}, {}, true, true); });
    EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
  });
}

TEST(HigherOrder, of_inputs_that_the_function_writes_to) {
  on_all_backends([](auto&& compiled) {
    auto function = [](Tensor a, Tensor w) {
      a.mul_(w);
      a.mul_(a.detach());
      return a.sin();
    };
    auto f = compiled(function);
    auto run = [](auto&& g, int64_t n) {
      Tensor x = full({n}, 0.3).set_requires_grad(), w = full({n}, 0.7).set_requires_grad();
      Tensor a = x * 2, s = g(a, w);
      std::vector<Tensor> slopes = autograd::grad({s.sum() + a.square().sum()}, {x, w}, {}, true, true);
      return autograd::grad({(slopes[0] * slopes[1]).sum()}, {x, w});
    };
    for (int64_t n : {2, 2, 4}) {
      std::string refused = error_of([&] { run(function, n); });
      if (refused != "no error") continue;
      std::vector<Tensor> expected = run(function, n), got = run(f, n);
      for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(difference(got[at], expected[at]), 1e-6);
    }
  });
}

TEST(HigherOrder, can_be_refused) {
  for (const char* backend : {"inductor", "aot_eager"}) {
    auto f = compile([](Tensor x) { return x.sin().exp(); },
                     {.backend = backend, .double_backward = DoubleBackward::Refuse});
    Tensor x = ones({}).set_requires_grad();
    Tensor g = autograd::grad({f(x)}, {x}, {}, true, true)[0];
    EXPECT_TRUE(g.requires_grad());
    std::string error = error_of([&] { autograd::grad({g}, {x}); });
    EXPECT_NE(error.find("torch.compile with aot_autograd does not currently support double backward"),
              std::string::npos)
        << error;
    EXPECT_FALSE(autograd::grad({f(x)}, {x})[0].requires_grad());
  }
}

}  // namespace
}  // namespace tenon
