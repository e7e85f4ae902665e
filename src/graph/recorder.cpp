#include <tenon/graph/recorder.h>

#include "support/origin.h"

#include <algorithm>

namespace tenon::graph {

ValueId Recorder::add_input(const Tensor& tensor, std::string name, const Tensor& meta) {
  names_.insert(name);
  ValueId id = graph_.add_value(std::move(name), meta);
  graph_.inputs.push_back(id);
  bind(tensor, id);
  return id;
}

ValueId Recorder::find(const Tensor& tensor) const {
  auto found = ids_.find(tensor.impl());
  return found == ids_.end() ? kNoValue : found->second.second;
}

void Recorder::bind(const Tensor& tensor, ValueId id) {
  if (journal) journal->push_back({tensor, find(tensor), id});
  ids_[tensor.impl()] = {tensor, id};
}

void Recorder::undo(std::span<const Bound> bindings) {
  for (auto entry = bindings.rbegin(); entry != bindings.rend(); ++entry) {
    const bool is_input = std::find(graph_.inputs.begin(), graph_.inputs.end(), entry->after) != graph_.inputs.end();
    if (entry->before != kNoValue)
      ids_[entry->tensor.impl()] = {entry->tensor, entry->before};
    else if (!is_input)
      ids_.erase(entry->tensor.impl());
  }
}

void Recorder::each_tensor(const std::function<void(const Tensor&, ValueId)>& visit) const {
  for (const auto& [impl, entry] : ids_) visit(entry.first, entry.second);
}

std::string of_another_capture(const Tensor& fake) {
  return fmt::format(
      "[compile] a tensor {} of another capture was used: results of a captured function must be returned, not kept "
      "aside",
      fake.description());
}

Argument Recorder::to_argument(const dispatch::Value& value) {
  auto id_of = [&](const Tensor& tensor) {
    if (!tensor.defined()) return kNoValue;
    ValueId id = find(tensor);
    if (id != kNoValue) return id;
    TENON_ASSERT(unknown, "a tensor {} that the graph does not know", tensor.description());
    return unknown(tensor);
  };
  switch (value.tag()) {
    case dispatch::Value::Tag::Tensor: return id_of(value.tensor());
    case dispatch::Value::Tag::Tensors: {
      ValueList list;
      for (const Tensor& tensor : value.tensors()) list.ids.push_back(id_of(tensor));
      return list;
    }
    case dispatch::Value::Tag::OptionalTensors: {
      ValueList list{{}, true};
      for (const auto& tensor : value.optional_tensors()) list.ids.push_back(tensor ? id_of(*tensor) : kNoValue);
      return list;
    }
    default: return value.own();
  }
}

namespace {

// Where, in what a call gave, an unbacked symbol shows.
Binding find_binding(int32_t symbol, std::span<const dispatch::Value> results) {
  auto is_symbol = [symbol](const SymInt& number) {
    return number.is_symbolic() && number.expr().is_symbol() && number.expr().symbol_id() == symbol;
  };
  Binding binding;
  binding.symbol = symbol;
  int32_t output = 0;
  auto found = [&](Binding::Kind kind, int32_t dim) {
    if (binding.kind == Binding::Kind::Hidden) binding = {kind, symbol, output, dim};
  };
  for (size_t at = 0; at < results.size(); ++at) {
    const dispatch::Value& result = results[at];
    if (result.is_number()) {
      bool shows = false;
      each_symbol(Argument(result), [&](int32_t id) { shows |= id == symbol; });
      if (shows) return {Binding::Kind::Item, symbol, -1, static_cast<int32_t>(at)};
    }
    result.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      SymInts sizes = tensor.sym_sizes(), strides = tensor.sym_strides();
      for (size_t dim = 0; dim < sizes.size(); ++dim)
        if (is_symbol(sizes[dim])) found(Binding::Kind::Size, static_cast<int32_t>(dim));
      for (size_t dim = 0; dim < strides.size(); ++dim)
        if (is_symbol(strides[dim])) found(Binding::Kind::Stride, static_cast<int32_t>(dim));
      if (is_symbol(tensor.sym_storage_offset())) found(Binding::Kind::Offset, 0);
      ++output;
    });
  }
  return binding;
}

}  // namespace

int64_t Recorder::number_now() {
  const Origin& origin = current_origin();
  if (origin.backward) {
    // A node that autograd made beside the operator's own has a number that follows the operator's.
    auto after = numbers_.upper_bound(origin.sequence);
    return after == numbers_.begin() ? -1 : std::prev(after)->second;
  }
  if (origin.sequence < 0) return next_number_++;
  auto [found, added] = numbers_.try_emplace(origin.sequence, next_number_);
  if (added) ++next_number_;
  return found->second;
}

Node& Recorder::record(const dispatch::Operator& op, std::span<const dispatch::Value> args,
                       std::span<const dispatch::Value> results, const std::function<Tensor(const Tensor&)>& meta_of) {
  Node node;
  node.op = &op;
  node.sequence = number_now();
  if (const Origin& origin = current_origin(); origin.module && !origin.backward) node.module = *origin.module;
  for (const dispatch::Value& arg : args) node.args.push_back(to_argument(arg));
  for (const dispatch::Value& result : results)
    result.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      ValueId known = find(tensor);
      // An in-place operator returns the tensor that it was given.
      if (known != kNoValue && op.schema().is_mutable()) {
        node.outputs.push_back(known);
        return;
      }
      // An input may bring a number as its name from the graph that it was a value of.
      std::string name = std::to_string(graph_.values.size());
      while (names_.contains(name)) name += "_";
      ValueId id = graph_.add_value(std::move(name), meta_of ? meta_of(tensor) : tensor);
      bind(tensor, id);
      node.outputs.push_back(id);
    });
  if (graph_.env)
    for (int32_t symbol : graph_.env->take_fresh()) node.binds.push_back(find_binding(symbol, results));
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back();
}

}  // namespace tenon::graph
