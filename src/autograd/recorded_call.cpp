#include "autograd/recorded_call.h"

#include "support/origin.h"

#include <tenon/autograd/meta.h>
#include <tenon/autograd/view_replay.h>
#include <tenon/autograd/visit.h>

#include <algorithm>
#include <bit>

namespace tenon::autograd {

RecordedCall::RecordedCall(const ops::Row& its_row, std::span<const dispatch::Value> values)
    : row(&its_row), operation(static_cast<uint64_t>(current_origin().sequence)) {
  shapes.resize(values.size());
  for (size_t at = 0; at < values.size(); ++at) {
    const dispatch::Value& value = values[at];
    ArgumentShape& shape = shapes[at];
    if (value.is_tensor()) {
      if (const Tensor& tensor = value.tensor(); tensor.defined()) {
        shape.given = true;
        shape.sizes = tensor.sym_sizes();
        if (its_row.view.of_storage) shape.strides = tensor.sym_strides();
        shape.dtype = tensor.dtype();
      }
      arguments.emplace_back();
    } else if (value.is_tensors()) {
      shape.given = true;
      for (const Tensor& tensor : value.tensors()) {
        shape.list.push_back(tensor.defined() ? tensor.sym_sizes() : SymInts());
        shape.list_dtypes.push_back(tensor.defined() ? tensor.dtype() : Dtype::Float32);
      }
      arguments.emplace_back();
    } else if (value.tag() == dispatch::Value::Tag::OptionalTensors) {
      arguments.emplace_back();  // what a formula needs of it is saved
    } else {
      arguments.push_back(value.own());
    }
  }
}

RecordedCall::RecordedCall(const RecordedCall& other)
    : Counted(), row(other.row), arguments(other.arguments), shapes(other.shapes), operation(other.operation) {}

Ref<RecordedCall> RecordedCall::copy() const { return Ref<RecordedCall>(new RecordedCall(*this)); }

namespace {

bool may_vary(const schema::Type& type) {
  if (type.is_list() || type.is_optional()) return may_vary(type.element[0]);
  return type.kind == schema::Kind::SymInt || type.kind == schema::Kind::Scalar || type.kind == schema::Kind::Float;
}

// Sizes and factors are numbers that may change; dimensions, flags and the like are what the call is.
// (Most visitors only look: a number is written back if it has become another.)
void visit_argument(dispatch::Value& value, const schema::Type& type, NodeVisitor& visitor) {
  using Tag = dispatch::Value::Tag;
  switch (value.tag()) {
    case Tag::None:
    case Tag::Tensor:
    case Tag::Tensors:
    case Tag::OptionalTensors: break;
    case Tag::Int:
      if (may_vary(type)) {
        SymInt number = value.sym_int(), before = number;
        visitor.number(number);
        if (!number.same(before)) value = dispatch::Value(number).own();
      } else {
        visitor.fixed(static_cast<uint64_t>(value.integer()));
      }
      break;
    case Tag::Real: {
      SymFloat number = value.sym_float(), before = number;
      visitor.number(number);
      if (!number.same(before)) value = dispatch::Value(number).own();
      break;
    }
    case Tag::Bool: visitor.fixed(static_cast<uint64_t>(value.boolean())); break;
    case Tag::String: visitor.fixed(value.string()); break;
    case Tag::Ints:
    case Tag::SymInts: {
      SymInts list = value.sym_ints();
      if (value.tag() == Tag::SymInts || may_vary(type)) {
        visitor.numbers(list);
        value = dispatch::Value(list).own();
      } else {
        visitor.fixed(list.size());
        for (const SymInt& each : list) visitor.fixed(static_cast<uint64_t>(each.plain()));
      }
      break;
    }
    default: visitor.fixed(value.str()); break;
  }
}

}  // namespace

void RecordedCall::visit(NodeVisitor& visitor) {
  visitor.fixed(reinterpret_cast<uint64_t>(row));  // rows live as long as the process
  for (size_t at = 0; at < shapes.size(); ++at) {
    ArgumentShape& shape = shapes[at];
    visitor.fixed(static_cast<uint64_t>(arguments[at].tag()) | static_cast<uint64_t>(shape.given) << 8 |
                  static_cast<uint64_t>(shape.dtype) << 9 | static_cast<uint64_t>(shape.sizes.size()) << 16 |
                  static_cast<uint64_t>(shape.strides.size()) << 24 | static_cast<uint64_t>(shape.list.size()) << 32);
    visit_argument(arguments[at], row->schema.arguments[at].type, visitor);
    if (!shape.given) continue;
    for (SymInt& size : shape.sizes) visitor.number(size);
    for (SymInt& stride : shape.strides) visitor.number(stride);
    for (size_t each = 0; each < shape.list.size(); ++each) {
      visitor.numbers(shape.list[each]);
      visitor.fixed(static_cast<uint64_t>(shape.list_dtypes[each]));
    }
  }
}

size_t RecordedCall::argument_index(std::string_view name) const {
  int at = row->schema.argument_index(name);
  TENON_ASSERT(at >= 0, "{} has no argument '{}'", row->schema.str(), name);
  return static_cast<size_t>(at);
}

namespace {

Tensor without_data(const ArgumentShape& shape) {
  return core::make_without_data(shape.sizes, shape.strides, shape.dtype, kMeta, {});
}

dispatch::Values with_self(const RecordedCall& call, const Tensor& self) {
  dispatch::Values values = call.arguments;
  values[0] = dispatch::Value(self);
  if (!call.row->view.of_storage) return values;
  // Of another tensor a view reads the geometry (`slice_inverse`).
  for (size_t at = 1; at < values.size(); ++at)
    if (call.shapes[at].given) values[at] = dispatch::Value(without_data(call.shapes[at])).own();
  // The memory that the view was made of counts, not that of a gradient.
  const ArgumentShape& shape = call.shapes[0];
  values[0] = dispatch::Value(without_data(shape)).own();
  return values;
}

}  // namespace

Tensor ViewStep::replay(const Tensor& base) const {
  if (call->row->view.replay) {
    dispatch::Values values = with_self(*call, base);
    return call->row->view.replay(base, ops::Arguments(*call->row->op, values));
  }
  dispatch::Results results = dispatch::call_boxed(*call->row->op, with_self(*call, base));
  return results[0].take_tensor();
}

Tensor ViewStep::scatter(const Tensor& base, const Tensor& view) const {
  TENON_ASSERT(call->row->view.scatter, "{} has no inverse", call->row->schema.name);
  dispatch::Values values = with_self(*call, base);
  return call->row->view.scatter(base, view, ops::Arguments(*call->row->op, values));
}

void ViewStep::release_resources() {
  // A long chain is taken apart without recursion.
  Ref<ViewStep> step = std::move(previous);
  while (step && step->use_count() == 1) {
    Ref<ViewStep> before = std::move(step->previous);
    step = std::move(before);
  }
}

std::vector<const ViewStep*> steps_of(const ViewStep* last) {
  std::vector<const ViewStep*> steps;
  for (const ViewStep* step = last; step; step = step->previous.get()) steps.push_back(step);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

Ref<RecordedCall> recorded_by_places(const Tensor& base, const SymInts& sizes, const SymInts& strides,
                                     const SymInt& storage_offset) {
  static const ops::Row& row = *ops::row_of(dispatch::find_operator("aten::_strided_view"));
  SymInt offset = storage_offset - base.sym_storage_offset();
  const dispatch::Value args[] = {dispatch::Value(base), dispatch::Value(sizes), dispatch::Value(strides),
                                  dispatch::Value(offset)};
  return make_ref<RecordedCall>(row, args);
}

Ref<ViewStep> chain_of(const Tensor& view) {
  const ViewInfo& info = *meta_of(view)->view;
  const AutogradMeta* base = meta_of(info.base);
  if (info.chain && (!base || base->shape == info.shape) && is_view_replay_enabled()) return info.chain;
  return make_ref<ViewStep>(
      recorded_by_places(info.base, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset()), nullptr);
}

Ref<ViewStep> with_inverse(const Tensor& base, const Tensor& view, const Ref<ViewStep>& chain) {
  for (const ViewStep* step = chain.get(); step; step = step->previous.get())
    if (!step->call->row->view.scatter)
      return make_ref<ViewStep>(
          recorded_by_places(base, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset()), nullptr);
  return chain;
}

}  // namespace tenon::autograd
