// The CPU kernel of every row: runs it at once.
#include "composite.h"
#include "dispatch/named_errors.h"
#include "kernel_cache.h"

#include <tenon/eager/eager.h>
#include <tenon/fake/fake.h>
#include <tenon/ops/row.h>

namespace tenon::eager {
namespace {

Tensor allocate(const ops::TensorMeta& meta) {
  Ints sizes, strides;
  for (const SymInt& size : meta.sizes) sizes.push_back(int64_t(size));
  for (const SymInt& stride : meta.strides) strides.push_back(int64_t(stride));
  return core::allocate(sizes.span(), strides.span(), meta.dtype, meta.device);
}

// Strides of an operand over a broadcast shape: 0 where it is repeated.
Ints broadcast_strides(const Tensor& operand, std::span<const int64_t> shape) {
  Ints strides;
  strides.resize(shape.size(), 0);
  size_t lead = shape.size() - static_cast<size_t>(operand.dim());
  for (size_t dim = lead; dim < shape.size(); ++dim)
    if (operand.sizes()[dim - lead] != 1) strides[dim] = operand.strides()[dim - lead];
  return strides;
}

// Whether writing `out` may change what is still to be read from `operand`.
bool overlaps(const Tensor& operand, const Tensor& out) {
  if (!operand.is_same_storage(out)) return false;
  auto equal = [](auto a, auto b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  if (operand.storage_offset() == out.storage_offset() && equal(operand.sizes(), out.sizes()) &&
      equal(operand.strides(), out.strides()) && operand.dtype() == out.dtype())
    return false;
  int64_t a = operand.storage_offset(), b = out.storage_offset();
  return a < b + core::reach(out.sizes(), out.strides()) && b < a + core::reach(operand.sizes(), operand.strides());
}

const dispatch::Operator& clone_op() {
  static const dispatch::Operator& op = dispatch::find_operator("aten::clone");
  return op;
}

// Whether all tensors of a call have one size and lie contiguous; `out` too, where it is one of them. The result lies
// so as well then, and one loop over all elements computes it, whatever the sizes. (Of tensors without elements, which
// are contiguous however they lie, the strides count.)
bool lie_alike(const KernelRequest& request, const Tensor* out) {
  const Tensor& first = *request.operands.front();
  const std::span<const int64_t> sizes = first.sizes();
  for (const Tensor* operand : request.operands) {
    if (operand->device().type != DeviceType::CPU || !operand->is_contiguous()) return false;
    if (operand->numel().plain() == 0) return false;
    if (!std::ranges::equal(operand->sizes(), sizes)) return false;
    if (out && overlaps(*operand, *out)) return false;
  }
  return true;
}

// A pointwise call whose tensors lie alike: the same result, or the same error, as by `ops::infer`, without a look at
// each dimension. Whether it was one.
bool run_alike(const ops::Row& row, const ops::Arguments& arguments, KernelRequest& request, dispatch::Call& call) {
  const Tensor* out = row.inplace() ? &arguments.tensor("self") : nullptr;
  if (!lie_alike(request, out) || ops::order_in(arguments)) return false;
  ops::refuse_stored_only(row, arguments);
  if (row.check) row.check(arguments);
  request.result = ops::pointwise_dtypes(row, arguments).result;
  const std::span<const int64_t> sizes = request.operands.front()->sizes();
  Tensor made = out ? *out : core::allocate(sizes, core::contiguous_strides(sizes).span(), request.result, kCPU);
  if (const int64_t count = made.numel().plain(); count > 1) {
    LoopDim& all = request.dims.emplace_back(LoopDim{count, {}, false});
    all.strides.resize(request.operands.size() + 1, 1);
  }
  run_kernel(request, made.raw_data());
  call.results.push_back(std::move(made));
  return true;
}

void run_pointwise(const ops::Row& row, dispatch::Call& call) {
  ops::Arguments arguments(call.op, call.args);
  KernelRequest request{row.inplace() ? row.functional_op : &call.op, call.args, {}, Dtype::Float32, {}};
  bool defined = true;
  for (const dispatch::Value& value : call.args)
    if (value.is_tensor()) {
      request.operands.push_back(&value.tensor());
      defined &= value.tensor().defined();
    }
  if (defined && !request.operands.empty() && run_alike(row, arguments, request, call)) return;

  ops::TensorMeta meta = ops::infer(row, arguments)[0];
  Tensor out = row.inplace() ? arguments.tensor("self") : allocate(meta);
  std::span<const int64_t> shape = out.sizes();
  request.result = meta.dtype;
  std::vector<Tensor> copies;  // of operands that would be written over before they are read
  copies.reserve(request.operands.size());
  for (const Tensor*& operand : request.operands)
    if (row.inplace() && overlaps(*operand, out)) {
      const dispatch::Value clone_args[] = {dispatch::Value(*operand), dispatch::Value()};
      operand =
          &copies.emplace_back(dispatch::redispatch(clone_op(), KeySet{DispatchKey::CPU}, clone_args)[0].take_tensor());
    }
  if (out.numel().plain() > 0) {
    SmallVector<Ints, 4> strides;
    for (const Tensor* operand : request.operands) strides.push_back(broadcast_strides(*operand, shape));
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      LoopDim each{shape[dim], {}, false};
      for (const Ints& list : strides) each.strides.push_back(list[dim]);
      each.strides.push_back(out.strides()[dim]);
      request.dims.push_back(std::move(each));
    }
    request.dims = collapse(std::move(request.dims));
    run_kernel(request, out.raw_data());
  }
  call.results.push_back(Tensor(out));
}

void run_reduction(const ops::Row& row, dispatch::Call& call) {
  ops::Arguments arguments(call.op, call.args);
  const Tensor& self = arguments.tensor("self");
  ops::TensorMeta meta = ops::infer(row, arguments)[0];
  Tensor out = allocate(meta);
  Ints dims = arguments.dims_or_all("dim", self.dim());
  bool keep = arguments.has("keepdim") && arguments.boolean("keepdim");
  KernelRequest request{&call.op, call.args, {&self}, meta.dtype, {}};
  size_t out_dim = 0;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    bool reduced = std::find(dims.begin(), dims.end(), dim) != dims.end();
    LoopDim each{self.sizes()[static_cast<size_t>(dim)], {self.strides()[static_cast<size_t>(dim)]}, reduced};
    each.strides.push_back(reduced ? 0 : out.strides()[out_dim]);
    if (!reduced || keep) ++out_dim;
    request.dims.push_back(std::move(each));
  }
  request.dims = collapse(std::move(request.dims));
  // A reduction over nothing but single elements is still a reduction: over one of them.
  if (request.dims.empty() || !request.dims.back().reduced) request.dims.push_back({1, {1, 0}, true});
  if (out.numel().plain() > 0) run_kernel(request, out.raw_data());
  call.results.push_back(std::move(out));
}

void run_view(const ops::Row& row, dispatch::Call& call) {
  const Tensor& self = call.args[0].tensor();
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", call.op.brief_name());
  ops::Geometry geometry = row.view.geometry({call.op, call.args});
  call.results.push_back(
      core::make_view(self, geometry.sizes, geometry.strides, geometry.offset, geometry.dtype.value_or(self.dtype())));
}

void check_defined(const dispatch::Call& call) {
  for (const dispatch::Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) {
      TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", call.op.brief_name());
    });
}

