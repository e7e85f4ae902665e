// Functions that are captured as more than one graph.
#include "testing.h"

#include <tenon/capture/verify.h>
#include <tenon/support/counters.h>

#include <sys/wait.h>
#include <unistd.h>

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

TEST(Breaks, a_read_splits_the_function_into_two_graphs) {
  auto function = [](Tensor x) {
    Tensor y = x.sin() + 1;
    if (bool(y.sum().item<SymFloat>() > 0.0)) return y * 2;
    return y - 2;
  };
  auto f = compile(function);
  Tensor positive = ones({4}), negative = full({4}, -1.57) - 1;
  EXPECT_TRUE(same_bits(f(positive), function(positive)));
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_TRUE(same_bits(f(positive * 0.5), function(positive * 0.5))) << "another value, the same decision";
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_TRUE(same_bits(f(positive * -100.3), function(positive * -100.3)));
  ASSERT_EQ(f.explain().breaks.size(), 1u);
  EXPECT_NE(f.explain().breaks[0].find("capture_scalar_outputs"), std::string::npos) << f.explain().breaks[0];
}

TEST(Breaks, each_answer_has_its_own_graph) {
  auto function = [](Tensor x, Tensor flag) {
    Tensor y = x * 2;
    return bool(flag.item<SymBool>()) ? y + 1 : y - 1;
  };
  auto f = compile(function);
  Tensor x = randn({3}), yes = tensor(true), no = tensor(false);
  for (int round = 0; round < 3; ++round)
    for (const Tensor& flag : {yes, no}) EXPECT_TRUE(same_bits(f(x, flag), function(x, flag)));
  EXPECT_EQ(f.compile_count(), 3) << "the beginning, and two ends";
}

TEST(Breaks, a_pinned_value_is_compiled_for_itself) {
  auto function = [](Tensor x) { return x * x.amax().item<double>(); };
  auto f = compile(function);
  for (double top : {2.0, 3.0, 2.0, 3.0}) {
    Tensor x = tensor({1.0, top});
    EXPECT_TRUE(same_bits(f(x), function(x)));
  }
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(Breaks, a_value_that_is_only_computed_with_stays_a_symbol) {
  auto function = [](Tensor x) { return x * x.amax().item<SymFloat>(); };
  auto f = compile(function);
  for (double top : {2.0, 3.0, 7.5}) {
    Tensor x = tensor({1.0, top});
    EXPECT_TRUE(same_bits(f(x), function(x)));
  }
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Breaks, loops_with_a_read_in_each_trip) {
  auto function = [](Tensor x, Tensor limit) {
    Tensor y = x;
    while (bool(y.sum().item<SymFloat>() < limit.item<SymFloat>())) y = y + 1;
    return y;
  };
  auto f = compile(function);
  Tensor x = zeros({1});
  EXPECT_TRUE(same_bits(f(x, tensor(2.5)), tensor({3.0f})));
  int64_t compiles = f.compile_count();
  EXPECT_TRUE(same_bits(f(x, tensor(99.5)), tensor({100.0f}))) << "deeper than the tree may grow";
  EXPECT_LE(f.compile_count(), compiles + 2) << "all trips share one plan";
  EXPECT_LE(f.explain().entries.size(), 80u);
  EXPECT_TRUE(same_bits(f(x, tensor(2.5)), tensor({3.0f})));
  EXPECT_TRUE(same_bits(f(x, tensor(99.5)), tensor({100.0f})));
}

TEST(Breaks, a_mutation_lands_before_the_read) {
  auto function = [](Tensor x) {
    x.add_(1);
    double seen = x.sum().item<double>();
    return x * seen;
  };
  auto f = compile(function);
  Tensor x = ones({2}), y = ones({2});
  EXPECT_TRUE(same_bits(f(x), function(y)));
  EXPECT_TRUE(same_bits(x, y));
  EXPECT_TRUE(same_bits(f(x), function(y)));
  EXPECT_TRUE(same_bits(x, y));
}

TEST(Breaks, views_made_before_a_read_stay_views) {
  auto function = [](Tensor x) {
    Tensor whole = x * 1;
    Tensor row = whole[0], flat = whole.view({4});
    graph_break();
    row.mul_(10);
    graph_break();
    flat.slice(0, 3, 4).zero_();
    return std::tuple(whole, row.clone(), flat + 0);
  };
  auto f = compile(function);
  Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2});
  for (int round = 0; round < 2; ++round) {
    auto [a, b, c] = f(x);
    auto [d, e, g] = function(x);
    EXPECT_TRUE(same_bits(a, d));
    EXPECT_TRUE(same_bits(b, e));
    EXPECT_TRUE(same_bits(c, g));
  }
  EXPECT_EQ(x[0].sum().item<double>(), 3);
}

TEST(Breaks, a_view_of_an_argument_is_one_after_a_break) {
  auto function = [](Tensor x) {
    Tensor row = x[1];
    graph_break();
    row.add_(5);
    return x.sum();
  };
  auto f = compile(function);
  Tensor x = ones({2, 2}), y = ones({2, 2});
  EXPECT_TRUE(same_bits(f(x), function(y)));
  EXPECT_TRUE(same_bits(x, y));
}

