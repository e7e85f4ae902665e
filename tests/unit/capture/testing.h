// Helpers for tests that compare tensors.
#pragma once

#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <cstring>

#include "error_of.h"

namespace tenon::testing {

// Same dtype, sizes and bits.
inline ::testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  if (a.description() != b.description())
    return ::testing::AssertionFailure() << a.description() << " and " << b.description();
  Tensor x = a.contiguous(), y = b.contiguous();
  auto bytes = static_cast<size_t>(x.numel().plain() * x.element_size());
  if (bytes == 0 || std::memcmp(x.raw_data(), y.raw_data(), bytes) == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a.str() << "\nand\n" << b.str();
}

// The largest difference, relative to the largest value.
inline double difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.description(), b.description());
  if (a.description() != b.description()) return 1e300;
  if (a.numel().plain() == 0) return 0;
  double scale = b.to(kFloat64).abs().amax().item<double>();
  double gap = (a.to(kFloat64) - b.to(kFloat64)).abs().amax().item<double>();
  return gap / std::max(scale, 1e-30);
}

}  // namespace tenon::testing