void run_opaque(const ops::Row& row, dispatch::Call& call) {
  ops::Arguments arguments(call.op, call.args);
  ops::refuse_stored_only(row, arguments);
  if (row.dynamic()) {
    check_defined(call);
    for (Tensor& output : row.opaque.cpu.make(arguments)) call.results.push_back(std::move(output));
    return;
  }
  SmallVector<Tensor, 2> outputs;
  for (const ops::TensorMeta& meta : row.shape(arguments)) outputs.push_back(allocate(meta));
  if (row.opaque.supports && !row.opaque.supports(arguments)) {
    run_composite(call);
    return;
  }
  row.opaque.cpu.fill(arguments, {outputs.data(), outputs.size()});
  for (Tensor& output : outputs) call.results.push_back(std::move(output));
}

void run_row(dispatch::Call& call) {
  const ops::Row* row = ops::row_of(call.op);
  if (!row) {
    bool any = false;
    for (const dispatch::Value& value : call.args) value.each_tensor([&](const Tensor&) { any = true; });
    TENON_CHECK_IMPLEMENTED(
        any, "[{}] no Tensor inputs were given that would name a device, and there is no cpu impl registered",
        call.op.name());
    fail<NotImplementedError>("[{}] has no cpu impl registered", call.op.name());
  }
  switch (row->kind) {
    case ops::Kind::Pointwise: return run_pointwise(*row, call);
    case ops::Kind::Reduction: return run_reduction(*row, call);
    case ops::Kind::View: return run_view(*row, call);
    case ops::Kind::Opaque: return run_opaque(*row, call);
    case ops::Kind::Element:
      if (!row->element.uninitialised) return run_composite(call);
      call.results.push_back(allocate(row->shape({call.op, call.args})[0]));
      return;
    case ops::Kind::Composite: return run_composite(call);
  }
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::CPU,
                              [](dispatch::Call& call) { dispatch::naming(call, [&] { run_row(call); }); });
  return true;
}();

}  // namespace

void forget_kernels() {
  forget_single_kernels();
  forget_plans();
}

}  // namespace tenon::eager
