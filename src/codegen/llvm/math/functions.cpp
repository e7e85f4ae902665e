#include "functions.h"

#include <tenon/support/error.h>

namespace tenon::codegen {

using loop::OpCode;

namespace {

struct Row {
  OpCode code;
  Real (*unary)(Real);
  Real (*binary)(Real, Real);
  bool branches;
};

constexpr Row kRows[] = {
    {OpCode::Exp, exp, nullptr, false},
    {OpCode::Exp2, exp2, nullptr, false},
    {OpCode::Expm1, expm1, nullptr, false},
    {OpCode::Sigmoid, sigmoid, nullptr, false},
    {OpCode::Tanh, tanh, nullptr, false},
    {OpCode::Sinh, sinh, nullptr, false},
    {OpCode::Cosh, cosh, nullptr, false},
    {OpCode::Log, log, nullptr, false},
    {OpCode::Log2, log2, nullptr, false},
    {OpCode::Log10, log10, nullptr, false},
    {OpCode::Log1p, log1p, nullptr, false},
    {OpCode::Asinh, asinh, nullptr, false},
    {OpCode::Acosh, acosh, nullptr, false},
    {OpCode::Atanh, atanh, nullptr, false},
    {OpCode::Sin, sin, nullptr, true},
    {OpCode::Cos, cos, nullptr, true},
    {OpCode::Tan, tan, nullptr, true},
    {OpCode::Asin, asin, nullptr, false},
    {OpCode::Acos, acos, nullptr, false},
    {OpCode::Atan, atan, nullptr, false},
    {OpCode::Erf, erf, nullptr, false},
    {OpCode::Erfc, erfc, nullptr, false},
    {OpCode::LogGamma, log_gamma, nullptr, false},
    {OpCode::Pow, nullptr, pow, false},
    {OpCode::Atan2, nullptr, atan2, false},
};

const Row* find(OpCode code) {
  for (const Row& row : kRows)
    if (row.code == code) return &row;
  return nullptr;
}

}  // namespace

bool math_makes_branches(OpCode code) {
  const Row* row = find(code);
  return row && row->branches;
}

llvm::Value* math_function(Context& context, OpCode code, llvm::Value* a, llvm::Value* b) {
  const Row* row = find(code);
  TENON_ASSERT(row, "{} is no math function", loop::traits(code).name);
  Real first{&context, a};
  return row->unary ? row->unary(first).value : row->binary(first, Real{&context, b}).value;
}

}  // namespace tenon::codegen
