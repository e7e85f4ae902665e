// Operators from C++ sources as extension authors write them, compiled while the program runs.
#include "seeds/custom_ops.h"

#include <tenon/library/load.h>

namespace tenon::testing {
namespace {

TEST(TestCustomOp, autograd_function_backed_op) {
  const std::string source = R"(
#include <torch/extension.h>

struct CustomOpAutogradFunction : public torch::autograd::Function<CustomOpAutogradFunction> {
  static constexpr bool is_traceable = true;

  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x) { return x; }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grad_output) {
    return grad_output;
  }
};

torch::Tensor custom_op_backed_by_autograd_fn(const torch::Tensor& x) {
  return CustomOpAutogradFunction::apply(x);
}

TORCH_LIBRARY(mylib, m) {
  m.def("custom_op_backed_by_autograd_fn", custom_op_backed_by_autograd_fn);
}
)";
  library::LoadOptions options;
  options.include_paths = {TENON_SOURCE_DIR "/include", TENON_SOURCE_DIR "/compat",
                           TENON_BINARY_DIR "/generated/include"};
  options.flags = {"-O0"};
  library::load_inline("mylib", source, options);
  Tensor x = ones({2, 2}).set_requires_grad();
  Tensor expected = x.clone().detach();
  Tensor out = call_by_name("mylib::custom_op_backed_by_autograd_fn", {Value(x)})[0].tensor();
  EXPECT_TRUE(out.requires_grad());
  out.sum().backward();
  expect_equal(x.grad(), expected);
}

}  // namespace
}  // namespace tenon::testing
