// How weights begin. Each function fills a tensor in place, without history, and returns it.
//
//   Tensor w = empty({4, 3});
//   nn::init::uniform_(w, -0.1, 0.1);
//   nn::init::normal_(w, 0, 0.02);
//   nn::init::trunc_normal_(w, 0, 1, -2, 2);
//   nn::init::constant_(w, 0.5);
//   nn::init::ones_(w);
//   nn::init::zeros_(w);
//   nn::init::eye_(w);
//   nn::init::orthogonal_(w);
//   nn::init::xavier_uniform_(w);
//   nn::init::xavier_normal_(w, nn::init::gain("tanh"));
//   nn::init::KaimingOptions options{.nonlinearity = "relu"};
//   nn::init::kaiming_uniform_(w, options);
//   nn::init::kaiming_normal_(w, {.mode = nn::init::Fan::Out});
//   auto [inputs, outputs] = nn::init::fans(w);           // 3, 4
//   nn::Sequential model(nn::Linear(3, 4));
//   model.apply([](const nn::Module& module) {
//     for (const auto& [name, parameter] : module.named_parameters())
//       if (parameter.dim() > 1) nn::init::xavier_uniform_(parameter);
//   });
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::nn::init {

const Tensor& uniform_(const Tensor& tensor, double low = 0, double high = 1);
const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1);
// Normal, but within the bounds.
const Tensor& trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1, double low = -2, double high = 2);
const Tensor& constant_(const Tensor& tensor, double value);
const Tensor& ones_(const Tensor& tensor);
const Tensor& zeros_(const Tensor& tensor);
const Tensor& eye_(const Tensor& tensor);
// Rows (or columns, if there are fewer of them) of length `gain` at right angles; further dimensions are columns.
const Tensor& orthogonal_(const Tensor& tensor, double gain = 1);

// Inputs and outputs of a weight [out, in, …].
std::pair<int64_t, int64_t> fans(const Tensor& tensor);
// What a nonlinearity takes from the deviation: "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu".
double gain(std::string_view nonlinearity, double slope = 0.01);

// By inputs and outputs (Glorot and Bengio 2010).
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1);
const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1);

enum class Fan : uint8_t { In, Out };
struct KaimingOptions {
  double slope = 0;
  Fan mode = Fan::In;
  std::string_view nonlinearity = "leaky_relu";
};
// By inputs or outputs (He et al. 2015).
const Tensor& kaiming_uniform_(const Tensor& tensor, const KaimingOptions& options = {});
const Tensor& kaiming_normal_(const Tensor& tensor, const KaimingOptions& options = {});

}  // namespace tenon::nn::init