TEST(Breaks, gradients_flow_through_a_break) {
  auto function = [](Tensor x, Tensor w) {
    Tensor h = (x * w).tanh();
    graph_break();
    return (h * w).sum();
  };
  auto f = compile(function);
  Tensor x = randn({5}), w = randn({5}).set_requires_grad(), v = w.detach().clone().set_requires_grad();
  for (int round = 0; round < 2; ++round) {
    f(x, w).backward();
    function(x, v).backward();
    EXPECT_TRUE(same_bits(w.grad(), v.grad()));
  }
}

TEST(Breaks, a_result_that_nobody_differentiates_has_no_part_in_backward) {
  // Zeros in its place would meet the infinite derivative of log at 0.
  auto function = [](Tensor x, Tensor w) {
    Tensor steep = log(x), flat = x * w;
    graph_break();
    return std::tuple(flat * 2, cos(steep));
  };
  auto f = compile(function);
  Tensor x = tensor({0.0f, 1.0f}).set_requires_grad(), y = tensor({0.0f, 1.0f}).set_requires_grad(),
         w = tensor({3.0f, 4.0f});
  std::get<0>(f(x, w)).sum().backward();
  std::get<0>(function(y, w)).sum().backward();
  EXPECT_TRUE(same_bits(x.grad(), y.grad()));
  auto whole = compile([](Tensor t) { return std::tuple(log(t), t * 2); });
  Tensor z = tensor({0.0f, 1.0f}).set_requires_grad();
  std::get<1>(whole(z)).sum().backward();
  EXPECT_TRUE(same_bits(z.grad(), full({2}, 2.0)));
}

TEST(Breaks, a_throw_after_a_break_passes_and_nothing_of_the_branch_is_kept) {
  auto function = [](Tensor x) {
    Tensor y = x + 1;
    if (bool(y.sum().item<SymFloat>() > 100.0)) throw std::runtime_error("too much");
    return y * 2;
  };
  auto f = compile(function);
  EXPECT_THROW(f(full({2}, 100.0)), std::runtime_error);
  EXPECT_EQ(f.explain().entries.size(), 1u);
  EXPECT_TRUE(same_bits(f(ones({2})), function(ones({2}))));
  EXPECT_THROW(f(full({2}, 100.0)), std::runtime_error);
  EXPECT_TRUE(same_bits(f(ones({2})), function(ones({2}))));
}

TEST(Breaks, random_numbers_before_a_break_are_drawn_once) {
  auto function = [](Tensor x) {
    Tensor noise = rand({4});
    double total = noise.sum().item<double>();
    return x * 0 + noise + total * 0;
  };
  auto f = compile(function);
  manual_seed(7);
  Tensor a = f(ones({4})), b = f(ones({4}));
  manual_seed(7);
  EXPECT_TRUE(same_bits(a, function(ones({4}))));
  EXPECT_TRUE(same_bits(b, function(ones({4}))));
}

TEST(Breaks, what_is_held_aside_is_an_error_that_names_its_operator) {
  Tensor kept;
  auto f = compile([&](Tensor x) {
    kept = x.sin();
    return kept + 1;
  });
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_NE(error.find("sin"), std::string::npos) << error;
}

TEST(Breaks, fullgraph_says_why_it_cannot) {
  auto f = compile([](Tensor x) { return x * x.sum().item<double>(); }, {.fullgraph = true});
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_NE(error.find("fullgraph"), std::string::npos) << error;
  EXPECT_NE(error.find("item()"), std::string::npos) << error;
}

TEST(Breaks, disabled_functions_run_for_real) {
  int calls = 0;
  auto host = disable([&calls](Tensor x) {
    ++calls;
    float* data = x.data<float>();
    Tensor copy = x.clone();
    copy.data<float>()[0] = data[0] * 100;
    return copy;
  });
  auto f = compile([&](Tensor x) { return host(x + 1) * 2; });
  for (int round = 1; round <= 3; ++round) {
    EXPECT_TRUE(same_bits(f(ones({2})), tensor({400.0f, 4.0f})));
    EXPECT_EQ(calls, round);
  }
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Breaks, what_a_disabled_function_gives_is_guarded) {
  // One of its arguments, the other, or something new: what follows was captured for one of these.
  int kind = 0;
  auto host = disable([&kind](Tensor x, Tensor y) { return kind == 0 ? x : kind == 1 ? y : Tensor(x * 10); });
  auto f = compile([&](Tensor x, Tensor y) { return host(x, y) + x; });
  Tensor x = ones({2}), y = full({2}, 5);
  for (int round = 0; round < 2; ++round)
    for (kind = 0; kind < 3; ++kind) {
      float expected[] = {2, 6, 11};
      EXPECT_TRUE(same_bits(f(x, y), full({2}, expected[kind]))) << "kind " << kind;
    }
}

