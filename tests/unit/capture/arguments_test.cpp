// Structures as arguments and results, numbers as symbols, marks, and what the options do.
#include "testing.h"

#include <tenon/capture/marks.h>

#include <thread>

namespace tenon {
struct Batch {
  Tensor images, labels;
  double weight = 1;
};
struct Inner {
  std::map<std::string, Tensor> named;
  std::vector<Batch> batches;
};
}  // namespace tenon
TENON_DESCRIBE(tenon::Batch, images, labels, weight)
TENON_DESCRIBE(tenon::Inner, named, batches)

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

TEST(Arguments, structures_of_tensors) {
  auto function = [](const Batch& batch, std::vector<Tensor> more, std::optional<Tensor> maybe,
                     std::array<Tensor, 2> pair) {
    Tensor sum = batch.images * batch.weight + batch.labels + pair[0] - pair[1];
    for (const Tensor& each : more) sum = sum + each;
    if (maybe) sum = sum * *maybe;
    return Batch{sum, batch.labels * 2, batch.weight + 1};
  };
  auto f = compile(function);
  Tensor x = randn({3});
  Batch batch{randn({3}), randn({3}), 2.5};
  std::vector<Tensor> two = {x, x + 1}, three = {x, x, x};
  std::array<Tensor, 2> pair = {randn({3}), randn({3})};
  for (const auto& more : {two, three, two})
    for (const std::optional<Tensor>& maybe : {std::optional<Tensor>(), std::optional(x)}) {
      Batch got = f(batch, more, maybe, pair), expected = function(batch, more, maybe, pair);
      EXPECT_TRUE(same_bits(got.images, expected.images));
      EXPECT_TRUE(same_bits(got.labels, expected.labels));
      EXPECT_EQ(got.weight, 3.5);
    }
  EXPECT_EQ(f.compile_count(), 4) << "two lengths, with and without the optional";
}

