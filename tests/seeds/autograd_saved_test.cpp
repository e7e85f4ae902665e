// The autograd suite: what nodes save, seen from outside; hooks of saved tensors; anomaly mode; checkpoints.
#include "autograd.h"

#include <tenon/autograd/anomaly.h>
#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/saved.h>
#include <tenon/dispatch/profiler.h>
#include <tenon/nn/modules.h>
#include <tenon/oracle/oracle.h>
#include <tenon/support/warnings.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::CheckpointOptions;
using autograd::DetectAnomaly;
using autograd::DisableSavedTensorHooks;
using autograd::grad_fn;
using autograd::register_saved_hooks;
using autograd::saved;
using autograd::SavedTensorHooks;
using autograd::SavedTensorHooksGuard;

SavedTensorHooks hooks_of(std::function<Tensor(const Tensor&)> pack, std::function<Tensor(const Tensor&)> unpack) {
  return {.pack = [pack = std::move(pack)](const Tensor& tensor) -> std::any { return pack(tensor); },
          .unpack = [unpack = std::move(unpack)](const std::any& kept) { return unpack(std::any_cast<Tensor>(kept)); }};
}
Tensor same(const Tensor& x) { return x; }
Tensor twice(const Tensor& x) { return x * 2; }
Tensor half(const Tensor& x) { return x / 2; }

TEST_P(TestAutograd, saved_variable_version_counter) {
  Tensor a = rand({2}).set_requires_grad(), b = a.exp(), kept = saved(grad_fn(b), "result");
  EXPECT_TRUE(same_bits(kept.detach(), b.detach()));
  EXPECT_EQ(kept.version(), b.version());
  {
    NoGrad off;
    b.add_(1);
  }
  EXPECT_TRUE(same_bits(kept.detach(), b.detach()));
  EXPECT_EQ(kept.version(), b.version());
}

// A pack hook of another number of arguments does not compile here.
TEST_P(TestAutograd, saved_variable_packing_unpacking_saved_original_with_hooks) {
  for (bool leaf : {true, false}) {
    auto check = [&](auto pack, auto unpack, double value, double slope) {
      Tensor first = randn({5}).set_requires_grad(), a = leaf ? first : first * 1, y = a * a;
      register_saved_hooks(grad_fn(y), "self", hooks_of(pack, unpack));
      Tensor kept = saved(grad_fn(y), "self");
      expect_near(kept, a * value);
      EXPECT_EQ(grad_fn(kept).get(), grad_fn(a).get());
      a.retain_grad();
      y.sum().backward();
      expect_near(leaf ? first.grad() : a.grad(), a.detach() * slope);
    };
    check(same, same, 1, 2);
    check(twice, half, 1, 2);
    check(twice, same, 2, 3);
    // Twice differentiated.
    Tensor a = randn({5}).set_requires_grad(), y = a.pow(3);
    register_saved_hooks(grad_fn(y), "self", hooks_of(twice, half));
    Tensor first = autograd::grad({y.sum()}, {a}, {}, false, true)[0];
    expect_near(autograd::grad({first.sum()}, {a})[0], 6 * a);
  }
  Tensor a = randn({5}).set_requires_grad(), y = a * a;
  register_saved_hooks(grad_fn(y), "self", hooks_of(same, [](const Tensor&) { return Tensor(); }));
  EXPECT_THAT(error_of([&] { y.sum().backward(); }),
              HasSubstr("Output of saved tensor unpack_hook expected to be a Tensor"));
  y = a * a;
  EXPECT_THAT(error_of([&] {
                register_saved_hooks(grad_fn(y), "self", hooks_of([](const Tensor& x) { return x.mul_(2); }, same));
              }),
              HasSubstr("A saved tensor pack hook is modifying its input in place."));
}

TEST_P(TestAutograd, saved_variable_packing_unpacking_did_not_save_original_with_hooks) {
  Tensor a = randn({5}).set_requires_grad(), y = a.exp();
  register_saved_hooks(grad_fn(y), "result", hooks_of(same, same));
  Tensor kept = saved(grad_fn(y), "result");
  expect_near(kept, y);
  EXPECT_EQ(grad_fn(kept).get(), grad_fn(y).get());
  y.sum().backward();
  expect_near(a.grad(), y);
}

