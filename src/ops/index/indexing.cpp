// Elements picked, and put, at positions that tensors give.
#include "ops/index/picking.h"
#include "ops/index/scattering.h"

#include <tenon/kernels/index_put.h>
#include <tenon/kernels/scatter.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

using Indices = std::vector<std::optional<Tensor>>;

bool is_index(Dtype dtype) { return dtype == kInt64 || dtype == kInt32; }
bool given(const std::optional<Tensor>& index) { return index && index->defined(); }
const BeginsAsSelf index_put_begins_as_self("aten::_index_put");

// A mask stands for the positions of its true elements: one index for each of its dimensions.
Indices without_masks(const Tensor& self, const Indices& indices, std::string_view op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  Indices positions;
  for (const std::optional<Tensor>& index : indices) {
    if (!given(index) || (index->dtype() != kBool && index->dtype() != kUInt8)) {
      positions.push_back(given(index) ? index : std::nullopt);
      continue;
    }
    const auto first = static_cast<int64_t>(positions.size());
    for (int64_t dim = 0; dim < index->dim(); ++dim)
      TENON_CHECK_INDEX(first + dim < self.dim() && same_size(index->size(dim), self.size(first + dim)),
                        "[{}] the mask {} does not fit {} at dimension {}", op_name, index->description(),
                        self.description(), first + dim);
    TENON_CHECK(index->dim() > 0, "[{}] a mask of no dimensions is not supported: use masked_fill or where", op_name);
    Tensor found = nonzero(*index);
    for (int64_t dim = 0; dim < index->dim(); ++dim) positions.push_back(select(found, 1, dim));
  }
  TENON_CHECK_INDEX(static_cast<int64_t>(positions.size()) <= self.dim(), "[{}] {} indices are too many for {}",
                    op_name, positions.size(), self.description());
  return positions;
}

// That `sizes` can be broadcast to `wanted`.
bool broadcasts(const SymInts& sizes, const SymInts& wanted) {
  // Leading ones may be more than the target has.
  size_t skip = sizes.size() > wanted.size() ? sizes.size() - wanted.size() : 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (statically_true(sizes[dim] == 1)) continue;
    if (dim < skip || !broadcasts_to(sizes[dim], wanted[wanted.size() + dim - sizes.size()])) return false;
  }
  return true;
}

std::vector<TensorMeta> index_put_shape(const Arguments& arguments) {
  const Tensor &self = arguments.tensor("self"), &values = arguments.tensor("values");
  Picking p = picking(arguments, "index_put");
  TENON_CHECK(values.defined(), "[index_put] expected a tensor, got an undefined one");
  TENON_CHECK(values.dtype() == self.dtype(), "[index_put] expected values of {}, got {}", name(self.dtype()),
              values.description());
  TENON_CHECK(broadcasts(values.sym_sizes(), p.result), "[index_put] values {} cannot be broadcast to {}",
              values.description(), str(p.result));
  SymInts sizes = self.sym_sizes();
  return {TensorMeta{sizes, pointwise_strides(sizes, {&self, 1}), self.dtype(), self.device()}};
}

// A gradient for values that were broadcast, leading ones included.
Tensor to_values(const Tensor& gradient, const SymInts& sizes) {
  SymInts trimmed = sizes;
  while (static_cast<int64_t>(trimmed.size()) > gradient.dim()) trimmed.erase(trimmed.begin());
  Tensor summed = sum_to_size(gradient, trimmed);
  return trimmed.size() == sizes.size() ? summed : reshape(summed, sizes);
}

Tensor index_put_of(const Tensor& self, const Indices& indices, const Tensor& values, bool accumulate) {
  TENON_CHECK(self.defined() && values.defined(), "[index_put] expected a tensor, got an undefined one");
  // One value under one mask needs no positions, and no size that depends on data.
  bool one_mask = !indices.empty() && given(indices[0]) && indices[0]->dtype() == kBool &&
                  indices[0]->dim() <= self.dim() && std::none_of(indices.begin() + 1, indices.end(), given);
  if (one_mask && !accumulate && values.dim() == 0) {
    Tensor mask = *indices[0];
    for (int64_t dim = 0; dim < mask.dim(); ++dim)
      TENON_CHECK_INDEX(same_size(mask.size(dim), self.size(dim)),
                        "[index_put] the mask {} does not fit {} at dimension {}", mask.description(),
                        self.description(), dim);
    while (mask.dim() < self.dim()) mask = unsqueeze(mask, -1);
    return masked_fill(self, mask, values);
  }
  return _index_put(self, without_masks(self, indices, "index_put"), values, accumulate);
}

std::vector<TensorMeta> select_shape(const Arguments& arguments) {
  const Tensor &self = arguments.tensor("self"), &index = arguments.tensor("index");
  TENON_CHECK(self.defined() && index.defined(), "[index_select] expected a tensor, got an undefined one");
  constexpr const char* kExpected = "[index_select] expected a vector of int64 or int32, got {}";
  TENON_CHECK(is_index(index.dtype()), kExpected, index.description());
  TENON_CHECK_INDEX(index.dim() <= 1, kExpected, index.description());
  SymInts sizes = self.sym_sizes();
  int64_t dim = arguments.dim("dim", self.dim());
  TENON_CHECK(!sizes.empty() || expect(index.numel() == 1),
              "[index_select] expected one index for a tensor of no dimensions, got {}", index.description());
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = index.numel();
  return {TensorMeta::contiguous(sizes, self.dtype(), self.device())};
}

Tensor zeros_as(Grad& g, std::string_view name) {
  return zeros(g.sizes(name), TensorOptions(g.dtype(name), g.grad().device()));
}

}  // namespace

