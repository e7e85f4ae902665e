// Parameters that are given up: what is left of them, and what can still be done.
#include "../../seeds/freeze.h"

namespace tenon {
namespace {

using testing::ConvBN;
using testing::difference;
using testing::error_of;
using testing::freezing_options;
using testing::HasSubstr;
using testing::only_entry;
using testing::same_bits;

TEST(Discard, what_is_read_as_it_is_is_kept_once) {
  nn::Linear layer(4, 3);
  Tensor x = randn({2, 4});
  NoGrad off;
  Tensor expected = layer(x);
  const void* memory = layer.weight.get().raw_data();
  WeakRef<Storage> storage(layer.weight.get().impl()->storage);
  {
    auto infer = compile([&](Tensor a) { return layer(a); }, freezing_options());
    EXPECT_TRUE(same_bits(infer(x), expected));
    EXPECT_TRUE(same_bits(infer(x), expected));
    ASSERT_FALSE(storage.expired()) << "the function reads it at every call";
    EXPECT_EQ(storage.lock()->data(), memory);
    EXPECT_THAT(error_of<RuntimeError>([&] { layer(x); }),
                HasSubstr("was given up when a function that reads it was frozen"));
    EXPECT_THAT(error_of<RuntimeError>([&] { layer.state_dict(); }), HasSubstr("was given up"));
  }
  EXPECT_TRUE(storage.expired());
}

TEST(Discard, sizes_are_dynamic) {
  ConvBN module(3, 4, true);
  module.eval();
  ConvBN copy = nn::clone(module);
  NoGrad off;
  auto infer = compile([&](Tensor a) { return module(a); }, freezing_options());
  for (const Ints& sizes : {Ints{3, 3, 8, 8}, Ints{5, 3, 9, 12}, Ints{4, 3, 31, 7}}) {
    Tensor x = randn(SymInts(sizes.span()));
    EXPECT_LT(difference(infer(x), copy(x)), 1e-5);
  }
  EXPECT_EQ(infer.compile_count(), 1);
  // Which parameter is met first is up to the compiler's order of arguments.
  std::string error = error_of<RuntimeError>([&] { infer(randn({3, 3, 8, 8}, kFloat64)); });
  EXPECT_THAT(error, HasSubstr("[compile] the function was frozen with discard_parameters, and 'conv."));
  EXPECT_THAT(error, HasSubstr("was given up; this call needs a new compile: tensor 'arg0' dtype mismatch. expected "
                               "float32, actual float64"));
  Tensor x = randn({3, 3, 8, 8});
  EXPECT_LT(difference(infer(x), copy(x)), 1e-5);
}

TEST(Discard, new_tensors_for_old_ones) {
  ConvBN module(3, 4, false);
  module.eval();
  ConvBN other = nn::clone(module);
  Tensor x = randn({3, 3, 8, 8});
  NoGrad off;
  auto infer = compile([&](Tensor a) { return module(a); }, freezing_options());
  Tensor before = infer(x);
  infer.update({{"conv.weight", randn({4, 3, 3, 3})}});
  std::string error = error_of<RuntimeError>([&] { infer(x); });
  EXPECT_THAT(error, HasSubstr("[freeze] a parameter was changed, and what is computed from it needs 'bn_"));
  EXPECT_THAT(error, HasSubstr("too, which was given up when the function was frozen"));
  other.conv.weight.get().mul_(2);
  other.bn.bias.get().add_(1);
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& [name, tensor] : other.state_dict())
    if (name != "bn.num_batches_tracked") all.emplace_back(name, tensor.clone());
  infer.update(all);
  EXPECT_LT(difference(infer(x), other(x)), 1e-5);
  EXPECT_EQ(infer.compile_count(), 1);
}

TEST(Discard, only_what_is_frozen_can_be_given_up) {
  EXPECT_EQ(error_of([] { compile([](Tensor a) { return a + 1; }, {.discard_parameters = true}); }),
            "[compile] discard_parameters gives up what constants were computed from: expected freeze = Freeze::On");
}

TEST(Discard, variables_keep_what_they_hold) {
  Tensor weight = randn({4, 4}), x = randn({2, 4});
  auto infer = compile([&](Tensor a) { return matmul(a, weight * 2); }, freezing_options());
  NoGrad off;
  Tensor expected = matmul(x, weight * 2);
  EXPECT_LT(difference(infer(x), expected), 1e-6);
  EXPECT_LT(difference(matmul(x, weight * 2), expected), 1e-6) << "nobody can take it out of the variable";
}

}  // namespace
}  // namespace tenon
