// An extension for libtorch: one step of an LSTM, made of operators, with a backward of its own.
#include <torch/torch.h>

#include <vector>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LstmCell : public torch::autograd::Function<LstmCell> {
  static variable_list forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weights, torch::Tensor bias,
                               torch::Tensor old_h, torch::Tensor old_cell) {
    auto X = torch::cat({old_h, input}, /*dim=*/1);
    auto gate_weights = torch::addmm(bias, X, weights.transpose(0, 1));
    auto gates = gate_weights.chunk(4, /*dim=*/1);
    auto input_gate = torch::sigmoid(gates[0]);
    auto forget_gate = torch::sigmoid(gates[1]);
    auto output_gate = torch::sigmoid(gates[2]);
    auto candidate = torch::tanh(gates[3]);
    auto new_cell = forget_gate * old_cell + candidate * input_gate;
    auto tanh_cell = torch::tanh(new_cell);
    auto new_h = tanh_cell * output_gate;
    ctx->save_for_backward({X, weights, input_gate, forget_gate, output_gate, candidate, tanh_cell, old_cell});
    return {new_h, new_cell};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto s = ctx->get_saved_variables();
    auto X = s[0], weights = s[1], i = s[2], f = s[3], o = s[4], g = s[5], t = s[6], old_cell = s[7];
    auto d_cell = grads[1] + grads[0] * o * (1 - t * t);
    auto d_gates = torch::cat({d_cell * g * i * (1 - i), d_cell * old_cell * f * (1 - f), grads[0] * t * o * (1 - o),
                               d_cell * i * (1 - g * g)},
                              1);
    auto d_X = d_gates.mm(weights);
    const auto state = old_cell.sym_size(1);
    return {d_X.slice(1, state), d_gates.t().mm(X), d_gates.sum(0, /*keepdim=*/true), d_X.slice(1, 0, state),
            d_cell * f};
  }
};

std::vector<torch::Tensor> lstm_cell(const torch::Tensor& input, const torch::Tensor& weights,
                                     const torch::Tensor& bias, const torch::Tensor& old_h,
                                     const torch::Tensor& old_cell) {
  TORCH_CHECK(input.dim() == 2 && input.sym_size(0) == old_h.sym_size(0), "lstm_cell: expected ", old_h.size(0),
              " rows, got ", input.sizes());
  return LstmCell::apply(input, weights, bias, old_h, old_cell);
}

}  // namespace

TORCH_LIBRARY(ext_lstm, m) { m.def("cell", lstm_cell); }
