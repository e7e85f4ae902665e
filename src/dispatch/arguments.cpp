#include <tenon/dispatch/arguments.h>

#include <algorithm>

namespace tenon::dispatch {

int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view op_name) {
  int64_t reach = std::max<int64_t>(rank, 1);
  TENON_CHECK_INDEX(dim >= -reach && dim < reach, "[{}] expected a dimension from {} to {}, got {}", op_name, -reach,
                    reach - 1, dim);
  return dim < 0 ? dim + reach : dim;
}

const Value& Arguments::operator[](std::string_view name) const {
  int at = op_->schema().argument_index(name);
  TENON_ASSERT(at >= 0, "{} has no argument '{}'", op_->schema().str(), name);
  return values_[static_cast<size_t>(at)];
}

int64_t Arguments::dim(std::string_view name, int64_t rank) const {
  return wrap_dim(integer(name), rank, op_->brief_name());
}

Ints Arguments::dims_or_all(std::string_view name, int64_t rank) const {
  const Value& value = (*this)[name];
  Ints dims;
  if (!value.is_none())
    for (int64_t dim : value.ints()) dims.push_back(wrap_dim(dim, rank, op_->brief_name()));
  if (dims.empty())
    for (int64_t dim = 0; dim < rank; ++dim) dims.push_back(dim);
  std::sort(dims.begin(), dims.end());
  for (size_t at = 1; at < dims.size(); ++at)
    TENON_CHECK(dims[at] != dims[at - 1], "[{}] dimension {} appears twice", op_->brief_name(), dims[at]);
  if (rank == 0) dims.clear();
  return dims;
}

}  // namespace tenon::dispatch
