// Seed 000's operator cases: what the scheduler has before it and makes of it.
#include "operators.h"

#include <tenon/aot/aot.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/runtime/plan.h>
#include <tenon/schedule/schedule.h>

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "schedule/fusion.h"

namespace tenon::operators {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What fusion sees of a function's forward graph.
struct Seen {
  int nodes = 0;                              // values that have memory, whatever they are fused with
  int groups = 0;                             // steps that they become
  std::vector<std::vector<int64_t>> strides;  // of these values
};
Seen scheduled(const Function& function, const Tensors& inputs, Dynamic dynamic) {
  auto seen = std::make_shared<Seen>();
  auto compiler = [seen](const graph::Graph& part) -> GraphFunction {
    const graph::Graph parts = schedule::decompose(part);
    const schedule::Schedule made = schedule::fuse(parts, {});
    for (size_t id = 0; id < made.values.size(); ++id) {
      if (!made.values[id].root || !made.values[id].stored) continue;
      ++seen->nodes;
      std::vector<int64_t> strides;
      for (const SymInt& stride : parts.meta(static_cast<graph::ValueId>(id)).sym_strides())
        strides.push_back(stride.is_symbolic() ? stride.hint().value() : stride.plain());
      seen->strides.push_back(strides);
    }
    seen->groups += static_cast<int>(made.groups.size());
    std::shared_ptr<const runtime::Plan> plan = schedule::compile_graph(part);
    return [plan](std::span<const Tensor> given, std::span<const int64_t> symbols) {
      return runtime::run(*plan, given, symbols);
    };
  };
  Backend backend = [compiler](const graph::Graph& graph) -> GraphFunction {
    return aot::compile(graph, std::vector<bool>(graph.inputs.size()), false, compiler).run;
  };
  compile(function, {.fullgraph = true, .dynamic = dynamic, .backend = backend})(inputs);
  return *seen;
}

// PyTorch's test operator that forces a value into memory: here a value gets memory as a result of the function.
struct Realized {
  Tensors all;
  Tensor operator()(const Tensor& value) {
    all.push_back(value);
    return value;
  }
};

TEST(CommonTemplate, forced_buffer_realize) {
  auto function = [](Tensor a) {
    Realized realize;
    Tensor result = realize(a * 2) * 2;
    realize.all.push_back(result);
    return realize.all;
  };
  check(function, {randn({10})}, {.kernels = 1});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On})
    EXPECT_EQ(scheduled(of_list(function), {randn({10})}, dynamic).nodes, 2);
}
TEST(CommonTemplate, scheduler_vertical_fusion1) {
  auto function = [](Tensor sa, Tensor ct, Tensor p) {
    Realized realize;
    Tensor v17 = realize(9.652247e-6 * ct - 2.1e-4), v18 = realize(1.4e-7 * ct + 6.3e-4);
    Tensor v19 = realize(-9.1e-9 + 3.2e-10 * ct), v20 = realize(1.667e-8 * ct + 0.017);
    Tensor t = v17 + ct * (v18 + v19 * ct) + v20 * sa;
    realize.all.push_back(1 / t + t * p);
    return realize.all;
  };
  Tensors inputs = {rand({204, 204, 26}) + 1, rand({204, 204, 26}) + 1, rand({26})};
  check(function, inputs, {.backward = false, .kernels = 2});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    const Seen seen = scheduled(of_list(function), inputs, dynamic);
    EXPECT_EQ(seen.nodes, 5);
    EXPECT_LE(seen.groups, 2);
  }
}
TEST(CommonTemplate, inner_fn_str_and_stride) {
  auto function = [](Tensor x) {
    Realized realize;
    realize(realize(x + 1) * 2);
    return realize.all;
  };
  Tensor x = randn({3, 2}).t();
  ASSERT_EQ(x.strides()[0], 1);
  check(function, {x}, {.kernels = 1});
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    const Seen seen = scheduled(of_list(function), {x}, dynamic);
    EXPECT_EQ(seen.strides, (std::vector<std::vector<int64_t>>{{1, 2}, {1, 2}}));
    // All three lie alike, so that one index reaches them: neither is read by the other's row and column.
    std::string text = kernels_of(of_list(function), {x}, dynamic);
    EXPECT_THAT(text, HasSubstr("load in0[i0]"));
    EXPECT_THAT(text, Not(HasSubstr("i1")));
  }
}
// A threshold up to which reductions are written out there; here that is left to LLVM, and every reduction is a loop.
TEST(CommonTemplate, unroll_small_reduction) {
  Tensors results = check(
      [](Tensor x) {
        return Tensors{std::get<0>(x.min(-1)),
                       std::get<1>(x.min(-1)),
                       std::get<0>(x.max(-1)),
                       std::get<1>(x.max(-1)),
                       x.sum(-1),
                       (x > 1).any(-1),
                       (x > 0).all(-1),
                       x.argmin(-1),
                       x.argmax(-1),
                       x.amin(-1),
                       x.amax(-1),
                       x.amin(),
                       x.amax()};
      },
      {randn({8, 3})});
  Tensors ends = by_name("aten::aminmax", {dispatch::Value(results[9])}),
          whole = check([](Tensor x) { return by_name("aten::aminmax", {dispatch::Value(x)}); }, {results[9]});
  EXPECT_TRUE(same_bits(ends[0], results[11]) && same_bits(whole[0], ends[0]) && same_bits(whole[1], ends[1]));
}

