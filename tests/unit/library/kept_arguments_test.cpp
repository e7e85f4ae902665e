// What a custom operator keeps beyond its call is its own: no plan writes into it. What its fake gives is a fake.
#include "error_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(KeptArguments, are_not_overwritten_by_later_steps) {
  std::vector<Tensor> kept;
  auto keep = custom_op("kept_arguments_test::keep",
                        [&kept](Tensor a) {
                          kept.push_back(a);
                          return a.clone();
                        },
                        {.names = "a"});
  keep.register_fake([](Tensor a) { return empty_like(a); });
  auto f = compile(
      [&](const Tensor& x) {
        Tensor y = x * 2;  // nobody needs it after the call
        Tensor z = keep(y) + 3;
        Tensor w = keep(z) * 5;
        return keep(w) - 7;
      },
      {.fullgraph = true});
  for (int call = 0; call < 3; ++call) {
    kept.clear();
    Tensor x = full({1024}, Scalar(call + 1.0));
    EXPECT_EQ(f(x)[1023].item<float>(), (static_cast<float>(call + 1) * 2 + 3) * 5 - 7);
    ASSERT_EQ(kept.size(), 3u);
    const float first = static_cast<float>(call + 1) * 2;
    const float expected[] = {first, first + 3, (first + 3) * 5};
    for (size_t at = 0; at < 3; ++at) {
      EXPECT_EQ(kept[at].min().item<float>(), expected[at]) << "call " << call << ", argument " << at;
      EXPECT_EQ(kept[at].max().item<float>(), expected[at]) << "call " << call << ", argument " << at;
    }
  }
  library::destroy_custom_op("kept_arguments_test::keep");
}

TEST(FakeImplementation, that_gives_data_is_refused) {
  Tensor real = ones({3});
  auto op = custom_op("kept_arguments_test::real", [](Tensor a) { return a.clone(); }, {.names = "a"});
  op.register_fake([&real](Tensor) { return real; });
  auto f = compile([&](const Tensor& x) { return op(x) + 1; }, {.fullgraph = true});
  EXPECT_THAT(error_of([&] { f(ones({3})); }),
              HasSubstr("[kept_arguments_test::real] the fake implementation returned float32[3] with data"));
  library::destroy_custom_op("kept_arguments_test::real");
}

}  // namespace
}  // namespace tenon