TEST_P(TestAutograd, saved_variable_packing_unpacking_saved_original_with_default_hooks) {
  Tensor a = randn({5}).set_requires_grad();
  int packed = 0;
  {
    SavedTensorHooksGuard guard(hooks_of(
        [&](const Tensor& x) {
          ++packed;
          return x;
        },
        same));
    Tensor y = a * a;
    EXPECT_EQ(packed, 2);
    y.sum().backward();
    expect_near(a.grad(), 2 * a);
  }
  auto check = [&](auto pack, auto unpack, double value, double slope) {
    a.set_grad(Tensor());
    SavedTensorHooksGuard guard(hooks_of(pack, unpack));
    Tensor y = a * a;
    expect_near(saved(grad_fn(y), "self"), a * value);
    expect_near(saved(grad_fn(y), "other"), a * value);
    y.sum().backward();
    expect_near(a.grad(), slope * a);
  };
  check(twice, half, 1, 2);
  check(twice, same, 2, 4);
  a.set_grad(Tensor());
  Tensor y = a * a;
  expect_near(saved(grad_fn(y), "self"), a);
  y.sum().backward();
  expect_near(a.grad(), 2 * a);
}

TEST_P(TestAutograd, disabling_saved_tensor_hooks) {
  auto open = [] { SavedTensorHooksGuard guard(hooks_of(same, same)); };
  {
    DisableSavedTensorHooks off("error message");
    EXPECT_EQ(error_of(open), "error message");
  }
  EXPECT_EQ(error_of(open), "no error");
  {
    SavedTensorHooksGuard guard(hooks_of(same, same));
    EXPECT_EQ(error_of([] { DisableSavedTensorHooks off("error message"); }), "error message");
  }
  EXPECT_EQ(error_of(open), "no error");
}

TEST_P(TestAutograd, disabling_saved_tensor_hooks_nested) {
  auto open = [] { SavedTensorHooksGuard guard(hooks_of(same, same)); };
  {
    DisableSavedTensorHooks outer("outer");
    {
      DisableSavedTensorHooks inner("inner");
      EXPECT_EQ(error_of(open), "inner");
    }
    EXPECT_EQ(error_of(open), "outer");
  }
  EXPECT_EQ(error_of(open), "no error");
}

struct AddsToSaved : Function<AddsToSaved> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a) {
    ctx->save_for_backward({a});
    return a * 2;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensor kept = ctx->saved_tensors()[0];
    int64_t version = kept.version();
    NoGrad off;
    kept.add_(5);
    EXPECT_EQ(kept.version(), version + 1);
    return {gradients[0] * 2};
  }
};

TEST_P(TestAutograd, save_tensor_hook_version_counter_not_shared) {
  Tensor a = randn({5}).set_requires_grad(), other = randn({5});
  int64_t version = a.version();
  {
    SavedTensorHooksGuard guard(hooks_of([&](const Tensor&) { return other; }, same));
    AddsToSaved::apply(a).sum().backward();
  }
  EXPECT_EQ(a.version(), version);
  EXPECT_EQ(other.version(), 1);
}

Tensor power_of_16(Tensor a) {
  for (int round = 0; round < 4; ++round) a = a.pow(2);
  return a;
}

TEST_P(TestAutograd, save_on_cpu_and_checkpoint) {
  Tensor a = randn({2, 2}).set_requires_grad();
  power_of_16(a).sum().backward();
  Tensor expected = a.grad();
  a.set_grad(Tensor());
  {
    autograd::SaveOnCpu kept;
    Tensor h = a.pow(2);
    h = autograd::checkpoint([](const Tensor& x) { return x.pow(2).pow(2); }, h);
    h.pow(2).sum().backward();
  }
  expect_near(a.grad(), expected);
  a.set_grad(Tensor());
  Tensor h = autograd::checkpoint(
      [](const Tensor& x) {
        autograd::SaveOnCpu kept;
        return x.pow(2).pow(2);
      },
      a.pow(2));
  h.pow(2).sum().backward();
  expect_near(a.grad(), expected);
}

