#include "autograd/batched.h"

#include <tenon/autograd/vmap.h>
#include <tenon/dispatch/operator.h>
#include <tenon/dispatch/registration.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <atomic>

namespace tenon::autograd {

uint64_t innermost_level(std::span<const Tensor> tensors) {
  uint64_t level = 0;
  for (const Tensor& tensor : tensors)
    if (const BatchedSlot* slot = batched_slot(tensor)) level = std::max(level, slot->level);
  return level;
}

Tensor make_batched(const Tensor& value, uint64_t level) {
  SymInts sizes = value.sym_sizes(), strides = value.sym_strides();
  sizes.erase(sizes.begin());
  strides.erase(strides.begin());
  Tensor made = core::make_without_data(sizes, strides, value.dtype(), value.device(), KeySet{DispatchKey::Batched});
  auto slot = std::make_unique<BatchedSlot>();
  slot->value = value;
  slot->level = level;
  made.impl()->batched = std::move(slot);
  return made;
}

Tensor value_at(const Tensor& tensor, uint64_t level) {
  const BatchedSlot* slot = batched_slot(tensor);
  return slot && slot->level == level ? slot->value : tensor;
}

Tensor value_for_all(const Tensor& tensor, uint64_t level, const SymInt& count) {
  const BatchedSlot* slot = batched_slot(tensor);
  if (slot && slot->level == level) return slot->value;
  SymInts sizes = tensor.sym_sizes();
  sizes.insert(sizes.begin(), count);
  return expand(tensor, sizes);
}

SymInt entries_of(std::span<const Tensor> tensors, uint64_t level) {
  for (const Tensor& tensor : tensors)
    if (const BatchedSlot* slot = batched_slot(tensor); slot && slot->level == level) return slot->value.size(0);
  TENON_ASSERT(false, "no tensor is batched at level {}", level);
}

bool is_batched(const Tensor& tensor) { return batched_slot(tensor) != nullptr; }

namespace {

void batched_layer(dispatch::Call& call) {
  const ops::Row* row = ops::row_of(call.op);
  TENON_CHECK(!row || !row->element.random,
              "[{}] vmap: We do not yet support calling random operations inside of vmap: draw before it, and pass "
              "what was drawn as a batch, or as a tensor that is the same for all entries",
              call.op.brief_name());
  uint64_t level = 0;
  for (const dispatch::Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) { level = std::max(level, innermost_level({&tensor, 1})); });
  if (level == 0) return dispatch::redispatch(call, call.keys.below(DispatchKey::Batched));
  run_batched(call, level);
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Batched, batched_layer);
  return true;
}();

uint64_t new_level() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Where the batch of an input is, from the front.
std::vector<std::optional<int64_t>> batch_dims(const std::vector<Tensor>& inputs, const VmapOptions& options) {
  TENON_CHECK_VALUE(!inputs.empty(), "[vmap] expected at least one input, got none");
  TENON_CHECK_VALUE(options.in_dims.empty() || options.in_dims.size() == inputs.size(),
                    "[vmap] expected in_dims for each of {} inputs, got {}", inputs.size(), options.in_dims.size());
  std::vector<std::optional<int64_t>> dims;
  for (size_t at = 0; at < inputs.size(); ++at) {
    dims.push_back(options.in_dims.empty() ? std::optional<int64_t>(0) : options.in_dims[at]);
    if (!dims.back()) continue;
    int64_t rank = inputs[at].defined() ? inputs[at].dim() : 0, dim = *dims.back();
    TENON_CHECK_VALUE(dim >= -rank && dim < rank,
                      "[vmap] expected input {} to have the dimension {} for the batch, got {}", at, dim,
                      inputs[at].description());
    if (dim < 0) dims.back() = dim + rank;
  }
  TENON_CHECK_VALUE(std::any_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.has_value(); }),
                    "[vmap] expected at least one input with a dimension for the batch, got in_dims of nothing");
  return dims;
}

}  // namespace

std::vector<Tensor> detail::vmap(const Checked& function, const Tensors& inputs, const VmapOptions& options) {
  std::vector<std::optional<int64_t>> dims = batch_dims(inputs, options);
  const uint64_t level = new_level();
  Tensors given = inputs;
  std::optional<SymInt> count;
  for (size_t at = 0; at < inputs.size(); ++at) {
    if (!dims[at]) continue;
    SymInt own = inputs[at].size(*dims[at]);
    TENON_CHECK_VALUE(!count || same_size(*count, own), "[vmap] expected {} entries in every batch, got {} in input {}",
                      count->str(), own.str(), at);
    count = own;
    given[at] = make_batched(movedim(inputs[at], *dims[at], 0), level);
  }
  Tensors outputs = [&] {
    dispatch::IncludeKeys inside(KeySet{DispatchKey::Batched});
    return function(given);
  }();
  for (size_t at = 0; at < outputs.size(); ++at) {
    Tensor& output = outputs[at];
    TENON_CHECK(output.defined(), "[vmap] expected the function to give tensors, got an undefined one as output {}",
                at);
    output = value_for_all(output, level, *count);
    int64_t rank = output.dim();
    TENON_CHECK_VALUE(options.out_dim >= -rank && options.out_dim < rank,
                      "[vmap] expected an out_dim from {} to {}, got {} for output {}", -rank, rank - 1,
                      options.out_dim, at);
    if (options.out_dim != 0) output = movedim(output, 0, options.out_dim);
  }
  return outputs;
}

}  // namespace tenon::autograd
