#include <tenon/load/launch_shape.h>
#include <tenon/support/small_vector.h>

#include <limits>

namespace tenon::load {

LaunchShape::LaunchShape(sym::Expr extent, sym::Expr work, bool vector, std::span<const sym::Expr> integers)
    : parallel_(true), vector_(vector), extent_(extent), work_(work) {
  if (extent.is_constant() && work.is_constant()) {
    constant_ = {extent.constant(), work.constant()};
    return;
  }
  symbols_ = static_cast<size_t>(extent.pool().symbol_count());
  for (sym::Expr integer : integers) symbol_ids_.push_back(integer.symbol_id());
  const sym::Expr results[] = {extent, work};
  program_ = sym::ExprProgram(results);
}

LaunchShape::Values LaunchShape::run(std::span<const int64_t> integers) const {
  TENON_ASSERT(integers.size() == symbol_ids_.size(), "{} integer parameters, got {}", symbol_ids_.size(),
               integers.size());
  SmallVector<int64_t, 32> symbols(symbols_, 0);
  for (size_t at = 0; at < integers.size(); ++at) symbols[static_cast<size_t>(symbol_ids_[at])] = integers[at];
  int64_t results[2];
  if (program_.try_run(symbols.span(), results)) return {results[0], results[1]};
  // The extent fits, because the kernel's memory does; the work, which is only weighed, may not.
  sym::ExprProgram({&extent_, 1}).run(symbols.span(), {results, 1});
  return {results[0], std::numeric_limits<int64_t>::max()};
}

}  // namespace tenon::load
