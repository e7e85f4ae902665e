// The autograd suite: versions, out forms, checkpoints under autocast.
#include "autograd.h"

#include <tenon/autograd/detach.h>

namespace tenon {
namespace {

using namespace testing;

TEST_P(TestAutograd, increment_version) {
  Tensor leaf = rand({5}).set_requires_grad(), whole = ones({5}, kInt64);
  for (const Tensor& each : {leaf, whole}) {
    int64_t before = each.version();
    autograd::increment_version(each);
    EXPECT_EQ(each.version(), before + 1);
  }
  // Tensors that are made in InferenceMode are ordinary ones here. One without a version is refused in the same words.
  Tensor made = rand({5});
  made.impl()->version = nullptr;
  EXPECT_THAT(error_of([&] { autograd::increment_version(made); }),
              HasSubstr("update to inference tensor outside InferenceMode"));
}

TEST_P(TestAutograd, out_variant_raises_when_inputs_require_grad) {
  Tensor a = doubles({2, 2}), b = doubles({2, 2}), x = zeros({2, 2}, kFloat64);
  EXPECT_THAT(error_of([&] { mul_out(x, a, b); }), HasSubstr("out="));
  {
    NoGrad off;
    mul_out(x, a, b);
    expect_near(x, a * b);
  }
  Tensor plain = a.detach(), wants = zeros({2, 2}, kFloat64).set_requires_grad();
  EXPECT_THAT(error_of([&] { mul_out(wants, plain, plain); }), HasSubstr("out="));
}

TEST_P(TestAutograd, checkpointing_non_reentrant_autocast_cpu) {
  for (bool enabled : {true, false}) {
    std::vector<Dtype> seen;
    auto chain = [&](const Tensor& x) {
      Tensor first = mm(x, x);
      seen.push_back(first.dtype());
      return mm(first, x);
    };
    Tensor x = ones({2, 2}).set_requires_grad(), out;
    {
      Autocast cast(kBFloat16, enabled);
      out = autograd::checkpoint(chain, x, {.use_reentrant = false, .early_stop = false});
    }
    Dtype expected = enabled ? kBFloat16 : kFloat32;
    EXPECT_EQ(out.dtype(), expected);
    out.sum().backward();
    EXPECT_EQ(seen, (std::vector<Dtype>{expected, expected})) << "in forward, and when it is run again";
  }
}

}  // namespace
}  // namespace tenon
