#include "op_table.h"

#include <iterator>

namespace tenon::loop {
namespace {

using enum OpCode;

// A row: code, {name, operands, floats, integers, booleans, transcendental}, typing.
constexpr OpRow kRows[] = {
    {Constant, {"constant", 0, true, true, true, false}, Typing::Special},
    {Parameter, {"parameter", 0, true, true, true, false}, Typing::Special},
    {Index, {"index", 0, false, true, false, false}, Typing::Special},
    {Load, {"load", 0, true, true, true, false}, Typing::Special},
    {Random, {"random", 2, false, true, false, false}, Typing::Special},
    {Store, {"store", 1, true, true, true, false}, Typing::Special},
    {Check, {"check", 1, false, false, true, false}, Typing::Special},
    {BindIndex, {"bind", 1, false, true, false, false}, Typing::Special},

    {Neg, {"neg", 1, true, true, false, false}, Typing::Uniform},
    {Abs, {"abs", 1, true, true, false, false}, Typing::Uniform},
    {Sign, {"sign", 1, true, true, false, false}, Typing::Uniform},
    {Floor, {"floor", 1, true, false, false, false}, Typing::Uniform},
    {Ceil, {"ceil", 1, true, false, false, false}, Typing::Uniform},
    {Trunc, {"trunc", 1, true, false, false, false}, Typing::Uniform},
    {Round, {"round", 1, true, false, false, false}, Typing::Uniform},
    {Sqrt, {"sqrt", 1, true, false, false, false}, Typing::Uniform},
    {Rsqrt, {"rsqrt", 1, true, false, false, false}, Typing::Uniform},
    {Reciprocal, {"reciprocal", 1, true, false, false, false}, Typing::Uniform},
    {Exp, {"exp", 1, true, false, false, true}, Typing::Uniform},
    {Exp2, {"exp2", 1, true, false, false, true}, Typing::Uniform},
    {Expm1, {"expm1", 1, true, false, false, true}, Typing::Uniform},
    {Log, {"log", 1, true, false, false, true}, Typing::Uniform},
    {Log2, {"log2", 1, true, false, false, true}, Typing::Uniform},
    {Log10, {"log10", 1, true, false, false, true}, Typing::Uniform},
    {Log1p, {"log1p", 1, true, false, false, true}, Typing::Uniform},
    {Sin, {"sin", 1, true, false, false, true}, Typing::Uniform},
    {Cos, {"cos", 1, true, false, false, true}, Typing::Uniform},
    {Tan, {"tan", 1, true, false, false, true}, Typing::Uniform},
    {Asin, {"asin", 1, true, false, false, true}, Typing::Uniform},
    {Acos, {"acos", 1, true, false, false, true}, Typing::Uniform},
    {Atan, {"atan", 1, true, false, false, true}, Typing::Uniform},
    {Sinh, {"sinh", 1, true, false, false, true}, Typing::Uniform},
    {Cosh, {"cosh", 1, true, false, false, true}, Typing::Uniform},
    {Tanh, {"tanh", 1, true, false, false, true}, Typing::Uniform},
    {Asinh, {"asinh", 1, true, false, false, true}, Typing::Uniform},
    {Acosh, {"acosh", 1, true, false, false, true}, Typing::Uniform},
    {Atanh, {"atanh", 1, true, false, false, true}, Typing::Uniform},
    {Erf, {"erf", 1, true, false, false, true}, Typing::Uniform},
    {Erfc, {"erfc", 1, true, false, false, true}, Typing::Uniform},
    {LogGamma, {"lgamma", 1, true, false, false, true}, Typing::Uniform},
    {Sigmoid, {"sigmoid", 1, true, false, false, true}, Typing::Uniform},
    {IsNan, {"isnan", 1, true, false, false, false}, Typing::Predicate},
    {Not, {"not", 1, false, true, true, false}, Typing::Uniform},
    {Cast, {"cast", 1, true, true, true, false}, Typing::Convert},

    {Add, {"add", 2, true, true, false, false}, Typing::Uniform},
    {Sub, {"sub", 2, true, true, false, false}, Typing::Uniform},
    {Mul, {"mul", 2, true, true, false, false}, Typing::Uniform},
    {Div, {"div", 2, true, true, false, false}, Typing::Uniform},
    {FloorDiv, {"floor_div", 2, true, true, false, false}, Typing::Uniform},
    {Rem, {"rem", 2, true, true, false, false}, Typing::Uniform},
    {Mod, {"mod", 2, true, true, false, false}, Typing::Uniform},
    {Pow, {"pow", 2, true, true, false, true}, Typing::Uniform},
    {Atan2, {"atan2", 2, true, false, false, true}, Typing::Uniform},
    {Min, {"min", 2, true, true, true, false}, Typing::Uniform},
    {Max, {"max", 2, true, true, true, false}, Typing::Uniform},
    {And, {"and", 2, false, true, true, false}, Typing::Uniform},
    {Or, {"or", 2, false, true, true, false}, Typing::Uniform},
    {Xor, {"xor", 2, false, true, true, false}, Typing::Uniform},
    {Shl, {"shl", 2, false, true, false, false}, Typing::Uniform},
    {Shr, {"shr", 2, false, true, false, false}, Typing::Uniform},

    {Eq, {"eq", 2, true, true, true, false}, Typing::Predicate},
    {Ne, {"ne", 2, true, true, true, false}, Typing::Predicate},
    {Lt, {"lt", 2, true, true, true, false}, Typing::Predicate},
    {Le, {"le", 2, true, true, true, false}, Typing::Predicate},
    {Gt, {"gt", 2, true, true, true, false}, Typing::Predicate},
    {Ge, {"ge", 2, true, true, true, false}, Typing::Predicate},

    {Select, {"select", 3, true, true, true, false}, Typing::Choose},
    {Reduce, {"reduce", 1, true, true, true, false}, Typing::Uniform},
};

constexpr bool rows_stand_at_their_codes() {
  if (std::size(kRows) != static_cast<size_t>(Count_)) return false;
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].code != static_cast<OpCode>(i)) return false;
  }
  return true;
}
static_assert(rows_stand_at_their_codes());

}  // namespace

const OpRow& row(OpCode code) {
  TENON_ASSERT(code < Count_, "operation number {}", static_cast<int>(code));
  return kRows[static_cast<int>(code)];
}

const OpTraits& traits(OpCode code) { return row(code).traits; }

std::optional<OpCode> op_from_name(std::string_view name) {
  for (const OpRow& entry : kRows) {
    if (entry.traits.name == name) return entry.code;
  }
  return std::nullopt;
}

std::optional<Dtype> dtype_from_brief(std::string_view brief) {
  for (int i = 0; i < kDtypeCount; ++i) {
    if (kDtypeTraits[i].brief == brief) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

}  // namespace tenon::loop
