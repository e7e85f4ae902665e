#include "copies.h"

#include <tenon/fake/fake.h>

#include <cstring>
#include <map>

namespace tenon::opcheck {
namespace {

using dispatch::Value;
using dispatch::Values;

// Makes each tensor once, and views of one whole where tensors share a storage.
template <typename MakeWhole>
Values remake(std::span<const Value> args, MakeWhole make_whole) {
  std::map<const TensorImpl*, Tensor> made;
  std::map<std::pair<const Storage*, Dtype>, Tensor> wholes;
  auto one = [&](const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    Tensor& copy = made[tensor.impl()];
    if (copy.defined()) return copy;
    Tensor& whole = wholes[{tensor.impl()->storage.get(), tensor.dtype()}];
    if (!whole.defined()) whole = make_whole(tensor);
    copy = core::make_view(whole, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
    copy.impl()->version = whole.impl()->version;
    if (tensor.is_floating_point() && tensor.requires_grad()) copy.set_requires_grad();
    return copy;
  };
  Values copies;
  for (const Value& value : args) copies.push_back(value.map_tensors(one));
  return copies;
}

}  // namespace

Values copy_arguments(std::span<const Value> args) {
  return remake(args, [](const Tensor& tensor) {
    const Storage& storage = *tensor.impl()->storage;
    const int64_t sizes[] = {storage.bytes() / tensor.element_size()}, strides[] = {1};
    Tensor whole = core::allocate(sizes, strides, tensor.dtype(), tensor.device());
    if (sizes[0] > 0)
      std::memcpy(whole.raw_data(), storage.data(), static_cast<size_t>(sizes[0] * tensor.element_size()));
    return whole;
  });
}

Values fake_arguments(std::span<const Value> args) {
  return remake(args, [](const Tensor& tensor) {
    int64_t count = tensor.impl()->storage->bytes() / tensor.element_size();
    return fake::make(SymInts{count}, SymInts{1}, tensor.dtype(), tensor.device());
  });
}

std::vector<Tensor> tensors_of(std::span<const Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values)
    value.each_tensor([&](const Tensor& tensor) {
      if (tensor.defined()) tensors.push_back(tensor);
    });
  return tensors;
}

bool any_requires_grad(std::span<const Value> values) {
  for (const Tensor& tensor : tensors_of(values))
    if (tensor.is_floating_point() && tensor.requires_grad()) return true;
  return false;
}

}  // namespace tenon::opcheck
