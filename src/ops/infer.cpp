// Metadata of outputs: dtypes by promotion, sizes by broadcasting, strides as eager gives them.
#include "category.h"

#include <tenon/ops/row.h>
#include <tenon/ops/strided.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tenon::ops {

TensorMeta TensorMeta::contiguous(SymInts sizes, Dtype dtype, Device device) {
  SymInts strides = core::contiguous_strides(sizes.span());
  return {std::move(sizes), std::move(strides), dtype, device};
}

bool is_lane(const schema::Argument& argument) {
  const schema::Type& type = argument.type.is_optional() ? argument.type.element[0] : argument.type;
  return type.kind == schema::Kind::Tensor || type.kind == schema::Kind::Scalar;
}

Dtype result_type(const Arguments& arguments, size_t first_lane) {
  // The highest dtype among tensors with dimensions, 0-d tensors and numbers.
  std::optional<Dtype> dimensioned, zero_dim, number;
  auto raise = [](std::optional<Dtype>& level, Dtype dtype) { level = level ? promote(*level, dtype) : dtype; };
  size_t lane = 0;
  const auto& schema_arguments = arguments.op().schema().arguments;
  for (size_t at = 0; at < schema_arguments.size(); ++at) {
    if (!is_lane(schema_arguments[at]) || lane++ < first_lane) continue;
    const dispatch::Value& value = arguments.values()[at];
    // Factors such as `alpha` do not take part, wherever they stand.
    if (schema_arguments[at].keyword_only || schema_arguments[at].name == "alpha") continue;
    if (value.is_tensor())
      raise(value.tensor().dim() == 0 ? zero_dim : dimensioned, value.tensor().dtype());
    else if (value.is_number())
      raise(number, value.scalar().dtype());
  }
  std::optional<Dtype> result = dimensioned;
  for (const std::optional<Dtype>& lower : {zero_dim, number})
    if (lower) {
      if (!result)
        result = lower;
      else if (category(*lower) > category(*result))
        result = lower;
    }
  return result.value_or(Dtype::Float32);
}

Dtypes pointwise_dtypes(const Row& row, const Arguments& arguments) {
  Dtypes dtypes{};
  switch (row.pointwise.promotion) {
    case Promotion::Same: dtypes.result = dtypes.compute = result_type(arguments); break;
    case Promotion::ToFloat:
      dtypes.result = result_type(arguments);
      if (!is_floating(dtypes.result)) dtypes.result = Dtype::Float32;
      dtypes.compute = dtypes.result;
      break;
    case Promotion::Compare: dtypes = {result_type(arguments), Dtype::Bool}; break;
    case Promotion::Logical: dtypes = {Dtype::Bool, Dtype::Bool}; break;
    case Promotion::Branch: dtypes.result = dtypes.compute = result_type(arguments, 1); break;
    case Promotion::Self: dtypes.result = dtypes.compute = arguments.tensor("self").dtype(); break;
    case Promotion::Argument: {
      dtypes.result = dtypes.compute = arguments.tensor("self").dtype();
      if (arguments.has("dtype") && !arguments["dtype"].is_none()) dtypes.result = arguments["dtype"].dtype();
      if (row.ignores("self")) dtypes.compute = dtypes.result;
      break;
    }
  }
  if (row.inplace()) {
    Dtype self = arguments.tensor("self").dtype();
    TENON_CHECK(category(dtypes.result) <= category(self) || row.pointwise.promotion == Promotion::Compare,
                "[{}] a result of {} cannot be stored in self of {}", arguments.op().brief_name(), name(dtypes.result),
                name(self));
    dtypes.result = self;
  }
  return dtypes;
}

SymInts broadcast(std::span<const SymInts> shapes, std::string_view op_name) {
  size_t rank = 0;
  for (const SymInts& shape : shapes) rank = std::max(rank, shape.size());
  SymInts result;
  result.resize(rank, SymInt(1));
  for (const SymInts& shape : shapes)
    for (size_t at = 0; at < shape.size(); ++at) {
      SymInt& out = result[rank - shape.size() + at];
      const SymInt& size = shape[at];
      if (is_one(size) || out.same(size)) continue;
      if (is_one(out)) {
        out = size;
        continue;
      }
      // Neither is known to be 1: they are equal, or one of them turns out to be 1 (which sizes of inputs are not, but
      // what is computed from them may be).
      if (counts_as_one(out, size)) {
        out = size;
      } else if (broadcasts_to(size, out)) {
        if (!is_one(size)) out = better_known(out, size);
      } else if (bool(out == 1)) {
        out = size;
      } else if (!bool(size == 1)) {
        std::vector<std::string> texts;
        for (const SymInts& each : shapes) texts.push_back(str(each));
        fail("[{}] shapes {} cannot be broadcast together: dimension {} is {} and {}", op_name, fmt::join(texts, ", "),
             at, out.str(), size.str());
      }
    }
  return result;
}

