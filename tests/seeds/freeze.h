// What the cases of freezing share. As in the seed, functions are frozen and their parameters given up.
#pragma once

#include "../unit/capture/testing.h"

#include <tenon/support/counters.h>

#include <gmock/gmock.h>

namespace tenon::testing {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

inline CompileOptions freezing_options() { return {.freeze = Freeze::On, .discard_parameters = true}; }

// How often a text occurs.
inline int64_t count_of(const std::string& what, const std::string& text) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Calls of kernels and libraries that a call makes.
struct Launched {
  int64_t kernels = 0, library_calls = 0;
};
template <typename F>
Launched launched_by(F&& call) {
  auto now = [](const char* name) { return counter(name).value(); };
  int64_t kernels = now("kernels_launched"), calls = now("library_calls");
  call();
  return {now("kernels_launched") - kernels, now("library_calls") - calls};
}

// Of the function's only graph.
template <typename F>
Explanation::Entry only_entry(const Compiled<F>& function) {
  Explanation explanation = function.explain();
  EXPECT_EQ(explanation.entries.size(), 1u);
  return explanation.entries.empty() ? Explanation::Entry{} : explanation.entries[0];
}

// Everything that the frozen graph computes, operator by operator: "aten::convolution aten::relu".
inline std::string operators_of(const Explanation::Entry& entry) {
  std::string names;
  for (size_t at = entry.frozen.find(" = "); at != std::string::npos; at = entry.frozen.find(" = ", at + 1)) {
    size_t begin = at + 3, end = entry.frozen.find('(', begin);
    names += (names.empty() ? "" : " ") + entry.frozen.substr(begin, end - begin);
  }
  return names;
}

struct ConvBN : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d bn;
  ConvBN(int64_t in_channels, int64_t out_channels, bool bias)
      : conv(submodule("conv", nn::Conv2d(in_channels, out_channels, 3, {.stride = nn::Pair(2, 2), .bias = bias}))),
        bn(submodule("bn", nn::BatchNorm2d(out_channels, {.eps = 0.001}))) {}
  Tensor operator()(const Tensor& x) const { return bn(conv(x)); }
};

// The statistics and the affine part of a norm, as tensors of a module that keeps them itself.
struct ConvFunctionalBN : nn::Module {
  nn::Conv2d conv;
  Cell<Tensor> mean, variance, weight, bias;
  ConvFunctionalBN(int64_t in_channels, int64_t out_channels, const Tensor& running_mean, const Tensor& running_var)
      : conv(submodule("conv", nn::Conv2d(in_channels, out_channels, 3, {.stride = nn::Pair(2, 2)}))),
        mean(buffer("running_mean", running_mean)),
        variance(buffer("running_var", running_var)),
        weight(buffer("weight", ones({out_channels}))),
        bias(buffer("bias", zeros({out_channels}))) {}
  Tensor norm(const Tensor& x, const Tensor& running_mean) const {
    return batch_norm(x, running_mean, variance.get(), {.weight = weight.get(), .bias = bias.get(), .eps = 1e-5});
  }
  Tensor operator()(const Tensor& x) const { return norm(conv(x), mean.get()); }
};

// A few steps of training move the running statistics away from 0 and 1.
template <typename M>
void train_a_little(const M& module, const Ints& sizes) {
  NoGrad off;
  for (int step = 0; step < 10; ++step) module(rand(SymInts(sizes.span())));
  module.eval();
}

}  // namespace tenon::testing
