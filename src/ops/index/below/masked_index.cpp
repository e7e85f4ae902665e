// Indexing of which the caller promises something: that no index is out of range; or where a mask says so, and
// elsewhere indices may be anything, and nothing is read or written there.
#include "ops/index/picking.h"

#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

using Indices = std::vector<std::optional<Tensor>>;

void check_mask(const Tensor& mask, std::string_view op_name) {
  TENON_CHECK(mask.dtype() == kBool, "[{}] expected a mask of bools, got {}", op_name, mask.description());
}

// Indices outside of the mask point to the first element.
Indices inside(const Tensor& mask, const Indices& indices) {
  Indices safe = indices;
  for (std::optional<Tensor>& index : safe)
    if (index) index = where(mask, *index, zeros(SymInts{}, TensorOptions(index->dtype(), index->device())));
  return safe;
}

}  // namespace

OPS(masked_index) {
  op("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
      .moves_elements()
      .element([](Element& e) { return picked_element(e, "_unsafe_index", Bounds::Promised); })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        return std::vector{
            TensorMeta::contiguous(picking(arguments, "_unsafe_index").result, self.dtype(), self.device())};
      })
      .grad("self", saves("indices"), [](Grad& g) {
        Tensor nothing = zeros(g.sizes("self"), TensorOptions(g.dtype("self"), g.grad().device()));
        return _index_put(nothing, g.saved_list("indices"), g.grad(), true);
      });
  op("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& mask, const Indices& indices, const Scalar& fill) {
        check_mask(mask, "_unsafe_masked_index");
        return masked_fill(index(self, inside(mask, indices)), logical_not(mask), fill);
      });
  op("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& mask, const Indices& indices, const Tensor& values) {
        check_mask(mask, "_unsafe_masked_index_put_accumulate");
        return index_put(self, inside(mask, indices), masked_fill(values, logical_not(mask), 0), true);
      });
}

}  // namespace tenon::ops
