// Sizes and numbers at the ends of 64 bits, where no element is computed or none can be.
#include "../capture/testing.h"
#include "backends.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::kBackends;
using testing::same_bits;

// Loops over the one dimension would never end, and there is nothing in them.
TEST(ExtremeSizes, very_many_rows_of_nothing_are_nothing) {
  for (const SymInts& sizes : {SymInts{INT64_MAX, 0}, SymInts{0, INT64_MAX}, SymInts{2, INT64_MAX / 4, 0}}) {
    Tensor x = zeros(sizes), one = ones({1});
    auto body = [](Tensor none, Tensor number) {
      Tensor more = none + number;
      Ints all;
      for (int64_t dim = 0; dim < more.dim(); ++dim) all.push_back(dim);
      return std::tuple(more.sum(), (more * more).mean(), more.prod(), more.any(), none.logsumexp(all), more);
    };
    auto [sum, mean, product, any, log, more] = body(x, one);
    EXPECT_EQ(sum.item<double>(), 0);
    EXPECT_TRUE(std::isnan(mean.item<double>()));
    EXPECT_EQ(product.item<double>(), 1);
    EXPECT_FALSE(any.item<bool>());
    EXPECT_EQ(log.item<double>(), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(more.sizes(), x.sizes());
    for (const char* backend : kBackends)
      for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
        auto f = compile(body, {.dynamic = dynamic, .backend = backend});
        for (int repeat = 0; repeat < 2; ++repeat) {
          auto [a, b, c, d, e, g] = f(x, one);
          EXPECT_TRUE(same_bits(a, sum) && std::isnan(b.item<double>()) && same_bits(c, product)) << backend;
          EXPECT_TRUE(same_bits(d, any) && same_bits(e, log)) << backend;
          EXPECT_EQ(g.sizes(), more.sizes()) << backend;
        }
      }
  }
}

// The sum of nothing is a number, and there is one for each row: those are computed.
TEST(ExtremeSizes, rows_of_nothing_have_sums) {
  auto body = [](Tensor x) { return std::tuple(x.sum(1), x.sum(1).amax()); };
  auto f = compile(body, {.dynamic = Dynamic::On});
  for (int64_t rows : {3, 70000}) {
    auto [sums, largest] = f(zeros({rows, 0}));
    EXPECT_TRUE(same_bits(sums, zeros({rows})));
    EXPECT_EQ(largest.item<double>(), 0);
  }
}

// What is computed of a size inside of a kernel is computed as everywhere else.
TEST(ExtremeSizes, a_number_of_a_size_that_does_not_fit_is_an_error) {
  for (int64_t factor : {INT64_MAX, INT64_MIN, int64_t{1} << 61})
    for (const char* backend : kBackends) {
      auto f =
          compile([factor](Tensor x) { return x + x.size(0) * factor; }, {.dynamic = Dynamic::On, .backend = backend});
      EXPECT_THAT(error_of<OverflowError>([&] { f(ones({12})); }), HasSubstr("64 bits")) << backend;
    }
  auto f = compile([](Tensor x) { return x + x.size(0) * 3 - x.size(0) / 2; }, {.dynamic = Dynamic::On});
  for (int64_t rows : {12, 7, 30}) EXPECT_TRUE(same_bits(f(ones({rows})), ones({rows}) + rows * 3 - rows / 2)) << rows;
}

}  // namespace
}  // namespace tenon
