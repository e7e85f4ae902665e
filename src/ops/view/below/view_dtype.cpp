// The same bits as elements of another dtype.
#include "ops/by_name.h"

#include <tenon/kernels/bits.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// How sizes, and whatever counts elements, change: times `more`, or divided by `fewer`.
struct Ratio {
  int64_t more = 1, fewer = 1;
  Ratio(Dtype from, Dtype to) {
    const int64_t a = size_of(from), b = size_of(to);
    (a > b ? more : fewer) = a > b ? a / b : b / a;
  }
  bool is_one() const { return more == 1 && fewer == 1; }
  SymInt of(const SymInt& count) const { return fewer == 1 ? count * more : count / fewer; }
};

void check_divides(const SymInt& number, const Ratio& ratio, const char* what, const Tensor& self, Dtype dtype) {
  TENON_CHECK(ratio.fewer == 1 || expect(number % ratio.fewer == 0),
              "[view] expected {} that {} divides, to view {} as {}, got {}", what, ratio.fewer, self.description(),
              name(dtype), number.str());
}

Geometry geometry_as(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  Dtype dtype = arguments["dtype"].dtype();
  Geometry result{self.sym_sizes(), self.sym_strides(), self.sym_storage_offset(), dtype};
  Ratio ratio(self.dtype(), dtype);
  if (ratio.is_one()) return result;
  TENON_CHECK(self.dim() > 0, "[view] expected a tensor of at least one dimension to view as {}, got {}", name(dtype),
              self.description());
  const size_t last = result.sizes.size() - 1;
  TENON_CHECK(expect(result.strides[last] == 1), "[view] expected a stride of 1 in the last dimension of {}, got {}",
              self.description(), result.strides[last].str());
  check_divides(result.sizes[last], ratio, "a last size", self, dtype);
  check_divides(result.offset, ratio, "a storage offset", self, dtype);
  result.sizes[last] = ratio.of(result.sizes[last]);
  result.offset = ratio.of(result.offset);
  for (size_t dim = 0; dim < last; ++dim) {
    check_divides(result.strides[dim], ratio, "strides", self, dtype);
    result.strides[dim] = ratio.of(result.strides[dim]);
  }
  return result;
}

}  // namespace

OPS(view_dtype) {
  // Without a C++ function: of `x.view({})` it would be one more meaning.
  op("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)")
      .view(geometry_as,
            [](ViewIndex& v) -> std::vector<Expr> {
              TENON_ASSERT(false, "{} addresses bits", v.arguments().op().name());
              return {};
            })
      .copied_in_kernels([](const Tensor& self, Dtype dtype) {
        return call("aten::_bits_as", {dispatch::Value(self), dispatch::Value(dtype)});
      })
      .replay([](const Tensor& other, const Arguments& arguments) {
        return call("aten::_bits_as", {dispatch::Value(other), arguments["dtype"]});
      })
      .scatter([](const Tensor& base, const Tensor& updated, const Arguments&) {
        return call("aten::_bits_as", {dispatch::Value(updated), dispatch::Value(base.dtype())});
      });
  // A copy of that: bits of elements one behind the other, in the order of their coordinates.
  op("_bits_as(Tensor self, ScalarType dtype) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::copy_bits(arguments.tensor("self"), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[_bits_as] expected a tensor, got an undefined one");
        Dtype dtype = arguments["dtype"].dtype();
        Ratio ratio(self.dtype(), dtype);
        SymInts sizes = self.sym_sizes();
        if (ratio.is_one())
          return std::vector{TensorMeta{sizes, pointwise_strides(sizes, {&self, 1}), dtype, self.device()}};
        TENON_CHECK(self.dim() > 0, "[_bits_as] expected a tensor of at least one dimension to read as {}, got {}",
                    name(dtype), self.description());
        check_divides(sizes.back(), ratio, "a last size", self, dtype);
        sizes.back() = ratio.of(sizes.back());
        return std::vector{TensorMeta::contiguous(sizes, dtype, self.device())};
      });
}

}  // namespace tenon::ops
