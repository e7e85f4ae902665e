// The programs of docs/dynamic_shapes.md.
#include "testing.h"

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

const CompileOptions one_graph{
    .fullgraph = true, .capture_scalar_outputs = true, .capture_dynamic_output_shape_ops = true};

TEST(DynamicShapesTutorial, a_size_that_changes_becomes_a_symbol) {
  auto f = compile([](Tensor x) { return softmax(x, 1).sum(0); });
  f(randn({8, 4}));
  f(randn({9, 4}));
  EXPECT_EQ(f.compile_count(), 2);
  f(randn({10, 4}));
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(f.explain().recompiles.back(), "size of arg0 at dim 0: expected 8, got 9");
}

TEST(DynamicShapesTutorial, marks) {
  Tensor x = randn({8, 4});
  mark_dynamic(x, 0);
  mark_static(x, 1);
  auto g = compile([](Tensor t) { return t * 2; });
  EXPECT_TRUE(same_bits(g(x), x * 2));
  g(randn({9, 4}));
  EXPECT_EQ(g.compile_count(), 1);
}

TEST(DynamicShapesTutorial, more_marks) {
  Tensor wish = randn({5}), open = randn({1});
  maybe_mark_dynamic(wish, 0);
  mark_unbacked(open, 0);
  auto h = compile([](Tensor t) { return t * 2 + 1; });
  EXPECT_TRUE(same_bits(h(wish), wish * 2 + 1));
  EXPECT_TRUE(same_bits(h(open), open * 2 + 1));
}

TEST(DynamicShapesTutorial, numbers) {
  auto scale = compile([](Tensor x, SymFloat factor) { return x * factor; });
  EXPECT_TRUE(same_bits(scale(ones({2}), 0.5), full({2}, 0.5)));
  EXPECT_TRUE(same_bits(scale(ones({2}), 0.7), full({2}, 0.7)));
  EXPECT_EQ(scale.compile_count(), 1);
}

TEST(DynamicShapesTutorial, decisions) {
  auto halves = compile(
      [](Tensor x) {
        if (bool(x.size(0) % 2 == 0)) return x.slice(0, 0, x.size(0) / 2);
        return x;
      },
      {.dynamic = Dynamic::On});
  EXPECT_EQ(halves(randn({8})).sizes()[0], 4);
  EXPECT_EQ(halves(randn({12})).sizes()[0], 6);
  EXPECT_EQ(halves.compile_count(), 1);
  EXPECT_EQ(halves(randn({7})).sizes()[0], 7);
  EXPECT_EQ(halves.compile_count(), 2);
  EXPECT_NE(halves.explain().recompiles.back().find("does not hold"), std::string::npos);
  SetStance stance(Stance::FailOnRecompile);
  EXPECT_EQ(halves(randn({16})).sizes()[0], 8);
}

TEST(DynamicShapesTutorial, a_broken_mark) {
  auto fixes = compile([](Tensor x) { return x * int64_t(x.size(0)); });
  Tensor marked = randn({4});
  mark_dynamic(marked, 0);
  EXPECT_NE(error_of([&] { fixes(marked); }).find("size 0 of arg0 was marked dynamic, but the function fixes it to 4"),
            std::string::npos);
}

TEST(DynamicShapesTutorial, a_read) {
  auto clip = compile([](Tensor x) {
    Tensor y = x * 2;
    if (bool(y.amax().item<SymFloat>() > 1.0)) return y / y.amax();
    return y;
  });
  Tensor x = full({16}, 3.0);
  EXPECT_TRUE(same_bits(clip(x), ones({16})));
  EXPECT_EQ(clip.explain().breaks.size(), 1u);
  EXPECT_EQ(clip.explain().entries.size(), 2u);
}

TEST(DynamicShapesTutorial, sizes_from_data) {
  auto positive = compile([](Tensor x) { return (x.masked_select(x > 0) * 2).sum(); }, one_graph);
  EXPECT_EQ(positive(tensor({1.0f, -2.0f, 3.0f})).item<double>(), 8);
  EXPECT_EQ(positive(tensor({-1.0f, -2.0f, -3.0f})).item<double>(), 0);
  EXPECT_EQ(positive.compile_count(), 1);
}

