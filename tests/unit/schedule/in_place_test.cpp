// Inputs that a function writes are updated where they lie, and nothing else of them is touched.
#include "../capture/testing.h"

#include <tenon/aot/aot.h>
#include <tenon/codegen/compile.h>
#include <tenon/schedule/schedule.h>

#include "schedule/in_place.h"
#include "schedule/schedule_loops.h"

namespace tenon::schedule {
namespace {

using testing::same_bits;

// A compiled function, and what was made of it.
struct Compiled {
  std::shared_ptr<const runtime::Plan> plan;
  std::vector<Decision> decisions;  // by written input
  int launches() const {
    return static_cast<int>(std::count_if(plan->steps.begin(), plan->steps.end(), [](const runtime::Step& step) {
      return std::holds_alternative<runtime::LaunchStep>(step);
    }));
  }
  int allocations() const {
    return static_cast<int>(std::count_if(plan->steps.begin(), plan->steps.end(), [](const runtime::Step& step) {
      return std::holds_alternative<runtime::AllocateStep>(step);
    }));
  }
  // Elements that the plan's kernels store, of a plan without symbols.
  int64_t elements() const {
    int64_t count = 0;
    for (const auto& kernel : plan->kernels) count += stores(codegen::compiled_from(*kernel)->kernel.body);
    return count;
  }

 private:
  static int64_t stores(const loop::Block& block) {
    int64_t count = 0;
    for (const loop::Statement& statement : block) {
      if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement))
        count += (*inner)->extent.constant() * stores((*inner)->body);
      else
        count += std::get<loop::Op>(statement).code == loop::OpCode::Store ? 1 : 0;
    }
    return count;
  }
};

// Backend that writes down what it makes of forward graphs.
CompileOptions recording(std::vector<Compiled>& made, Dynamic dynamic = Dynamic::Off) {
  CompileOptions options;
  options.dynamic = dynamic;
  options.backend = [&made](const graph::Graph& graph) -> GraphFunction {
    auto compiler = [&made](const graph::Graph& part) -> GraphFunction {
      Compiled compiled;
      compiled.plan = compile_graph(part);
      graph::Graph parts = decompose(part);
      compiled.decisions.assign(parts.written.size(), Decision::allow());
      for (;;) {
        InPlace updated = update_in_place(parts, compiled.decisions);
        const Schedule schedule = fuse(updated.graph, {}, updated.updates);
        if (!refuse_late_reads(schedule, make_nests(schedule), compiled.decisions)) break;
      }
      made.push_back(compiled);
      return [plan = compiled.plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
        return runtime::run(*plan, inputs, symbols);
      };
    };
    std::vector<bool> requires_grad;
    for (graph::ValueId id : graph.inputs) requires_grad.push_back(graph.meta(id).requires_grad());
    return aot::compile(graph, requires_grad, autograd::grad_enabled(), compiler).run;
  };
  return options;
}

// Runs the function and what it is compiled to on tensors that `make` gives: results and tensors must agree in their
// bits, and in whether they count as written.
template <typename Body, typename Make>
Compiled expect_eager(Body body, Make make, Dynamic dynamic = Dynamic::Off) {
  std::vector<Compiled> made;
  auto f = compile(body, recording(made, dynamic));
  for (int call = 0; call < 2; ++call) {
    auto eager = make(), compiled = make();
    auto versions = [](auto& tensors) {
      return std::apply([](auto&... each) { return std::vector{each.version()...}; }, tensors);
    };
    const std::vector<int64_t> eager_before = versions(eager), compiled_before = versions(compiled);
    if constexpr (std::is_void_v<decltype(std::apply(body, eager))>) {
      std::apply(body, eager);
      std::apply(f, compiled);
    } else {
      Tensor expected = std::apply(body, eager), got = std::apply(f, compiled);
      EXPECT_TRUE(same_bits(got, expected));
    }
    const std::vector<int64_t> eager_after = versions(eager), compiled_after = versions(compiled);
    for (size_t at = 0; at < eager_after.size(); ++at)
      EXPECT_EQ(compiled_after[at] > compiled_before[at], eager_after[at] > eager_before[at]) << "input " << at;
    auto list = [](auto& tensors) {
      return std::apply([](auto&... each) { return std::vector<Tensor>{each...}; }, tensors);
    };
    std::vector<Tensor> wanted = list(eager), have = list(compiled);
    for (size_t at = 0; at < wanted.size(); ++at) EXPECT_TRUE(same_bits(have[at], wanted[at])) << "input " << at;
  }
  EXPECT_EQ(made.size(), 1u);
  return made.at(0);
}