namespace {

bool statically_contiguous(const SymInts& sizes, const SymInts& strides) {
  SymInt expected = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (is_one(sizes[dim])) continue;
    if (!strides[dim].same(expected) && !statically_true(strides[dim] == expected)) return false;
    expected *= sizes[dim];
  }
  return true;
}

}  // namespace

// The permutation of an input is kept: dimensions are ordered by the strides of the first input that tells two of them
// apart, as PyTorch's iterator does; the result is dense in that order. An input that is converted counts as its copy
// lies: where it is expanded, it tells nothing of an order, but its copy does.
SymInts pointwise_strides(const SymInts& sizes, std::span<const Tensor> inputs, const std::vector<bool>& converted) {
  SymInts contiguous = core::contiguous_strides(sizes.span());
  std::vector<std::pair<SymInts, SymInts>> full;  // sizes and strides of inputs, aligned to the output's rank
  bool all_contiguous = true;
  for (size_t nr = 0; nr < inputs.size(); ++nr) {
    const Tensor& input = inputs[nr];
    if (input.dim() == 0) continue;
    SymInts in_sizes = input.sym_sizes(), in_strides = input.sym_strides();
    if (!converted.empty() && converted[nr]) in_strides = pointwise_strides(in_sizes, {&input, 1});
    bool same = in_sizes.size() == sizes.size();
    for (size_t dim = 0; same && dim < sizes.size(); ++dim) same = in_sizes[dim].same(sizes[dim]);
    all_contiguous &= statically_contiguous(in_sizes, in_strides);
    SymInts aligned;
    aligned.resize(sizes.size(), SymInt(0));
    for (size_t dim = 0; dim < in_sizes.size(); ++dim) {
      size_t at = sizes.size() - in_sizes.size() + dim;
      aligned[at] = is_one(in_sizes[dim]) && !is_one(sizes[at]) ? SymInt(0) : in_strides[dim];
    }
    full.emplace_back(in_sizes, aligned);
  }
  if (all_contiguous) return contiguous;
  std::vector<size_t> order(sizes.size());  // from the innermost dimension outwards
  std::iota(order.rbegin(), order.rend(), size_t{0});
  // Whether `a` must be further inside than `b`: 1 yes, -1 no, 0 undecided.
  auto compare = [&](size_t a, size_t b) {
    for (auto& [in_sizes, strides] : full) {
      if (is_zero(strides[a]) || is_zero(strides[b])) continue;
      if (strides[a].same(strides[b])) {
        if (decide_typically(sizes[a] > sizes[b])) return -1;
        continue;
      }
      return decide_typically(strides[a] < strides[b]) ? 1 : -1;
    }
    return 0;
  };
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0; --j) {
      int inside = compare(order[j], order[j - 1]);
      if (inside <= 0) {
        if (inside < 0) break;
        continue;
      }
      std::swap(order[j], order[j - 1]);
    }
  SymInts strides;
  strides.resize(sizes.size());
  SymInt step = 1;
  for (size_t dim : order) {
    strides[dim] = step;
    if (!is_zero(sizes[dim])) step *= sizes[dim];
  }
  return strides;
}

std::optional<MemoryFormat> order_in(const Arguments& arguments) {
  if (!arguments.has("memory_format") || arguments["memory_format"].is_none()) return std::nullopt;
  MemoryFormat format = arguments["memory_format"].memory_format();
  return format == MemoryFormat::Preserve ? std::nullopt : std::optional(format);
}

TensorMeta TensorMeta::in_order_of(const Tensor& images, SymInts sizes, Dtype dtype) {
  SymInts strides = core::strides_in(images.suggested_format(), sizes.span(), "empty");
  return {std::move(sizes), std::move(strides), dtype, images.device()};
}

void refuse_stored_only(const Row& row, const Arguments& arguments, std::span<const TensorMeta> results) {
  if (row.moves_elements) return;
  auto refuse = [&](const auto& what) {
    fail<NotImplementedError>("[{}] is not computed with floats of 8 bits, got {}: convert first, to(kFloat32)",
                              arguments.op().brief_name(), what);
  };
  for (const dispatch::Value& value : arguments.values())
    value.each_tensor([&](const Tensor& tensor) {
      if (tensor.defined() && is_float8(tensor.dtype())) refuse(tensor.description());
    });
  for (const TensorMeta& result : results)
    if (is_float8(result.dtype)) refuse(fmt::format("dtype {}", name(result.dtype)));
}

