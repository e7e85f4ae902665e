#include "operators.h"

#include <tenon/aot/aot.h>
#include <tenon/codegen/compile.h>
#include <tenon/runtime/plan.h>
#include <tenon/schedule/schedule.h>

#include <cmath>

namespace tenon::operators {
namespace {

struct Tolerance {
  double rtol, atol;
};

// PyTorch's, with which its own tests compare.
Tolerance tolerance(Dtype dtype, const Check& how) {
  Tolerance usual{0, 0};
  if (dtype == kFloat16) usual = {1e-3, 1e-5};
  if (dtype == kBFloat16) usual = {1.6e-2, 1e-5};
  if (dtype == kFloat32) usual = {1.3e-6, 1e-5};
  if (dtype == kFloat64) usual = {1e-7, 1e-7};
  if (is_floating(dtype)) {
    if (how.rtol >= 0) usual.rtol = how.rtol;
    if (how.atol >= 0) usual.atol = how.atol;
  }
  return usual;
}

bool same_values(double actual, double expected, Tolerance allowed) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (actual == expected) return true;
  return std::abs(actual - expected) <= allowed.atol + allowed.rtol * std::abs(expected);
}

Tensors copies_of(const Tensors& tensors) {
  Tensors made;
  for (const Tensor& tensor : tensors) made.push_back(copy_with_strides(tensor));
  return made;
}

int64_t elements_of(const Tensors& tensors) {
  int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.numel().plain();
  return elements;
}

std::vector<int64_t> versions_of(const Tensors& tensors) {
  std::vector<int64_t> versions;
  for (const Tensor& tensor : tensors) versions.push_back(tensor.version());
  return versions;
}

void expect_close(const char* what, const Tensors& actual, const Tensors& expected, const Check& how) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(close(actual[i], expected[i], how)) << what << " " << i;
}

// Any numbers that are not all the same: what a result's elements weigh in the sum that is differentiated.
Tensor weights_like(const Tensor& result) {
  return cos(arange(Scalar(result.numel()), kFloat64) * 0.7 + 0.3).view(result.sym_sizes()).to(result.dtype());
}

struct Differentiated {
  Tensors results, gradients;
  std::vector<bool> differentiable;
};

template <typename F>
Differentiated differentiate(const F& function, const Tensors& inputs) {
  Tensors leaves = copies_of(inputs);
  for (const Tensor& leaf : leaves)
    if (leaf.is_floating_point()) leaf.set_requires_grad();
  Differentiated made;
  made.results = function(leaves);
  Tensor total = zeros({}, kFloat64);
  for (Tensor& result : made.results) {
    made.differentiable.push_back(result.requires_grad());
    if (result.requires_grad()) total = total + (result * weights_like(result)).sum(kFloat64);
    result = result.detach();
  }
  if (total.requires_grad()) total.backward();
  for (const Tensor& leaf : leaves)
    if (leaf.is_floating_point()) made.gradients.push_back(leaf.grad().defined() ? leaf.grad() : zeros_like(leaf));
  return made;
}

struct Forward {
  Tensors results, inputs;  // the inputs as they are after the call
};

template <typename F>
Forward run(const F& function, const Tensors& inputs) {
  Forward made{{}, copies_of(inputs)};
  made.results = function(made.inputs);
  return made;
}

}  // namespace

Tensor copy_with_strides(const Tensor& tensor) {
  std::span<const int64_t> sizes = tensor.sizes(), strides = tensor.strides();
  Tensor copy = core::allocate(sizes, strides, tensor.dtype(), tensor.device());
  if (tensor.numel().plain() > 0) {
    auto bytes = static_cast<size_t>(core::reach(sizes, strides) * tensor.element_size());
    std::memcpy(copy.raw_data(), tensor.raw_data(), bytes);
  }
  return copy;
}

