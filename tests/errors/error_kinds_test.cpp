// Errors are of the kind that PyTorch 2.13 raises for the same call (asked of it once; the table is its answers).
#include <tenon/optim/sgd.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <functional>

namespace tenon {
namespace {

struct Case {
  ErrorKind kind;
  const char* call;
  std::function<void()> run;
};

#define CASE(kind, ...)                                 \
  Case {                                                \
    ErrorKind::kind, #__VA_ARGS__, [=] { __VA_ARGS__; } \
  }

std::vector<Case> cases() {
  const Tensor x = ones({2, 3}), i = ones({2, 3}, kInt64), image = ones({1, 1, 4, 4}), one = tensor(1.0);
  const Tensor b = x > x, far = tensor({9});
  const Tensor whole_image = ones({1, 1, 4, 4}, kInt64);
  return {
      CASE(Index, sum(x, Ints{5})),
      CASE(Index, x.size(7)),
      CASE(Index, x.stride(-3)),
      CASE(Index, x.select(0, 9)),
      CASE(Index, x.select(4, 0)),
      CASE(Index, x[9]),
      CASE(Index, one.slice(0, 0, 1)),
      CASE(Index, one.select(0, 0)),
      CASE(Index, x.narrow(0, 9, 1)),
      CASE(Index, index(x, {i, i, i})),
      CASE(Index, index(x, {tensor({true, false, true})})),
      CASE(Index, index(x, {x})),
      CASE(Index, index(x, {far})),
      CASE(Index, x.index_select(0, far)),
      CASE(Index, x.index_select(0, i)),
      CASE(Index, index_put(x, {far}, one)),
      CASE(Index, embedding(x, far)),
      CASE(Index, amax(ones({0, 3}), Ints{0})),
      CASE(Runtime, x.narrow(0, 1, 5)),
      CASE(Runtime, x.slice(0, 0, 2, 0)),
      CASE(Runtime, x.gather(0, far.view({1, 1}))),
      CASE(Runtime, x.index_select(0, tensor({1.5}))),
      CASE(Runtime, mm(x, x)),
      CASE(Runtime, mm(x, i.t())),
      CASE(Runtime, mean(i)),
      CASE(Runtime, x.view({5})),
      CASE(Runtime, x.expand({5, 5})),
      CASE(Runtime, x.permute({0, 0})),
      CASE(Runtime, sum(x, Ints{0, 0})),
      CASE(Runtime, x + ones({4})),
      CASE(Runtime, i.add_(1.5)),
      CASE(Runtime, addcdiv(i, i, i)),
      CASE(Runtime, x.item()),
      CASE(Runtime, i.set_requires_grad()),
      CASE(Runtime, ones({2}).set_requires_grad().backward()),
      CASE(Runtime, parse_device("foo")),
      CASE(Runtime, arange(0, 3, -1)),
      CASE(Runtime, empty({-1})),
      CASE(Value, cat({})),
      CASE(Value, nll_loss(x, zeros({3}, kInt64))),
      CASE(Value, optim::SGD({}, {.lr = 0.1})),
      CASE(Value, optim::SGD({ones({2}).set_requires_grad()}, {.lr = -1})),
      CASE(NotImplemented, gelu(i)),
      CASE(NotImplemented, bitwise_and(x, x)),
      CASE(NotImplemented, bitwise_not(x)),
      CASE(NotImplemented, mm(b, b.t())),
      CASE(NotImplemented, softmax(i, 0)),
      CASE(NotImplemented, max_pool2d(image > image, {2})),
      CASE(NotImplemented, upsample_bilinear2d(whole_image, {2, 2}, false)),
      CASE(NotImplemented, nll_loss(i, zeros({2}, kInt64))),
      CASE(NotImplemented, mse_loss(i, i)),
      CASE(NotImplemented, randn({2}, kInt64)),
      CASE(NotImplemented, arange(0, 3, 1, kBool)),
      CASE(NotImplemented, linspace(0, 1, 3, kBool)),
      CASE(NotImplemented, cumsum(x, 0, kBool)),
      CASE(NotImplemented, lerp(i, i, i)),
      CASE(NotImplemented, pad(x, {1, 1}, "other")),
  };
}

std::string kind_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return std::string(name(error.kind()));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(ErrorKinds, are_those_of_pytorch) {
  for (const Case& each : cases()) EXPECT_EQ(kind_of(each.run), name(each.kind)) << each.call;
}

// What a capture adds to a text leaves its kind alone, and a check in a kernel has one.
TEST(ErrorKinds, are_the_same_compiled) {
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    CompileOptions options;
    options.backend = backend;
    options.dynamic = Dynamic::On;
    auto select_far = compile([](Tensor x) { return x.select(0, 99) * 2; }, options);
    auto wrong_dim = compile([](Tensor x) { return x.sum(Ints{4}) * 2; }, options);
    auto wrong_index = compile([](Tensor x, Tensor at) { return x.index_select(0, at) * 2; }, options);
    auto wrong_type = compile([](Tensor x) { return gelu(x) * 2; }, options);
    auto wrong_sizes = compile([](Tensor x) { return mm(x, x); }, options);
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_EQ(kind_of([&] { select_far(ones({4, 3})); }), "IndexError") << backend;
      EXPECT_EQ(kind_of([&] { wrong_dim(ones({4, 3})); }), "IndexError") << backend;
      EXPECT_EQ(kind_of([&] { wrong_index(ones({4, 3}), tensor({1, 99})); }), "IndexError") << backend;
      EXPECT_EQ(kind_of([&] { wrong_type(ones({4, 3}, kInt64)); }), "NotImplementedError") << backend;
      EXPECT_EQ(kind_of([&] { wrong_sizes(ones({4, 3})); }), "RuntimeError") << backend;
    }
  }
}

TEST(ErrorKinds, a_value_of_another_type_is_a_type_error) {
  EXPECT_EQ(kind_of([] { dispatch::Value(3).tensor(); }), "TypeError");
  EXPECT_EQ(kind_of([] { dispatch::Value("three").integer(); }), "TypeError");
}

}  // namespace
}  // namespace tenon
