// Elements taken, and put, by the numbers of an index.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// `self` with elements along `dim` replaced by those of `source`.
Tensor replaced(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const char* op_name) {
  TENON_CHECK(given(index, op_name).dim() <= 1 && (index.dtype() == kInt64 || index.dtype() == kInt32),
              "[{}] expected a list of int64 or int32 as the index, got {}", op_name, index.description());
  if (given(self, op_name).dim() == 0) return reshape(replaced(reshape(self, {1}), 0, index, source, op_name), {});
  const int64_t along = wrap_dim(dim, self.dim(), op_name);
  SymInts sizes = self.sym_sizes();
  sizes[static_cast<size_t>(along)] = index.numel();
  Tensor rows = movedim(expand(source.dim() == 0 ? source : reshape(source, sizes), sizes), along, 0);
  Tensor made = index_put(movedim(self, along, 0), {reshape(index, {-1})}, rows);
  return contiguous(movedim(made, 0, along));
}

}  // namespace

OPS(index_forms) {
  op("take(Tensor self, Tensor index) -> Tensor").decompose([](const Tensor& self, const Tensor& index) {
    TENON_CHECK(given(index, "take").dtype() == kInt64, "[take] expected an index of int64, got {}",
                index.description());
    Tensor flat = reshape(given(self, "take"), {-1});
    return reshape(tenon::index(flat, {reshape(index, {-1})}), index.sym_sizes());
  });
  // Example: index_fill(x, 0, zeros({1}, kInt64), 2);
  op("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
        TensorOptions options(given(self, "index_fill").dtype(), self.device());
        return replaced(self, dim, index, full(SymInts{}, value, options), "index_fill");
      })
      .with_inplace();
  // Example: index_fill(x, 0, zeros({1}, kInt64), ones({}));
  op("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
        check_rank(value, 0, "a value", "index_fill");
        return replaced(self, dim, index, value.to(given(self, "index_fill").dtype()), "index_fill");
      })
      .with_inplace();
  // Example: index_copy(x, 0, arange(2), y);
  op("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
        TENON_CHECK(given(source, "index_copy").dtype() == given(self, "index_copy").dtype(),
                    "[index_copy] expected a source of {}, got {}", name(self.dtype()), source.description());
        return replaced(self, dim, index, source, "index_copy");
      })
      .with_inplace();
  // Example: take_along_dim(x, argsort(x, 1), 1);
  op("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& indices, std::optional<int64_t> given_dim) {
        TENON_CHECK(given(indices, "take_along_dim").dtype() == kInt64,
                    "[take_along_dim] expected indices of int64, got {}", indices.description());
        if (!given_dim) return gather(reshape(given(self, "take_along_dim"), {-1}), 0, reshape(indices, {-1}));
        TENON_CHECK(given(self, "take_along_dim").dim() == indices.dim(),
                    "[take_along_dim] expected as many dimensions of both, got {} and {}", self.description(),
                    indices.description());
        const auto dim = static_cast<size_t>(wrap_dim(*given_dim, self.dim(), "take_along_dim"));
        SymInts from = self.sym_sizes(), at = indices.sym_sizes();
        std::swap(from[dim], at[dim]);
        const SymInts shapes[] = {from, indices.sym_sizes()};
        SymInts sizes = broadcast(shapes, "take_along_dim"), source = sizes;
        source[dim] = at[dim];
        return gather(expand(self, source), static_cast<int64_t>(dim), expand(indices, sizes));
      });
  op("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
        TENON_CHECK(given(index, "put").dtype() == kInt64, "[put] expected an index of int64, got {}",
                    index.description());
        TENON_CHECK(
            given(self, "put").dtype() == given(source, "put").dtype() && same_size(index.numel(), source.numel()),
            "[put] expected an element of {} for each of {}, got {}", name(self.dtype()), index.description(),
            source.description());
        return reshape(index_put(reshape(self, {-1}), {reshape(index, {-1})}, reshape(source, {-1}), accumulate),
                       self.sym_sizes());
      })
      .with_inplace();
}

}  // namespace tenon::ops
