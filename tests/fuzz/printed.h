// What printed programs and the fuzzer share: the tensors around a function, differentiating after a call, and, for a
// printed program, running it eagerly and compiled and saying what is different.
//
//   g++ -std=c++20 -Iinclude -Ibuild/generated/include -Itests program.cpp build/libtenon.so -lfmt -Wl,-rpath,build
#pragma once

#include "fuzz/custom_operators.h"
#include "fuzz/formulas.h"
#include "fuzz/loops.h"

#include <fmt/format.h>

#include <tenon/tenon.h>

#include <functional>

namespace tenon::fuzz {

// The tensors around a function.
struct Around {
  std::vector<Tensor> leaves, bases;  // the same tensor, unless the base is computed from its leaf
  std::vector<Tensor> sources;        // what the function reads: views of bases
  std::vector<Tensor> old;            // what was replaced, and lives on
  std::vector<bool> made;             // by base: it is new in this call

  // Everything in reach: bases, sources, results.
  std::vector<Tensor> all(const std::vector<Tensor>& results) const {
    std::vector<Tensor> list = bases;
    list.insert(list.end(), sources.begin(), sources.end());
    list.insert(list.end(), results.begin(), results.end());
    return list;
  }
};

inline Tensor weighted_sum(const Tensor& tensor, double start) {
  Tensor weights = sin(arange(tensor.numel().plain(), kFloat64) * 1.7 + start) * 0.3 + 0.6;
  return sum(tensor.to(kFloat64) * view(weights, tensor.sym_sizes()));
}

// Gradients of a weighted sum of results (and bases), with the squares of the gradients added `order` - 1 times: all
// that were computed, then those that the leaves got.
inline std::vector<Tensor> differentiate(const Around& around, const std::vector<Tensor>& results, int order,
                                         bool of_bases, bool between) {
  autograd::EnableGrad on;
  std::vector<Tensor> leaves, noted;
  for (const std::vector<Tensor>& list : {around.leaves, around.sources, results})
    for (const Tensor& each : list) {
      bool known = !each.defined() || !each.requires_grad() || !each.is_leaf();
      for (const Tensor& leaf : leaves) known |= leaf.is(each);
      if (!known) leaves.push_back(each);
    }
  Tensor total = zeros({}, kFloat64);
  double start = 0;
  for (const Tensor& result : results)
    if (result.defined() && result.requires_grad()) total = total + weighted_sum(result, start++);
  for (const Tensor& base : around.bases)
    if (of_bases && base.requires_grad()) total = total + weighted_sum(base, start++);
  if (!total.requires_grad()) return {};
  std::vector<Tensor> inputs = leaves;
  for (const Tensor& each : results) {
    bool known = !between || !each.defined() || !each.requires_grad();
    for (const Tensor& input : inputs) known |= input.is(each);
    if (!known) inputs.push_back(each);
  }
  for (int round = between ? 0 : 1; round < order; ++round) {
    const Tensor roots[] = {total};
    Tensor squares = zeros({}, kFloat64);
    for (const Tensor& gradient : autograd::grad(roots, inputs, {}, true, round > 0, true)) {
      noted.push_back(gradient.defined() ? gradient.detach().clone() : gradient);
      if (gradient.defined() && gradient.requires_grad()) squares = squares + sum(square(gradient.to(kFloat64)));
    }
    total = total + squares;
  }
  total.backward();
  for (const Tensor& leaf : leaves) noted.push_back(leaf.grad());
  return noted;
}

// In a function: gradients of the sum of `root`, zeros where there is none.
inline std::vector<Tensor> gradients_of(const Tensor& root, const std::vector<Tensor>& inputs, bool create_graph) {
  const Tensor roots[] = {sum(root)};
  std::vector<Tensor> result = autograd::grad(roots, inputs, {}, true, create_graph, true);
  for (size_t at = 0; at < result.size(); ++at)
    if (!result[at].defined()) result[at] = zeros_like(inputs[at]);
  return result;
}

// ---- A printed program

struct Printed {
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> function;
  std::function<std::vector<Tensor>(Around&, int call)> prepare;  // gives the arguments
  std::function<void(const std::vector<Tensor>& all)> act;        // writes after the call
  CompileOptions options;
  int calls = 1, order = 0;
  bool of_bases = false, between = false;
  bool walks = false;  // nothing is compiled, but backward walks are captured, twice
};

inline bool plain = true;  // inner functions are not compiled
inline int64_t hook_calls[16] = {};
inline Cell<double> rate(0.5);

template <typename F>
std::vector<std::string> run_printed(const Printed& printed, F& function) {
  std::vector<std::string> lines;
  Around around;
  auto look = [&](const std::vector<Tensor>& all) {
    autograd::NoGrad off;
    for (size_t at = 0; at < all.size(); ++at) {
      size_t shares = 0;
      while (all[at].defined() && !all[shares].is_same_storage(all[at])) ++shares;
      lines.push_back(!all[at].defined() ? "nothing"
                                         : fmt::format("  {} {} strides [{}]{}{}, shares with {}: {}", at,
                                                       all[at].description(), fmt::join(all[at].strides(), ", "),
                                                       all[at].requires_grad() ? ", requires grad" : "",
                                                       all[at].is_leaf() ? ", leaf" : "", shares, all[at].str()));
    }
  };
  for (int call = 0; call < printed.calls; ++call) {
    lines.push_back(fmt::format("call {}", call + 1));
    try {
      std::fill(std::begin(hook_calls), std::end(hook_calls), 0);
      std::vector<Tensor> arguments = printed.prepare(around, call);
      std::vector<Tensor> results = function(arguments);
      lines.push_back(fmt::format("  grad mode {}, generator at {}, {}", autograd::grad_enabled(),
                                  default_generator().seed(), default_generator().offset()));
      autograd::set_grad_enabled(true);
      look(around.all(results));
      if (printed.act) {
        printed.act(around.all(results));
        lines.push_back("  after writes");
        look(around.all(results));
      }
      if (printed.order > 0)
        for (const Tensor& gradient : differentiate(around, results, printed.order, printed.of_bases, printed.between))
          lines.push_back("  gradient " + (gradient.defined() ? gradient.str() : "none"));
      lines.push_back(fmt::format("  hooks {}", fmt::join(hook_calls, " ")));
    } catch (const std::exception& error) {
      lines.push_back(fmt::format("  raises: {}", error.what()));
    }
    autograd::set_grad_enabled(true);
  }
  return lines;
}

// 1 if something is different.
inline int show(const Printed& printed) {
  plain = true;
  std::vector<std::string> expected = run_printed(printed, printed.function);
  plain = false;
  std::vector<std::string> got;
  if (printed.walks) {
    plain = true;
    compiled_autograd::Enable on;
    for (int round = 0; round < 2; ++round)
      if (got.empty() || got == expected) got = run_printed(printed, printed.function);
  } else {
    auto compiled = compile(printed.function, printed.options);
    got = run_printed(printed, compiled);
  }
  bool differs = false;
  for (size_t at = 0; at < std::max(expected.size(), got.size()); ++at) {
    std::string should = at < expected.size() ? expected[at] : "", is = at < got.size() ? got[at] : "";
    differs |= should != is;
    if (should == is)
      fmt::print("{}\n", is);
    else
      fmt::print("eager    {}\ncompiled {}\n", should, is);
  }
  return differs;
}

}  // namespace tenon::fuzz