TEST(DynamicShapesTutorial, numbers_from_data) {
  auto totals = compile(
      [](Tensor lengths) {
        std::vector<SymInt> each = lengths.tolist<SymInt>();
        Scalar first = lengths[0].item();
        SymFloat half = first.sym_real() / 2.0, none = Scalar(SymFloat(0.0)).real_number();
        SymBool any = first.sym_bool();
        return std::tuple(each[0] + each[1], half + none, any);
      },
      one_graph);
  for (int64_t first : {4, 7}) {
    auto [sum, half, any] = totals(tensor({first, int64_t{6}}));
    EXPECT_EQ(int64_t(sum), first + 6);
    EXPECT_EQ(double(half), static_cast<double>(first) / 2);
    EXPECT_TRUE(bool(any));
  }
  EXPECT_EQ(totals.compile_count(), 1);
}

TEST(DynamicShapesTutorial, sizes_from_sizes) {
  auto shrink = compile(
      [](Tensor image) {
        InterpolateOptions options{.size = SymInts{image.size(2) / 2, image.size(3) / 2},
                                   .mode = Interpolation::Nearest};
        return interpolate(image, options);
      },
      {.dynamic = Dynamic::On});
  EXPECT_EQ(shrink(rand({2, 3, 32, 48})).sizes()[3], 24);
  EXPECT_EQ(shrink(rand({4, 3, 50, 20})).sizes()[2], 25);
  EXPECT_EQ(shrink.compile_count(), 1);
}

TEST(DynamicShapesTutorial, checks) {
  auto table = compile(
      [](Tensor n) {
        SymInt size = n.item<SymInt>();
        check_is_size(size);
        check(size <= 100, "at most 100 rows");
        return ones({size, 3});
      },
      one_graph);
  EXPECT_TRUE(same_bits(table(tensor(5)), ones({5, 3})));
  std::string error = error_of([&] { table(tensor(101)); });
  EXPECT_NE(error.find("expected u0 <= 100, got u0 = 101"), std::string::npos) << error;
}

TEST(DynamicShapesTutorial, a_question_without_an_answer) {
  auto asks = compile([](Tensor n) { return bool(n.item<SymInt>() > 3) ? n + 1 : n; }, one_graph);
  std::string error = error_of([&] { asks(tensor(5)); });
  EXPECT_NE(error.find("write check("), std::string::npos) << error;
  EXPECT_NE(error.find("u0"), std::string::npos) << error;
}

TEST(DynamicShapesTutorial, sizes_that_64_bits_do_not_hold) {
  auto vast = compile([](Tensor x) { return zeros({x.size(0) * (int64_t{1} << 61)}); }, {.dynamic = Dynamic::On});
  EXPECT_NE(error_of<OverflowError>([&] { vast(ones({8})); }).find("got 18446744073709551616"), std::string::npos);
}

TEST(DynamicShapesTutorial, breaks) {
  auto log_sum = disable([](Tensor x) { return x.sum(); });
  auto training = compile([&](Tensor x) {
    Tensor y = x.sin();
    Tensor total = log_sum(y);
    graph_break();
    return y / total;
  });
  EXPECT_TRUE(same_bits(training(ones({4})), full({4}, 0.25)));
  EXPECT_EQ(training.explain().breaks.size(), 2u);
}

TEST(DynamicShapesTutorial, loops_over_a_size) {
  auto decayed = [](Tensor xs) {
    auto step = [](Tensor sum, Tensor x) {
      Tensor next = sum * 0.9 + x;
      return std::pair(next, next);
    };
    return scan(step, zeros({3}), xs).second;
  };
  auto compiled = compile(decayed);
  for (int64_t steps : {5, 7, 40}) EXPECT_TRUE(same_bits(compiled(ones({steps, 3})), decayed(ones({steps, 3}))));
  EXPECT_EQ(compiled.compile_count(), 2);
}

TEST(DynamicShapesTutorial, what_is_kept_aside) {
  Tensor kept;
  auto leaks = compile([&](Tensor x) {
    kept = x.sin();
    return kept + 1;
  });
  EXPECT_NE(error_of([&] { leaks(ones({2})); }).find("a result of aten::sin is still held after the capture"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