TEST_P(TestAutograd, pack_hook_with_inplace_modification_should_fail) {
  auto says = HasSubstr("A saved tensor pack hook is modifying its input in place.");
  auto changing = [](const Tensor& x) { return x.add_(1); };
  Tensor a = randn({5}).set_requires_grad();
  EXPECT_THAT(error_of([&] {
                SavedTensorHooksGuard guard(hooks_of(changing, same));
                a.exp();
              }),
              says);
  Tensor y = a.exp();
  EXPECT_THAT(error_of([&] { register_saved_hooks(grad_fn(y), "result", hooks_of(changing, same)); }), says);
}

TEST_P(TestAutograd, saving_variable_to_disk) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / fmt::format("tenon_saved_{}_{}", ::getpid(), GetParam());
  fs::create_directories(folder);
  int count = 0;
  SavedTensorHooks hooks;
  hooks.pack = [&](const Tensor& tensor) -> std::any {
    fs::path file = folder / std::to_string(count++);
    Tensor whole = tensor.contiguous();
    std::ofstream(file, std::ios::binary)
        .write(static_cast<const char*>(whole.raw_data()), whole.numel().plain() * whole.element_size());
    return file.string();
  };
  hooks.unpack = [](const std::any& file) {
    Tensor made = empty({5});
    std::ifstream(std::any_cast<std::string>(file), std::ios::binary).read(static_cast<char*>(made.raw_data()), 20);
    return made;
  };
  Tensor a = randn({5}).set_requires_grad();
  {
    SavedTensorHooksGuard guard(hooks);
    Tensor y = a * a;
    expect_near(saved(grad_fn(y), "self"), a);
    y.sum().backward();
  }
  expect_near(a.grad(), 2 * a);
  EXPECT_EQ(count, 2);
  fs::remove_all(folder);
}

struct SavesTwo : Function<SavesTwo> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, bool saves) {
    if (saves) ctx->save_for_backward({x, Tensor()});
    return x.clone();
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], Tensor()}; }
};

// Hooks of another type do not compile here.
TEST_P(TestAutograd, custom_function_saved_tensors) {
  Tensor x = randn({5}).set_requires_grad(), y = SavesTwo::apply(x, true);
  EXPECT_EQ(autograd::saved_names(grad_fn(y)), (std::vector<std::string>{"0", "1"}));
  EXPECT_TRUE(saved(grad_fn(y), "0").is(x));
  EXPECT_FALSE(saved(grad_fn(y), "1").defined());
  register_saved_hooks(grad_fn(y), "0", hooks_of(same, same));
  EXPECT_THAT(error_of([&] { register_saved_hooks(grad_fn(y), "0", hooks_of(same, same)); }),
              HasSubstr("already been set"));
  EXPECT_THAT(error_of([&] { register_saved_hooks(grad_fn(y), "1", hooks_of(same, same)); }),
              HasSubstr("None is forbidden"));
  y.sum().backward();
  EXPECT_THAT(error_of([&] { saved(grad_fn(y), "0"); }), HasSubstr("after they have already been freed"));
  EXPECT_TRUE(autograd::saved_names(grad_fn(SavesTwo::apply(x, false))).empty());
}

// Gives nan for one of its arguments.
struct GivesNan : Function<GivesNan> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b, bool first) {
    ctx->saved_data["first"] = first;
    return a + b;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensor wrong = full_like(gradients[0].detach(), std::numeric_limits<double>::quiet_NaN());
    bool first = ctx->saved_data["first"].boolean();
    return {first ? wrong : gradients[0], first ? gradients[0] : wrong, Tensor()};
  }
};

