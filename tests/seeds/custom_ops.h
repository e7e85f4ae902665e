// What the cases of the custom-operator document share: comparing and catching; operators are in sample_operators.h.
#pragma once

#include "sample_operators.h"

#include <tenon/capture/trace.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/library/custom_op.h>
#include <tenon/library/define.h>
#include <tenon/library/legacy.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "values_of.h"

namespace tenon::testing {

using dispatch::call_by_name;
using dispatch::KernelKey;
using dispatch::Library;
using dispatch::Tag;
using dispatch::Value;
using fake::FakeMode;
using library::AutogradContext;
using library::Inputs;
using library::Outputs;
namespace legacy = library::legacy;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

inline void expect_equal(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.description(), expected.description());
  EXPECT_EQ(values(got), values(expected));
}

inline Tensor leaf(const Ints& sizes) { return randn(SymInts(sizes.span())).set_requires_grad(); }

// Sines of the elements, computed here and not by an operator.
inline Tensor plain_sin(const Tensor& x) {
  Tensor from = x.contiguous(), to = empty_like(from);
  for (int64_t at = 0; at < from.numel().plain(); ++at) to.data<float>()[at] = std::sin(from.data<float>()[at]);
  return to;
}

inline Tensor plain_add(const Tensor& x, double y) {
  Tensor from = x.contiguous(), to = empty_like(from);
  for (int64_t at = 0; at < from.numel().plain(); ++at)
    to.data<float>()[at] = from.data<float>()[at] + static_cast<float>(y);
  return to;
}

}  // namespace tenon::testing
