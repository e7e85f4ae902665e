// Ones at the places that numbers name, and elements at those that a mask names.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// A 1 at each number, in a new last dimension; -1 classes: as many as the numbers need.
Tensor classes_as_ones(const Tensor& self, int64_t num_classes) {
  TENON_CHECK(given(self, "one_hot").dtype() != kBool && !is_floating(self.dtype()),
              "[one_hot] expected a tensor of integers, got {}", self.description());
  TENON_CHECK_VALUE(num_classes > 0 || num_classes == -1, "[one_hot] expected at least one class, got {}", num_classes);
  SymInt classes = num_classes > 0 ? SymInt(num_classes) : max(self).item<SymInt>() + 1;
  SymInts sizes = self.sym_sizes();
  sizes.push_back(classes);
  return scatter(zeros(sizes, TensorOptions(kInt64, self.device())), -1, unsqueeze(self.to(kInt64), -1), 1);
}

// The n-th place that the mask has takes the n-th element of the source.
Tensor scattered_by_mask(const Tensor& self, const Tensor& mask, const Tensor& source) {
  TENON_CHECK(given(mask, "masked_scatter").dtype() == kBool, "[masked_scatter] expected a mask of bools, got {}",
              mask.description());
  TENON_CHECK(given(self, "masked_scatter").dtype() == given(source, "masked_scatter").dtype(),
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

}  // namespace

OPS(one_hot) {
  op("one_hot(Tensor self, int num_classes=-1) -> Tensor").decompose(classes_as_ones);
  op("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor").decompose(scattered_by_mask).with_inplace();
}

}  // namespace tenon::ops
