// Rows that compute a function of pairs of elements in a kernel of their own.
#pragma once

#include <tenon/kernels/special.h>
#include <tenon/ops/table.h>

namespace tenon::ops {

inline Dtype real(Dtype dtype) { return is_floating(dtype) ? dtype : kFloat32; }

// A function of each pair of elements of the two arguments, which are broadcast and promoted to floating point.
inline auto each_pair(double (*function)(double, double)) {
  return [function](RowBuilder&& row) -> RowBuilder&& {
    return std::move(row)
        .kernel([function](const Arguments& arguments, std::span<Tensor> outputs) {
          kernels::each_pair(function, arguments.values()[0].tensor(), arguments.values()[1].tensor(), outputs[0]);
        })
        .shape([](const Arguments& arguments) {
          const Tensor inputs[] = {arguments.values()[0].tensor(), arguments.values()[1].tensor()};
          for (const Tensor& input : inputs)
            TENON_CHECK(input.defined(), "[{}] expected tensors, got an undefined one", arguments.op().brief_name());
          const SymInts shapes[] = {inputs[0].sym_sizes(), inputs[1].sym_sizes()};
          SymInts sizes = broadcast(shapes, arguments.op().brief_name());
          Dtype dtype = real(result_type(arguments));
          return std::vector{TensorMeta{sizes, pointwise_strides(sizes, inputs), dtype, inputs[0].device()}};
        });
  };
}

// A number as a tensor beside another; it widens that no more than a number does.
inline Tensor beside(const Scalar& number, const Tensor& other) {
  TENON_CHECK(other.defined(), "[special] expected a tensor, got an undefined one");
  Dtype dtype = number.is_real() ? real(other.dtype()) : other.dtype();
  return full(SymInts{}, number, TensorOptions(dtype, other.device()));
}

}  // namespace tenon::ops
