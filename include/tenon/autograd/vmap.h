// A function of one entry, for a whole batch at once.
//
//   auto distance = [](const Tensor& a, const Tensor& b) { return (a - b).pow(2).sum().sqrt(); };
//   Tensor each = autograd::vmap(distance, {ones({5, 3}), zeros({5, 3})})[0];                 // [5]
//   Tensor to_one = autograd::vmap(distance, {ones({5, 3}), zeros({3})}, {.in_dims = {0, std::nullopt}})[0];
//
// The function sees tensors without the dimension of the batch. What it calls runs once for all entries: pointwise
// operators, reductions, products and views do by broadcasting and by their dimensions, functions of operators by their
// parts; what remains (a sort, a gather) runs once for each entry. Random operators are refused: one number for all and
// one for each are both sensible, and so are operators whose results have sizes that depend on data, and reading
// elements. Batches nest, record gradients like anything else, and take part in a capture as the operators that they
// come to. Inside, `autograd::grad` with respect to a batched tensor gives a gradient for each entry:
//
//   auto slope = [](const Tensor& entry) {
//     Tensor at = entry.detach().set_requires_grad();
//     return autograd::grad({at.pow(3).sum()}, {at})[0];
//   };
//   Tensor slopes = autograd::vmap(slope, {x})[0];  // 3 x^2
#pragma once

#include <tenon/autograd/gradcheck.h>

namespace tenon::autograd {

//   autograd::VmapOptions options{.in_dims = {1, std::nullopt}, .out_dim = -1};
struct VmapOptions {
  // Of each input, the dimension of the batch; nothing: the tensor is the same for all entries. Empty: 0 for all.
  std::vector<std::optional<int64_t>> in_dims = {};
  int64_t out_dim = 0;  // of each output
};

namespace detail {
Tensors vmap(const Checked& function, const Tensors& inputs, const VmapOptions& options);
}

// What the function gives for each entry, stacked. It takes and gives a tensor or several.
template <typename F>
std::vector<Tensor> vmap(F function, const std::vector<Tensor>& inputs, const VmapOptions& options = {}) {
  return detail::vmap(detail::checked(std::move(function)), inputs, options);
}

// Whether a tensor stands for the entries of a batch: inside of `vmap`.
//
//   bool outside = autograd::is_batched(x);  // no
bool is_batched(const Tensor& tensor);

}  // namespace tenon::autograd