TEST(Arguments, structures_in_structures_and_maps) {
  auto function = [](const Inner& inner) {
    std::map<std::string, Tensor> results;
    for (const auto& [name, tensor] : inner.named) results[name + "_twice"] = tensor * 2;
    results["sum"] = inner.batches[0].images + inner.batches[1].labels;
    return std::tuple(results, std::string("done"), inner.batches.size());
  };
  auto f = compile(function);
  Inner inner{{{"a", randn({2})}, {"b", randn({2})}}, {{randn({2}), randn({2})}, {randn({2}), randn({2})}}};
  for (int round = 0; round < 2; ++round) {
    auto [results, text, count] = f(inner);
    EXPECT_TRUE(same_bits(results.at("a_twice"), inner.named["a"] * 2));
    EXPECT_TRUE(same_bits(results.at("sum"), inner.batches[0].images + inner.batches[1].labels));
    EXPECT_EQ(text, "done");
    EXPECT_EQ(count, 2u);
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Arguments, strings_and_dtypes_are_compiled_for_themselves) {
  auto f =
      compile([](Tensor x, std::string how, Dtype dtype) { return how == "twice" ? (x * 2).to(dtype) : x.to(dtype); });
  Tensor x = ones({2});
  EXPECT_EQ(f(x, std::string("twice"), kFloat64).dtype(), kFloat64);
  EXPECT_TRUE(same_bits(f(x, std::string("once"), kFloat32), x));
  EXPECT_EQ(f(x, std::string("twice"), kInt32)[0].item<int64_t>(), 2);
}

TEST(Arguments, nothing_given_and_nothing_returned) {
  auto none = compile([] { return ones({2}) + 1; });
  EXPECT_TRUE(same_bits(none(), full({2}, 2.0)));
  auto writes = compile([](Tensor x) { x.add_(1); });
  Tensor x = zeros({2});
  writes(x);
  writes(x);
  EXPECT_TRUE(same_bits(x, full({2}, 2.0)));
}

TEST(Numbers, become_symbols_where_the_function_takes_one) {
  auto f = compile([](Tensor x, SymInt n, SymFloat scale) { return x * scale + n; });
  for (int64_t n : {3, -2, 0})
    for (double scale : {0.5, -1.25})
      EXPECT_TRUE(same_bits(f(ones({2}), n, scale), full({2}, scale + static_cast<double>(n))));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Numbers, are_constants_where_the_function_takes_a_plain_one) {
  auto f = compile([](Tensor x, int64_t n) { return x * n; });
  for (int64_t n : {3, 4, 3}) EXPECT_TRUE(same_bits(f(ones({2}), n), full({2}, static_cast<double>(n))));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Numbers, a_decision_about_one_is_a_guard) {
  auto f = compile([](Tensor x, auto n) { return bool(n > 2) ? x + n : x - n; });
  for (int64_t n : {3, 9, 1, 2, 5})
    EXPECT_TRUE(same_bits(f(zeros({1}), n), full({1}, static_cast<double>(n > 2 ? n : -n))));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(Marks, a_marked_size_is_dynamic_at_once) {
  auto f = compile([](Tensor x) { return x.sum(0) * 2; });
  for (int64_t size : {3, 5, 8}) {
    Tensor x = randn({size, 2});
    mark_dynamic(x, 0);
    f(x);
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Marks, a_function_that_fixes_a_marked_size_is_an_error_that_says_why) {
  auto f = compile([](Tensor x) { return x * int64_t(x.size(0)); });
  Tensor x = randn({4});
  mark_dynamic(x, 0);
  std::string error = error_of([&] { f(x); });
  EXPECT_NE(error.find("size 0 of arg0 was marked dynamic, but the function fixes it to 4"), std::string::npos)
      << error;
  Tensor y = randn({4});
  maybe_mark_dynamic(y, 0);
  EXPECT_TRUE(same_bits(f(y), y * 4));
}

TEST(Marks, bounds_are_guards) {
  auto f = compile([](Tensor x) { return x.sum(); });
  for (int64_t size : {4, 8, 16, 32}) {
    Tensor x = ones({size});
    mark_dynamic(x, 0, 4, 16);
    EXPECT_EQ(f(x).item<double>(), static_cast<double>(size));
  }
  EXPECT_EQ(f.compile_count(), 2) << "32 lies outside";
}

TEST(Marks, static_sizes_stay_static) {
  auto f = compile([](Tensor x) { return x + 1; });
  for (int64_t size : {3, 5, 8, 3}) {
    Tensor x = randn({size});
    mark_static(x, 0);
    f(x);
  }
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(Marks, an_unbacked_size_may_be_anything) {
  auto f = compile([](Tensor x) { return x * 2 + 1; }, {.fullgraph = true});
  for (int64_t size : {5, 1, 0, 7}) {
    Tensor x = randn({size});
    mark_unbacked(x, 0);
    EXPECT_TRUE(same_bits(f(x), x * 2 + 1));
  }
  EXPECT_EQ(f.compile_count(), 1);
  auto asks = compile([](Tensor x) { return bool(x.size(0) > 3) ? x : x + 1; }, {.fullgraph = true});
  Tensor x = randn({5});
  mark_unbacked(x, 0);
  EXPECT_THROW(asks(x), DataDependentError);
}

TEST(Marks, bad_ones) {
  Tensor x = randn({4});
  EXPECT_NE(error_of([&] { mark_dynamic(x, 3); }).find("[mark_dynamic]"), std::string::npos);
  EXPECT_NE(error_of([&] { mark_dynamic(x, 0, 5, 4); }).find("min=5, max=4"), std::string::npos);
  EXPECT_NE(error_of([&] { mark_static(Tensor(), 0); }).find("undefined"), std::string::npos);
}

TEST(Options, a_recompile_can_be_refused) {
  std::vector<std::string> reasons;
  CompileOptions options{.dynamic = Dynamic::Off};
  options.guard_fail = [&](const std::string& reason) { reasons.push_back(reason); };
  options.argument_names = {"x"};
  auto f = compile([](Tensor x) { return x + 1; }, options);
  f(randn({2}));
  f(randn({3}));
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0], "size of x at dim 0: expected 2, got 3");
  {
    SetStance stance(Stance::FailOnRecompile);
    f(randn({2}));
    EXPECT_NE(error_of([&] { f(randn({4})); }).find("size of x at dim 0: expected 3, got 4"), std::string::npos);
  }
  {
    SetStance stance(Stance::ForceEager);
    int64_t before = f.compile_count();
    f(randn({5}));
    EXPECT_EQ(f.compile_count(), before);
  }
  options.error_on_recompile = true;
  auto strict = compile([](Tensor x) { return x + 1; }, options);
  strict(randn({2}));
  EXPECT_NE(error_of([&] { strict(randn({3})); }).find("error_on_recompile"), std::string::npos);
  strict(randn({2}));
}

TEST(Options, a_backend_that_throws) {
  auto broken = [](const graph::Graph&) -> GraphFunction { throw std::runtime_error("no such machine"); };
  auto f = compile([](Tensor x) { return x + 1; }, {.backend = broken});
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_NE(error.find("no such machine"), std::string::npos) << error;
  EXPECT_NE(error.find("tenon-graph-"), std::string::npos) << error;
  CompileOptions options{.backend = broken};
  options.eager_on_backend_error = true;
  auto careful = compile([](Tensor x) { return x + 1; }, options);
  EXPECT_TRUE(same_bits(careful(ones({2})), full({2}, 2.0)));
}

TEST(Options, bad_ones) {
  EXPECT_NE(error_of([] { compile([](Tensor x) { return x; }, {.recompile_limit = 0}); }).find("recompile_limit"),
            std::string::npos);
}

TEST(Threads, one_compiles_and_all_get_the_right_result) {
  for (bool eager : {false, true}) {
    CompileOptions options;
    options.eager_while_compiling = eager;
    auto f = compile([](Tensor x) { return (x * 2).sin().sum(); }, options);
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int at = 0; at < 4; ++at)
      threads.emplace_back([&, at] {
        Tensor x = full({8}, 0.1 * at);
        double expected = (x * 2).sin().sum().item<double>();
        for (int round = 0; round < 20; ++round) wrong += f(x).item<double>() != expected;
      });
    for (std::jthread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(f.compile_count(), 1);
  }
}

TEST(Nesting, a_compiled_function_in_another_is_part_of_it) {
  auto inner = compile([](Tensor x, SymInt n) { return x.sin() * n; });
  auto outer =
      compile([&](Tensor x) { return inner(x + 1, x.size(0)) + 1; }, {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t size : {3, 6}) {
    Tensor x = randn({size});
    EXPECT_TRUE(same_bits(outer(x), (x + 1).sin() * size + 1));
  }
  EXPECT_EQ(outer.compile_count(), 1);
  EXPECT_EQ(inner.compile_count(), 0);
}

}  // namespace
}  // namespace tenon
