// What is known of a kernel's values while it is built: which value is a whole number that an expression of indices and
// sizes gives (an int64, or another dtype that certainly holds it), and
// which condition on such values always holds. By it an index that is computed from positions (a range, a reversed one,
// a remainder of one) is an index expression, and a bound that it cannot leave is not checked.
#pragma once

#include <tenon/loop/kernel.h>

#include <optional>
#include <vector>

namespace tenon::loop {

class KnownValues {
 public:
  // Of the operation that makes the next value, in the order of their numbers.
  void add(const Op& op, sym::ExprPool& pool);

  // The expression that the value is; undefined if none is known.
  sym::Expr number(ValueId value) const { return numbers_[static_cast<size_t>(value)].value; }
  // Whether a bool is the same at every iteration.
  std::optional<bool> truth(ValueId value) const { return truths_[static_cast<size_t>(value)]; }

 private:
  // `bits` bounds what constants contribute: beyond `kMostBits` arithmetic could leave int64, where kernels wrap and
  // expressions do not.
  struct Known {
    sym::Expr value;
    int bits = 0;
  };
  static constexpr int kMostBits = 40;
  Known number_of(const Op& op, sym::ExprPool& pool) const;
  std::optional<bool> truth_of(const Op& op, sym::ExprPool& pool) const;

  std::vector<Known> numbers_;
  std::vector<std::optional<bool>> truths_;
};

}  // namespace tenon::loop
