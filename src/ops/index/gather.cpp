// Elements picked along one dimension.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {

OPS(gather) {
  // Elements picked along one dimension by an index tensor of the same rank.
  op("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor &self = e.arguments().tensor("self"), &index = e.arguments().tensor("index");
        auto dim = static_cast<size_t>(e.arguments().dim("dim", self.dim()));
        std::vector<Expr> at;
        for (size_t d = 0; d < static_cast<size_t>(index.dim()); ++d) at.push_back(e.index(d));
        loop::Builder& builder = e.builder();
        Lane picked = cast(e.load(index, at), kInt64);
        Lane size = builder.index(e.integer(self.dim() > 0 ? self.size(static_cast<int64_t>(dim)) : SymInt(1)));
        Lane zero = builder.constant(int64_t{0}, kInt64);
        builder.check((picked >= zero) & (picked < size), "[gather] an index is out of range");
        Expr bound = builder.bind_index(maximum(zero, minimum(picked, size - 1.0)));
        at.resize(static_cast<size_t>(self.dim()));  // one may be a list and the other a number
        if (self.dim() > 0) at[dim] = bound;
        return e.load(self, at);
      })
      .shape([](const Arguments& arguments) {
        const Tensor &self = arguments.tensor("self"), &index = arguments.tensor("index");
        // Of an empty index nobody reads the numbers.
        TENON_CHECK(index.dtype() == kInt64 || index.dtype() == kInt32 ||
                        (!is_floating(index.dtype()) && decide_or(index.numel() == 0, false)),
                    "[gather] expected an index of int64 or int32, got {}", index.description());
        const bool alike = index.dim() == self.dim(), lists = index.dim() <= 1 && self.dim() <= 1;
        TENON_CHECK(alike || lists || decide_or(index.numel() == 0, false),
                    "[gather] expected an index of {} dimensions, got {}", self.dim(), index.description());
        int64_t dim = arguments.dim("dim", self.dim());
        for (int64_t d = 0; alike && d < self.dim(); ++d)
          TENON_CHECK(d == dim || index.size(d).same(self.size(d)) || expect(index.size(d) <= self.size(d)),
                      "[gather] index {} does not fit {} in dimension {}", index.description(), self.description(), d);
        return std::vector{TensorMeta::contiguous(index.sym_sizes(), self.dtype(), self.device())};
      })
      .grad("self", saves("index"), [](Grad& g) {
        const SymInts& sizes = g.sizes("self");
        Tensor base = zeros(sizes, TensorOptions(g.dtype("self"), g.grad().device())), index = g.saved("index");
        if (index.dim() == base.dim()) return scatter_add(base, g.argument("dim").integer(), index, g.grad());
        if (decide_or(index.numel() == 0, false)) return base;
        return reshape(scatter_add(reshape(base, {-1}), 0, reshape(index, {-1}), reshape(g.grad(), {-1})), sizes);
      });
}

}  // namespace tenon::ops
