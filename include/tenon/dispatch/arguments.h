// The arguments of one call, by name.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::dispatch {

class Arguments {
 public:
  Arguments(const Operator& op, std::span<const Value> values) : op_(&op), values_(values) {}

  const Operator& op() const { return *op_; }
  std::span<const Value> values() const { return values_; }
  bool has(std::string_view name) const { return op_->schema().argument_index(name) >= 0; }
  // An InternalError if the schema has no such argument.
  const Value& operator[](std::string_view name) const;

  const Tensor& tensor(std::string_view name) const { return (*this)[name].tensor(); }
  int64_t integer(std::string_view name) const { return (*this)[name].integer(); }
  bool boolean(std::string_view name) const { return (*this)[name].boolean(); }
  // A `dim` argument, wrapped into [0, rank).
  int64_t dim(std::string_view name, int64_t rank) const;
  // A list of dims, wrapped, sorted, unique; none or empty means all.
  Ints dims_or_all(std::string_view name, int64_t rank) const;

 private:
  const Operator* op_;
  std::span<const Value> values_;
};

// Wraps a dimension into [0, rank); an Error that names the operator otherwise. A 0-d tensor accepts 0 and -1.
int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view op_name);

}  // namespace tenon::dispatch
