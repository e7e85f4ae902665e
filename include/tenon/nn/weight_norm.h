// Weights that are computed from others: by length and direction, or divided by their largest singular value.
//
//   nn::Sequential model(nn::weight_norm(nn::Linear(3, 8)), nn::ReLU(), nn::spectral_norm(nn::Linear(8, 2)));
//   model(x).sum().backward();
//   for (const auto& [name, parameter] : model.named_parameters()) fmt::print("{}\n", name);  // "0.weight_g", …
//   nn::Linear layer = nn::weight_norm(nn::Linear(3, 2));
//   nn::remove_weight_norm(layer);                                                           // "weight" again
//
// Names are those of torch.nn.utils, so that its checkpoints load. Make optimizers afterwards: the parameters are
// others.
#pragma once

#include <tenon/nn/module.h>

#include <optional>

namespace tenon::nn {

namespace detail {
void add_weight_norm(const Module& module, const std::string& name, std::optional<int64_t> dim);
}  // namespace detail

// weight = weight_g · weight_v / |weight_v|, with a length for every index of `dim`; without one, for the whole.
template <typename M>
  requires std::derived_from<M, Module>
M weight_norm(M module, const std::string& name = "weight", std::optional<int64_t> dim = 0) {
  detail::add_weight_norm(module, name, dim);
  return module;
}
void remove_weight_norm(const Module& module, const std::string& name = "weight");

//   nn::SpectralNormOptions options{.n_power_iterations = 3, .eps = 1e-9, .dim = 1};
//   nn::Linear layer = nn::spectral_norm(nn::Linear(3, 2), "weight", options);
//   nn::remove_spectral_norm(layer);
struct SpectralNormOptions {
  int64_t n_power_iterations = 1;  // at every read of the weight, while training
  double eps = 1e-12;              // the least length that something is divided by
  int64_t dim = 0;                 // the rows of the matrix that the weight counts as
};

namespace detail {
void add_spectral_norm(const Module& module, const std::string& name, const SpectralNormOptions& options);
}  // namespace detail

// weight = weight_orig / σ, where σ is its largest singular value as a matrix, estimated by power iteration from the
// buffers weight_u and weight_v.
template <typename M>
  requires std::derived_from<M, Module>
M spectral_norm(M module, const std::string& name = "weight", const SpectralNormOptions& options = {}) {
  detail::add_spectral_norm(module, name, options);
  return module;
}
void remove_spectral_norm(const Module& module, const std::string& name = "weight");

}  // namespace tenon::nn
