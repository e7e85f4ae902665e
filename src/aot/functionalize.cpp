#include "autograd/author_formula.h"
#include "functional_form.h"

#include <tenon/aot/functionalize.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/trace.h>
#include <tenon/ops/row.h>
#include <tenon/ops/strided.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::aot {
namespace {

constexpr KeySet kUpperLayers{DispatchKey::Functionalize, DispatchKey::ADInplaceOrView, DispatchKey::Autograd,
                              DispatchKey::Autocast, DispatchKey::Capture};

Tensor follow(const ViewLink& link, const Tensor& from) {
  dispatch::Values args;
  args.push_back(dispatch::Value(from));
  for (size_t at = 1; at < link.args.size(); ++at) args.push_back(link.args[at]);
  return dispatch::call_boxed(*link.op, args)[0].take_tensor();
}

bool of_storage(const ViewLink& link) {
  const ops::Row* row = ops::row_of(*link.op);
  return row && row->view.of_storage;
}

bool lies_so(const Tensor& value, const SymInts& strides) {
  SymInts own = value.sym_strides(), sizes = value.sym_sizes();
  for (size_t dim = 0; dim < own.size(); ++dim)
    if (!is_one(sizes[dim]) && !strides[dim].same(own[dim]) && !statically_true(strides[dim] == own[dim])) return false;
  return true;
}

// The same elements with these strides.
Tensor laid_out(const Tensor& value, const SymInts& strides) {
  if (lies_so(value, strides)) return value;
  static const dispatch::Operator& empty = dispatch::find_operator("aten::empty_strided");
  static const dispatch::Operator& copy = dispatch::find_operator("aten::copy");
  const dispatch::Value memory[] = {dispatch::Value(value.sym_sizes()).own(), dispatch::Value(strides),
                                    dispatch::Value(value.dtype()),           dispatch::Value(),
                                    dispatch::Value(value.device()),          dispatch::Value()};
  dispatch::Results made = dispatch::call_boxed(empty, memory);
  const dispatch::Value args[] = {made[0], dispatch::Value(value), dispatch::Value(false)};
  return dispatch::call_boxed(copy, args)[0].take_tensor();
}

// What the first link of a chain is applied to: a view of storage wants it to lie as in eager.
Tensor whole_for(const FunctionalStorage& storage, const std::vector<const ViewLink*>& chain) {
  return !chain.empty() && of_storage(*chain[0]) ? laid_out(storage.value, storage.strides) : storage.value;
}

// What the slot shows of the whole as it is now.
Tensor shown_by(const FunctionalSlot& slot) {
  std::vector<const ViewLink*> chain = slot.chain();
  Tensor value = whole_for(*slot.storage, chain);
  for (const ViewLink* link : chain) value = follow(*link, value);
  return value;
}

// Brings the slot's value up to date with writes through other tensors.
void synchronise(FunctionalSlot& slot) {
  if (slot.generation == slot.storage->generation) return;
  slot.value = shown_by(slot);
  slot.generation = slot.storage->generation;
}

// A view that shows one element several times (expand, unfold) has no inverse of its own.
bool has_inverse(const std::vector<const ViewLink*>& chain) {
  return std::all_of(chain.begin(), chain.end(), [](const ViewLink* link) {
    const ops::Row* row = ops::row_of(*link->op);
    return row && row->view.scatter;
  });
}

// The whole after a write to a part, by the views that lead to it.
Tensor put_back(const FunctionalSlot& slot, const std::vector<const ViewLink*>& chain, const Tensor& value) {
  std::vector<Tensor> wholes = {whole_for(*slot.storage, chain)};
  for (size_t at = 0; at + 1 < chain.size(); ++at) wholes.push_back(follow(*chain[at], wholes.back()));
  Tensor part = value;
  for (size_t at = chain.size(); at-- > 0;) {
    const ViewLink& link = *chain[at];
    const ops::Row* row = ops::row_of(*link.op);
    dispatch::Values args;
    args.push_back(dispatch::Value(wholes[at]));
    for (size_t arg = 1; arg < link.args.size(); ++arg) args.push_back(link.args[arg]);
    part = row->view.scatter(wholes[at], part, ops::Arguments(*link.op, args));
  }
  return part;
}

// The same by the places of the part, which are different ones although a view on the way shows them twice.
Tensor put_at_places(const FunctionalSlot& slot, const Tensor& outer, const Tensor& value) {
  static const dispatch::Operator& view = dispatch::find_operator("aten::_strided_view");
  const Tensor& whole = slot.storage->value;
  Tensor self = fake::make(whole.sym_sizes(), slot.storage->strides, whole.dtype(), whole.device());
  SymInts sizes = outer.sym_sizes(), strides = outer.sym_strides();
  SymInt offset = outer.sym_storage_offset();
  const dispatch::Value args[] = {dispatch::Value(self), dispatch::Value(sizes), dispatch::Value(strides),
                                  dispatch::Value(offset)};
  return ops::row_of(view)->view.scatter(whole, value, ops::Arguments(view, args));
}

// The tensor `outer` now stands for `value`, and so does its part of the whole.
void write(const Tensor& outer, FunctionalSlot& slot, const Tensor& value) {
  std::vector<const ViewLink*> chain = slot.chain();
  slot.storage->value = has_inverse(chain) ? put_back(slot, chain, value) : put_at_places(slot, outer, value);
  slot.value = value;
  slot.generation = ++slot.storage->generation;
}

dispatch::Values unwrap(std::span<const dispatch::Value> args) {
  dispatch::Values inner;
  for (const dispatch::Value& arg : args)
    inner.push_back(arg.map_tensors([](const Tensor& tensor) { return from_functional(tensor); }));
  return inner;
}

// The outer tensor is a view too, so that aliases are known by their storage.
Tensor outer_view(const ops::Row& row, const dispatch::Call& call, std::unique_ptr<FunctionalSlot> slot) {
  ops::Geometry geometry = row.view.geometry(ops::Arguments(call.op, call.args));
  const Tensor& self = call.args[0].tensor();
  Tensor outer =
      core::make_view(self, geometry.sizes, geometry.strides, geometry.offset, geometry.dtype.value_or(self.dtype()));
  outer.impl()->keys = outer.impl()->keys | KeySet{DispatchKey::Functionalize};
  outer.impl()->functional = std::move(slot);
  return outer;
}

// Such a view looks into the whole, whatever led to the tensor that it was made of.
void run_view_of_storage(const ops::Row& row, const FunctionalSlot& slot, dispatch::Call& call) {
  const Tensor& self = call.args[0].tensor();
  TENON_CHECK_IMPLEMENTED(self.dtype() == slot.storage->value.dtype(),
                          "[as_strided] expected a tensor of its memory's own dtype, got {} in memory of {}: clone() "
                          "the view of another dtype first",
                          self.description(), name(slot.storage->value.dtype()));
  Tensor whole = laid_out(slot.storage->value, slot.storage->strides);
  ops::Geometry geometry = row.view.geometry(ops::Arguments(call.op, call.args));
  SymInts size = geometry.sizes, stride = geometry.strides, sizes = whole.sym_sizes();
  SymInt first = geometry.offset, last = first, room = 1;
  bool empty = false;
  for (size_t dim = 0; dim < size.size(); ++dim) {
    last = last + (size[dim] - 1) * stride[dim];
    empty |= decide_or(size[dim] == 0, false);
  }
  for (size_t dim = 0; dim < sizes.size(); ++dim) room = room + (sizes[dim] - 1) * slot.storage->strides[dim];
  TENON_CHECK(ops::dense_order(sizes, slot.storage->strides) && expect(first >= 0) && (empty || expect(last < room)),
              "[as_strided] sizes {} with strides {} from offset {} look beside the elements of {} with strides {}, "
              "which is all that the function was given of that memory: pass it the tensor that has all of it",
              str(size), str(stride), first.str(), whole.description(), str(slot.storage->strides));
  auto made = std::make_unique<FunctionalSlot>();
  made->storage = slot.storage;
  static const dispatch::Operator& by_places = dispatch::find_operator("aten::_strided_view");
  made->link = {
      &by_places,
      {dispatch::Value(), dispatch::Value(size).own(), dispatch::Value(stride).own(), dispatch::Value(first).own()}};
  made->links = 1;
  made->parent = self;
  while (functional_slot(made->parent)->parent.defined()) made->parent = Tensor(functional_slot(made->parent)->parent);
  made->value = follow(made->link, whole);
  made->generation = slot.storage->generation;
  call.results.push_back(outer_view(row, call, std::move(made)));
}

void run_view(dispatch::Call& call) {
  const Tensor& self = call.args[0].tensor();
  FunctionalSlot* slot = functional_slot(self);
  TENON_ASSERT(slot, "{} of a tensor that is not functional", call.op.name());
  const ops::Row* row = ops::row_of(call.op);
  if (row->view.of_storage) return run_view_of_storage(*row, *slot, call);
  synchronise(*slot);
  Tensor value = dispatch::call_boxed(call.op, unwrap(call.args))[0].take_tensor();
  auto made = std::make_unique<FunctionalSlot>();
  made->storage = slot->storage;
  made->parent = self;
  made->links = slot->links + 1;
  ViewLink link{&call.op, {}, autograd::grad_enabled()};
  for (const dispatch::Value& arg : call.args) link.args.push_back(arg.is_tensor() ? dispatch::Value() : arg.own());
  made->link = std::move(link);
  made->value = value;
  made->generation = slot->generation;
  call.results.push_back(outer_view(*row, call, std::move(made)));
}

void run_inplace(const ops::Row& row, dispatch::Call& call) {
  Tensor self = call.args[0].tensor();
  FunctionalSlot* slot = functional_slot(self);
  TENON_ASSERT(slot, "{} of a tensor that is not functional", call.op.name());
  synchronise(*slot);
  // The shape rule of the in-place form checks that the result fits.
  ops::infer(row, ops::Arguments(call.op, call.args));
  Tensor value = dispatch::call_boxed(*row.functional_op, unwrap(call.args))[0].take_tensor();
  if (value.dtype() != self.dtype()) {
    static const dispatch::Operator& to = dispatch::find_operator("aten::to.dtype");
    const dispatch::Value args[] = {dispatch::Value(value), dispatch::Value(self.dtype()), dispatch::Value(false),
                                    dispatch::Value(false), dispatch::Value()};
    value = dispatch::call_boxed(to, args)[0].take_tensor();
  }
  write(self, *slot, value);
  call.results.push_back(std::move(self));
}

// Memories that several tensors among the arguments look into, one of which is written.
std::vector<FunctionalStorage*> shared_memories(const dispatch::Call& call) {
  std::vector<std::pair<FunctionalStorage*, int>> seen;
  std::vector<FunctionalStorage*> written, shared;
  std::vector<int> mutated = call.op.schema().mutated_arguments();
  for (size_t at = 0; at < call.args.size(); ++at)
    call.args[at].each_tensor([&](const Tensor& tensor) {
      FunctionalSlot* slot = functional_slot(tensor);
      if (!slot) return;
      FunctionalStorage* storage = slot->storage.get();
      auto found = std::find_if(seen.begin(), seen.end(), [&](const auto& each) { return each.first == storage; });
      if (found == seen.end()) found = seen.insert(seen.end(), {storage, 0});
      ++found->second;
      if (std::find(mutated.begin(), mutated.end(), static_cast<int>(at)) != mutated.end()) written.push_back(storage);
    });
  for (const auto& [storage, count] : seen)
    if (count > 1 && std::find(written.begin(), written.end(), storage) != written.end()) shared.push_back(storage);
  return shared;
}

// Arguments that share memory: the operator runs on views of one copy of it.
void run_custom_aliased(dispatch::Call& call, const std::vector<FunctionalStorage*>& shared) {
  std::vector<Tensor> bases;
  for (const FunctionalStorage* storage : shared) bases.push_back(laid_out(storage->value, storage->strides));
  // Tensors that are written and share nothing are bases of their own.
  std::vector<FunctionalStorage*> memories = shared;
  std::vector<int> mutated = call.op.schema().mutated_arguments();
  for (int at : mutated)
    call.args[static_cast<size_t>(at)].each_tensor([&](const Tensor& tensor) {
      FunctionalSlot* slot = functional_slot(tensor);
      if (!slot) return;
      FunctionalStorage* storage = slot->storage.get();
      if (std::find(memories.begin(), memories.end(), storage) != memories.end()) return;
      memories.push_back(storage);
      bases.push_back(laid_out(storage->value, storage->strides));
    });
  SymInts places;
  for (const FunctionalStorage* storage : memories)
    for (const SymInt& stride : storage->strides) places.push_back(stride);
  dispatch::Values args = unwrap(call.args);
  for (const dispatch::Value& arg : call.args)
    arg.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      Place place;
      FunctionalSlot* slot = functional_slot(tensor);
      auto found = slot ? std::find(memories.begin(), memories.end(), slot->storage.get()) : memories.end();
      if (found != memories.end())
        place = {found - memories.begin(), tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset()};
      append(places, place);
    });
  args.push_back(dispatch::Value(bases).own());
  args.push_back(dispatch::Value(places).own());
  dispatch::Results results = dispatch::call_boxed(*aliased_form(call.op), args);
  const size_t own = call.op.schema().returns.size();
  for (size_t at = 0; at < own; ++at)
    call.results.push_back(results[at].map_tensors([](const Tensor& tensor) { return to_functional(tensor); }));
  size_t next = 0;
  results[own].each_tensor([&](const Tensor& tensor) {
    memories[next]->value = tensor;
    ++memories[next++]->generation;
  });
}

