// An extension as its author writes it for libtorch: an activation, forward and backward by element.
#include <ATen/OpMathType.h>
#include <torch/extension.h>

namespace {

template <typename scalar_t>
scalar_t logistic(scalar_t x) {
  return scalar_t(1) / (scalar_t(1) + std::exp(-x));
}

at::Tensor swish_forward(const at::Tensor& input, double beta) {
  TORCH_CHECK(input.device().is_cpu(), "swish: expected a CPU tensor, got ", input.device());
  auto x = input.contiguous();
  auto y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "swish_forward", [&] {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (const auto i : c10::irange(begin, end)) {
        using acc_t = at::opmath_type<scalar_t>;
        const auto v = static_cast<acc_t>(from[i]);
        to[i] = static_cast<scalar_t>(v * logistic(static_cast<acc_t>(beta) * v));
      }
    });
  });
  return y;
}

at::Tensor swish_backward(const at::Tensor& grad, const at::Tensor& input, double beta) {
  auto x = input.contiguous(), g = grad.contiguous();
  auto out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "swish_backward", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    const auto* slope = g.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      using acc_t = at::opmath_type<scalar_t>;
      const auto v = static_cast<acc_t>(from[i]), b = static_cast<acc_t>(beta), s = logistic(b * v);
      to[i] = static_cast<scalar_t>(static_cast<acc_t>(slope[i]) * (s + b * v * s * (1 - s)));
    }
  });
  return out;
}

at::Tensor swish_meta(const at::Tensor& input, double) {
  return at::empty_like(input, input.options(), at::MemoryFormat::Contiguous);
}
at::Tensor swish_backward_meta(const at::Tensor&, const at::Tensor& input, double beta) {
  return swish_meta(input, beta);
}

at::Tensor swish(const at::Tensor& input, double beta) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("ext_elementwise::swish", "")
                       .typed<at::Tensor(const at::Tensor&, double)>();
  return op.call(input, beta);
}

class SwishFunction : public torch::autograd::Function<SwishFunction> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const torch::autograd::Variable& input, double beta) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({input});
    ctx->saved_data["beta"] = beta;
    return {swish(input, beta)};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("ext_elementwise::swish_backward", "")
                         .typed<at::Tensor(const at::Tensor&, const at::Tensor&, double)>();
    auto saved = ctx->get_saved_variables();
    return {op.call(grads[0], saved[0], ctx->saved_data["beta"].toDouble()), torch::autograd::Variable()};
  }
};

at::Tensor swish_autograd(const at::Tensor& input, double beta) { return SwishFunction::apply(input, beta)[0]; }

}  // namespace

TORCH_LIBRARY(ext_elementwise, m) {
  m.def(TORCH_SELECTIVE_SCHEMA("swish(Tensor input, float beta=1.0) -> Tensor"));
  m.def(TORCH_SELECTIVE_SCHEMA("swish_backward(Tensor grad, Tensor input, float beta) -> Tensor"));
}
TORCH_LIBRARY_IMPL(ext_elementwise, CPU, m) {
  m.impl(TORCH_SELECTIVE_NAME("swish"), TORCH_FN(swish_forward));
  m.impl(TORCH_SELECTIVE_NAME("swish_backward"), TORCH_FN(swish_backward));
}
TORCH_LIBRARY_IMPL(ext_elementwise, Meta, m) {
  m.impl("swish", swish_meta);
  m.impl("swish_backward", swish_backward_meta);
}
TORCH_LIBRARY_IMPL(ext_elementwise, Autograd, m) { m.impl("swish", swish_autograd); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("swish", &swish_autograd, "swish", py::arg("input"), py::arg("beta") = 1.0);
}
