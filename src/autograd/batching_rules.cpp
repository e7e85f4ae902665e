// How a call on batches becomes calls on values. A rule belongs to a kind of row, not to an operator: what a row says
// of itself (that it broadcasts, which dimensions it reduces, where its view lies, what it is made of) tells how a
// dimension in front of all others goes through it.
#include "autograd/batched.h"

#include <tenon/dispatch/operator.h>
#include <tenon/dispatch/registration.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::autograd {
namespace {

using dispatch::Call;
using dispatch::Value;

bool is_batched_at(const Tensor& tensor, uint64_t level) {
  const BatchedSlot* slot = batched_slot(tensor);
  return slot && slot->level == level;
}

bool is_batched_at(const Value& value, uint64_t level) {
  bool any = false;
  value.each_tensor([&](const Tensor& tensor) { any |= is_batched_at(tensor, level); });
  return any;
}

std::vector<Tensor> tensors_of(const Call& call) {
  std::vector<Tensor> tensors;
  for (const Value& value : call.args) value.each_tensor([&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

void give(Call& call, const Tensor& value, uint64_t level) { call.results.emplace_back(make_batched(value, level)); }

// What is written must have a place for each entry.
void check_written(const Call& call, uint64_t level) {
  for (int at : call.op.schema().mutated_arguments())
    TENON_CHECK(is_batched_at(call.args[static_cast<size_t>(at)], level),
                "[{}] vmap: inplace arithmetic is not possible: '{}' is the same for all entries, and another argument "
                "is not. Make it a batch, or use the form that is not in place",
                call.op.brief_name(), call.op.schema().arguments[static_cast<size_t>(at)].name);
}

// Entries broadcast from their last dimension on: between it and the batch, each value gets as many dimensions as the
// entry with the most has.
void run_pointwise(Call& call, const ops::Row& row, uint64_t level) {
  check_written(call, level);
  int64_t rank = 0;
  bool same_dtype = true;
  Dtype first = Dtype::Bool;
  bool seen = false;
  for (const Tensor& tensor : tensors_of(call)) {
    if (!tensor.defined()) continue;
    rank = std::max(rank, tensor.dim());
    same_dtype &= !seen || tensor.dtype() == first;
    first = tensor.dtype();
    seen = true;
  }
  // A number counts less than a tensor of the same category: which of them are numbers, only the entries tell.
  Dtype compute = ops::pointwise_dtypes(row, ops::Arguments(call.op, call.args)).compute;
  dispatch::Values given;
  for (size_t at = 0; at < call.args.size(); ++at) {
    bool written = row.inplace() && at == 0, condition = row.pointwise.promotion == ops::Promotion::Branch && at == 0;
    given.push_back(call.args[at]
                        .map_tensors([&](const Tensor& tensor) {
                          if (!tensor.defined()) return tensor;
                          Tensor value = value_at(tensor, level);
                          if (is_batched_at(tensor, level))
                            for (int64_t dim = tensor.dim(); dim < rank; ++dim) value = unsqueeze(value, 1);
                          return same_dtype || written || condition || row.ignores(call.op.schema().arguments[at].name)
                                     ? value
                                     : value.to(compute);
                        })
                        .own());
  }
  Tensor result = dispatch::call_boxed(call.op, given)[0].take_tensor();
  if (row.inplace())
    call.results.emplace_back(Tensor(call.args[0].tensor()));
  else
    give(call, result, level);
}

// The dimensions of an entry are one further back in the value.
void run_reduction(Call& call, uint64_t level) {
  const ops::Arguments arguments(call.op, call.args);
  const int at = call.op.schema().argument_index("dim");
  TENON_ASSERT(at >= 0, "{} reduces dimensions that it does not name", call.op.name());
  const Tensor& self = call.args[0].tensor();
  const bool keep = arguments.has("keepdim") && arguments.boolean("keepdim");
  Ints dims = arguments.dims_or_all("dim", self.dim());
  for (int64_t& dim : dims) ++dim;
  Tensor value = value_at(self, level);
  const bool is_number = self.dim() == 0;
  if (is_number) {
    value = unsqueeze(value, 1);
    dims = Ints{1};
  }
  dispatch::Values given(call.args.begin(), call.args.end());
  given[0] = Value(value).own();
  given[static_cast<size_t>(at)] = Value(dims).own();
  Tensor result = dispatch::call_boxed(call.op, given)[0].take_tensor();
  give(call, is_number && keep ? squeeze(result, 1) : result, level);
}

// Where the view of an entry lies from the entry's first element, it lies from every entry's.
void run_view(Call& call, const ops::Row& row, uint64_t level) {
  Tensor value = value_at(call.args[0].tensor(), level);
  if (!row.differentiable()) {  // detach
    dispatch::Values given(call.args.begin(), call.args.end());
    given[0] = Value(value);
    return give(call, dispatch::call_boxed(call.op, given)[0].take_tensor(), level);
  }
  ops::Geometry geometry = row.view.geometry(ops::Arguments(call.op, call.args));
  SymInts sizes = geometry.sizes, strides = geometry.strides;
  sizes.insert(sizes.begin(), value.size(0));
  strides.insert(strides.begin(), value.stride(0));
  give(call, _strided_view(value, sizes, strides, geometry.offset), level);
}

bool is_product(const ops::Row& row) { return row.schema.name == "mm" || row.schema.name == "bmm"; }

// Once for each entry. Whatever the operator does to its arguments, it does to the entries themselves.
void run_by_entry(Call& call, uint64_t level) {
  check_written(call, level);
  std::vector<Tensor> tensors = tensors_of(call);
  const int64_t count = entries_of(tensors, level).plain();
  TENON_CHECK_IMPLEMENTED(count > 0,
                          "[{}] vmap: runs once for each entry, and there are none: the sizes of its result "
                          "are not known",
                          call.op.brief_name());
  const schema::Schema& schema = call.op.schema();
  std::vector<std::vector<std::vector<Tensor>>> found(schema.returns.size());  // by result, by place in it, by entry
  for (int64_t entry = 0; entry < count; ++entry) {
    dispatch::Values given;
    for (const Value& value : call.args)
      given.push_back(value
                          .map_tensors([&](const Tensor& tensor) {
                            return is_batched_at(tensor, level) ? select(value_at(tensor, level), 0, entry) : tensor;
                          })
                          .own());
    dispatch::Results results = dispatch::call_boxed(call.op, given);
    for (size_t at = 0; at < results.size(); ++at) {
      TENON_CHECK_IMPLEMENTED(results[at].is_tensor() || results[at].is_tensors(),
                              "[{}] vmap: It looks like you're calling .item() on a Tensor, or another operator that "
                              "gives a number: each entry has its own. Compute with the tensor instead",
                              call.op.brief_name());
      size_t place = 0;
      results[at].each_tensor([&](const Tensor& tensor) {
        found[at].resize(std::max(found[at].size(), ++place));
        found[at][place - 1].push_back(tensor);
      });
    }
  }
  for (size_t at = 0; at < found.size(); ++at) {
    const auto& alias = schema.returns[at].alias;
    if (alias && alias->write) {
      for (int written : schema.mutated_arguments()) {
        const auto& of = schema.arguments[static_cast<size_t>(written)].alias;
        if (of && of->before == alias->before) call.results.emplace_back(call.args[static_cast<size_t>(written)].own());
      }
      continue;
    }
    std::vector<Tensor> made;
    for (const std::vector<Tensor>& entries : found[at])
      made.push_back(entries[0].defined() ? make_batched(stack(entries), level) : Tensor());
    if (schema.returns[at].type.is_list())
      call.results.push_back(Value(made).own());
    else
      call.results.emplace_back(made.empty() ? Tensor() : made[0]);
  }
}

}  // namespace

void run_batched(Call& call, uint64_t level) {
  const ops::Row* row = ops::row_of(call.op);
  TENON_CHECK_IMPLEMENTED(!dispatch::has_tag(call.op, dispatch::Tag::inplace_view),
                          "[{}] vmap: gives a tensor another shape in place: use the form that gives a view",
                          call.op.brief_name());
  if (!row) {
    if (!call.op.is_composite_implicit()) return run_by_entry(call, level);
    KeySet below = call.keys.below(DispatchKey::Batched) - KeySet{DispatchKey::Capture, DispatchKey::Autocast};
    return dispatch::redispatch(call, below);
  }
  TENON_CHECK_IMPLEMENTED(!row->dynamic(),
                          "[{}] vmap: the sizes of its results depend on data, and may be others for each entry",
                          call.op.brief_name());
  if (row->kind == ops::Kind::Pointwise) return run_pointwise(call, *row, level);
  const bool is_self = !call.args.empty() && call.args[0].is_tensor() && is_batched_at(call.args[0], level);
  if (row->kind == ops::Kind::View && is_self) return run_view(call, *row, level);
  if (row->kind == ops::Kind::Reduction && is_self) return run_reduction(call, level);
  if (is_product(*row))
    return give(call, matmul(value_at(call.args[0].tensor(), level), value_at(call.args[1].tensor(), level)), level);
  // (The parts of an Element row are smaller calls of itself.)
  const bool has_parts = row->kind == ops::Kind::Composite || row->kind == ops::Kind::Opaque;
  if (has_parts && row->decomposition) return row->decomposition(call);
  run_by_entry(call, level);
}

}  // namespace tenon::autograd
