// Runs the steps of a plan that call operators.
#pragma once

#include <tenon/runtime/plan.h>

namespace tenon::runtime {

// `outputs` hold the memory for the results of a row's kernel; what makes its results itself puts them there.
void call(const CallStep& step, std::span<const Tensor> inputs, std::span<Tensor> outputs,
          std::span<const int64_t> numbers);

void call(const BodyStep& step, std::span<const Tensor> inputs, std::span<Tensor> outputs,
          std::span<const int64_t> numbers);

// An Error if result number `at` is not what the operator's fake was.
void check_result(const dispatch::Operator& op, size_t at, const Tensor& result, Dtype dtype,
                  std::span<const int64_t> sizes, std::span<const int64_t> strides);

}  // namespace tenon::runtime