// A custom operator that writes to arguments: its functional form gives what they become.
void run_custom_inplace(dispatch::Call& call) {
  if (std::vector<FunctionalStorage*> shared = shared_memories(call); !shared.empty())
    return run_custom_aliased(call, shared);
  dispatch::OperatorRef form = functional_form(call.op);
  dispatch::Results results = dispatch::call_boxed(*form, unwrap(call.args));
  size_t own = call.op.schema().returns.size();
  for (size_t at = 0; at < own; ++at)
    call.results.push_back(results[at].map_tensors([](const Tensor& tensor) { return to_functional(tensor); }));
  size_t next = own;
  for (int argument : call.op.schema().mutated_arguments()) {
    std::vector<Tensor> written, values;
    call.args[static_cast<size_t>(argument)].each_tensor([&](const Tensor& tensor) { written.push_back(tensor); });
    results[next++].each_tensor([&](const Tensor& tensor) { values.push_back(tensor); });
    TENON_ASSERT(written.size() == values.size(), "{} wrote {} tensors, its functional form {}", call.op.name(),
                 written.size(), values.size());
    for (size_t at = 0; at < written.size(); ++at) {
      FunctionalSlot* slot = functional_slot(written[at]);
      TENON_ASSERT(slot, "{} of a tensor that is not functional", call.op.name());
      synchronise(*slot);
      write(written[at], *slot, values[at]);
    }
  }
}