TEST_P(TestAutograd, anomaly_detect_nan) {
  for (bool first : {true, false}) {
    Tensor a = rand({10}).set_requires_grad(), b = rand({10}).set_requires_grad();
    auto sum = [&] { return GivesNan::apply(a, b, first).sum(); };
    sum().backward();
    CatchWarnings caught;
    DetectAnomaly on;
    EXPECT_THAT(
        error_of([&] { sum().backward(); }),
        HasSubstr(fmt::format("Function 'GivesNanBackward' returned nan values in its {}th output.", first ? 0 : 1)));
    // The forward pass is named, down to the line where there is debug information.
    ASSERT_EQ(caught.texts().size(), 2u);
    EXPECT_THAT(caught.texts()[1], AllOf(HasSubstr("Error detected in GivesNanBackward"), HasSubstr("forward call")));
  }
  // Made before the mode was on.
  Tensor a = rand({10}).set_requires_grad(), b = rand({10}).set_requires_grad(),
         sum = GivesNan::apply(a, b, true).sum();
  CatchWarnings caught;
  DetectAnomaly on;
  EXPECT_THAT(error_of([&] { sum.backward(); }), HasSubstr("returned nan values in its 0th output"));
  ASSERT_EQ(caught.texts().size(), 2u);
  EXPECT_THAT(caught.texts()[1], HasSubstr("No forward pass information"));
}

struct InnerNan : Function<InnerNan> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b, bool first) {
    ctx->saved_data["first"] = first;
    return a + b;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    return GivesNan::backward(ctx, std::move(gradients));
  }
};
struct OuterNan : Function<OuterNan> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, bool first) {
    ctx->save_for_backward({x});
    ctx->saved_data["first"] = first;
    return x.sum();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensor x = ctx->saved_tensors()[0], g = gradients[0].expand(x.sym_sizes());
    return {InnerNan::apply(g * x, g + x, ctx->saved_data["first"].boolean()), Tensor()};
  }
};

TEST_P(TestAutograd, nested_anomaly_detect_nan) {
  auto differentiate = [](const Tensor& x, bool first) {
    return autograd::grad({OuterNan::apply(x, first)}, {x}, {}, false, true)[0].sum();
  };
  for (bool first : {true, false}) {
    Tensor x = rand({10}).set_requires_grad();
    differentiate(x, first).backward();
    auto says =
        HasSubstr(fmt::format("Function 'InnerNanBackward' returned nan values in its {}th output.", first ? 0 : 1));
    {
      Tensor sum = differentiate(x, first);
      CatchWarnings caught;
      DetectAnomaly on;
      EXPECT_THAT(error_of([&] { sum.backward(); }), says);
      ASSERT_EQ(caught.texts().size(), 2u);
      EXPECT_THAT(caught.texts()[1], HasSubstr("No forward pass information"));
    }
    CatchWarnings caught;
    DetectAnomaly on;
    Tensor sum = differentiate(x, first);
    EXPECT_THAT(error_of([&] { sum.backward(); }), says);
    ASSERT_EQ(caught.texts().size(), 2u);
    // One text names both: the call, and the node whose backward made it.
    EXPECT_THAT(caught.texts()[1], AllOf(HasSubstr("The forward call that made InnerNanBackward"),
                                         HasSubstr("called by OuterNanBackward")));
  }
}

// Warnings are no errors here: there is no second way for the text to go.
TEST_P(TestAutograd, anomaly_grad_warnings) {
  CatchWarnings caught;
  DetectAnomaly on;
  Tensor a = randn({5}).set_requires_grad(), changed = a + 1, squared = changed.pow(2);
  changed.add_(1);
  EXPECT_THAT(
      error_of([&] { autograd::grad({squared.sum()}, {a}); }),
      HasSubstr("one of the variables needed for gradient computation has been modified by an inplace operation"));
  ASSERT_EQ(caught.texts().size(), 2u);
  EXPECT_THAT(caught.texts()[0], HasSubstr("Anomaly Detection has been enabled"));
  EXPECT_THAT(caught.texts()[1], HasSubstr("Error detected in PowBackward0"));
}

TEST_P(TestAutograd, anomaly_mode_no_check_nan) {
  CatchWarnings caught;
  Tensor a = rand({10}).set_requires_grad(), b = rand({10}).set_requires_grad();
  auto run = [&] { GivesNan::apply(a, b, true).sum().backward(); };
  DetectAnomaly outer(false);
  EXPECT_EQ(error_of(run), "no error");
  {
    DetectAnomaly inner(true);
    EXPECT_THAT(error_of(run), HasSubstr("Function 'GivesNanBackward' returned nan values in its 0th output."));
  }
  EXPECT_EQ(error_of(run), "no error");
}

