// Loops and branches go through a file: their bodies are plans inside of the plan.
#include "saved.h"

namespace tenon {
namespace {

using testing::content;
using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;
using testing::TemporaryFile;
using testing::through_file;
using testing::without_compiling;

template <typename Loaded>
void expect_same(const std::vector<Tensor>& expected, const Loaded& load) {
  std::vector<Tensor> got = without_compiling(load);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t at = 0; at < got.size(); ++at) {
    EXPECT_TRUE(same_bits(got[at], expected[at])) << at;
    EXPECT_EQ(got[at].strides(), expected[at].strides()) << at;
  }
}

TEST(SaveLoops, recurrent_networks_of_any_length) {
  manual_seed(1);
  nn::LSTM lstm(4, 5, {.num_layers = 2, .bidirectional = true});
  nn::GRU gru(4, 5, {.batch_first = true});
  nn::RNN rnn(4, 5);
  NoGrad off;
  auto f = compile(
      [&](Tensor x) {
        auto [sequence, state] = lstm(x);
        auto [other, last] = gru(x);
        return std::vector<Tensor>{sequence, state.h, state.c, other, last, std::get<0>(rnn(x))};
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  f(randn({6, 3, 4}));
  auto g = through_file<std::vector<Tensor>(Tensor)>(f);
  for (int64_t length : {6, 2, 40, 7})
    for (int64_t batch : {3, 2, 9}) {
      Tensor x = randn({length, batch, 4});
      expect_same(f(x), [&] { return g(x); });
    }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(SaveLoops, scans_with_everything) {
  Tensor weight = randn({3, 3});
  NoGrad off;
  auto f = compile(
      [&](Tensor xs, Tensor start, auto factor) {
        using Carry = std::pair<Tensor, Tensor>;
        auto step = [&](const Carry& now, const Tensor& x) {
          auto inner = [&](const Tensor& sum, const Tensor& each) { return std::pair(sum + each * factor, sum); };
          auto [last, all] = scan(inner, now.first.sum(), x, {.reverse = true});
          Tensor next = tanh(now.first.matmul(weight) + x) + last * 0.1;
          return std::pair(Carry{next, now.second + 1}, std::pair(next.sin(), all));
        };
        auto [last, kept] = scan(step, Carry{start, zeros({}, kInt64)}, xs);
        return std::vector<Tensor>{last.first, last.second, kept.first, kept.second};
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  auto call = [](const auto& function, int64_t steps) {
    manual_seed(static_cast<uint64_t>(steps));
    return function(randn({steps, 3}), randn({3}), SymInt(2));
  };
  call(f, 5);
  auto g = through_file<std::vector<Tensor>(Tensor, Tensor, SymInt)>(f);
  for (int64_t steps : {5, 2, 11}) {
    std::vector<Tensor> expected = call(f, steps);
    expect_same(expected, [&] { return call(g, steps); });
  }
}

// The branch that was not taken before it was saved is in the file, too.
TEST(SaveLoops, branches) {
  Tensor weight = randn({3, 3});
  NoGrad off;
  auto f = compile(
      [&](Tensor x) {
        return cond(
            x.sum() > 0, [&] { return std::pair(x.matmul(weight), x.sum()); },
            [&] {
              Tensor y = cond(x.max() > 0, [&] { return x * 2; }, [&] { return x.exp(); });
              return std::pair(y, y.max());
            });
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  f(ones({4, 3}));
  auto g = through_file<std::pair<Tensor, Tensor>(Tensor)>(f);
  for (int64_t rows : {4, 2, 7})
    for (double shift : {5., -5., -0.4}) {
      Tensor x = randn({rows, 3}) * 0.1 + shift;
      if (shift == -0.4) x.select(0, 0).fill_(0.1);
      auto [a, b] = f(x);
      expect_same({a, b}, [&] {
        auto [c, d] = g(x);
        return std::vector<Tensor>{c, d};
      });
    }
}

TEST(SaveLoops, loops_that_data_steers) {
  NoGrad off;
  auto f = compile(
      [](Tensor x, Tensor limit) {
        auto [steps, last] = while_loop(
            [&](const std::pair<Tensor, Tensor>& now) { return (now.second * now.second - x).abs().max() > limit; },
            [&](const std::pair<Tensor, Tensor>& now) {
              return std::pair(now.first + 1, (now.second + x / now.second) * 0.5);
            },
            std::pair(zeros({}, kInt64), x));
        return std::vector<Tensor>{steps, last};
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  f(full({3}, 2.F), tensor(1e-5F));
  auto g = through_file<std::vector<Tensor>(Tensor, Tensor)>(f);
  for (int64_t size : {3, 2, 10})
    for (float value : {2.F, 1.F, 900.F}) {
      Tensor x = full({size}, value), limit = tensor(value * 1e-5F);
      expect_same(f(x, limit), [&] { return g(x, limit); });
    }
}

// Every body is told of, and its kernels.
TEST(SaveLoops, descriptions_show_bodies) {
  NoGrad off;
  auto f = compile([](Tensor xs) {
    return scan([](Tensor sum, Tensor x) { return std::pair(sum + x.exp(), sum); }, zeros({3}), xs).first;
  });
  f(randn({5, 3}));
  TemporaryFile file(".tenon");
  save_compiled(f, file.path());
  std::string text = describe_compiled(file.path());
  EXPECT_THAT(text, HasSubstr("= run tenon::scan.body"));
  EXPECT_THAT(text, HasSubstr("call 0, body 1\nplan(2 inputs)"));
}

}  // namespace
}  // namespace tenon
