// Seed 001: functions with a backward of their own, in walks that are captured.
#include "compiled_autograd.h"

namespace tenon {
namespace {

using namespace testing;
using autograd::AutogradContext;
using autograd::Function;

// Sizes that change: compiled for the first, then for any.
constexpr int64_t kSizes[] = {10, 100, 10, 15, 20, 25};

struct MySin : Function<MySin> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x.sin();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return {gradients[0] * ctx->saved_tensors()[0].cos()};
  }
};

TEST_F(TestCompiledAutograd, custom_fn_saved_tensors) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size);
          MySin::apply(x).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

struct TwoSines : Function<TwoSines> {
  static constexpr bool is_traceable = true;
  static Tensors forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    ctx->save_for_backward({x, y});
    return {x.sin(), y.sin()};
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensors saved = ctx->saved_tensors();
    return {gradients[0] * saved[0].cos(), gradients[1] * saved[1].cos()};
  }
};

TEST_F(TestCompiledAutograd, custom_fn_saved_multiple_tensors) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size), y = counted(size);
          Tensors out = TwoSines::apply(x, y);
          (out[0] * out[1]).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

struct SavedTwice : Function<SavedTwice> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x, x});
    return x.sin();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensors saved = ctx->saved_tensors();
    return {gradients[0] * saved[0].cos() * saved[1].cos()};
  }
};

TEST_F(TestCompiledAutograd, custom_fn_saved_multiple_tensors_dedup) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size);
          SavedTwice::apply(x).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

struct SavedShape : Function<SavedShape> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return {gradients[0] * ctx->saved_tensors()[0].size(0)};
  }
};

TEST_F(TestCompiledAutograd, custom_fn_saved_shape_tensor) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size);
          SavedShape::apply(x).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

struct SavedNumber : Function<SavedNumber> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->saved_data["shape"] = AnyValue(x.size(0));
    return x;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return {gradients[0] * ctx->saved_data["shape"].sym_int()};
  }
};

TEST_F(TestCompiledAutograd, custom_fn_saved_attr) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size);
          SavedNumber::apply(x).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2, {.fullgraph = false});
}

struct SumAndSecond : Function<SumAndSecond> {
  static constexpr bool is_traceable = true;
  static Tensors forward(AutogradContext*, const Tensor& x, const Tensor& y) { return {x + y, y}; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], gradients[1]}; }
};

TEST_F(TestCompiledAutograd, custom_fn_multiple_grads) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size), y = counted(size);
          Tensors out = SumAndSecond::apply(x, y);
          (out[0] + out[1]).sum().backward();
          found.push_back(x.grad());
          found.push_back(y.grad());
        }
        return found;
      },
      2);
}

// The number in the middle has a place among the gradients, and none comes for it. Forward gives it back as a tensor:
// results of a function are tensors here.
struct Scales : Function<Scales> {
  static constexpr bool is_traceable = true;
  static Tensors forward(AutogradContext*, const Tensor& x, int64_t y, const Tensor& z) {
    return {x * 2, tensor(y * 3), z * 4};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], Tensor(), gradients[2]}; }
};

TEST_F(TestCompiledAutograd, custom_fn_non_variable_input) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size), z = counted(size);
          Tensors out = Scales::apply(x, int64_t{1}, z);
          (out[0] + out[1] + out[2]).sum().backward();
          for (const Tensor& each : {x, z}) {
            found.push_back(each.detach());
            found.push_back(each.grad());
          }
        }
        return found;
      },
      2);
}

struct Identity : Function<Identity> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};
struct OtherIdentity : Function<OtherIdentity> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};

// Halves stay halves: nothing is cast on the way.
TEST_F(TestCompiledAutograd, custom_fn_output_metadata) {
  int64_t casts = 0;
  Backend looking = [&](const graph::Graph& graph) -> GraphFunction {
    for (const graph::Node& node : graph.nodes)
      casts += node.op->brief_name() == "_to_copy" || node.op->brief_name() == "to";
    return aot::compile(graph, aot::interpreted).run;
  };
  check_output_and_recompiles(
      [] {
        Tensor x = arange(1, 10, 1, kFloat16).set_requires_grad();
        Identity::apply(x.view({3, 3})).sum().backward();
        EXPECT_EQ(x.dtype(), kFloat16);
        EXPECT_EQ(x.grad().dtype(), kFloat16);
        return Tensors{x.grad()};
      },
      1, {.backend = looking, .fullgraph = true});
  EXPECT_EQ(casts, 0);
}

TEST_F(TestCompiledAutograd, custom_fn_with_same_graph) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (bool first : {true, false, true, false}) {
          Tensor x = counted(10);
          (first ? Identity::apply(x) : OtherIdentity::apply(x)).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

template <int multiplier>
struct Multiplied : Function<Multiplied<multiplier>> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * multiplier; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * multiplier}; }
};

TEST_F(TestCompiledAutograd, custom_fn_dynamically_defined_class) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        auto run = [&](auto apply) {
          Tensor x = counted(10);
          apply(x).sum().backward();
          found.push_back(x.grad());
        };
        run([](const Tensor& x) { return Multiplied<10>::apply(x); });
        run([](const Tensor& x) { return Multiplied<20>::apply(x); });
        run([](const Tensor& x) { return Multiplied<30>::apply(x); });
        return found;
      },
      3);
}

struct BreaksBackward : Function<BreaksBackward> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x.sin();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    graph_break();
    return {gradients[0] * ctx->saved_tensors()[0].cos()};
  }
};

// Each capture is two graphs, before the break and after it. (The seed counts three: its third holds what its frames
// hand to each other.)
TEST_F(TestCompiledAutograd, custom_fn_bw_graph_break) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : kSizes) {
          Tensor x = counted(size);
          BreaksBackward::apply(x).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      {2, 4}, {.fullgraph = false});
}

template <bool breaks_backward>
struct BreaksForward : Function<BreaksForward<breaks_backward>> {
  static constexpr bool is_traceable = true;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    graph_break();
    ctx->save_for_backward({x});
    return x.sin();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    if (breaks_backward) graph_break();
    return {gradients[0] * ctx->saved_tensors()[0].cos()};
  }
};

template <typename F>
Tensors apply_compiled(int64_t& graphs) {
  auto compiled = compile([](const Tensor& x) { return F::apply(x); });
  Tensors found;
  for (int64_t size : kSizes) {
    Tensor x = counted(size);
    compiled(x).sum().backward();
    found.push_back(x.grad());
  }
  // Before the break there is no operator: that is no graph in the seed's sense.
  graphs = 0;
  for (const Explanation::Entry& entry : compiled.explain().entries)
    graphs += entry.captured.find("aten::") != entry.captured.npos;
  return found;
}

// The seed counts five graphs in all.
TEST_F(TestCompiledAutograd, custom_fn_compiled_fw_graph_break) {
  int64_t graphs = 0;
  check_output_and_recompiles([&] { return apply_compiled<BreaksForward<false>>(graphs); }, 2, {.fullgraph = false});
  EXPECT_EQ(graphs + compiles(), 4);
}

// The seed counts six compiles of walks, nine graphs in all. Here backward was traced with the compiled forward, where
// a break in it has no meaning: it is one graph.
TEST_F(TestCompiledAutograd, custom_fn_compiled_fw_bw_graph_break) {
  int64_t graphs = 0;
  check_output_and_recompiles([&] { return apply_compiled<BreaksForward<true>>(graphs); }, {2, 2},
                              {.fullgraph = false});
  EXPECT_EQ(graphs + compiles(), 4);
}

}  // namespace
}  // namespace tenon
