#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/weight_norm.h>

#include <fmt/format.h>

namespace tenon::nn {
namespace {

Tensor parameter_of(const Module& module, const std::string& name, const char* what) {
  for (const auto& [own, tensor] : module.named_parameters())
    if (own == name) return tensor;
  throw ValueError(fmt::format("[{}] the {} has no parameter '{}'", what, module.kind(), name));
}

int64_t wrapped(int64_t dim, const Tensor& weight, const char* what) {
  int64_t rank = weight.dim();
  TENON_CHECK_INDEX(dim >= -rank && dim < rank, "[{}] expected a dimension from {} to {}, got {}", what, -rank,
                    rank - 1, dim);
  return dim < 0 ? dim + rank : dim;
}

// The length along all dimensions but one; of the whole, without one.
Tensor length_of(const Tensor& weight, std::optional<int64_t> dim) {
  if (!dim) return weight.square().sum().sqrt();
  Ints others;
  for (int64_t at = 0; at < weight.dim(); ++at)
    if (at != *dim) others.push_back(at);
  return others.empty() ? weight.abs() : weight.square().sum(others, true).sqrt();
}

Tensor as_matrix(const Tensor& weight, int64_t dim) { return weight.movedim(dim, 0).reshape({weight.size(dim), -1}); }

Tensor normalized(const Tensor& vector, double eps) { return vector / vector.square().sum().sqrt().clamp_min(eps); }

void iterate(const Tensor& matrix, const Tensor& u, const Tensor& v, double eps) {
  v.copy_(normalized(matrix.t().mv(u), eps));
  u.copy_(normalized(matrix.mv(v), eps));
}

}  // namespace

void detail::add_weight_norm(const Module& module, const std::string& name, std::optional<int64_t> dim) {
  Tensor weight = parameter_of(module, name, "weight_norm").detach();
  if (dim) dim = wrapped(*dim, weight, "weight_norm");
  module.reparametrize(name, {{name + "_g", length_of(weight, dim)}, {name + "_v", weight.clone()}}, {},
                       [dim](const std::vector<Tensor>& of, bool) { return of[1] * (of[0] / length_of(of[1], dim)); });
}

void remove_weight_norm(const Module& module, const std::string& name) { module.undo_reparametrization(name); }

void detail::add_spectral_norm(const Module& module, const std::string& name, const SpectralNormOptions& options) {
  TENON_CHECK_VALUE(options.n_power_iterations > 0, "[spectral_norm] expected n_power_iterations above 0, got {}",
                    options.n_power_iterations);
  autograd::NoGrad off;
  Tensor weight = parameter_of(module, name, "spectral_norm").detach();
  SpectralNormOptions with = options;
  with.dim = wrapped(options.dim, weight, "spectral_norm");
  Tensor matrix = as_matrix(weight, with.dim);
  auto begin = [&](const SymInt& size) {
    return normalized(randn({size}, TensorOptions(weight.dtype(), weight.device())), with.eps);
  };
  Tensor u = begin(matrix.size(0)), v = begin(matrix.size(1));
  for (int step = 0; step < 15; ++step) iterate(matrix, u, v, with.eps);
  module.reparametrize(name, {{name + "_orig", weight.clone()}}, {{name + "_u", u}, {name + "_v", v}},
                       [with](const std::vector<Tensor>& of, bool training) {
                         Tensor now = as_matrix(of[0], with.dim);
                         if (training) {
                           autograd::NoGrad still;
                           for (int64_t step = 0; step < with.n_power_iterations; ++step)
                             iterate(now.detach(), of[1], of[2], with.eps);
                         }
                         // Copies: the next run writes to the buffers.
                         Tensor left = of[1].clone(), right = of[2].clone();
                         return of[0] / left.dot(now.mv(right));
                       });
}

void remove_spectral_norm(const Module& module, const std::string& name) { module.undo_reparametrization(name); }

}  // namespace tenon::nn
