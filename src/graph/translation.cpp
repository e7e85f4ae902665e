#include "translation.h"

#include <bit>

namespace tenon::graph {

using dispatch::Value;

Translation::Translation(std::span<const Value> numbers) {
  auto is_real = [](const Value& number) { return number.tag() == Value::Tag::Real; };
  for (const Value& number : numbers) {
    const bool symbolic = is_real(number) ? number.sym_float().is_symbolic() : number.sym_int().is_symbolic();
    if (symbolic) env_ = is_real(number) ? number.sym_float().env() : number.sym_int().env();
    bits_.push_back(symbolic ? 0 : is_real(number) ? std::bit_cast<int64_t>(number.real()) : number.integer());
  }
  if (!env_) return;
  sym::ExprPool& pool = env_->pool();
  for (size_t at = 0; at < numbers.size(); ++at) {
    const Value& number = numbers[at];
    auto id = static_cast<int32_t>(at);
    if (is_real(number))
      symbols_.emplace(
          id, number.sym_float().is_symbolic() ? number.sym_float().expr() : pool.real_constant(number.real()));
    else
      symbols_.emplace(id, number.sym_int().is_symbolic() ? number.sym_int().expr() : pool.constant(number.integer()));
  }
}

SymInt Translation::operator()(const SymInt& number) const {
  if (!number.is_symbolic()) return number;
  if (!env_) return sym::evaluate(number.expr(), bits_);
  return SymInt((*this)(number.expr()), env_);
}

SymInts Translation::operator()(const SymInts& numbers) const {
  SymInts made;
  for (const SymInt& number : numbers) made.push_back((*this)(number));
  return made;
}

Value Translation::operator()(const Value& value) const {
  if (!env_) return evaluate_numbers(value, bits_);
  switch (value.tag()) {
    case Value::Tag::Int: return Value((*this)(value.sym_int())).own();
    case Value::Tag::SymInts: return Value((*this)(value.sym_ints())).own();
    case Value::Tag::Real:
      return value.sym_float().is_symbolic() ? Value(SymFloat((*this)(value.sym_float().expr()), env_)).own() : value;
    case Value::Tag::Bool:
      return value.sym_bool().is_symbolic() ? Value(SymBool((*this)(value.sym_bool().expr()), env_)).own() : value;
    default: return value;
  }
}

Tensor Translation::operator()(const Tensor& meta) const {
  SymInts sizes = (*this)(meta.sym_sizes()), strides = (*this)(meta.sym_strides());
  Tensor made = core::make_without_data(sizes, strides, meta.dtype(), meta.device(), KeySet{DispatchKey::Fake});
  SymInt offset = (*this)(meta.sym_storage_offset());
  return offset.same(0) ? made : core::make_view(made, sizes, strides, offset);
}

Graph with_numbers(const Graph& graph, const Translation& translate) {
  Graph made = graph;
  auto each = [&](Argument& argument) {
    if (auto* constant = std::get_if<Value>(&argument)) argument = translate(*constant);
  };
  for (Node& node : made.nodes)
    for (Argument& argument : node.args) each(argument);
  for (Argument& output : made.outputs) each(output);
  return made;
}

Graph compacted(const Graph& graph) {
  Graph made = graph;
  made.values.clear();
  std::unordered_map<ValueId, ValueId> renamed;
  auto rename = [&](ValueId& id) {
    if (id == kNoValue) return;
    auto [found, added] = renamed.try_emplace(id, static_cast<ValueId>(made.values.size()));
    if (added) made.values.push_back(graph.values[static_cast<size_t>(id)]);
    id = found->second;
  };
  auto rename_all = [&](Argument& argument) {
    if (auto* id = std::get_if<ValueId>(&argument)) rename(*id);
    if (auto* list = std::get_if<ValueList>(&argument))
      for (ValueId& id : list->ids) rename(id);
  };
  for (ValueId& id : made.inputs) rename(id);
  for (Node& node : made.nodes) {
    for (Argument& argument : node.args) rename_all(argument);
    for (ValueId& id : node.outputs) rename(id);
  }
  for (Argument& output : made.outputs) rename_all(output);
  return made;
}

Graph moved(const Graph& graph, const Translation& translate) {
  Graph made = with_numbers(graph, translate);
  made.env = translate.env();
  made.symbols.clear();
  for (ValueInfo& value : made.values)
    if (value.meta.defined()) value.meta = translate(value.meta);
  return made;
}

}  // namespace tenon::graph
