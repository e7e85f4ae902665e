// An extension for libtorch: values between the elements of a line, with the gradient of both, and an optimizer's step.
#include <torch/extension.h>

namespace {

std::tuple<at::Tensor, at::Tensor> sample_backward_cpu(const at::Tensor& grad, const at::Tensor& line,
                                                       const at::Tensor& places) {
  auto g = grad.contiguous(), x = line.contiguous(), p = places.contiguous();
  auto grad_line = at::zeros_like(x), grad_places = at::zeros_like(p);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sample_backward", [&] {
    auto in = x.accessor<scalar_t, 1>(), at_ = p.accessor<scalar_t, 1>(), slope = g.accessor<scalar_t, 1>();
    auto to_line = grad_line.accessor<scalar_t, 1>(), to_places = grad_places.accessor<scalar_t, 1>();
    for (int64_t i = 0; i < p.size(0); ++i) {
      auto left = std::min<int64_t>(std::max<int64_t>(static_cast<int64_t>(at_[i]), 0), x.size(0) - 2);
      scalar_t weight = at_[i] - scalar_t(left);
      to_line[left] += slope[i] * (1 - weight);
      to_line[left + 1] += slope[i] * weight;
      to_places[i] = slope[i] * (in[left + 1] - in[left]);
    }
  });
  return {grad_line, grad_places};
}
std::tuple<at::Tensor, at::Tensor> sample_backward_meta(const at::Tensor&, const at::Tensor& line,
                                                        const at::Tensor& places) {
  return {at::empty_like(line), at::empty_like(places)};
}

at::Tensor sample_cpu(const at::Tensor& line, const at::Tensor& places) {
  auto x = line.contiguous(), p = places.contiguous();
  auto out = at::empty(p.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sample", [&] {
    auto in = x.accessor<scalar_t, 1>(), at_ = p.accessor<scalar_t, 1>();
    auto to = out.accessor<scalar_t, 1>();
    for (int64_t i = 0; i < p.size(0); ++i) {
      auto left = std::min<int64_t>(std::max<int64_t>(static_cast<int64_t>(at_[i]), 0), x.size(0) - 2);
      scalar_t weight = at_[i] - scalar_t(left);
      to[i] = in[left] * (1 - weight) + in[left + 1] * weight;
    }
  });
  return out;
}
at::Tensor sample_meta(const at::Tensor& line, const at::Tensor& places) {
  return at::empty(places.sym_sizes(), line.options());
}

struct Sample : public torch::autograd::Function<Sample> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& line, const at::Tensor& places) {
    at::AutoDispatchBelowAutograd guard;
    ctx->save_for_backward({line, places});
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("ext_sampling::sample", "")
                         .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    return op.call(line, places);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    auto saved = ctx->get_saved_variables();
    static auto op =
        c10::Dispatcher::singleton()
            .findSchemaOrThrow("ext_sampling::sample_backward", "")
            .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
    auto [line, places] = op.call(grads[0], saved[0], saved[1]);
    return {line, places};
  }
};
at::Tensor sample_autograd(const at::Tensor& line, const at::Tensor& places) { return Sample::apply(line, places); }

// w -= rate * (momentum * buffer + grad), in place; the buffer too.
void momentum_step(at::Tensor& weight, at::Tensor& buffer, const at::Tensor& grad, double rate, double momentum) {
  torch::NoGradGuard no_grad;
  at::checkSameSize("momentum_step", {weight, "weight", 1}, {grad, "grad", 3});
  buffer.mul_(momentum).add_(grad);
  weight.add_(buffer, -rate);
}
void momentum_step_meta(at::Tensor&, at::Tensor&, const at::Tensor&, double, double) {}

}  // namespace

TORCH_LIBRARY(ext_sampling, m) {
  m.def("sample(Tensor line, Tensor places) -> Tensor");
  m.def("sample_backward(Tensor grad, Tensor line, Tensor places) -> (Tensor, Tensor)");
  m.def("momentum_step(Tensor(a!) weight, Tensor(b!) buffer, Tensor grad, float rate, float momentum) -> ()");
}
TORCH_LIBRARY_IMPL(ext_sampling, CPU, m) {
  m.impl("sample", sample_cpu);
  m.impl("sample_backward", sample_backward_cpu);
  m.impl("momentum_step", momentum_step);
}
TORCH_LIBRARY_IMPL(ext_sampling, Meta, m) {
  m.impl("sample", sample_meta);
  m.impl("sample_backward", sample_backward_meta);
  m.impl("momentum_step", momentum_step_meta);
}
TORCH_LIBRARY_IMPL(ext_sampling, Autograd, m) {
  m.impl("sample", torch::dispatch(c10::DispatchKey::Autograd, sample_autograd));
}