TEST_P(TestAutograd, tensor_grad_warnings) {
  CatchWarnings caught;
  Tensor x = randn({}).set_requires_grad();
  (void)x.grad();
  EXPECT_EQ(caught.texts().size(), 0u);
  Tensor y = x.clone();
  (void)y.grad();
  ASSERT_EQ(caught.texts().size(), 1u);
  EXPECT_THAT(caught.texts()[0], HasSubstr("no leaf"));
  y.retain_grad();
  (void)y.grad();
  EXPECT_EQ(caught.texts().size(), 1u);
}

// So many launches take minutes if each is interpreted, too; other cases check these kernels.
struct WithoutOracle {
  WithoutOracle() { oracle::enable(false); }
  ~WithoutOracle() { oracle::enable(before); }
  bool before = oracle::enabled();
};

nn::Sequential block() { return nn::Sequential(nn::Linear(10, 1000), nn::ReLU(), nn::Linear(1000, 10)); }

TEST_P(TestAutograd, checkpointing) {
  WithoutOracle off;
  nn::Sequential module = block();
  Tensors parts;
  for (int round = 0; round < 2000; ++round) {
    Tensor data = rand({1, 10}).set_requires_grad();
    parts.push_back(autograd::checkpoint([&](const Tensor& x) { return module(x); }, data, {.use_reentrant = true}));
  }
  stack(parts).mean().backward();
  for (const Tensor& parameter : module.parameters()) EXPECT_TRUE(parameter.grad().defined());
}

TEST_P(TestAutograd, checkpointing_without_reentrant) {
  WithoutOracle off;
  for (bool requires_grad : {true, false}) {
    nn::Sequential plain = block(), checkpointed = nn::clone(plain);
    Tensors expected, found;
    for (int round = 0; round < 2000; ++round) {
      Tensor data = rand({1, 10}).set_requires_grad(requires_grad), again = data.detach().clone();
      again.set_requires_grad(requires_grad);
      expected.push_back(plain(data));
      found.push_back(autograd::checkpoint([&](const Tensor& x) { return checkpointed(x); }, again));
    }
    {
      compiled_autograd::Disable reference;  // a graph of ten thousand nodes takes minutes to compile
      stack(expected).mean().backward();
    }
    stack(found).mean().backward();
    Tensors one = plain.parameters(), two = checkpointed.parameters();
    ASSERT_EQ(one.size(), two.size());
    for (size_t each = 0; each < one.size(); ++each) expect_near(two[each].grad(), one[each].grad(), 1e-5);
  }
}

TEST_P(TestAutograd, checkpointing_without_reentrant_arbitrary_input_output) {
  using Named = std::map<std::string, Tensor>;
  nn::Linear layer(5, 5, {.bias = false});
  auto module = [&](const Named& in) {
    Tensor out = layer(layer(layer(in.at("data"))));
    return Named{{"result", out}, {"twice", out * 2}};
  };
  Tensor data = randn({1, 5}).set_requires_grad();
  Named plain = module({{"data", data}});
  (plain["result"].sum() + plain["twice"].sum()).backward();
  Tensor expected = layer.parameters()[0].grad().clone();
  layer.parameters()[0].set_grad(Tensor());
  Tensors made = autograd::checkpoint_many(
      [&](const Tensors& in) {
        Named out = module({{"data", in[0]}});
        return Tensors{out["result"], out["twice"]};
      },
      {data});
  expect_near(made[0], plain["result"]);
  (made[0].sum() + made[1].sum()).backward();
  expect_near(layer.parameters()[0].grad(), expected);
}

struct SavesFive : Function<SavesFive> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, const Tensor& z) {
    Tensor w = x * y * z, out = w + w;
    ctx->save_for_backward({x, y, z, w, out});
    return out;
  }
  static Tensors backward(AutogradContext* ctx, Tensors) {
    Tensors kept = ctx->saved_tensors();
    EXPECT_THAT(error_of([&] { ctx->saved_tensors(); }),
                HasSubstr("Unpack is being triggered for a tensor that was already unpacked once"));
    return {kept[0], kept[1], kept[2]};
  }
};

