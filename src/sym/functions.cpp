// The names of operations that are written as functions.
#include "pool.h"

namespace tenon::sym {
namespace {

struct Function {
  std::string_view name;
  Op op;
  int arity;    // -1: two or more
  Op of_reals;  // the same as `op`, unless integers and reals have one each
};

// clang-format off
constexpr Function kFunctions[] = {
    {"FloorDiv", Op::FloorDiv, 2, Op::FloorDiv}, {"Mod", Op::Mod, 2, Op::Mod},
    {"Min", Op::Min, -1, Op::RealMin},           {"Max", Op::Max, -1, Op::RealMax},
    {"Abs", Op::Abs, 1, Op::RealAbs},            {"Pow", Op::Pow, 2, Op::RealPow},
    {"Floor", Op::Floor, 1, Op::Floor},          {"Ceil", Op::Ceil, 1, Op::Ceil},
    {"Round", Op::Round, 1, Op::Round},          {"Trunc", Op::Trunc, 1, Op::Trunc},
    {"ToReal", Op::ToReal, 1, Op::ToReal},       {"Sqrt", Op::Sqrt, 1, Op::Sqrt},
    {"Sin", Op::Sin, 1, Op::Sin},                {"Cos", Op::Cos, 1, Op::Cos},
    {"Tan", Op::Tan, 1, Op::Tan},                {"Sinh", Op::Sinh, 1, Op::Sinh},
    {"Cosh", Op::Cosh, 1, Op::Cosh},             {"Tanh", Op::Tanh, 1, Op::Tanh},
    {"Asin", Op::Asin, 1, Op::Asin},             {"Acos", Op::Acos, 1, Op::Acos},
    {"Atan", Op::Atan, 1, Op::Atan},             {"Exp", Op::Exp, 1, Op::Exp},
    {"Log", Op::Log, 1, Op::Log},                {"Exp2", Op::Exp2, 1, Op::Exp2},
    {"Log2", Op::Log2, 1, Op::Log2},             {"IsInteger", Op::IsInteger, 1, Op::IsInteger},
    {"Same", Op::Same, 2, Op::Same},
};
// clang-format on

}  // namespace

std::string_view function_name(Op op) {
  for (const Function& function : kFunctions)
    if (function.op == op || function.of_reals == op) return function.name;
  return {};
}

std::optional<Op> find_function(std::string_view name, std::span<const Expr> args) {
  bool real = false;
  for (Expr arg : args) real |= arg.is_real();
  for (const Function& function : kFunctions) {
    if (function.name != name) continue;
    bool fits = function.arity < 0 ? args.size() >= 2 : args.size() == static_cast<size_t>(function.arity);
    if (real && (function.op == Op::FloorDiv || function.op == Op::Mod)) fits = false;
    return fits ? std::optional(real ? function.of_reals : function.op) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tenon::sym
