#include "runtime/call.h"

#include "dispatch/inside_kernel.h"

#include <tenon/core/tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tenon::runtime {
namespace {

// The operator's arguments, with tensors and numbers in their places.
dispatch::Values fill(std::span<const CallArgument> arguments, std::span<const Tensor> inputs,
                      std::span<const int64_t> numbers) {
  using Kind = CallArgument::Kind;
  dispatch::Values values;
  auto take = [](auto& list, size_t count) {
    auto first = list.first(count);
    list = list.subspan(count);
    return first;
  };
  for (const CallArgument& argument : arguments) {
    const auto count = static_cast<size_t>(argument.count);
    switch (argument.kind) {
      case Kind::Constant: values.push_back(argument.constant); break;
      case Kind::Tensor: values.push_back(dispatch::Value(take(inputs, 1)[0])); break;
      case Kind::Tensors: values.push_back(dispatch::Value(take(inputs, count))); break;
      case Kind::OptionalTensors: {
        std::vector<std::optional<Tensor>> tensors;
        for (bool given : argument.given)
          tensors.push_back(given ? std::optional<Tensor>(take(inputs, 1)[0]) : std::nullopt);
        values.push_back(dispatch::Value(tensors).own());
        break;
      }
      case Kind::Integer: values.push_back(take(numbers, 1)[0]); break;
      case Kind::Integers: values.push_back(dispatch::Value(take(numbers, count))); break;
      case Kind::Real: values.push_back(std::bit_cast<double>(take(numbers, 1)[0])); break;
      case Kind::Flag: values.push_back(take(numbers, 1)[0] != 0); break;
    }
  }
  return values;
}

Tensor held(const Scalar& number) {
  if (number.is_real()) return tensor(number.to_double(), kFloat64);
  return number.kind() == Scalar::Kind::Bool ? tensor(number.to_bool()) : tensor(number.to_int());
}

void call_author(const CallStep& step, const dispatch::Values& values, std::span<Tensor> outputs) {
  dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView, DispatchKey::Capture});
  dispatch::AsInEager kernel(*step.op);
  dispatch::Results results = dispatch::call_boxed(*step.op, values);
  size_t at = 0, number = step.tensors;
  for (const dispatch::Value& result : results) {
    result.each_tensor([&](const Tensor& tensor) {
      TENON_CHECK(at < step.tensors, "[{}] gave more tensors than its fake implementation ({})", step.op->name(),
                  step.tensors);
      outputs[at++] = tensor;
    });
    if (result.is_number() && number < outputs.size()) outputs[number++] = held(result.scalar());
  }
  TENON_CHECK(at == step.tensors, "[{}] gave {} tensors, its fake implementation {}", step.op->name(), at,
              step.tensors);
}

}  // namespace

void call(const CallStep& step, std::span<const Tensor> inputs, std::span<Tensor> outputs,
          std::span<const int64_t> numbers) {
  const dispatch::Values values = fill(step.arguments, inputs, numbers);
  if (!step.kernel) return call_author(step, values, outputs);
  const dispatch::Arguments arguments(*step.op, values);
  if (step.kernel->make) {
    std::vector<Tensor> made = step.kernel->make(arguments);
    TENON_ASSERT(made.size() == outputs.size(), "[{}] made {} results, {} expected", step.op->name(), made.size(),
                 outputs.size());
    std::move(made.begin(), made.end(), outputs.begin());
  } else if (step.epilogue != dispatch::Epilogue::None) {
    step.kernel->fill_with(arguments, outputs, step.epilogue);
  } else {
    step.kernel->fill(arguments, outputs);
  }
}

void call(const BodyStep& step, std::span<const Tensor> inputs, std::span<Tensor> outputs,
          std::span<const int64_t> numbers) {
  // What is copied on the way to a body is nobody's business above.
  dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView, DispatchKey::Capture});
  const dispatch::Values values = fill(step.arguments, inputs, numbers);
  std::vector<Tensor> made = run(*step.bodies, values);
  TENON_ASSERT(made.size() == outputs.size(), "[{}] made {} results, {} expected", step.bodies->name, made.size(),
               outputs.size());
  std::move(made.begin(), made.end(), outputs.begin());
}

void check_result(const dispatch::Operator& op, size_t at, const Tensor& result, Dtype dtype,
                  std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  TENON_CHECK(!result.defined() || static_cast<size_t>(result.dim()) == sizes.size(),
              "[{}] result {} is {}, but its fake implementation said {} dimensions", op.name(), at,
              result.description(), sizes.size());
  bool same = result.defined() && result.dtype() == dtype && std::ranges::equal(result.sizes(), sizes);
  TENON_CHECK(same, "[{}] result {} is {}, but its fake implementation said {}[{}]", op.name(), at,
              result.description(), name(dtype), fmt::join(sizes, ", "));
  for (size_t dim = 0; dim < sizes.size(); ++dim) same &= sizes[dim] <= 1 || result.strides()[dim] == strides[dim];
  for (int64_t size : sizes) same |= size == 0;
  TENON_CHECK(same, "[{}] result {} has strides [{}], but its fake implementation said [{}]", op.name(), at,
              fmt::join(result.strides(), ", "), fmt::join(strides, ", "));
}

}  // namespace tenon::runtime