::testing::AssertionResult close(const Tensor& actual, const Tensor& expected, const Check& how) {
  if (actual.description() != expected.description())
    return ::testing::AssertionFailure() << actual.description() << ", expected " << expected.description();
  int64_t numel = expected.numel().plain();
  if (numel == 0) return ::testing::AssertionSuccess();
  for (size_t dim = 0; how.strides && dim < expected.sizes().size(); ++dim)
    if (expected.sizes()[dim] > 1 && actual.strides()[dim] != expected.strides()[dim])
      return ::testing::AssertionFailure() << actual.description() << " has the stride " << actual.strides()[dim]
                                           << " in dimension " << dim << ", expected " << expected.strides()[dim];
  if (!how.values) return ::testing::AssertionSuccess();
  ::testing::AssertionResult same = same_bits(actual.detach(), expected.detach());
  if (same || !expected.is_floating_point()) return same;
  Tensor x = actual.detach().to(kFloat64).contiguous(), y = expected.detach().to(kFloat64).contiguous();
  Tolerance allowed = tolerance(expected.dtype(), how);
  for (int64_t i = 0; i < numel; ++i)
    if (!same_values(x.data<double>()[i], y.data<double>()[i], allowed))
      return ::testing::AssertionFailure() << "element " << i << " of " << expected.description() << " is "
                                           << x.data<double>()[i] << ", expected " << y.data<double>()[i];
  return ::testing::AssertionSuccess();
}

Tensors check_function(const Function& function, const Tensors& inputs, const Check& how) {
  Forward expected = run(function, inputs);
  Tensors untouched = copies_of(inputs);
  bool writes = versions_of(expected.inputs) != versions_of(untouched);
  static Counter& launches = counter("kernels_launched");
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    SCOPED_TRACE(dynamic == Dynamic::On ? "dynamic" : "static");
    CompileOptions options{.fullgraph = how.fullgraph, .dynamic = dynamic};
    auto compiled = compile(function, options);
    Forward actual = run(compiled, inputs);
    expect_close("result", actual.results, expected.results, how);
    expect_close("input", actual.inputs, expected.inputs, how);
    // The second call runs what the first one compiled. (Of large tensors one call is enough to wait for.)
    if (how.kernels >= 0 || elements_of(inputs) < 1000000) {
      Tensors again = copies_of(inputs);
      int64_t before = launches.value();
      Tensors repeated = compiled(again);
      int64_t launched = launches.value() - before;
      if (how.kernels >= 0) {
        EXPECT_LE(launched, how.kernels) << "kernels were launched";
      }
      expect_close("result of the second call", repeated, expected.results, how);
    }
    if (!how.then.empty()) {
      Forward other = run(function, how.then), compiled_other = run(compiled, how.then);
      expect_close("result at other sizes", compiled_other.results, other.results, how);
      expect_close("input at other sizes", compiled_other.inputs, other.inputs, how);
      if (dynamic == Dynamic::On && how.fullgraph) {
        EXPECT_EQ(compiled.compile_count(), 1);
      }
    }
    if (!how.backward || writes || !how.values) continue;
    Differentiated eager = differentiate(function, inputs);
    Differentiated ahead = differentiate(compile(function, options), inputs);
    EXPECT_EQ(ahead.differentiable, eager.differentiable) << "which results have a history";
    expect_close("result with a history", ahead.results, eager.results, how);
    Check of_gradients = how;
    of_gradients.strides = false;
    expect_close("gradient", ahead.gradients, eager.gradients, of_gradients);
  }
  return expected.results;
}

std::string kernels_of(const Function& function, const Tensors& inputs, Dynamic dynamic) {
  auto text = std::make_shared<std::string>();
  auto compiler = [text](const graph::Graph& part) -> GraphFunction {
    std::shared_ptr<const runtime::Plan> plan = schedule::compile_graph(part);
    for (const load::KernelRef& kernel : plan->kernels) *text += codegen::compiled_from(*kernel)->text;
    return [plan](std::span<const Tensor> given, std::span<const int64_t> symbols) {
      return runtime::run(*plan, given, symbols);
    };
  };
  Backend backend = [compiler](const graph::Graph& graph) -> GraphFunction {
    return aot::compile(graph, std::vector<bool>(graph.inputs.size()), false, compiler).run;
  };
  compile(function, {.fullgraph = true, .dynamic = dynamic, .backend = backend})(copies_of(inputs));
  return *text;
}

}  // namespace tenon::operators
