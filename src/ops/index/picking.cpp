#include "ops/index/picking.h"

#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

bool is_index(Dtype dtype) { return dtype == kInt64 || dtype == kInt32; }
bool given(const std::optional<Tensor>& index) { return index && index->defined(); }

// An index read at `at`, checked, and counted from the end if negative; out of range it is clamped, and not used.
Expr wrapped(Element& e, const Tensor& index, std::span<const Expr> at, const SymInt& size, Bounds bounds) {
  loop::Builder& b = e.builder();
  Lane raw = cast(e.load(index, at), kInt64), extent = b.index(e.integer(size)), zero = b.constant(int64_t{0}, kInt64);
  // Asked of the index as it is: of one that is computed from positions it is known.
  if (bounds == Bounds::Checked)
    b.check((raw >= -extent) & (raw < extent), "IndexError: [index] an index is out of range");
  Lane picked = select(raw < zero, raw + extent, raw);
  return b.bind_index(maximum(zero, minimum(picked, extent - 1.0)));
}

}  // namespace

Picking picking(const Arguments& arguments, std::string_view op_name) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  std::span<const std::optional<Tensor>> indices = arguments["indices"].optional_tensors();
  TENON_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "[{}] {} indices are too many for {}", op_name,
                    indices.size(), self.description());
  Picking p;
  p.picked.assign(static_cast<size_t>(self.dim()), false);
  std::vector<SymInts> shapes;
  std::optional<size_t> begin, end;
  bool together = true;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    if (!given(indices[dim])) continue;
    TENON_CHECK_INDEX(is_index(indices[dim]->dtype()), "[{}] expected indices of int64 or int32, or masks, got {}",
                      op_name, indices[dim]->description());
    p.picked[dim] = true;
    shapes.push_back(indices[dim]->sym_sizes());
    if (!begin) begin = dim;
    together &= !end || *end + 1 == dim;
    end = dim;
  }
  TENON_CHECK(begin, "[{}] expected at least one index", op_name);
  p.positions = broadcast(shapes, op_name);
  // Between the dimensions that stay if the indices stand side by side, else in front.
  p.first = together ? *begin : 0;
  for (size_t dim = 0; dim < p.picked.size(); ++dim) {
    if (dim == p.first)
      for (const SymInt& size : p.positions) p.result.push_back(size);
    if (!p.picked[dim]) p.result.push_back(self.size(static_cast<int64_t>(dim)));
  }
  return p;
}

Lane picked_element(Element& e, std::string_view op_name, Bounds bounds) {
  const Tensor& self = e.arguments().tensor("self");
  Picking p = picking(e.arguments(), op_name);
  std::span<const std::optional<Tensor>> indices = e.arguments()["indices"].optional_tensors();
  std::vector<Expr> at;
  size_t count = p.positions.size(), kept = 0;
  for (size_t dim = 0; dim < p.picked.size(); ++dim) {
    if (!p.picked[dim]) {
      at.push_back(e.index(kept < p.first ? kept : kept + count));
      ++kept;
      continue;
    }
    const Tensor& index = *indices[dim];
    SymInts sizes = index.sym_sizes();
    std::vector<Expr> where;
    for (size_t d = 0; d < sizes.size(); ++d)
      where.push_back(statically_true(sizes[d] == 1) ? e.integer(0) : e.index(p.first + count - sizes.size() + d));
    at.push_back(wrapped(e, index, where, self.size(static_cast<int64_t>(dim)), bounds));
  }
  return e.load(self, at);
}

}  // namespace tenon::ops
