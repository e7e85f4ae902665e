// What rows that make tensors read of their arguments: sizes, a dtype, a device.
#pragma once

#include <tenon/ops/row.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {

inline Device device_of(const Arguments& arguments) {
  const dispatch::Value& device = arguments["device"];
  return device.is_none() ? kCPU : device.device();
}

inline Dtype dtype_or(const Arguments& arguments, Dtype standard) {
  const dispatch::Value& dtype = arguments["dtype"];
  return dtype.is_none() ? standard : dtype.dtype();
}

inline std::vector<TensorMeta> sized(const Arguments& arguments, Dtype standard) {
  SymInts sizes = arguments["size"].sym_ints();
  for (const SymInt& size : sizes)
    TENON_CHECK(may_be_size(size), "[{}] expected sizes of at least 0, got {}", arguments.op().brief_name(),
                str(sizes));
  return {TensorMeta::contiguous(sizes, dtype_or(arguments, standard), device_of(arguments))};
}

inline std::vector<TensorMeta> sized_float(const Arguments& arguments) { return sized(arguments, kFloat32); }

}  // namespace tenon::ops