// What adds zeros to a product, or multiplies it by ones, is no kernel.
TEST(CommonTemplate, remove_no_ops) {
  using Change = Tensor (*)(const Tensor&);
  constexpr Change kChanges[] = {
      [](const Tensor& x) { return x + zeros({256, 256}); },
      [](const Tensor& x) { return x - zeros({256, 256}); },
      [](const Tensor& x) { return x * ones({256, 256}); },
      [](const Tensor& x) { return x / ones({256, 256}); },
  };
  Tensor x = rand({256, 256}), y = rand({256, 256});
  for (Change change : kChanges) {
    auto function = [change](Tensor a, Tensor b) { return change(mm(a, b)); };
    check(function, {x, y}, {.rtol = 1e-4, .atol = 1e-4, .backward = false, .kernels = 0});
    Tensor wide = check(function, {x.to(kBFloat16), y.to(kBFloat16)}, {.backward = false})[0];
    EXPECT_EQ(wide.dtype(), kFloat32) << "promoted";
  }
  Tensor broadcast = check([](Tensor a, Tensor b) { return mm(a, b) + zeros({256, 256, 256}, kBFloat16); },
                           {x.to(kBFloat16), y.to(kBFloat16)}, {.backward = false})[0];
  EXPECT_EQ(broadcast.description(), "bfloat16[256, 256, 256]");
}

TEST(CommonTemplate, index_put_reinplace) {
  auto function = [](Tensor x, Tensor idx) {
    x.index_put_({idx}, ones({idx.size(0)}));
    return expand(x, {2, x.size(0)});
  };
  check(function, {randn({1024}), arange(10)}, {.kernels = 1});
  // No copy of x: what is allocated is the ones.
  static Counter& bytes = counter("bytes_allocated");
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile(function, {.fullgraph = true, .dynamic = dynamic});
    Tensor x = randn({1024}), idx = arange(10);
    f(x, idx);
    const int64_t before = bytes.value();
    f(x, idx);
    EXPECT_LT(bytes.value() - before, 1024 * 4);
    EXPECT_TRUE((x.slice(0, 0, 10) == 1).all().item<bool>());
  }
}
// The cache is a buffer that the function reaches by itself.
TEST(CommonTemplate, slice_scatter_reinplace) {
  autograd::SetGradMode off(false);
  nn::Linear layer(64, 64, {.bias = false});
  auto with_cache = [layer](const Tensor& cache) {
    return [layer, cache](Tensor x, auto p) {
      Tensor xk = layer(x);
      const SymInt rows = x.size(0), n = x.size(1);
      cache.slice(0, 0, rows).slice(1, p, p + n).copy_(xk);
      Tensor keys = cache.slice(0, 0, rows).slice(1, 0, p + n);
      return matmul(transpose(xk, 1, 2), transpose(transpose(keys, 1, 2), 2, 3));
    };
  };
  static Counter& launches = counter("kernels_launched");
  Tensor x = randn({1, 32, 8, 64}), cache = zeros({56, 384, 8, 64}), expected = with_cache(cache)(x, SymInt(1));
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    SCOPED_TRACE(dynamic == Dynamic::On ? "dynamic" : "static");
    Tensor mine = zeros({56, 384, 8, 64});
    auto f = compile(with_cache(mine), {.fullgraph = true, .dynamic = dynamic});
    for (int call = 0; call < 2; ++call) {
      const int64_t before = launches.value();
      Tensor result = f(x, SymInt(1));
      if (call > 0) {
        EXPECT_EQ(launches.value() - before, 1) << "of the new rows alone";
      }
      EXPECT_TRUE(close(result, expected, {.rtol = 1e-4, .atol = 1e-4}));
      EXPECT_TRUE(close(mine, cache, {.rtol = 1e-4, .atol = 1e-4}));
    }
  }
}

