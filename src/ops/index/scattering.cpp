#include "ops/index/scattering.h"

#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <set>

namespace tenon::ops {
namespace {

bool is_index(Dtype dtype) { return dtype == kInt64 || dtype == kInt32; }

// By name: rows are told of as the library is loaded, in no order.
std::set<std::string_view>& rows_that_begin_as_self() {
  static auto* names = new std::set<std::string_view>();  // also while the process ends
  return *names;
}

void check_scatter(const Arguments& arguments) {
  std::string_view op_name = arguments.op().brief_name();
  const Tensor &self = arguments.tensor("self"), &index = arguments.tensor("index"), &src = arguments.tensor("src");
  TENON_CHECK(self.defined() && index.defined() && src.defined(), "[{}] expected a tensor, got an undefined one",
              op_name);
  TENON_CHECK(is_index(index.dtype()), "[{}] expected an index of int64 or int32, got {}", op_name,
              index.description());
  TENON_CHECK(src.dtype() == self.dtype(), "[{}] expected a source of {}, got {}", op_name, name(self.dtype()),
              src.description());
  TENON_CHECK(index.dim() == self.dim() && src.dim() == self.dim(),
              "[{}] expected an index and a source of {} dimensions, got {} and {}", op_name, self.dim(),
              index.description(), src.description());
  int64_t dim = arguments.dim("dim", self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    SymInt size = index.size(d);
    TENON_CHECK(size.same(src.size(d)) || expect(size <= src.size(d)),
                "[{}] index {} is larger than the source {} in dimension {}", op_name, index.description(),
                src.description(), d);
    TENON_CHECK(d == dim || size.same(self.size(d)) || expect(size <= self.size(d)),
                "[{}] index {} does not fit {} in dimension {}", op_name, index.description(), self.description(), d);
  }
}

}  // namespace

std::vector<TensorMeta> scatter_shape(const Arguments& arguments) {
  check_scatter(arguments);
  const Tensor& self = arguments.tensor("self");
  return {TensorMeta::contiguous(self.sym_sizes(), self.dtype(), self.device())};
}

Tensor as_source(Grad& g, Tensor picked) {
  SymInts sizes = g.sizes("src"), used = g.sizes("index");
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (same_size(sizes[dim], used[dim])) continue;
    SymInts wider = picked.sym_sizes();
    wider[dim] = sizes[dim];
    Tensor unused = zeros(wider, TensorOptions(picked.dtype(), picked.device()));
    picked = slice_scatter(unused, picked, static_cast<int64_t>(dim), SymInt(0), used[dim], 1);
  }
  return picked;
}

Tensor source_grad(Grad& g) { return as_source(g, gather(g.grad(), g.argument("dim").integer(), g.saved("index"))); }

BeginsAsSelf::BeginsAsSelf(const char* op_name) { rows_that_begin_as_self().insert(op_name); }

bool begins_as_self(const Row& row) { return row.op && rows_that_begin_as_self().contains(row.op->name()); }

}  // namespace tenon::ops