TEST(Breaks, sizes_that_happen_to_be_equal_later_stay_apart) {
  // The second call takes the same path up to the question, on sizes that are equal now, and is captured anew from
  // there.
  auto function = [](Tensor x, Tensor y) {
    Tensor a = masked_select(x, x > 0.0), b = masked_select(y, y > 0.0);
    return b.size(0) > 3 ? a + 1 : a * b;
  };
  auto f = compile(function, {.dynamic = Dynamic::On});
  auto first = [](int64_t count) { return (arange(8) < count).to(kFloat32) * 2.5 - 1; };
  for (auto [x, y] : {std::pair(5, 4), {2, 2}, {5, 4}, {3, 3}})
    EXPECT_TRUE(same_bits(f(first(x), first(y)), function(first(x), first(y)))) << x << " and " << y;
}

TEST(Breaks, gradients_are_read_and_set_for_real) {
  auto function = [](Tensor x, Tensor w) {
    Tensor before = w.grad();
    (x * w).sum().backward();
    Tensor after = w.grad() * 2;
    if (before.defined()) after = after + 1;
    w.set_grad(x * 3);
    return after;
  };
  auto f = compile(function);
  Tensor x = tensor({1.0, 2.0}), w = tensor({5.0, 7.0}).set_requires_grad();
  EXPECT_TRUE(same_bits(f(x, w), x * 2)) << "no gradient before";
  EXPECT_TRUE(same_bits(w.grad(), x * 3));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(same_bits(f(x, w), x * 8 + 1)) << "the gradient that was set, and what backward adds";
    EXPECT_TRUE(same_bits(w.grad(), x * 3));
  }
  w.set_grad({});
  EXPECT_TRUE(same_bits(f(x, w), x * 2));
  std::string error = error_of([&] { compile(function, {.fullgraph = true})(x, w); });
  EXPECT_NE(error.find("grad() reads a gradient"), std::string::npos) << error;
}

TEST(Breaks, backward_inside_a_compiled_function) {
  auto f = compile([](Tensor x, Tensor w) {
    Tensor loss = (x * w).sum();
    loss.backward();
    return loss * 2;
  });
  Tensor x = randn({3}), w = randn({3}).set_requires_grad();
  for (int round = 0; round < 2; ++round) {
    w.set_grad({});
    Tensor loss = f(x, w);
    EXPECT_TRUE(same_bits(w.grad(), x));
    EXPECT_TRUE(same_bits(loss.detach(), (x * w).sum().detach() * 2));
  }
}

TEST(Breaks, an_unbacked_symbol_that_is_asked_for_ends_the_graph) {
  auto function = [](Tensor x) {
    SymInt n = x.item<SymInt>();
    Tensor y = x + 1;
    if (bool(n > 3)) return y * 2;
    return y * 3;
  };
  auto f = compile(function, {.capture_scalar_outputs = true});
  for (int64_t value : {5, 6, 2, 1, 9}) EXPECT_TRUE(same_bits(f(tensor(value)), function(tensor(value))));
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(Breaks, a_replayed_function_that_does_something_else_is_an_error) {
  int factor = 2;
  auto f = compile([&](Tensor x) {
    Tensor y = x * factor;
    return bool(y.sum().item<SymFloat>() > 0.0) ? y + 1 : y - 1;
  });
  f(ones({2}));
  factor = 3;
  std::string error = error_of([&] { f(full({2}, -1.0)); });
  EXPECT_NE(error.find("mul"), std::string::npos) << error;
  EXPECT_NE(error.find("Cell"), std::string::npos) << error;
}

TEST(Verification, finds_a_captured_number_that_changed) {
  struct Restore {
    bool before = capture::set_verify_captures(true);
    ~Restore() { capture::set_verify_captures(before); }
  } restore;
  int factor = 2;
  auto f = compile([&](Tensor x) { return x.sin() * factor; });
  f(ones({2}));
  f(ones({2}));
  factor = 3;
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_NE(error.find("TENON_VERIFY_CAPTURE"), std::string::npos) << error;
  EXPECT_NE(error.find("aten::mul.Scalar"), std::string::npos) << error;
  // Also behind a break.
  auto g = compile([&](Tensor x) {
    Tensor y = x + 1;
    graph_break();
    return y * factor;
  });
  g(ones({2}));
  g(ones({2}));
  factor = 4;
  EXPECT_NE(error_of([&] { g(ones({2})); }).find("aten::mul.Scalar"), std::string::npos);
}

TEST(Fork, a_child_goes_on_with_what_was_compiled) {
  auto f = compile([](Tensor x, Tensor w) { return relu(mm(x, w)).sum(1); });
  Tensor x = randn({64, 128}), w = randn({128, 96}), expected = f(x, w);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a child that hangs is killed
    bool same = bool(same_bits(f(x, w), expected)) && bool(same_bits(f(x, w), expected));
    _exit(same ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_TRUE(same_bits(f(x, w), expected));
}

}  // namespace
}  // namespace tenon
