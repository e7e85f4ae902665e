#include <tenon/core/print.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "error_of.h"
#include "values_of.h"

namespace tenon::testing {
namespace {

TEST(Print, AlignedWithFourDigits) {
  EXPECT_EQ(tensor({{1.0, -0.5}, {10.25, 2.0}}).str(),
            "tensor([[ 1.0000, -0.5000],\n"
            "        [10.2500,  2.0000]], dtype=float32)");
  EXPECT_EQ(tensor({1.0, 2.0, -3.0}).str(), "tensor([ 1.,  2., -3.], dtype=float32)");
  EXPECT_EQ(tensor({1, -20}).str(), "tensor([  1, -20], dtype=int64)");
  EXPECT_EQ(tensor({true, false}).str(), "tensor([ true, false], dtype=bool)");
  EXPECT_EQ(tensor(2.5).str(), "tensor(2.5000, dtype=float32)");
  EXPECT_EQ(tensor({{{1}, {2}}, {{3}, {4}}}).str(),
            "tensor([[[1],\n"
            "         [2]],\n"
            "\n"
            "        [[3],\n"
            "         [4]]], dtype=int64)");
}

TEST(Print, ExponentsWhereTheyAreNeeded) {
  EXPECT_EQ(tensor({1e-6, 2.0}).str(), "tensor([1.0000e-06, 2.0000e+00], dtype=float32)");
  EXPECT_EQ(tensor({1e10}, kFloat64).str(), "tensor([1.0000e+10], dtype=float64)");
}

TEST(Print, AnyNaNIsNaN) {
  Tensor x = tensor({std::nan(""), -std::nan(""), double(INFINITY), -double(INFINITY), 0.5});
  EXPECT_EQ(x.str(), "tensor([   nan,    nan,    inf,   -inf, 0.5000], dtype=float32)");
  EXPECT_EQ(tensor({NAN}).str(), "tensor([nan], dtype=float32)");
}

TEST(Print, WhatIsNotTheUsual) {
  EXPECT_EQ(ones({2}).set_requires_grad().str(), "tensor([1., 1.], dtype=float32, requires_grad=true)");
  EXPECT_EQ(zeros({0, 3}).str(), "tensor([], size=[0, 3], dtype=float32)");
  EXPECT_EQ(zeros({0}).str(), "tensor([], dtype=float32)");
  EXPECT_EQ(Tensor().str(), "tensor(undefined)");
  EXPECT_EQ(empty({2}, TensorOptions(kMeta)).str(), "tensor(..., size=[2], dtype=float32, device=meta)");
}

TEST(Print, LargeOnesShowTheirEdges) {
  EXPECT_EQ(arange(2000).str(), "tensor([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int64)");
  EXPECT_EQ(arange(3000).view({1000, 3}).str(),
            "tensor([[   0,    1,    2],\n"
            "        [   3,    4,    5],\n"
            "        [   6,    7,    8],\n"
            "        ...,\n"
            "        [2991, 2992, 2993],\n"
            "        [2994, 2995, 2996],\n"
            "        [2997, 2998, 2999]], dtype=int64)");
}

TEST(Print, LongLinesAreBroken) {
  EXPECT_EQ(arange(30).str(),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29], dtype=int64)");
}

TEST(Print, OptionsStreamsAndFormats) {
  PrintOptions before = print_options();
  set_print_options({.precision = 2, .edge_items = 1, .threshold = 3});
  EXPECT_EQ(tensor({1.234, 2.0, 3.0, 4.0}).str(), "tensor([1.23, ..., 4.00], dtype=float32)");
  set_print_options({.scientific = true});
  EXPECT_EQ(tensor({0.5}).str(), "tensor([5.0000e-01], dtype=float32)");
  set_print_options(before);
  std::ostringstream out;
  out << tensor({1});
  EXPECT_EQ(out.str(), "tensor([1], dtype=int64)");
  EXPECT_EQ(fmt::format("{}", tensor({1})), "tensor([1], dtype=int64)");
  EXPECT_EQ(error_of<ValueError>([] { set_print_options({.edge_items = 0}); }).substr(0, 30),
            "[set_print_options] expected a");
}

TEST(Print, StridesDoNotShow) {
  EXPECT_EQ(arange(4).view({2, 2}).t().str(), "tensor([[0, 2],\n        [1, 3]], dtype=int64)");
  EXPECT_EQ(arange(4)[2].str(), "tensor(2, dtype=int64)");
}

}  // namespace
}  // namespace tenon::testing
