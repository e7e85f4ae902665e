// What the cases of the custom-operator document share: comparing, catching, and a few sample operators.
#pragma once

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

inline std::vector<double> values(const Tensor& tensor) {
  NoGrad off;
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  const double* data = plain.data<double>();
  return {data, data + plain.numel().plain()};
}

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

// Coordinates of the elements that are not zero, one row each.
inline Tensor plain_nonzero(const Tensor& x) {
  Tensor from = x.to(kFloat32).contiguous();
  std::vector<int64_t> rows;
  int64_t count = 0;
  for (int64_t at = 0; at < from.numel().plain(); ++at) {
    if (from.data<float>()[at] == 0) continue;
    ++count;
    size_t start = rows.size();
    rows.resize(start + static_cast<size_t>(from.dim()));
    int64_t rest = at;
    for (int64_t dim = from.dim(); dim-- > 0;) {
      rows[start + static_cast<size_t>(dim)] = rest % from.sizes()[static_cast<size_t>(dim)];
      rest /= from.sizes()[static_cast<size_t>(dim)];
    }
  }
  Tensor result = empty({count, from.dim()}, TensorOptions(kInt64));
  std::copy(rows.begin(), rows.end(), result.data<int64_t>());
  return result;
}

// An operator whose result's size depends on the data.
inline auto sample_nonzero() {
  auto op = custom_op("_tenon_testing::nonzero", plain_nonzero, {.names = "x"});
  op.register_fake(
      [](const Tensor& x) { return empty({fake::new_dynamic_size(), SymInt(x.dim())}, TensorOptions(kInt64)); });
  return op;
}

inline auto sample_view_copy() {
  auto op =
      custom_op("_tenon_testing::view_copy",
                [](const Tensor& x, const SymInts& sizes) { return x.view(sizes).clone(); }, {.names = "x, sizes"});
  op.register_fake([](const Tensor& x, const SymInts& sizes) { return x.view(sizes).clone(); });
  return op;
}

// Greedy selection of boxes in order of their scores; returns the chosen indices.
inline Tensor plain_nms(const Tensor& boxes, const Tensor& scores, double limit) {
  int64_t count = scores.numel().plain();
  std::vector<int64_t> order(static_cast<size_t>(count)), kept;
  for (int64_t at = 0; at < count; ++at) order[static_cast<size_t>(at)] = at;
  const float* score = scores.data<float>();
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
  auto box = [&](int64_t at, int corner) { return boxes.data<float>()[at * 4 + corner]; };
  auto area = [&](int64_t at) { return (box(at, 2) - box(at, 0)) * (box(at, 3) - box(at, 1)); };
  for (int64_t at : order) {
    bool overlaps = false;
    for (int64_t other : kept) {
      float width = std::min(box(at, 2), box(other, 2)) - std::max(box(at, 0), box(other, 0));
      float height = std::min(box(at, 3), box(other, 3)) - std::max(box(at, 1), box(other, 1));
      float shared = std::max(width, 0.f) * std::max(height, 0.f);
      overlaps = overlaps || shared / (area(at) + area(other) - shared) > static_cast<float>(limit);
    }
    if (!overlaps) kept.push_back(at);
  }
  Tensor result = empty({static_cast<int64_t>(kept.size())}, TensorOptions(kInt64));
  std::copy(kept.begin(), kept.end(), result.data<int64_t>());
  return result;
}

inline auto sample_nms() {
  auto op = custom_op("_tenon_testing::nms", plain_nms, {.names = "boxes, scores, limit"});
  op.register_fake(
      [](const Tensor&, const Tensor&, double) { return empty({fake::new_dynamic_size()}, TensorOptions(kInt64)); });
  return op;
}

}  // namespace tenon::testing