// What an author's formula reads must be known to the trace: given to it, or made in it.
void check_author_reads(const Tensor& tensor) {
  if (!tensor.defined() || functional_slot(tensor)) return;
  if (!tensor.is_fake()) throw autograd::ReadsOutside(tensor);
  const graph::TraceMode* trace = graph::TraceMode::current();
  if (trace && !trace->recorder().unknown && trace->recorder().find(tensor) == graph::kNoValue)
    throw RuntimeError(graph::of_another_capture(tensor));
}

void run_functionalized(dispatch::Call& call) {
  if (autograd::AuthorFormula::is_running())
    for (const dispatch::Value& arg : call.args) arg.each_tensor(check_author_reads);
  const ops::Row* row = ops::row_of(call.op);
  dispatch::ExcludeKeys below(kUpperLayers);
  if (row && row->kind == ops::Kind::View) return run_view(call);
  if (row && row->inplace()) return run_inplace(*row, call);
  for (const schema::Argument& result : call.op.schema().returns)
    TENON_CHECK(!result.alias,
                "[{}] We only support functionalizing operators whose outputs do not have alias annotations, got {}",
                call.op.name(), call.op.schema().str());
  if (call.op.schema().is_mutable()) return run_custom_inplace(call);
  for (dispatch::Value& result : dispatch::call_boxed(call.op, unwrap(call.args)))
    call.results.push_back(result.map_tensors([](const Tensor& tensor) { return to_functional(tensor); }));
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Functionalize, run_functionalized);
  return true;
}();

}  // namespace

