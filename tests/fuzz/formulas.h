// Functions whose backward cannot be traced ahead: it reads what it was not given, a tensor in a cell or a bare one,
// which are others at every call; or it looks at values. Printed programs include this file.
#pragma once

#include <tenon/tenon.h>

namespace tenon::fuzz {

inline Cell<Tensor> outside_cell(tensor(2.0), "outside");
inline Tensor outside_tensor = tensor(3.0);

// Before a call.
inline void set_outside(size_t call) {
  constexpr double kFactors[] = {2, 0.5, 4};
  outside_cell.set(tensor(kFactors[call % 3]));
  outside_tensor = tensor(kFactors[(call + 1) % 3]);
}

enum class Reads { Cell, Tensor, CellInGradient, Values };

template <Reads reads>
struct OutsideFormula : autograd::Function<OutsideFormula<reads>> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * 2;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, std::vector<Tensor> gradients) {
    if constexpr (reads == Reads::Cell) return {gradients[0] * outside_cell.get()};
    if constexpr (reads == Reads::Tensor) return {gradients[0] * outside_tensor};
    if constexpr (reads == Reads::Values)
      return {gradients[0].sum().template item<double>() > 0 ? gradients[0] * 4 : gradients[0] * 0.5};
    autograd::EnableGrad on;
    Tensor z = context->get_saved_variables()[0].detach().set_requires_grad();
    const Tensor roots[] = {z * z * outside_cell.get()}, inputs[] = {z}, given[] = {gradients[0]};
    return {autograd::grad(roots, inputs, given)[0]};
  }
};

inline Tensor outside_formula(const Tensor& x, int64_t n) {
  if (n == 0) return OutsideFormula<Reads::Cell>::apply(x);
  if (n == 1) return OutsideFormula<Reads::Tensor>::apply(x);
  if (n == 2) return OutsideFormula<Reads::CellInGradient>::apply(x);
  return OutsideFormula<Reads::Values>::apply(x);
}

}  // namespace tenon::fuzz
