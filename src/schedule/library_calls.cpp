#include "library_calls.h"
#include "dispatch/inside_kernel.h"

#include <tenon/kernels/matmul.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tenon::schedule {
namespace {

// The node's arguments with tensors and evaluated numbers in their places.
dispatch::Values fill(const Node& node, std::span<const Tensor> inputs, std::span<const int64_t> integers) {
  dispatch::Values values;
  size_t input = 0, integer = 0;
  for (const graph::Argument& argument : node.args) {
    if (const auto* id = std::get_if<ValueId>(&argument)) {
      values.push_back(*id == graph::kNoValue ? dispatch::Value() : dispatch::Value(inputs[input++]));
    } else if (const auto* list = std::get_if<graph::ValueList>(&argument)) {
      if (list->optional) {
        std::vector<std::optional<Tensor>> tensors;
        for (ValueId each : list->ids)
          tensors.push_back(each == graph::kNoValue ? std::nullopt : std::optional<Tensor>(inputs[input++]));
        values.push_back(dispatch::Value(tensors).own());
        continue;
      }
      values.push_back(dispatch::Value(inputs.subspan(input, list->ids.size())));
      input += list->ids.size();
    } else {
      const auto& constant = std::get<dispatch::Value>(argument);
      if (constant.tag() == dispatch::Value::Tag::Int) {
        values.push_back(integers[integer++]);
      } else if (constant.tag() == dispatch::Value::Tag::Ints || constant.tag() == dispatch::Value::Tag::SymInts) {
        size_t count = constant.sym_ints().size();
        values.push_back(dispatch::Value(integers.subspan(integer, count)));
        integer += count;
      } else if (is_symbolic_real(constant)) {
        values.push_back(std::bit_cast<double>(integers[integer++]));
      } else if (is_symbolic_bool(constant)) {
        values.push_back(integers[integer++] != 0);
      } else {
        values.push_back(constant);
      }
    }
  }
  return values;
}

Tensor held(const Scalar& number) {
  if (number.is_real()) return tensor(number.to_double(), kFloat64);
  return number.kind() == Scalar::Kind::Bool ? tensor(number.to_bool()) : tensor(number.to_int());
}

void check_like_fake(const Node& node, size_t at, const Tensor& tensor, Dtype dtype, std::span<const int64_t> sizes,
                     std::span<const int64_t> strides) {
  bool same = tensor.defined() && tensor.dtype() == dtype && std::ranges::equal(tensor.sizes(), sizes);
  TENON_CHECK(same, "[{}] result {} is {}, but its fake implementation said {}[{}]", node.op->name(), at,
              tensor.description(), name(dtype), fmt::join(sizes, ", "));
  for (size_t dim = 0; dim < sizes.size(); ++dim) same &= sizes[dim] <= 1 || tensor.strides()[dim] == strides[dim];
  for (int64_t size : sizes) same |= size == 0;
  TENON_CHECK(same, "[{}] result {} has strides [{}], but its fake implementation said [{}]", node.op->name(), at,
              fmt::join(tensor.strides(), ", "), fmt::join(strides, ", "));
}

}  // namespace

bool is_symbolic_real(const dispatch::Value& value) {
  return value.tag() == dispatch::Value::Tag::Real && value.sym_float().is_symbolic();
}
bool is_symbolic_bool(const dispatch::Value& value) {
  return value.tag() == dispatch::Value::Tag::Bool && value.sym_bool().is_symbolic();
}

LibraryCall row_call(const ops::Row& row, const Node& node) {
  return
      [row = &row, node](std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const int64_t> integers) {
        dispatch::Values values = fill(node, inputs, integers);
        row->opaque.cpu(ops::Arguments(*node.op, values), outputs);
      };
}

LibraryCall custom_call(const Node& node) {
  return [node](std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const int64_t> integers) {
    dispatch::Values values = fill(node, inputs, integers);
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView, DispatchKey::Capture});
    dispatch::AsInEager kernel(*node.op);
    dispatch::Results results = dispatch::call_boxed(*node.op, values);
    // Tensors first, then the numbers, as tensors of one element.
    const size_t tensors = node.outputs.size();
    size_t at = 0, number = tensors;
    for (const dispatch::Value& result : results) {
      result.each_tensor([&](const Tensor& tensor) {
        TENON_CHECK(at < tensors, "[{}] gave more tensors than its fake implementation ({})", node.op->name(), tensors);
        outputs[at++] = tensor;
      });
      if (result.is_number() && number < outputs.size()) outputs[number++] = held(result.scalar());
    }
    TENON_CHECK(at == tensors, "[{}] gave {} tensors, its fake implementation {}", node.op->name(), at, tensors);
  };
}

LibraryCall product_with_relu(const Node& node) {
  return [node](std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const int64_t> integers) {
    dispatch::Values values = fill(node, inputs, integers);
    ops::Arguments arguments(*node.op, values);
    kernels::MatmulEpilogue epilogue;
    epilogue.relu = true;
    if (node.op->schema().name == "mm") {
      kernels::matmul(arguments.tensor("self"), arguments.tensor("mat2"), outputs[0], epilogue);
      return;
    }
    epilogue.bias = &arguments.tensor("self");
    epilogue.alpha = arguments["alpha"].scalar().to_double();
    epilogue.beta = arguments["beta"].scalar().to_double();
    kernels::matmul(arguments.tensor("mat1"), arguments.tensor("mat2"), outputs[0], epilogue);
  };
}

LibraryCall like_fakes(const Node& node, std::vector<Dtype> dtypes, std::vector<size_t> ranks) {
  return [node, dtypes = std::move(dtypes), ranks = std::move(ranks)](std::span<const Tensor> inputs, std::span<Tensor>,
                                                                      std::span<const int64_t> expected) {
    for (size_t at = 0; at < inputs.size(); ++at) {
      TENON_CHECK(static_cast<size_t>(inputs[at].dim()) == ranks[at],
                  "[{}] result {} is {}, but its fake implementation said {} dimensions", node.op->name(), at,
                  inputs[at].description(), ranks[at]);
      check_like_fake(node, at, inputs[at], dtypes[at], expected.first(ranks[at]),
                      expected.subspan(ranks[at], ranks[at]));
      expected = expected.subspan(2 * ranks[at]);
    }
  };
}

}  // namespace tenon::schedule