FunctionalSlot* functional_slot(const Tensor& tensor) {
  return tensor.defined() ? static_cast<FunctionalSlot*>(tensor.impl()->functional.get()) : nullptr;
}

Tensor to_functional(const Tensor& value) {
  Tensor outer = fake::like(value);
  outer.impl()->keys = outer.impl()->keys | KeySet{DispatchKey::Functionalize};
  auto slot = std::make_unique<FunctionalSlot>();
  slot->storage = make_ref<FunctionalStorage>();
  slot->storage->value = value;
  slot->storage->strides = value.sym_strides();
  slot->value = value;
  outer.impl()->functional = std::move(slot);
  return outer;
}

Tensor from_functional(const Tensor& tensor) {
  FunctionalSlot* slot = functional_slot(tensor);
  if (!slot) return tensor;
  dispatch::ExcludeKeys below(kUpperLayers);
  synchronise(*slot);
  return slot->value;
}

FunctionalSlot::~FunctionalSlot() {
  // Views that nobody else holds go one by one, not one inside another.
  Tensor next = std::move(parent);
  while (next.defined() && next.impl()->use_count() == 1) {
    FunctionalSlot* slot = functional_slot(next);
    if (!slot) break;
    Tensor before = std::move(slot->parent);
    next = std::move(before);
  }
}

std::vector<const ViewLink*> FunctionalSlot::chain() const {
  std::vector<const ViewLink*> found(links);
  const FunctionalSlot* slot = this;
  for (size_t at = links; at-- > 0; slot = functional_slot(slot->parent)) found[at] = &slot->link;
  return found;
}

Tensor from_functional_as_shown(const Tensor& tensor) {
  Tensor value = from_functional(tensor);
  FunctionalSlot* slot = functional_slot(tensor);
  if (!slot || lies_so(value, tensor.sym_strides())) return value;
  dispatch::ExcludeKeys below(kUpperLayers);
  if (slot->links > 0) value = shown_by(*slot);
  return slot->value = laid_out(value, tensor.sym_strides());
}

bool is_view_of(const Tensor& view, const Tensor& base) {
  for (Tensor at = functional_slot(view)->parent; at.defined(); at = functional_slot(at)->parent)
    if (at.is(base)) return true;
  return false;
}

bool was_written(const Tensor& tensor) {
  FunctionalSlot* slot = functional_slot(tensor);
  return slot && slot->storage->generation > 0;
}

}  // namespace tenon::aot
