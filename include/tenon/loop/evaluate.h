// What operations compute, one value at a time: the one definition that the interpreter and the evaluator of operator
// rows share.
//
// A value is a `Number` in the normal form of its dtype: floats in `real` (a float32 as the double of equal value),
// integers and bools in `integer`, within the dtype's range. float32 is computed in float, so + - * / sqrt round as
// machine code does; its math functions in double and those of float64 in long double, then rounded.
#pragma once

#include <tenon/loop/kernel.h>

#include <span>
#include <vector>

namespace tenon::loop {

// A number brought to the normal form of a dtype: converted as `Cast` converts, narrow floats rounded and kept as real.
Number round_to(Number value, Dtype dtype);

// The result of Constant, of any unary, binary or ternary operation or comparison, of Cast, and of Random (whose
// element is the third operand). Operands have the dtypes that the verifier asks for.
Number evaluate_op(const Op& op, std::span<const Number> operands);

// A reduction, value by value, in the order that kernel.h gives sums and products of floats; their arithmetic is the
// dtype's own.
class Reduction {
 public:
  Reduction(ReduceKind kind, Dtype dtype, bool pairwise = false);
  void add(Number value);
  Number result() const;

 private:
  Number combine(Number a, Number b) const;

  ReduceKind kind_;
  Dtype dtype_;
  bool ordered_;  // a sum or product of floats; all others are one running number
  bool pairwise_;
  int64_t count_ = 0;
  std::vector<Number> numbers_;  // running numbers; pairwise: by level, what the bits of `count_` say is there
};
Number identity_of(ReduceKind kind, Dtype dtype);

// Element `index` of an array of `dtype`; a narrow float is widened on load and rounded on store.
Number load_element(const void* data, Dtype dtype, int64_t index);
void store_element(void* data, Dtype dtype, int64_t index, Number value);

}  // namespace tenon::loop