namespace {

// By input: whether it is converted to the common dtype before anything else. Conditions and masks are not.
std::vector<bool> are_converted(const Row& row, const Arguments& arguments, Dtypes dtypes,
                                const std::vector<Tensor>& inputs) {
  const Promotion promotion = row.pointwise.promotion;
  std::vector<bool> converted(inputs.size());
  if (inputs.size() == 1 || promotion == Promotion::Self || promotion == Promotion::Argument) return converted;
  Dtype common = promotion == Promotion::Logical ? result_type(arguments) : dtypes.compute;
  for (size_t at = promotion == Promotion::Branch ? 1 : 0; at < inputs.size(); ++at)
    converted[at] = inputs[at].dtype() != common;
  return converted;
}

TensorMeta infer_pointwise(const Row& row, const Arguments& arguments) {
  std::vector<Tensor> inputs;
  std::vector<SymInts> shapes;
  for (const dispatch::Value& value : arguments.values())
    if (value.is_tensor()) {
      TENON_CHECK(value.tensor().defined(), "[{}] expected a tensor, got an undefined one",
                  arguments.op().brief_name());
      inputs.push_back(value.tensor());
      shapes.push_back(value.tensor().sym_sizes());
    }
  TENON_ASSERT(!inputs.empty(), "{} without tensors", row.schema.str());
  if (!row.moves_elements) refuse_stored_only(row, arguments);
  if (row.check) row.check(arguments);
  Device device = inputs[0].device();
  for (const Tensor& input : inputs) {
    if (input.dim() > 0 && inputs[0].dim() == 0) device = input.device();
    TENON_CHECK(input.device() == device || input.dim() == 0, "[{}] expected all tensors on one device, got {} and {}",
                arguments.op().brief_name(), device.str(), input.device().str());
  }
  Dtypes dtypes = pointwise_dtypes(row, arguments);
  SymInts sizes = broadcast(shapes, arguments.op().brief_name());
  if (row.inplace()) {
    const Tensor& self = arguments.tensor("self");
    SymInts own = self.sym_sizes();
    bool fits = own.size() == sizes.size();
    for (size_t dim = 0; fits && dim < sizes.size(); ++dim) fits = same_size(own[dim], sizes[dim]);
    TENON_CHECK(fits, "[{}] self {} cannot hold the broadcast shape {}", arguments.op().brief_name(),
                self.description(), str(sizes));
    SymInts strides = self.sym_strides();
    // One number for all elements may be written to one place more than once.
    bool uniform = row.ignores("self") &&
                   std::all_of(inputs.begin() + 1, inputs.end(), [](const Tensor& input) { return input.dim() == 0; });
    if (!uniform) check_places_differ(arguments.op().brief_name(), own, strides);
    return {own, strides, dtypes.result, device};
  }
  std::optional<MemoryFormat> order = order_in(arguments);
  SymInts strides = order ? core::strides_in(*order, sizes.span(), arguments.op().brief_name())
                          : pointwise_strides(sizes, inputs, are_converted(row, arguments, dtypes, inputs));
  return {sizes, strides, dtypes.result, device};
}

TensorMeta infer_reduction(const Row& row, const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", arguments.op().brief_name());
  refuse_stored_only(row, arguments);
  SymInts sizes = self.sym_sizes();
  Ints dims = arguments.dims_or_all("dim", self.dim());
  bool keep = arguments.has("keepdim") && arguments.boolean("keepdim");
  SymInts kept;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    bool reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) != dims.end();
    if (reduced && (row.reduction.kind == loop::ReduceKind::Max || row.reduction.kind == loop::ReduceKind::Min))
      // Not asserted of data: a softmax over a dimension that turns out empty has nothing to shift.
      TENON_CHECK_INDEX(!decide_or(sizes[dim] == 0, false),
                        "[{}] expected a dimension of at least one element, got {} at dimension {}",
                        arguments.op().brief_name(), self.description(), dim);
    if (!reduced)
      kept.push_back(sizes[dim]);
    else if (keep)
      kept.push_back(1);
  }
  Dtype dtype = row.reduction.result ? row.reduction.result(self.dtype()) : self.dtype();
  if (arguments.has("dtype") && !arguments["dtype"].is_none()) dtype = arguments["dtype"].dtype();
  return TensorMeta::contiguous(kept, dtype, self.device());
}

}  // namespace

std::vector<TensorMeta> infer(const Row& row, const Arguments& arguments) {
  switch (row.kind) {
    case Kind::Pointwise: return {infer_pointwise(row, arguments)};
    case Kind::Reduction: return {infer_reduction(row, arguments)};
    default: break;
  }
  TENON_ASSERT(row.shape, "{} has no shape rule", row.schema.str());
  std::vector<TensorMeta> results = row.shape(arguments);
  refuse_stored_only(row, arguments, results);
  return results;
}

}  // namespace tenon::ops
