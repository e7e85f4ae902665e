// Seed 003: what becomes a constant and what does not, and what is left of parameters that were given up.
#include "freeze.h"

namespace tenon {
namespace {

using testing::Contains;
using testing::ConvBN;
using testing::difference;
using testing::error_of;
using testing::freezing_options;
using testing::HasSubstr;
using testing::launched_by;
using testing::only_entry;
using testing::operators_of;
using testing::same_bits;

TEST(OptimizeForInferenceTemplate, mutation) {
  struct Mod : nn::Module {
    Cell<Tensor> mutated_param = parameter("mutated_param", zeros({10, 10}));
    Tensor operator()() const {
      mutated_param.get().add_(10);
      return mutated_param.get();
    }
  };
  NoGrad off;
  Mod eager, mod;
  auto foo = compile([&] { return mod(); }, freezing_options());
  for (int call = 0; call < 2; ++call) {
    Tensor expected = eager(), found = foo();
    EXPECT_TRUE(same_bits(found.detach(), expected.detach()));
    EXPECT_TRUE(found.is(mod.mutated_param.get())) << "the parameter itself";
  }
  EXPECT_EQ(mod.mutated_param.get().sum().item<float>(), 2000);
  EXPECT_EQ(foo.compile_count(), 1);
  EXPECT_THAT(only_entry(foo).freezing, Contains("not frozen: %mutated_param: the function writes to it"));
}

TEST(OptimizeForInferenceTemplate, aliased_param_return) {
  struct Mod : nn::Module {
    Cell<Tensor> aliased_param = parameter("aliased_param", zeros({10, 10}));
    std::tuple<Tensor, Tensor> operator()() const { return {aliased_param.get().slice(0, 1), aliased_param.get()}; }
  };
  Mod mod;
  mod.eval();
  auto foo = compile([&] { return mod(); }, freezing_options());
  NoGrad off;
  auto [expected, whole] = mod();
  for (int call = 0; call < 2; ++call) {
    auto [part, all] = foo();
    EXPECT_TRUE(same_bits(part, expected));
    EXPECT_TRUE(all.is(mod.aliased_param.get()));
    EXPECT_TRUE(part.is_same_storage(all));
    all.add_(1);
    EXPECT_EQ(part.sum().item<float>(), 90 * (call + 1)) << "a view of the parameter";
  }
}

TEST(OptimizeForInferenceTemplate, error_on_eager) {
  ConvBN mod(3, 32, false);
  mod.eval();
  Tensor x = rand({3, 3, 32, 32});
  auto foo = compile([&](Tensor image) { return mod(image); }, freezing_options());
  NoGrad off;
  Tensor expected = mod(x);
  EXPECT_LT(difference(foo(x), expected), 1e-5);
  EXPECT_THAT(error_of<RuntimeError>([&] { mod(x); }),
              HasSubstr("Trying to run Pytorch Eager Module after Dynamo Freezing: 'conv.weight' was given up"));
  EXPECT_LT(difference(foo(x), expected), 1e-5) << "the frozen function goes on";
  EXPECT_EQ(foo.compile_count(), 1);
}

TEST(OptimizeForInferenceTemplate, rng_op) {
  auto foo = compile([] { return rand({4, 4}) + 1; }, freezing_options());
  NoGrad off;
  Tensor first = foo(), second = foo();
  EXPECT_FALSE(same_bits(first, second));
  EXPECT_EQ(foo.compile_count(), 1);
  EXPECT_THAT(only_entry(foo).freezing, Contains(HasSubstr("it draws random numbers")));
}

TEST(OptimizeForInferenceTemplate, symint_not_folded) {
  auto fn = [](Tensor a) { return std::tuple(a.cos(), zeros(SymInts{a.size(0), a.size(1)})); };
  CompileOptions options = freezing_options();
  options.dynamic = Dynamic::On;
  auto fn_opt = compile(fn, options);
  NoGrad off;
  for (const Ints& sizes : {Ints{2, 4, 6}, Ints{3, 5, 6}}) {
    Tensor input = randn(SymInts(sizes.span()));
    mark_dynamic(input, 0);
    mark_dynamic(input, 1);
    auto [cosine, nothing] = fn(input);
    auto [found, found_nothing] = fn_opt(input);
    EXPECT_LT(difference(found, cosine), 1e-6);
    EXPECT_TRUE(same_bits(found_nothing, nothing));
  }
  EXPECT_EQ(fn_opt.compile_count(), 1);
  EXPECT_THAT(only_entry(fn_opt).freezing, Contains(HasSubstr("its sizes are symbols")));
}

TEST(OptimizeForInferenceTemplate, param_deallocated) {
  struct Mod : nn::Module {
    Cell<Tensor> param = parameter("param", zeros({10, 10}));
    Tensor operator()(const Tensor& x) const { return (param.get() + 10) + x; }
  };
  Mod mod;
  mod.eval();
  Tensor input = rand({10});
  NoGrad off;
  Tensor eager = mod(input);
  WeakRef<TensorImpl> weight(mod.param.get().ref());
  auto foo = compile([&](Tensor x) { return mod(x); }, freezing_options());
  EXPECT_TRUE(same_bits(foo(input), eager));
  EXPECT_TRUE(weight.expired());
  EXPECT_TRUE(same_bits(foo(input), eager));
  EXPECT_EQ(operators_of(only_entry(foo)), "aten::add.Tensor") << "one of the two sums was done once";
}

}  // namespace
}  // namespace tenon
