// Functions of other rows that have a name of their own.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

const Tensor& defined(const Tensor& self, const char* op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return self;
}

Tensor without_nan(const Tensor& self) {
  return is_floating(self.dtype()) ? where(isnan(self), zeros_like(self), self) : self;
}

// A 1 at each number, in a new last dimension; -1 classes: as many as the numbers need.
Tensor classes_as_ones(const Tensor& self, int64_t num_classes) {
  TENON_CHECK(defined(self, "one_hot").dtype() != kBool && !is_floating(self.dtype()),
              "[one_hot] expected a tensor of integers, got {}", self.description());
  TENON_CHECK_VALUE(num_classes > 0 || num_classes == -1, "[one_hot] expected at least one class, got {}", num_classes);
  SymInt classes = num_classes > 0 ? SymInt(num_classes) : max(self).item<SymInt>() + 1;
  SymInts sizes = self.sym_sizes();
  sizes.push_back(classes);
  return scatter(zeros(sizes, TensorOptions(kInt64, self.device())), -1, unsqueeze(self.to(kInt64), -1), 1);
}

// The n-th place that the mask has takes the n-th element of the source.
Tensor scattered_by_mask(const Tensor& self, const Tensor& mask, const Tensor& source) {
  TENON_CHECK(defined(mask, "masked_scatter").dtype() == kBool, "[masked_scatter] expected a mask of bools, got {}",
              mask.description());
  TENON_CHECK(defined(self, "masked_scatter").dtype() == defined(source, "masked_scatter").dtype(),
              "[masked_scatter] expected a source of the dtype of {}, got {}", self.description(),
              source.description());
  const SymInts shapes[] = {self.sym_sizes(), mask.sym_sizes()};
  const SymInts sizes = broadcast(shapes, "masked_scatter");
  Tensor places = expand(mask, sizes);
  if (decide_or(source.numel() == 0, false)) return clone(expand(self, sizes));
  Tensor numbers = cumsum(reshape(places, {-1}), 0) - 1;
  Tensor taken = index_select(reshape(source, {-1}), 0, clamp_min(numbers, 0));
  return where(places, reshape(taken, sizes), self);
}

Tensor squeezed(const Tensor& self, const Ints& dims) {
  std::vector<int64_t> order;
  for (int64_t dim : dims) order.push_back(dim < 0 ? dim + std::max<int64_t>(1, defined(self, "squeeze").dim()) : dim);
  std::sort(order.rbegin(), order.rend());
  TENON_CHECK(std::adjacent_find(order.begin(), order.end()) == order.end(),
              "[squeeze] a dimension appears twice in the list [{}]", fmt::join(dims.begin(), dims.end(), ", "));
  Tensor result = defined(self, "squeeze");
  for (int64_t dim : order) result = squeeze(result, dim);
  return result;
}

}  // namespace

OPS(composite) {
  op("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& other, const Scalar& p) {
        return linalg_vector_norm(defined(self, "dist") - defined(other, "dist"), p);
      });
  op("trace(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(defined(self, "trace").dim() == 2, "[trace] expected a matrix, got {}", self.description());
    return sum(diagonal(self));
  });
  op("outer(Tensor self, Tensor vec2) -> Tensor").decompose([](const Tensor& self, const Tensor& vec2) {
    TENON_CHECK(defined(self, "outer").dim() == 1 && defined(vec2, "outer").dim() == 1,
                "[outer] expected two vectors, got {} and {}", self.description(), vec2.description());
    return unsqueeze(self, 1) * vec2;
  });
  op("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool keepdim, std::optional<Dtype> dtype) {
        return sum(without_nan(defined(self, "nansum")), dim, keepdim, dtype);
      });
  op("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, bool keepdim, std::optional<Dtype> dtype) {
        TENON_CHECK(is_floating(defined(self, "nanmean").dtype()), "[nanmean] expected a floating point tensor, got {}",
                    self.description());
        Tensor total = sum(without_nan(self), dim, keepdim, dtype);
        return total / sum(logical_not(isnan(self)), dim, keepdim).to(total.dtype());
      });
  op("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
      .decompose([](const Tensor& self, const Ints& dim) {
        return sum(defined(self, "count_nonzero") != 0, OptionalInts(dim), false);
      })
      .not_differentiable("result");
  op("count_nonzero(Tensor self, int? dim=None) -> Tensor")
      .decompose([](const Tensor& self, std::optional<int64_t> dim) {
        Tensor found = defined(self, "count_nonzero") != 0;
        return dim ? sum(found, OptionalInts(Ints{*dim}), false) : sum(found);
      })
      .not_differentiable("result");
  op("one_hot(Tensor self, int num_classes=-1) -> Tensor").decompose(classes_as_ones);
  op("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor").decompose(scattered_by_mask).with_inplace();
  op("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)").decompose(squeezed);
}

}  // namespace tenon::ops