TEST_P(TestAutograd, checkpointing_without_reentrant_custom_function_works) {
  Tensors in;
  for (double value : {1.0, 2.0, 3.0}) in.push_back(tensor(value).set_requires_grad());
  Tensor out = autograd::checkpoint_many(
      [](const Tensors& of) {
        Tensor x = of[0] * of[1] * of[2], y = of[1] * of[1] * of[2], z = of[2] * of[2];
        return Tensors{SavesFive::apply(x, y, z)};
      },
      in)[0];
  out.sum().backward();
  for (const Tensor& each : in) EXPECT_TRUE(each.grad().defined());
}

// The names of the operators that run while it lives.
struct Watch {
  explicit Watch(std::vector<std::string>& names) : into(names) {}
  ~Watch() {
    for (const Profiler::Event& event : profiler.events())
      if (event.depth == 0) into.push_back(event.name);
  }
  std::vector<std::string>& into;
  Profiler profiler;
};

TEST_P(TestAutograd, checkpointing_without_reentrant_with_context_fn) {
  std::vector<std::string> first, second;
  CheckpointOptions options;
  options.context = [&](bool again) { return std::make_shared<Watch>(again ? second : first); };
  Tensor a = tensor(1.0).set_requires_grad();
  auto f = [](const Tensor& x) { return x.exp(); };
  Tensor out = autograd::checkpoint(f, a, options);
  EXPECT_EQ(first, (std::vector<std::string>{"aten::exp"}));
  EXPECT_TRUE(second.empty());
  out.backward();
  EXPECT_EQ(first.size(), 1u);
  ASSERT_FALSE(second.empty());
  EXPECT_EQ(second[0], "aten::exp");
  options.use_reentrant = true;
  EXPECT_THAT(error_of([&] { autograd::checkpoint(f, a, options); }),
              HasSubstr("only supported when use_reentrant=False"));
}

TEST_P(TestAutograd, checkpoint_detects_non_determinism) {
  auto two = [](const Tensor& x) { return x.sin().exp(); };
  auto three = [](const Tensor& x) { return x.sin().exp().sin(); };
  auto two_others = [](const Tensor& x) { return x.sin() * tensor({1.0f, 2.0f}); };
  using F = std::function<Tensor(const Tensor&)>;
  auto run = [](F first, F second, const CheckpointOptions& options) {
    Tensor a = randn({1}).set_requires_grad();
    auto count = std::make_shared<int>(0);
    auto f = [=](const Tensor& x) { return (*count)++ == 0 ? first(x) : second(x); };
    return error_of([&] { autograd::checkpoint(f, a, options).sum().backward(); });
  };
  EXPECT_THAT(run(three, two, {}), HasSubstr("A different number of tensors was saved"));
  EXPECT_THAT(run(two, three, {.early_stop = false}), HasSubstr("trying to save more tensors during recomputation"));
  EXPECT_EQ(run(two, three, {}), "no error");
  EXPECT_THAT(run(two, two_others, {}), HasSubstr("tensors have different metadata"));
  auto says = HasSubstr("You are seeing this error because you passed `debug=True` to checkpoint");
  EXPECT_THAT(run(three, two, {.debug = true}), says);
  {
    autograd::SetCheckpointDebug on(true);
    EXPECT_THAT(run(three, two, {.debug = false}), says);
  }
  autograd::SetCheckpointDebug off(false);
  EXPECT_THAT(run(three, two, {.debug = true}), Not(says));
}

TEST_P(TestAutograd, access_saved_tensor_twice_without_recomputation_works) {
  int runs = 0;
  Tensor a = randn({5}).set_requires_grad();
  Tensor d = autograd::checkpoint(
      [&](const Tensor& x) {
        ++runs;
        Tensor b = x * x, c = x * b;
        return c.exp();
      },
      a);
  EXPECT_EQ(runs, 1);
  (void)saved(grad_fn(d), "result");
  EXPECT_EQ(runs, 2);
  (void)saved(grad_fn(d), "result");
  EXPECT_EQ(runs, 3);
  d.sum().backward();
  EXPECT_EQ(runs, 4);
  EXPECT_THAT(error_of([&] { saved(grad_fn(d), "result"); }),
              HasSubstr("or directly access saved tensors after they have already been freed"));
}

}  // namespace
}  // namespace tenon
