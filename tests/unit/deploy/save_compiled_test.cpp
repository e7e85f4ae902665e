// What goes through a file computes what was saved: values, layouts, aliasing, writes, random numbers, guards.
#include "saved.h"

#include <thread>

struct Sentence {
  tenon::Tensor words, mask;
  double temperature = 1;
};
TENON_DESCRIBE(Sentence, words, mask, temperature)

namespace tenon {
namespace {

using testing::content;
using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;
using testing::TemporaryFile;
using testing::through_file;
using testing::without_compiling;

// What was compiled and what was loaded, for one call; both get arguments of their own.
template <typename Compiled, typename Loaded, typename... Args>
void expect_same(const Compiled& compiled, const Loaded& loaded, const Args&... args) {
  Tensor expected = compiled(args...);
  Tensor got = without_compiling([&] { return loaded(args...); });
  EXPECT_TRUE(same_bits(got, expected));
  EXPECT_EQ(got.strides(), expected.strides());
}

TEST(SaveCompiled, pointwise_and_reductions_of_any_size) {
  auto f = compile([](Tensor a, Tensor b) { return (a.sin() * b + 1).softmax(-1).sum(0); }, {.dynamic = Dynamic::On});
  f(randn({4, 7}), randn({4, 7}));
  auto g = through_file<Tensor(Tensor, Tensor)>(f);
  for (int64_t rows : {4, 2, 9, 300})
    for (int64_t columns : {7, 3, 1000}) expect_same(f, g, randn({rows, columns}), randn({rows, columns}));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(SaveCompiled, other_layouts) {
  auto f = compile([](Tensor a) { return a.exp() + a.t().contiguous().t(); }, {.dynamic = Dynamic::On});
  f(randn({4, 6}));
  f(randn({6, 4}).t());
  auto g = through_file<Tensor(Tensor)>(f);
  expect_same(f, g, randn({5, 3}));
  expect_same(f, g, randn({3, 5}).t());
}

TEST(SaveCompiled, a_network_in_each_of_its_forms) {
  manual_seed(3);
  nn::Sequential net(nn::Conv2d(3, 8, 3, {.padding = 1}), nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Flatten(), nn::Linear(8 * 16, 5));
  net.eval();
  NoGrad off;
  Tensor images = randn({2, 3, 8, 8}), more = randn({5, 3, 8, 8});
  for (Freeze freeze : {Freeze::Off, Freeze::On}) {
    auto infer = compile([&](Tensor x) { return net(x); }, {.dynamic = Dynamic::On, .freeze = freeze});
    infer(images);
    auto loaded = through_file<Tensor(Tensor)>(infer);
    expect_same(infer, loaded, images);
    expect_same(infer, loaded, more);
  }
}

TEST(SaveCompiled, the_weights_are_those_of_the_day) {
  nn::Linear layer(3, 2);
  NoGrad off;
  auto infer = freeze(layer);
  Tensor x = randn({4, 3});
  infer(x);
  layer.weight.get().fill_(2);
  Tensor expected = infer(x);
  auto loaded = through_file<Tensor(Tensor)>(infer);
  layer.weight.get().fill_(5);
  EXPECT_TRUE(same_bits(loaded(x), expected));
  EXPECT_FALSE(infer(x).equal(expected));
}

TEST(SaveCompiled, several_ways_of_calling_are_in_one_file) {
  auto f = compile([](Tensor a, bool twice, std::string how) {
    Tensor b = how == "sin" ? a.sin() : a.cos();
    return twice ? b * 2 : b;
  });
  Tensor x = randn({3});
  for (bool twice : {false, true})
    for (const char* how : {"sin", "cos"}) f(x, twice, std::string(how));
  f(x.to(kFloat64), true, std::string("sin"));
  auto g = through_file<Tensor(Tensor, bool, std::string)>(f);
  for (bool twice : {false, true})
    for (const char* how : {"sin", "cos"}) expect_same(f, g, x, twice, std::string(how));
  expect_same(f, g, x.to(kFloat64), true, std::string("sin"));
  EXPECT_THAT(error_of([&] { g(x.to(kFloat64), false, "sin"); }),
              HasSubstr("the function was not compiled for such a call"));
}

TEST(SaveCompiled, numbers_are_symbols) {
  auto f = compile([](Tensor a, auto scale, auto shift, auto count) { return (a * scale + shift).narrow(0, 0, count); },
                   {.dynamic = Dynamic::On});
  f(randn({8}), 0.5, 3.25, 4);
  auto g = through_file<Tensor(Tensor, SymFloat, SymFloat, SymInt)>(f);
  for (double scale : {0.5, -7.25})
    for (int64_t count : {2, 8}) expect_same(f, g, randn({8}), SymFloat(scale), SymFloat(-scale), SymInt(count));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(SaveCompiled, structures_of_arguments_and_results) {
  auto f = compile([](std::vector<Tensor> list, std::optional<Tensor> added, Sentence sentence) {
    Tensor sum = list[0];
    for (size_t at = 1; at < list.size(); ++at) sum = sum + list[at];
    if (added) sum = sum - *added;
    std::map<std::string, Tensor> named{{"mask", sentence.mask.logical_not()}, {"sum", sum}};
    return std::tuple(named, sentence.words / sentence.temperature, std::array{sum * 2, sum * 3});
  });
  Sentence sentence{randn({3}), randn({3}) > 0, 0.5};
  std::vector<Tensor> list{randn({3}), randn({3})};
  f(list, std::optional<Tensor>(list[1] * 2), sentence);
  f(list, std::optional<Tensor>(), sentence);
  using Result = std::tuple<std::map<std::string, Tensor>, Tensor, std::array<Tensor, 2>>;
  auto g = through_file<Result(std::vector<Tensor>, std::optional<Tensor>, Sentence)>(f);
  for (const std::optional<Tensor>& added : {std::optional<Tensor>(randn({3})), std::optional<Tensor>()}) {
    auto [named, scaled, both] = f(list, added, sentence);
    auto [named_again, scaled_again, both_again] = g(list, added, sentence);
    EXPECT_TRUE(same_bits(named_again.at("sum"), named.at("sum")));
    EXPECT_TRUE(same_bits(named_again.at("mask"), named.at("mask")));
    EXPECT_TRUE(same_bits(scaled_again, scaled));
    EXPECT_TRUE(same_bits(both_again[1], both[1]));
  }
}

TEST(SaveCompiled, results_of_another_form_are_refused) {
  auto f = compile([](Tensor a) { return std::pair(a + 1, a.sum()); });
  f(randn({3}));
  TemporaryFile file(".tenon");
  save_compiled(f, file.path());
  auto one = load_compiled<Tensor(Tensor)>(file.path());
  EXPECT_THAT(error_of<ValueError>([&] { one(randn({3})); }), HasSubstr("more results than were asked for"));
  auto three = load_compiled<std::tuple<Tensor, Tensor, Tensor>(Tensor)>(file.path());
  EXPECT_THAT(error_of<ValueError>([&] { three(randn({3})); }), HasSubstr("fewer results than were asked for"));
  auto none = load_compiled<void(Tensor)>(file.path());
  EXPECT_THAT(error_of<ValueError>([&] { none(randn({3})); }), HasSubstr("it has results"));
  auto number = load_compiled<std::pair<Tensor, int64_t>(Tensor)>(file.path());
  EXPECT_NE(error_of<ValueError>([&] { number(randn({3})); }), "no error");
  auto right = load_compiled<std::pair<Tensor, Tensor>(Tensor)>(file.path());
  EXPECT_EQ(right(ones({3})).second.item<double>(), 3);
}

TEST(SaveCompiled, results_that_share_memory) {
  auto f = compile([](Tensor a) {
    Tensor b = a * 2;
    return std::tuple(b, b.t(), b.select(0, 1), a.view({-1}), a, a.numel());
  });
  f(randn({3, 4}));
  auto g = through_file<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, SymInt>(Tensor)>(f);
  Tensor x = randn({3, 4});
  auto [b, turned, row, flat, same, count] = g(x);
  EXPECT_TRUE(same.is(x));
  EXPECT_TRUE(flat.is_same_storage(x));
  EXPECT_EQ(int64_t(count), 12);
  b.fill_(7);
  EXPECT_EQ(turned[1][2].item<double>(), 7);
  EXPECT_EQ(row[3].item<double>(), 7);
  EXPECT_EQ(turned.strides(), (std::vector<int64_t>{1, 4}));
}

TEST(SaveCompiled, writes_to_arguments) {
  auto f = compile([](Tensor cache, Tensor row, auto at) {
    cache.select(0, at).copy_(row * 2);
    return cache.sum();
  });
  Tensor cache = zeros({4, 3});
  f(cache, ones({3}), 1);
  f(cache, ones({3}), 2);
  auto g = through_file<Tensor(Tensor, Tensor, SymInt)>(f);
  Tensor mine = zeros({4, 3});
  EXPECT_EQ(g(mine, ones({3}), 3).item<double>(), 6);
  EXPECT_EQ(mine[3][0].item<double>(), 2);
  EXPECT_EQ(mine[0][0].item<double>(), 0);
}

TEST(SaveCompiled, state_of_its_own) {
  nn::BatchNorm1d norm(3);
  Cell<Tensor> steps(zeros({}));
  NoGrad off;
  auto f = compile([&](Tensor x) {
    steps.get().add_(1);
    return norm(x) * steps.get();
  });
  Tensor x = randn({5, 3});
  f(x);
  auto g = through_file<Tensor(Tensor)>(f);
  // Both go on from the state of now, each with its own.
  for (int step = 0; step < 3; ++step) expect_same(f, g, randn({5, 3}));
  EXPECT_EQ(steps.get().item<double>(), 4);
}

TEST(SaveCompiled, cells_of_numbers_are_what_they_hold) {
  Cell<double> rate(0.5);
  Cell<bool> doubled(false);
  auto f = compile([&](Tensor x) { return doubled.get() ? x * rate.get() * 2 : x * rate.get(); });
  f(ones({2}));
  rate.set(0.25);
  f(ones({2}));  // the rate is a symbol now
  doubled.set(true);
  f(ones({2}));
  auto g = through_file<Tensor(Tensor)>(f);
  rate.set(100);
  EXPECT_EQ(g(ones({2}))[0].item<double>(), 0.5);
}

TEST(SaveCompiled, random_numbers_are_those_of_the_seed) {
  nn::Dropout dropout(0.5);
  NoGrad off;
  auto f = compile([&](Tensor x) { return dropout(x) + rand({4}) + randn({4}); });
  f(ones({4}));
  auto g = through_file<Tensor(Tensor)>(f);
  manual_seed(7);
  Tensor first = f(ones({4})), second = f(ones({4}));
  manual_seed(7);
  EXPECT_TRUE(same_bits(g(ones({4})), first));
  EXPECT_TRUE(same_bits(g(ones({4})), second));
}

TEST(SaveCompiled, sizes_that_data_tell) {
  auto f = compile(
      [](Tensor x) {
        Tensor places = x.nonzero().squeeze(1);
        return x.index_select(0, places) * places;
      },
      {.fullgraph = true, .dynamic = Dynamic::On, .capture_dynamic_output_shape_ops = true});
  f(tensor({0., 1., 2.}));
  auto g = through_file<Tensor(Tensor)>(f);
  for (const Tensor& x : {tensor({0., 5., 0., 3.}), zeros({6}), rand({100})}) expect_same(f, g, x);
}

TEST(SaveCompiled, checks_are_in_the_file) {
  auto f = compile([](Tensor x, Tensor at) { return x.index_select(0, at); }, {.dynamic = Dynamic::On});
  f(randn({5, 2}), tensor({1, 3, 4}));
  auto g = through_file<Tensor(Tensor, Tensor)>(f);
  expect_same(f, g, randn({7, 2}), tensor({6, 0}));
  EXPECT_EQ(error_of([&] { g(randn({7, 2}), tensor({6, 7})); }), error_of([&] { f(randn({7, 2}), tensor({6, 7})); }));
}

// What a guard or a check says of a size by itself bounds the size; that must not make it true where it is read.
TEST(SaveCompiled, guards_that_bound_a_size_are_in_the_file) {
  NoGrad off;
  nn::Conv2d layer(4, 6, 3);
  auto images = freeze([&](Tensor z) { return layer(z).relu(); }, {.dynamic = Dynamic::On});
  images(randn({2, 4, 8, 6}));
  auto loaded = through_file<Tensor(Tensor)>(images);
  expect_same(images, loaded, randn({3, 4, 5, 7}));
  EXPECT_THAT(error_of([&] { loaded(randn({2, 5, 8, 6})); }), HasSubstr("was not compiled for such a call"));

  auto short_rows =
      compile([](Tensor a) { return a.size(0) > 3 && a.size(0) <= 10 && a.size(1) % 2 == 0 ? a.sum(0) : a * 2; },
              {.dynamic = Dynamic::On});
  short_rows(ones({5, 4}));
  auto rows = through_file<Tensor(Tensor)>(short_rows);
  for (int64_t count : {4, 10}) expect_same(short_rows, rows, randn({count, 6}));
  for (int64_t count : {2, 3, 11})
    EXPECT_THAT(error_of([&] { rows(ones({count, 4})); }), HasSubstr("(asked by")) << count;
  EXPECT_THAT(error_of([&] { rows(ones({5, 3})); }), HasSubstr("(asked by"));
}

TEST(SaveCompiled, checks_that_bound_a_number_are_in_the_file) {
  auto f = compile(
      [](Tensor x) {
        SymInt count = x.item<SymInt>();
        check(count >= 2 && count <= 6, "from 2 to 6");
        return zeros({count}) + x;
      },
      {.dynamic = Dynamic::On, .capture_scalar_outputs = true});
  f(tensor({int64_t{3}}));
  auto g = through_file<Tensor(Tensor)>(f);
  for (int64_t count : {2, 6}) expect_same(f, g, tensor({count}));
  for (int64_t count : {1, 7}) EXPECT_THAT(error_of([&] { g(tensor({count})); }), HasSubstr("from 2 to 6")) << count;
}

TEST(SaveCompiled, calls_that_fit_nothing_say_why) {
  auto f = compile([](Tensor image, Tensor weight) { return image.matmul(weight); });
  f(randn({2, 3}), randn({3, 4}));
  auto g = through_file<Tensor(Tensor, Tensor)>(f);
  auto why = [&](const Tensor& a, const Tensor& b) { return error_of([&] { g(a, b); }); };
  EXPECT_THAT(why(randn({5, 3}), randn({3, 4})), HasSubstr("expected 2, got 5"));
  EXPECT_THAT(why(randn({2, 3}, kFloat64), randn({3, 4})),
              HasSubstr("expected float32 of 2 dimensions, got float64[2, 3]"));
  EXPECT_THAT(why(randn({3}), randn({3, 4})), HasSubstr("expected float32 of 2 dimensions, got float32[3]"));
  EXPECT_THAT(why(Tensor(), randn({3, 4})), HasSubstr("is undefined"));
  Tensor square = randn({2, 3});
  EXPECT_THAT(why(square, square), HasSubstr("got one tensor"));
  expect_same(f, g, randn({2, 3}), randn({3, 4}));
}

TEST(SaveCompiled, arguments_that_overlap_are_told_from_those_that_do_not) {
  auto f = compile([](Tensor a, Tensor b) {
    a.add_(1);
    return b * 2;
  });
  f(ones({3}), ones({3}));
  auto g = through_file<Tensor(Tensor, Tensor)>(f);
  Tensor s = ones({4});
  EXPECT_THAT(error_of([&] { g(s.narrow(0, 0, 3), s.narrow(0, 1, 3)); }), HasSubstr("overlap in memory"));
  EXPECT_EQ(s.sum().item<double>(), 4) << "nothing ran";
}

TEST(SaveCompiled, gradients_are_refused) {
  nn::Linear layer(3, 2);
  auto f = compile([&](Tensor x) { return layer(x); });
  f(randn({4, 3}));
  TemporaryFile file(".tenon");
  EXPECT_THAT(error_of<ValueError>([&] { save_compiled(f, file.path()); }), HasSubstr("it computes gradients"));
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  auto off = [&] {
    NoGrad no_grad;
    f(randn({4, 3}));
    return through_file<Tensor(Tensor)>(f);
  };
  auto loaded = off();
  EXPECT_THAT(error_of([&] { loaded(randn({4, 3}).set_requires_grad()); }), HasSubstr("has no gradients"));
  NoGrad no_grad;
  EXPECT_TRUE(same_bits(loaded(ones({4, 3})), f(ones({4, 3}))));
}

TEST(SaveCompiled, what_cannot_be_saved_says_why) {
  TemporaryFile file(".tenon");
  auto why = [&](const auto& f) { return error_of<ValueError>([&] { save_compiled(f, file.path()); }); };
  auto fresh = compile([](Tensor x) { return x + 1; });
  EXPECT_THAT(why(fresh), HasSubstr("was not compiled yet: call it once"));

  auto reads = compile([](Tensor x) { return x.sum().item<double>() > 0 ? x + 1 : x - 1; });
  reads(ones({3}));
  EXPECT_THAT(why(reads), HasSubstr("more than one graph"));

  auto prints = compile([](Tensor x) {
    Tensor y = x + 1;
    graph_break();
    return y * 2;
  });
  prints(ones({3}));
  EXPECT_THAT(why(prints), HasSubstr("more than one graph"));
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

TEST(SaveCompiled, a_file_that_is_there_stays_if_saving_fails) {
  TemporaryFile file(".tenon");
  auto f = compile([](Tensor x) { return x * 3; });
  f(ones({3}));
  save_compiled(f, file.path());
  std::vector<std::byte> before = content(file.path());
  auto fresh = compile([](Tensor x) { return x + 1; });
  EXPECT_NE(error_of([&] { save_compiled(fresh, file.path()); }), "no error");
  EXPECT_EQ(content(file.path()), before);
  EXPECT_THAT(error_of([&] { save_compiled(f, file.path() / "inside"); }), HasSubstr("save_compiled"));
}

TEST(SaveCompiled, loaded_while_the_file_is_replaced_or_gone) {
  auto path = std::make_unique<TemporaryFile>(".tenon");
  auto f = compile([](Tensor x) { return x * 3; });
  f(ones({3}));
  save_compiled(f, path->path());
  auto loaded = load_compiled<Tensor(Tensor)>(path->path());
  auto other = compile([](Tensor x) { return x * 5; });
  other(ones({3}));
  save_compiled(other, path->path());
  EXPECT_EQ(loaded(ones({3}))[0].item<double>(), 3);
  EXPECT_EQ(load_compiled<Tensor(Tensor)>(path->path())(ones({3}))[0].item<double>(), 5);
  path.reset();
  EXPECT_EQ(loaded(ones({3}))[0].item<double>(), 3);
}

TEST(SaveCompiled, from_memory_that_may_not_be_written_to) {
  nn::BatchNorm1d norm(3);
  NoGrad off;
  auto f = compile([&](Tensor x) { return std::pair(norm(x), norm.running_mean.get()); });
  Tensor x = randn({5, 3});
  f(x);
  TemporaryFile file(".tenon");
  save_compiled(f, file.path());
  const std::vector<std::byte> bytes = content(file.path()), before = bytes;
  auto g = load_compiled<std::pair<Tensor, Tensor>(Tensor)>(bytes, "inside.tenon");
  auto [y, mean] = f(x);
  auto [y_again, mean_again] = g(x);
  EXPECT_TRUE(same_bits(y_again, y));
  EXPECT_TRUE(same_bits(mean_again, mean));
  EXPECT_EQ(bytes, before);
  std::vector<std::byte> cut(bytes.begin(), bytes.end() - 1);
  EXPECT_THAT(error_of<ValueError>([&] { load_compiled<Tensor(Tensor)>(cut, "inside.tenon"); }),
              HasSubstr("[load_compiled] inside.tenon: "));
}

TEST(SaveCompiled, eight_threads_call_it) {
  nn::Sequential net(nn::Linear(16, 64), nn::GELU(), nn::Linear(64, 8));
  NoGrad off;
  auto f = compile([&](Tensor x) { return net(x); }, {.dynamic = Dynamic::On, .freeze = Freeze::On});
  f(randn({3, 16}));
  auto g = through_file<Tensor(Tensor)>(f);
  std::vector<Tensor> inputs, expected;
  for (int64_t rows = 2; rows < 10; ++rows) {
    inputs.push_back(randn({rows, 16}));
    expected.push_back(f(inputs.back()));
  }
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (size_t at = 0; at < inputs.size(); ++at)
      threads.emplace_back([&, at] {
        NoGrad also_off;
        for (int time = 0; time < 20; ++time) wrong += !same_bits(g(inputs[at]), expected[at]);
      });
  }
  EXPECT_EQ(wrong, 0);
}

TEST(SaveCompiled, what_is_in_a_file_is_shown) {
  nn::Linear layer(3, 2);
  NoGrad off;
  auto f = compile([&](Tensor x) { return layer(x).relu(); }, {.dynamic = Dynamic::On});
  f(randn({4, 3}));
  TemporaryFile file(".tenon");
  save_compiled(f, file.path());
  std::string text = describe_compiled(file.path());
  for (const char* part : {"1 way of calling it", "objects x86-64-v3", "objects x86-64-v4", "weight [2, 3]", "bias [2]",
                           "float32, 2 dimensions", "call aten::addmm"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace tenon
