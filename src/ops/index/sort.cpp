// Orders along a dimension.
#include <tenon/kernels/sort.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

std::vector<TensorMeta> with_places(const Tensor& self, const SymInts& sizes) {
  return {TensorMeta::contiguous(sizes, self.dtype(), self.device()),
          TensorMeta::contiguous(sizes, kInt64, self.device())};
}

// Each gradient back to where its element stood.
Tensor ordered_grad(Grad& g) {
  SymInts sizes = g.sizes("self");
  if (sizes.empty()) return g.grad();
  Tensor base = zeros(sizes, TensorOptions(g.dtype("self"), g.grad().device()));
  return scatter(base, g.argument("dim").integer(), g.saved("indices"), g.grad());
}

}  // namespace

OPS(sort) {
  op("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::sort(self, arguments.dim("dim", self.dim()), arguments.boolean("descending"), outputs[0], outputs[1]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[sort] expected a tensor, got an undefined one");
        arguments.dim("dim", self.dim());
        SymInts sizes = self.sym_sizes(), strides = pointwise_strides(sizes, {&self, 1});
        return std::vector{TensorMeta{sizes, strides, self.dtype(), self.device()},
                           TensorMeta{sizes, strides, kInt64, self.device()}};
      })
      .grad("self", saves("indices"), ordered_grad)
      .not_differentiable("indices");
  op("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
      .decompose(
          [](const Tensor& self, int64_t dim, bool descending) { return std::get<1>(sort(self, dim, descending)); });
  // In order, whether that is asked for or not.
  op("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::sort(self, arguments.dim("dim", self.dim()), arguments.boolean("largest"), outputs[0], outputs[1]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[topk] expected a tensor, got an undefined one");
        int64_t dim = arguments.dim("dim", self.dim());
        SymInts sizes = self.sym_sizes();
        SymInt k = arguments["k"].sym_int(), size = sizes.empty() ? SymInt(1) : sizes[static_cast<size_t>(dim)];
        TENON_CHECK(expect(k >= 0) && expect(k <= size),
                    "[topk] expected a number from 0 to {}, the size of dimension {}, got {}", size.str(), dim,
                    k.str());
        if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = k;
        return with_places(self, sizes);
      })
      .grad("self", saves("indices"), ordered_grad)
      .not_differentiable("indices");
  op("msort(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(self.defined(), "[msort] expected a tensor, got an undefined one");
    return std::get<0>(sort(self, 0));
  });
}

}  // namespace tenon::ops