TEST(CommonTemplate, dropout3) {
  nn::Linear first(32, 32, {.bias = false}), second(32, 32, {.bias = false});
  nn::Dropout drop(0.5);
  auto function = [=](Tensor x) { return drop(second(drop(first(x)))); };
  static Counter& launches = counter("kernels_launched");
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto f = compile(function, {.fullgraph = true, .dynamic = dynamic});
    Tensor x = randn({8, 32}).set_requires_grad(), by = ones({8, 32});
    for (int call = 0; call < 2; ++call) {
      // What is added to a gradient that is there already is no part of the graphs.
      for (const Tensor& leaf : {x, first.weight.get(), second.weight.get()}) leaf.set_grad(Tensor());
      const int64_t before = launches.value();
      Tensor result = f(x);
      const int64_t forward = launches.value();
      result.backward(by);
      if (call > 0) {
        EXPECT_LE(launches.value() - before, 4) << forward - before << " of them forward";
      }
    }
    EXPECT_EQ(f.compile_count(), 1);
  }
}

// The loop body's dtypes: bfloat16 is read and written, float32 in between, comparisons are bools, indices int64. The
// pool itself is a library's here; its windows written out are a kernel.
TEST(CommonTemplate, data_type_propogation) {
  Tensor x = randn({10, 32, 20, 20}).to(kBFloat16).contiguous(MemoryFormat::ChannelsLast);
  auto pool = [](Tensor a) { return max_pool2d(a, {3, 3}, {2, 2}, {1, 1}); };
  Tensor pooled = check(pool, {x}, {.backward = false})[0];
  EXPECT_EQ(pooled.dtype(), kBFloat16);
  auto windows = [](Tensor a) {
    Tensor wide = constant_pad_nd(a, {1, 1, 1, 1}, -std::numeric_limits<double>::infinity()), largest;
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t column = 0; column < 3; ++column) {
        Tensor part = wide.slice(2, row, row + 19, 2).slice(3, column, column + 19, 2);
        largest = largest.defined() ? maximum(largest, part) : part;
      }
    return largest;
  };
  EXPECT_TRUE(same_bits(check(windows, {x}, {.backward = false, .strides = false})[0], pooled));
  std::istringstream lines(kernels_of(of_list(windows), {x}, Dynamic::Off));
  std::map<std::string, std::set<std::string>> dtypes;  // of each operation
  std::string signature;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("kernel")) signature += line;
    const size_t equals = line.find(" = "), colon = line.rfind(" : ");
    if (equals == line.npos || colon == line.npos) continue;
    dtypes[line.substr(equals + 3, line.find(' ', equals + 3) - equals - 3)].insert(line.substr(colon + 3));
  }
  using Words = std::set<std::string>;
  EXPECT_EQ(dtypes["load"], Words{"f32"});
  EXPECT_EQ(dtypes["max"], Words{"f32"});
  EXPECT_EQ(dtypes["index"], Words{"i64"});
  for (const char* compares : {"lt", "ge", "and"})
    if (dtypes.contains(compares)) {
      EXPECT_EQ(dtypes[compares], Words{"b8"}) << compares;
    }
  EXPECT_THAT(signature, ::testing::ContainsRegex("bf16 in .*bf16 out"));
}

}  // namespace
}  // namespace tenon::operators
