// Arguments, closure tensors and cells that share memory: a compiled function does to them what eager does.
#include "testing.h"

namespace tenon {
namespace {

using testing::same_bits;

class Aliases : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options(Dynamic dynamic = Dynamic::Auto) const { return {.dynamic = dynamic, .backend = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, Aliases, ::testing::Values("inductor", "aot_eager", "eager"));

// Runs both on views of memory of their own; the memory afterwards must be the same, too.
template <typename Function, typename Compiled, typename Views>
void expect_as_eager(Function& function, Compiled& compiled, int64_t size, Views views) {
  Tensor memory = arange(0, size, 1, kFloat32), twin = memory.clone();
  auto [a, b] = views(memory);
  auto [c, d] = views(twin);
  Tensor expected = function(a, b), got = compiled(c, d);
  EXPECT_TRUE(same_bits(got, expected)) << size;
  EXPECT_TRUE(same_bits(twin, memory)) << size;
}

auto first_of(int64_t count) {
  return [count](Tensor memory) { return std::pair(memory, memory.slice(0, 0, count)); };
}
auto overlapping(int64_t by) {
  return [by](Tensor memory) { return std::pair(memory.slice(0, 0, -by), memory.slice(0, by)); };
}
std::pair<Tensor, Tensor> apart(Tensor memory) { return {memory.clone(), memory}; }
std::pair<Tensor, Tensor> halves(Tensor memory) {
  SymInt half = memory.size(0) / 2;
  return {memory.slice(0, 0, half), memory.slice(0, half, half * 2)};
}
std::pair<Tensor, Tensor> twice(Tensor memory) { return {memory, memory}; }
std::pair<Tensor, Tensor> interleaved(Tensor memory) {
  SymInt even = memory.size(0) / 2 * 2;
  return {memory.slice(0, 0, even, 2), memory.slice(0, 1, even, 2)};
}

TEST_P(Aliases, one_is_written_and_the_other_read) {
  auto function = [](Tensor a, Tensor b) {
    a.add_(1);
    return b * 2;
  };
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::Auto, Dynamic::On}) {
    auto f = compile(function, options(dynamic));
    for (int64_t size : {5, 5, 8, 9}) {
      expect_as_eager(function, f, size, first_of(3));
      expect_as_eager(function, f, size, apart);
      expect_as_eager(function, f, size, overlapping(1));
      expect_as_eager(function, f, size, overlapping(2));
      expect_as_eager(function, f, size, twice);
      expect_as_eager(function, f, size, interleaved);
      expect_as_eager(function, f, size, halves);
    }
  }
}

TEST_P(Aliases, both_are_written) {
  auto function = [](Tensor a, Tensor b) {
    a.mul_(2);
    b.add_(a);
    a.sub_(3);
    return a + b;
  };
  auto f = compile(function, options());
  for (int64_t size : {6, 6, 8, 11}) {
    expect_as_eager(function, f, size, overlapping(1));
    expect_as_eager(function, f, size, overlapping(2));
    expect_as_eager(function, f, size, apart);
    expect_as_eager(function, f, size, halves);
    expect_as_eager(function, f, size, twice);
    expect_as_eager(function, f, size, interleaved);
  }
}

TEST_P(Aliases, a_write_through_a_view_of_one) {
  auto function = [](Tensor a, Tensor b) {
    Tensor before = b.sum();
    a.slice(0, 1).mul_(10);
    return b.sum() + before + a.sum();
  };
  auto f = compile(function, options());
  for (int64_t size : {4, 4, 7}) {
    expect_as_eager(function, f, size, overlapping(1));
    expect_as_eager(function, f, size, apart);
  }
}

TEST_P(Aliases, a_function_that_writes_to_nothing_is_not_compiled_for_who_shares) {
  auto f = compile([](Tensor a, Tensor b) { return a * 2 + b; }, options());
  Tensor memory = arange(0, 8, 1, kFloat32);
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(same_bits(f(memory.slice(0, 0, 4), memory.slice(0, 1, 5)), memory.slice(0, 0, 4) * 3 + 1));
    EXPECT_TRUE(same_bits(f(memory.slice(0, 0, 4), memory.slice(0, 4)), memory.slice(0, 0, 4) * 3 + 4));
    EXPECT_TRUE(same_bits(f(ones({4}), ones({4})), full({4}, 3.0)));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST_P(Aliases, the_reason_names_who_shares) {
  auto f = compile(
      [](Tensor a, Tensor b) {
        a.add_(1);
        return b * 2;
      },
      options());
  f(ones({3}), ones({3}));
  Tensor memory = ones({4});
  f(memory.slice(0, 0, 3), memory.slice(0, 1));
  EXPECT_EQ(f.explain().recompiles.back(), "arg0 and arg1 overlap in memory");
  EXPECT_EQ(f.compile_count(), 2);
  f(ones({3}), ones({3}));
  EXPECT_EQ(f.compile_count(), 2) << "the first graph still serves";
}

TEST_P(Aliases, a_closure_tensor_that_shares_with_a_written_argument) {
  Tensor memory = arange(0, 6, 1, kFloat32), closure = memory.slice(0, 2);
  auto function = [&](Tensor a) {
    a.add_(10);
    return closure.sum();
  };
  auto f = compile(function, options());
  for (int call = 0; call < 3; ++call) {
    Tensor got = f(memory.slice(0, 0, 4));
    EXPECT_TRUE(same_bits(got, closure.sum())) << "what is there after the call";
    EXPECT_EQ(f(zeros({4})).item<double>(), closure.sum().item<double>());
  }
  EXPECT_EQ(memory[0].item<double>(), 30.0);
}

TEST_P(Aliases, a_cell_that_shares_with_a_written_argument) {
  Tensor memory = arange(0, 6, 1, kFloat32);
  Cell<Tensor> cell(memory.slice(0, 2));
  auto f = compile(
      [&](Tensor a) {
        a.add_(10);
        return cell.get().sum();
      },
      options());
  for (int call = 0; call < 3; ++call) {
    Tensor got = f(memory.slice(0, 0, 4));
    EXPECT_TRUE(same_bits(got, cell.get().sum()));
  }
  cell = zeros({4});
  EXPECT_EQ(f(memory.slice(0, 0, 4)).item<double>(), 0);
}

// A tensor that the function knows by two names at capture need not have two names at the next call.
TEST_P(Aliases, a_closure_tensor_given_as_an_argument) {
  Tensor closure = full({3}, 2.0);
  auto f = compile([&](Tensor a) { return a * 10 + closure; }, options());
  EXPECT_TRUE(same_bits(f(closure), full({3}, 22.0)));
  EXPECT_TRUE(same_bits(f(ones({3})), full({3}, 12.0)));
  EXPECT_TRUE(same_bits(f(closure), full({3}, 22.0)));
  EXPECT_TRUE(same_bits(f(zeros({3})), full({3}, 2.0)));
  EXPECT_EQ(f.compile_count(), 2);
}

TEST_P(Aliases, a_cells_tensor_given_as_an_argument) {
  Cell<Tensor> cell(full({3}, 2.0));
  auto f = compile([&](Tensor a) { return a * 10 + cell.get(); }, options());
  Tensor content = cell.get();
  EXPECT_TRUE(same_bits(f(content), full({3}, 22.0)));
  EXPECT_TRUE(same_bits(f(ones({3})), full({3}, 12.0)));
  cell = zeros({3});
  EXPECT_TRUE(same_bits(f(content), full({3}, 20.0)));
  EXPECT_TRUE(same_bits(f(cell.get()), zeros({3})));
}

TEST_P(Aliases, after_a_break) {
  auto function = [](Tensor a, Tensor b) {
    a.add_(1);
    Tensor scaled = b * b.sum().item<SymFloat>();
    b.mul_(2);
    return a + scaled;
  };
  auto f = compile(function, options());
  for (int64_t size : {5, 5, 7}) {
    expect_as_eager(function, f, size, overlapping(1));
    expect_as_eager(function, f, size, apart);
    expect_as_eager(function, f, size, twice);
  }
}

TEST_P(Aliases, gradients_where_a_written_argument_shares_with_another) {
  auto function = [](Tensor a, Tensor b) {
    a.mul_(3);
    return (a * b).sum();
  };
  auto f = compile(function, options());
  auto gradient = [](auto& run, int64_t by) {
    Tensor x = arange(1, 6, 1, kFloat32).set_requires_grad(), base = x * 1;
    run(base.slice(0, 0, -by), base.slice(0, by)).backward();
    return x.grad();
  };
  for (int64_t by : {1, 1, 2}) EXPECT_TRUE(same_bits(gradient(f, by), gradient(function, by)));
}

// Elements that share a place are one element, however they are reached.
TEST_P(Aliases, an_argument_that_overlaps_itself) {
  auto f = [](Tensor x) {
    Tensor first = x.select(0, 0);
    first.mul_(0.5);
    return std::tuple(x * 2, first);
  };
  auto compiled = compile(f, {.backend = GetParam()});
  for (int call = 0; call < 4; ++call) {
    SCOPED_TRACE(call);
    Tensor a = full({1}, 3.0), b = full({1}, 3.0), c = ones({4}), d = ones({4});
    bool overlaps = call % 2 == 0;  // and then it does not, and the other way round
    auto [all, first] = f(overlaps ? a.expand({4}) : c);
    auto [got_all, got_first] = compiled(overlaps ? b.expand({4}) : d);
    EXPECT_TRUE(same_bits(got_all, all));
    EXPECT_TRUE(same_bits(got_first, first));
    EXPECT_TRUE(same_bits(b, a));
    EXPECT_TRUE(same_bits(d, c));
  }
}

TEST_P(Aliases, many_arguments) {
  auto function = [](std::vector<Tensor> all) {
    for (size_t at = 0; at + 1 < all.size(); ++at) all[at].add_(all[at + 1]);
    return all[0] + all.back();
  };
  auto f = compile(function, options());
  auto run = [](auto& any, int64_t shared) {
    std::vector<Tensor> all;
    for (int64_t at = 0; at < 20; ++at) all.push_back(full({4}, double(at)));
    if (shared > 0) all[7] = all[static_cast<size_t>(shared)].slice(0, 0, 4);
    Tensor result = any(all);
    return result + all[7];
  };
  for (int64_t shared : {0, 3, 0, 3, 12}) EXPECT_TRUE(same_bits(run(f, shared), run(function, shared))) << shared;
}

}  // namespace
}  // namespace tenon