OPS(indexing) {
  // NumPy's indexing by tensors: integers, masks, and none for a whole dimension.
  op("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
      .decompose([](const Tensor& self, const Indices& indices) {
        return _index(self, without_masks(self, indices, "index"));
      });
  // The same, by integers only.
  op("_index(Tensor self, Tensor?[] indices) -> Tensor")
      .moves_elements()
      .element([](Element& e) { return picked_element(e, "index", Bounds::Checked); })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        return std::vector{TensorMeta::contiguous(picking(arguments, "index").result, self.dtype(), self.device())};
      })
      .grad("self", saves("indices"),
            [](Grad& g) { return _index_put(zeros_as(g, "self"), g.saved_list("indices"), g.grad(), true); });
  op("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
      .decompose(index_put_of)
      .with_inplace();
  op("_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        std::vector<TensorBase> indices;
        for (const std::optional<Tensor>& index : arguments["indices"].optional_tensors())
          indices.push_back(index.value_or(Tensor()));
        kernels::index_put(arguments.tensor("self"), indices, arguments.tensor("values"),
                           arguments.boolean("accumulate"), outputs[0]);
      })
      .shape(index_put_shape)
      .grad("self", saves("indices"),
            [](Grad& g) {
              if (g.argument("accumulate").boolean()) return g.grad();
              Tensor zero = zeros(SymInts{}, TensorOptions(g.dtype("self"), g.grad().device()));
              return _index_put(g.grad(), g.saved_list("indices"), zero, false);
            })
      .grad("values", saves("indices"),
            [](Grad& g) { return to_values(_index(g.grad(), g.saved_list("indices")), g.sizes("values")); });
  op("masked_select(Tensor self, Tensor mask) -> Tensor").decompose([](const Tensor& self, const Tensor& mask) {
    TENON_CHECK(self.defined() && mask.defined(), "[masked_select] expected a tensor, got an undefined one");
    TENON_CHECK(mask.dtype() == kBool, "[masked_select] expected a mask of bools, got {}", mask.description());
    const SymInts shapes[] = {self.sym_sizes(), mask.sym_sizes()};
    SymInts sizes = broadcast(shapes, "masked_select");
    if (sizes.empty()) sizes.push_back(1);
    return index(expand(self, sizes), Indices{expand(mask, sizes)});
  });
  op("index_select(Tensor self, int dim, Tensor index) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor &self = e.arguments().tensor("self"), &index = e.arguments().tensor("index");
        auto dim = static_cast<size_t>(e.arguments().dim("dim", self.dim()));
        std::vector<Expr> at;
        for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) at.push_back(e.index(d));
        Expr position = self.dim() > 0 ? e.index(dim) : e.integer(0);
        loop::Builder& b = e.builder();
        std::vector<Expr> place;
        if (index.dim() > 0) place.push_back(position);
        Lane picked = cast(e.load(index, place), kInt64), zero = b.constant(int64_t{0}, kInt64);
        Lane extent = b.index(e.integer(self.dim() > 0 ? self.size(static_cast<int64_t>(dim)) : SymInt(1)));
        b.check((picked >= zero) & (picked < extent), "IndexError: [index_select] an index is out of range");
        Expr bound = b.bind_index(maximum(zero, minimum(picked, extent - 1.0)));
        if (self.dim() > 0) at[dim] = bound;
        return e.load(self, at);
      })
      .shape(select_shape)
      .grad("self", saves("index"), [](Grad& g) {
        return index_add(zeros_as(g, "self"), g.argument("dim").integer(), g.saved("index"), g.grad());
      });
  op("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
        TENON_CHECK(self.defined() && index.defined() && source.defined(),
                    "[index_add] expected a tensor, got an undefined one");
        TENON_CHECK(index.dim() <= 1 && source.dim() == self.dim(),
                    "[index_add] expected a vector and a source of {} dimensions, got {} and {}", self.dim(),
                    index.description(), source.description());
        int64_t along = wrap_dim(dim, self.dim(), "index_add");
        Tensor scaled = !alpha.is_symbolic() && alpha.to_double() == 1 ? source : source * alpha;
        if (self.dim() == 0) return scatter_add(self, 0, reshape(index, SymInts{}), scaled);
        TENON_CHECK(same_size(index.numel(), source.size(along)),
                    "[index_add] expected an index for each of {} rows, got {}", source.size(along).str(),
                    index.description());
        SymInts shape;
        shape.resize(static_cast<size_t>(self.dim()), SymInt(1));
        shape[static_cast<size_t>(along)] = index.numel();
        return scatter_add(self, along, expand(reshape(index, shape), source.sym_sizes()), scaled);
      })
      .with_inplace();
}

OPS(scatter) {
  op("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::scatter_add(self, arguments.dim("dim", self.dim()), arguments.tensor("index"), arguments.tensor("src"),
                             outputs[0]);
      })
      .shape(scatter_shape)
      .with_inplace()
      .grad("self", saves(), [](Grad& g) { return g.grad(); })
      .grad("src", saves("index"), source_grad);
  // Of several sources for one place the last counts.
  op("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::scatter(self, arguments.dim("dim", self.dim()), arguments.tensor("index"), arguments.tensor("src"),
                         outputs[0]);
      })
      .shape(scatter_shape)
      .with_inplace()
      .grad("self", saves("index"),
            [](Grad& g) { return scatter(g.grad(), g.argument("dim").integer(), g.saved("index"), 0); })
      .grad("src", saves("index"), source_grad);
  op("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
        TENON_CHECK(self.defined() && index.defined(), "[scatter] expected a tensor, got an undefined one");
        Tensor one = full(SymInts{}, value, TensorOptions(self.dtype(), self.device()));
        return scatter(self, dim, index, expand(one, index.sym_sizes()));
      })
      .with_inplace();
}

}  // namespace tenon::ops