Tensor counted(int64_t rows, int64_t columns) {
  return arange(Scalar(rows * columns), TensorOptions(kFloat32)).view({rows, columns});
}

TEST(InPlace, one_row_is_all_that_is_touched) {
  auto made = expect_eager([](Tensor x) { x.select(0, -1).fill_(3); }, [] { return std::tuple(counted(513, 65)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
  EXPECT_EQ(made.launches(), 1);
  EXPECT_EQ(made.elements(), 65);
}

// A library writes them there, and looks at nothing else.
TEST(InPlace, elements_at_the_places_of_an_index) {
  auto make = [] { return std::tuple(counted(16, 4), tensor({3, -1})); };
  auto made = expect_eager([](Tensor x, Tensor at) { x.index_put_({at}, full({4}, 7.0)); }, make);
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 1) << "the values";
  auto added = expect_eager([](Tensor x, Tensor at) { x.index_put_({at, at}, full({2}, 7.0), true); }, make);
  EXPECT_TRUE(added.decisions.at(0)) << added.decisions[0].why();
  auto halves = expect_eager([](Tensor x, Tensor at) { x.index_put_({at}, full({4}, 7, kBFloat16), true); },
                             [] { return std::tuple(counted(16, 4).to(kBFloat16), tensor({3, 3})); });
  EXPECT_TRUE(halves.decisions.at(0)) << halves.decisions[0].why();
  // What is read before is read before.
  auto read = expect_eager(
      [](Tensor x, Tensor at) {
        Tensor twice = x * 2;
        x.index_put_({at}, full({4}, 7.0));
        return twice + x.sum();
      },
      make);
  EXPECT_EQ(read.decisions.size(), 1u);
}

// (Found by the fuzzer: an update without a write has no last one.)
TEST(InPlace, a_row_that_is_written_over_itself) {
  auto made =
      expect_eager([](Tensor x) { x.select(0, 0).copy_(x.select(0, 0)); }, [] { return std::tuple(counted(16, 4)); });
  EXPECT_EQ(made.decisions.size(), 1u);
}

TEST(InPlace, not_where_what_is_put_lies_there_too) {
  auto make = [] { return std::tuple(counted(16, 4), tensor({3, 4})); };
  auto made = expect_eager([](Tensor x, Tensor at) { x.index_put_({at}, x.slice(0, 2, 4)); }, make);
  EXPECT_FALSE(made.decisions.at(0) && made.allocations() == 0);
  auto into_itself = expect_eager([](Tensor x) { x.index_put_({x.select(1, 0).slice(0, 0, 2)}, full({4}, 5, kInt64)); },
                                  [] { return std::tuple(zeros({16, 4}, kInt64)); });
  EXPECT_EQ(into_itself.decisions.size(), 1u);
}

TEST(InPlace, a_row_of_another_tensor) {
  auto made = expect_eager([](Tensor cache, Tensor row) { cache.select(0, 7).copy_(row); },
                           [] { return std::tuple(counted(512, 64), counted(1, 64).view({64})); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
  EXPECT_EQ(made.elements(), 64);
}

TEST(InPlace, all_of_it) {
  auto made = expect_eager([](Tensor x) { x.add_(1); }, [] { return std::tuple(counted(33, 65)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
  EXPECT_EQ(made.launches(), 1);
}

TEST(InPlace, parts_of_parts) {
  auto made = expect_eager([](Tensor x, Tensor y) { x.view({4, 8, 6}).select(0, 2).t().slice(0, 1, 5, 2).mul_(y); },
                           [] { return std::tuple(counted(32, 6), counted(2, 8)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
  EXPECT_EQ(made.elements(), 16);
}

TEST(InPlace, a_diagonal) {
  auto made = expect_eager([](Tensor x) { x.diagonal().zero_(); }, [] { return std::tuple(counted(40, 40)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.elements(), 40);
}

TEST(InPlace, a_part_of_something_larger) {
  auto made = expect_eager([](Tensor x) { x.select(1, 0).add_(2); },
                           [] { return std::tuple(counted(16, 24).slice(1, 4, 12).slice(0, 1, 9, 2)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.elements(), 4);
}

TEST(InPlace, sizes_that_are_not_known) {
  auto made = expect_eager([](Tensor x, Tensor y) { x.select(0, -1).add_(y); },
                           [] { return std::tuple(counted(7, 9), counted(1, 9).view({9})); }, Dynamic::On);
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
}

TEST(InPlace, several_writes_to_one) {
  auto made = expect_eager(
      [](Tensor x, Tensor y) {
        x.select(0, 1).copy_(y);
        x.slice(0, 1, 3).slice(1, 0, 2).fill_(-1);
        x.select(0, 5).zero_();
      },
      [] { return std::tuple(counted(8, 5), counted(1, 5).view({5})); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
  EXPECT_EQ(made.launches(), 3);
}

TEST(InPlace, the_new_value_is_read_where_it_lies) {
  auto made = expect_eager(
      [](Tensor cache, Tensor row, Tensor query) {
        cache.select(0, 3).copy_(row);
        return mm(cache, query);
      },
      [] { return std::tuple(counted(16, 8), counted(1, 8).view({8}), counted(8, 3)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 1);  // the product
}

TEST(InPlace, the_new_whole_is_read_by_another_kernel) {
  auto made = expect_eager(
      [](Tensor x) {
        x.mul_(2);
        return mm(x.t(), x) + x.sum();
      },
      [] { return std::tuple(counted(12, 8)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
}

TEST(InPlace, rows_that_are_normed) {
  auto made = expect_eager([](Tensor x) { x.sub_(x.amax({-1}, true)); }, [] { return std::tuple(counted(37, 50)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
  EXPECT_EQ(made.allocations(), 0);
  auto softly = expect_eager([](Tensor x) { x.copy_(softmax(x, -1)); }, [] { return std::tuple(counted(3, 70) / 10); });
  EXPECT_TRUE(softly.decisions.at(0)) << softly.decisions[0].why();
}

TEST(InPlace, several_inputs_that_read_each_other) {
  auto made = expect_eager(
      [](Tensor p, Tensor m, Tensor g) {
        m.mul_(0.5).add_(g);
        p.sub_(m * 0.1);
      },
      [] { return std::tuple(counted(20, 30), counted(20, 30) + 1, counted(20, 30) * 2); });
  for (const Decision& decision : made.decisions) EXPECT_TRUE(decision) << decision.why();
  EXPECT_EQ(made.allocations(), 0);
  EXPECT_EQ(made.launches(), 1);
  auto swapped = expect_eager(
      [](Tensor x, Tensor y) {
        Tensor before = x.clone();
        x.copy_(y);
        y.copy_(before);
      },
      [] { return std::tuple(counted(20, 30), counted(20, 30) + 1); });
  EXPECT_EQ(swapped.decisions.size(), 2u);
}

TEST(InPlace, reads_of_the_old_value_come_first) {
  auto made = expect_eager(
      [](Tensor x) {
        Tensor before = mm(x.t(), x), turned = x.t().contiguous();
        x.zero_();
        return turned.sum(0) + before.sum();
      },
      [] { return std::tuple(counted(24, 24)); });
  EXPECT_TRUE(made.decisions.at(0)) << made.decisions[0].why();
}

TEST(InPlace, refused_where_elements_move) {
  auto made = expect_eager([](Tensor x) { x.copy_(x.t().clone()); }, [] { return std::tuple(counted(33, 33)); });
  EXPECT_EQ(made.decisions.at(0).why(), "the kernel that writes it reads other elements of it than it stores");
  auto shifted = expect_eager([](Tensor x) { x.slice(0, 1).copy_(x.slice(0, 0, -1).clone()); },
                              [] { return std::tuple(counted(33, 9)); });
  EXPECT_FALSE(shifted.decisions.at(0));
}

TEST(InPlace, a_result_that_is_the_same_has_memory_of_its_own) {
  auto made = expect_eager(
      [](Tensor x) {
        Tensor result = x + 1;
        x.copy_(result);
        return result;
      },
      [] { return std::tuple(counted(4, 5)); });
  EXPECT_EQ(made.allocations(), 1);
  // One value for two inputs: it can lie in one of them at most.
  expect_eager(
      [](Tensor x, Tensor y) {
        Tensor sum = x + y;
        x.copy_(sum);
        y.copy_(sum);
        return sum * 2;
      },
      [] { return std::tuple(counted(4, 5), counted(4, 5) + 1); });
}

TEST(InPlace, refused_where_the_new_value_is_kept_for_backward) {
  std::vector<Compiled> made;
  auto f = compile(
      [](Tensor x, Tensor w) {
        x.mul_(2);
        return (tanh(x) * w).sum();
      },
      recording(made));
  Tensor x = counted(3, 4), w = ones({3, 4}).set_requires_grad();
  f(x, w).backward();
  EXPECT_TRUE(same_bits(x, counted(3, 4) * 2));
  EXPECT_LT(testing::difference(w.grad(), tanh(counted(3, 4) * 2)), 1e-6);
}

TEST(InPlace, refused_where_a_check_may_fail) {
  auto body = [](Tensor x, Tensor table, Tensor index) { x.add_(table.index_select(0, index)); };
  auto made = expect_eager(body, [] { return std::tuple(counted(3, 5), counted(9, 5), tensor({2, 0, 8})); });
  EXPECT_EQ(made.decisions.at(0).why(), "the kernel that writes it may fail half-way");
  Tensor x = counted(3, 5);
  EXPECT_ANY_THROW(compile(body)(x, counted(9, 5), tensor({2, 0, 9})));
  EXPECT_TRUE(same_bits(x, counted(3, 5)));
}

// A value that is written to several places, of one input or of two, is read from where it lies by itself.
TEST(InPlace, one_value_at_several_places) {
  auto onto_itself = [](Tensor x) {
    Tensor part = x.slice(1, 1).fill_(0.25).unsqueeze(2);
    part.copy_(part);
    return ones({1});
  };
  auto to_both = [](Tensor x, Tensor y, Tensor z) {
    Tensor value = z * 2;
    x.copy_(value);
    y.copy_(value);
    return ones({1});
  };
  for (Dynamic dynamic : {Dynamic::On, Dynamic::Off}) {
    Tensor expected = counted(3, 4), x = counted(3, 4);
    onto_itself(expected);
    compile(onto_itself, {.dynamic = dynamic})(x);
    EXPECT_TRUE(same_bits(x, expected));
    Tensor a = zeros({4, 3}), b = zeros({3, 4}), z = counted(3, 4);
    compile(to_both, {.dynamic = dynamic})(a.t(), b, z);
    EXPECT_TRUE(same_bits(a.t().contiguous(), z * 2));
    EXPECT_TRUE(same_bits(b, z * 2));
  }
}

TEST(InPlace, not_what_backward_needs) {
  auto body = [](Tensor x, Tensor w) {
    Tensor y = (x * w).sum();
    x.add_(1);
    return y;
  };
  // (Eager has to refuse this: the value that it needs is gone.)
  Tensor x = counted(3, 4), w = (counted(3, 4) + 2).set_requires_grad();
  compile(body)(x, w).backward();
  EXPECT_TRUE(same_bits(w.grad(), counted(3, 4)));
  EXPECT_TRUE(same_bits(x, counted(3, 4) + 1));
}

TEST(InPlace, statistics_of_a_trained_layer) {
  auto body = [](Tensor mean, Tensor x, Tensor w) {
    {
      autograd::NoGrad off;
      mean.mul_(0.9).add_(x.mean(0) * 0.1);
    }
    return ((x - x.mean(0)) * w).square().sum();
  };
  Tensor expected = zeros({4}), got = zeros({4}), x = counted(6, 4);
  Tensor w = ones({4}).set_requires_grad(), v = ones({4}).set_requires_grad();
  auto f = compile(body);
  for (int step = 0; step < 3; ++step) {
    body(expected, x, w).backward();
    f(got, x, v).backward();
  }
  EXPECT_LT(testing::difference(got, expected), 1e-6);
  EXPECT_LT(testing::difference(v.grad(), w.grad()), 1e-6);
}

}  // namespace
}  // namespace tenon::schedule
